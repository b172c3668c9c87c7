//! Sums of the same numbers at different addresses.

use ascertain_numeric::sum::Element;

/// Checks that the address of a slice does not change any sum. The address only decides which numbers are loaded
/// together.
fn is_the_same_everywhere<T: Element>(number: impl Fn(usize) -> T) {
    // Lengths of 1,030 and 1,050 leave a short remainder to the methods that process a slice in pieces.
    for length in [31, 300, 1000, 1030, 1050] {
        let numbers: Vec<T> = (0..length).map(&number).collect();
        let mut memory = vec![number(0); length + 32];
        let line = memory.as_ptr().align_offset(64);
        // Kahan's method is left out. Adding the −0.0 of an unused lane may move a part of its compensation to the sum.
        for variant in T::VARIANTS.iter().filter(|variant| !variant.name.starts_with("kahan")) {
            for function in variant.accumulators.iter().filter_map(|&n| variant.function(n)) {
                let expected = function(&numbers).to_bits();
                for offset in [0, 1, 2, 5, 8, 15] {
                    let there = &mut memory[line + offset..][..length];
                    there.copy_from_slice(&numbers);
                    assert_eq!(function(there).to_bits(), expected, "{}, {length} from {offset}", variant.name);
                }
            }
        }
    }
}

#[test]
fn the_place_in_memory_changes_nothing() {
    // The numbers span 80 powers of two and both signs, so that every addition rounds.
    let number = |i: usize| ((i * 7919 % 1000) as f64 - 400.3) * 2_f64.powi((i * 31 % 80) as i32 - 40);
    is_the_same_everywhere(number);
    is_the_same_everywhere(|i| number(i) as f32);
}
