//! The size of pages. A page of many claims must be small enough to be sent by mail and to open quickly.

use ascertain_engine::recorded;
use ascertain_report::html;

use crate::shapes::many_claims;

/// The page may have 3.7 kB for each claim with all its pictures, 548 kB in total. The run has as many claims as
/// `check` has inexact claims, and each claim has as many trials as it needs on a noisy machine. The exact claims of
/// `check` have no pictures, and its 21 experiments need about 250 kB. The page of `check` is therefore below 1 MB.
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
