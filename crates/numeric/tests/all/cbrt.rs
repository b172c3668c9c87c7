//! Exact cube roots: of every cube, and of the numbers next to it.

use ascertain_numeric::cbrt::{VARIANTS, Variant, cbrt_each, cbrt_u32, cbrt_u64};

/// The largest root of a 64-bit number.
const MOST: u64 = 2_642_245;

/// Tests only numbers next to cubes: the estimate is less than one above the root, so the result can only be wrong
/// there.
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
fn every_cube_and_its_neighbours_as_slices() {
    let mut roots = [0; 3 * 1_001];
    for first in (1..=MOST).step_by(1_001) {
        let block = first..(first + 1_001).min(MOST + 1);
        let numbers: Vec<u64> =
            block.clone().flat_map(|root| [root.pow(3) - 1, root.pow(3), root.pow(3) + 1]).collect();
        cbrt_each(&numbers, &mut roots);
        for (root, seen) in block.zip(roots.chunks(3)) {
            let root = root as u32;
            assert_eq!(seen, [root - 1, root, root], "{root}");
        }
    }
    cbrt_each(&[0; 9], &mut roots);
    assert_eq!(roots[..9], [0; 9]);
    cbrt_each(&[u64::MAX; 9], &mut roots[..8]);
    assert_eq!(roots[..9], [2_642_245, 2_642_245, 2_642_245, 2_642_245, 2_642_245, 2_642_245, 2_642_245, 2_642_245, 0]);
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

/// Checks all 2^32 numbers, on demand: `cargo test --release -p ascertain-numeric --test all cbrt -- --ignored`.
#[test]
#[ignore = "takes ten seconds in a release build"]
fn every_number_of_32_bits() {
    for x in 0..=u32::MAX {
        let root = u64::from(cbrt_u32(x));
        assert!(root.pow(3) <= u64::from(x) && u64::from(x) < (root + 1).pow(3), "{x}: {root}");
        assert_eq!(cbrt_u64(u64::from(x)), root as u32);
    }
}

/// Returns numbers of every length, and both ends of the range.
fn numbers() -> Vec<u64> {
    let mut state = 1_u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state
    };
    let spread = (0..50_000).map(|i| next() >> (i % 64));
    spread.chain([0, 1, 7, 8, 26, 27, 63, 64, u64::MAX - 1, u64::MAX]).collect()
}

#[test]
fn every_method_is_as_near_as_it_says() {
    let numbers = numbers();
    for variant in VARIANTS.iter().filter(|variant| variant.is_root) {
        let mut roots = vec![0; numbers.len()];
        variant.each(&numbers, &mut roots);
        let mut error_sum = 0.0;
        for (&number, &root) in numbers.iter().zip(&roots) {
            let exact = cbrt_u64(number);
            if variant.is_exact {
                assert_eq!(root, exact, "{} of {number}", variant.name);
            } else {
                let error = f64::from(root.abs_diff(exact)) / f64::from(exact.max(1));
                assert!(error <= 0.5 || exact < 10, "{} of {number}: {root} for {exact}", variant.name);
                error_sum += if exact >= 1_000 { error } else { 0.0 };
            }
        }
        let mean = error_sum / numbers.len() as f64;
        assert!(mean < 0.05, "{}: mean error {mean}", variant.name);
    }
}

#[test]
fn a_chain_takes_the_same_roots() {
    let numbers = numbers();
    for variant in VARIANTS {
        for number in &numbers[..100] {
            let mut root = [0];
            variant.each(&[*number], &mut root);
            assert_eq!(variant.chain(&[1, *number]).unwrap_or(root[0]), root[0], "{}", variant.name);
        }
    }
}

#[cfg(target_os = "linux")]
#[test]
fn the_code_of_every_method_has_a_size() {
    let is_here = |variant: &&Variant| variant.is_available().is_ok();
    let has_size = |variant: &&Variant| !["exact-each", "exact-avx2"].contains(&variant.name);
    for variant in VARIANTS.iter().filter(is_here).filter(has_size) {
        let bytes = variant.code_bytes().unwrap();
        assert!((8..20_000).contains(&bytes), "{}: {bytes}", variant.name);
    }
}
