//! How large pages are: a page of many claims can still be sent by mail, and opens at once.
#![allow(missing_docs)]

#[path = "shapes/mod.rs"]
mod shapes;

use ascertain_engine::recorded;
use ascertain_report::html;
use shapes::{Shape, scalar};

/// As many claims as `check` has, with as many trials as they take on a noisy machine: 4.3 kB for each, all of its pictures
/// with it, are 636 kB. A fifth of `check`'s have no chance in them and no picture, and its twelve experiments come to some
/// 200 kB.
#[test]
fn a_page_of_many_claims_is_small() {
    const CLAIMS: usize = 148;
    const VARIANTS: [&str; 12] = [
        "naive",
        "pairwise",
        "kahan",
        "neumaier",
        "kahan-avx2",
        "kahan-avx512",
        "kahan-avx512-fma",
        "neumaier-avx2",
        "neumaier-avx512",
        "block-twosum",
        "exact",
        "exact-avx512",
    ];
    let mut shape = Shape::of_functions("many-claims", &VARIANTS, 60, |_, arm, random| {
        let place = VARIANTS.iter().position(|variant| *variant == arm.variant).unwrap_or(0);
        vec![scalar(random.time_ns(1000.0 / (1.0 + place as f64), 0.1))]
    });
    for claim in 0..CLAIMS {
        let (candidate, baseline) = (VARIANTS[1 + claim % 11], VARIANTS[claim % 5]);
        let id = format!("sum.{candidate}-faster-than-{baseline}-{claim}");
        shape = if claim % 7 == 6 {
            shape.claiming_rate(&id, candidate, "time <= 500 ns", 0.9)
        } else {
            shape.claiming(&id, candidate, baseline, 1.0 + (claim % 5) as f64 / 4.0)
        };
    }
    let runs = tempfile::tempdir().unwrap();
    let run = recorded::read(&shape.write(runs.path())).unwrap();
    assert_eq!(run.outcome.claims.len(), CLAIMS);
    let page = html::page(&[run]);
    assert!(!page.contains("Left out"));
    let bytes = page.len();
    assert!(bytes < 4_300 * CLAIMS, "{bytes} bytes, {} a claim", bytes / CLAIMS);
}
