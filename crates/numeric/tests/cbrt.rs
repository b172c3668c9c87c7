//! Exact cube roots: every cube, and what lies beside it.
#![allow(missing_docs)]

use ascertain_numeric::cbrt::{cbrt_u32, cbrt_u64};

/// The largest root of a 64-bit number.
const MOST: u64 = 2_642_245;

/// The estimate lies less than one above the root, so that it can only be wrong next to a cube.
#[test]
fn every_cube_and_its_neighbours() {
    assert_eq!(cbrt_u64(0), 0);
    for root in 1..=MOST {
        let cube = root * root * root;
        assert_eq!(u64::from(cbrt_u64(cube - 1)), root - 1, "{root}³ − 1");
        assert_eq!(u64::from(cbrt_u64(cube)), root, "{root}³");
        assert_eq!(u64::from(cbrt_u64(cube + 1)), root, "{root}³ + 1");
    }
    assert_eq!(u64::from(cbrt_u64(u64::MAX)), MOST);
}

#[test]
fn every_power_of_two_and_its_neighbours() {
    for x in (0..64).flat_map(|bit| [(1_u64 << bit) - 1, 1 << bit, (1 << bit) + 1]) {
        let root = u128::from(cbrt_u64(x));
        assert!(root.pow(3) <= u128::from(x) && u128::from(x) < (root + 1).pow(3), "{x}: {root}");
    }
}

#[test]
fn every_cube_of_32_bits_and_its_neighbours() {
    assert_eq!(cbrt_u32(0), 0);
    for root in 1..=1_625_u32 {
        let cube = root.pow(3);
        assert_eq!([cbrt_u32(cube - 1), cbrt_u32(cube), cbrt_u32(cube + 1)], [root - 1, root, root]);
    }
    assert_eq!(cbrt_u32(u32::MAX), 1_625);
}

/// All 2^32, on demand: `cargo test --release -p ascertain-numeric --test cbrt -- --ignored`.
#[test]
#[ignore = "takes ten seconds in a release build"]
fn every_number_of_32_bits() {
    for x in 0..=u32::MAX {
        let root = u64::from(cbrt_u32(x));
        assert!(root.pow(3) <= u64::from(x) && u64::from(x) < (root + 1).pow(3), "{x}: {root}");
        assert_eq!(cbrt_u64(u64::from(x)), root as u32);
    }
}
