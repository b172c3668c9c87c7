//! The size of pages. A page of many claims must be small enough to be sent by mail and to open quickly.

use ascertain_engine::recorded;
use ascertain_report::html;

use crate::shapes::many_claims;

/// The page may have 3.7 kB for each claim with all its pictures, 548 kB in total. The run has the number of claims of
/// `check` that are not exact, with the number of trials that they need on a noisy machine. The other fifth of the
/// claims of `check` is exact and has no pictures, and the 21 experiments of `check` need about 250 kB. So its page is
/// below 1 MB.
#[test]
fn a_page_of_many_claims_is_small() {
    const CLAIMS: usize = 148;
    let runs = tempfile::tempdir().unwrap();
    let run = recorded::read(&many_claims(CLAIMS).write(runs.path())).unwrap();
    assert_eq!(run.outcome.claims.len(), CLAIMS);
    let page = html::page(&[run]);
    assert!(!page.contains("Left out"));
    let bytes = page.len();
    assert!(bytes < 3_700 * CLAIMS, "{bytes} bytes, {} a claim", bytes / CLAIMS);
}
