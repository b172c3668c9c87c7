//! The size of pages. A page of many claims must be small enough to be sent by mail and to open quickly.

use ascertain_engine::recorded;
use ascertain_report::html;

use crate::shapes::many_claims;

/// The run has as many claims with chance as `check`, with as many trials as these need on a noisy machine. A claim
/// with all its pictures needs 3.7 kB, all together 548 kB. A fifth of the claims of `check` are exact and have no
/// picture. The 21 experiments of `check` need about 250 kB. Together this is less than 1 MB.
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
