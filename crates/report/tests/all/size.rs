//! How large pages are: a page of many claims can still be sent by mail, and opens at once.

use ascertain_engine::recorded;
use ascertain_report::html;

use crate::shapes::many_claims;

/// As many claims as `check` has with a chance in them, with as many trials as they take on a noisy machine: 3.7 kB for
/// each, all of its pictures with it, are 548 kB. A fifth of `check`'s have no chance in them and no picture, and its
/// 21 experiments come to some 250 kB: together less than 1 MB.
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
