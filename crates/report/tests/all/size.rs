//! The size of pages. A page of many claims must be small enough to be sent by mail and to open quickly.

use ascertain_engine::recorded;
use ascertain_report::html;

use crate::shapes::many_claims;

/// The page may have at most 3.7 kB for each claim with all its pictures, 548 kB in total. The run has as many claims
/// as `check` has inexact ones, each with as many trials as it needs on a noisy machine. `check` also has exact claims,
/// which have no pictures, and 21 experiments, which need about 250 kB. Its page is therefore below 1 MB.
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
