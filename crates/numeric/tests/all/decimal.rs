//! The text of integers next to powers of ten and two, compared with the text of the standard library.

use ascertain_numeric::decimal::{
    Integer, TooShort, VARIANTS, Variant, append, append_column, append_to_string, write, write_within,
};
use proptest::prelude::*;

/// Powers of ten and of two, and the numbers next to them.
fn edges() -> impl Iterator<Item = u64> {
    let tens = (0..20).map(|k| 10_u64.pow(k));
    let twos = (0..64).map(|k| 1_u64 << k);
    let beside = tens.chain(twos).flat_map(|x| [x - 1, x, x + 1]);
    beside.chain([u64::MAX - 1, u64::MAX, 9_999_999_999, 9_999_999_999_999_999_999])
}

/// Checks that every function and variant returns the text of the standard library, and writes within its bounds.
fn check<I: Integer + ToString>(value: I) {
    let expected = value.to_string();
    let mut buffer = vec![b'~'; I::MOST_BYTES + 8];
    let length = write(value, &mut buffer[..I::MOST_BYTES]).unwrap();
    assert_eq!(std::str::from_utf8(&buffer[..length]), Ok(&*expected));
    assert_eq!(buffer[I::MOST_BYTES..], *b"~~~~~~~~", "{expected}: writes beyond its bound");

    let mut exact = vec![b'~'; expected.len() + 1];
    assert_eq!(write_within(value, &mut exact), Ok(expected.len()));
    assert_eq!(exact, format!("{expected}~").into_bytes());
    let short = TooShort { needed: expected.len(), have: expected.len() - 1 };
    assert_eq!(write_within(value, &mut exact[..expected.len() - 1]), Err(short));

    let mut text = b"before".to_vec();
    append(value, &mut text);
    assert_eq!(text, format!("before{expected}").into_bytes());
    let mut string = String::from("before");
    append_to_string(value, &mut string);
    assert_eq!(string.as_bytes(), text);
}

fn check_column<I: Integer + ToString>(values: &[I]) {
    let mut text = b"!".to_vec();
    append_column(values, b';', &mut text);
    let expected: String = values.iter().map(|value| format!("{};", value.to_string())).collect();
    assert_eq!(String::from_utf8(text).unwrap(), format!("!{expected}"));
    for variant in VARIANTS.iter().filter(|variant| variant.is_text) {
        let mut text = Vec::new();
        if variant.append_column(values, b';', &mut text).is_some() {
            assert_eq!(std::str::from_utf8(&text), Ok(&*expected), "{}", variant.name);
        }
    }
}

#[test]
fn edges_of_every_digit_count() {
    for x in edges() {
        check(x);
        check(x as u32);
        check(x as i64);
        check((x as i64).wrapping_neg());
        check(x as i32);
        check((x as i32).wrapping_neg());
    }
    check(i32::MIN);
    check(i64::MIN);
    for x in i16::MIN..=i16::MAX {
        check(x);
        check(x as u16);
    }
    for x in i8::MIN..=i8::MAX {
        check(x);
        check(x as u8);
    }
    for x in [0, 1, usize::MAX] {
        check(x);
        check(x as isize);
        check(isize::MIN.wrapping_add_unsigned(x));
    }
    let all: Vec<u64> = edges().collect();
    check_column(&all);
    check_column(&all.iter().map(|&x| x as i64).collect::<Vec<_>>());
    check_column(&all.iter().map(|&x| (x as i32).wrapping_neg()).collect::<Vec<_>>());
    check_column(&all.iter().map(|&x| x as u32 % 1_000).collect::<Vec<_>>());
    check_column(&all.iter().map(|&x| x as usize).collect::<Vec<_>>());
    check_column(&all.iter().map(|&x| x as i16).collect::<Vec<_>>());
    check_column(&all.iter().map(|&x| x as u8).collect::<Vec<_>>());
    check_column::<u32>(&[]);
}

/// Tests columns of numbers next to multiples of 10⁸. A column divides by 10⁸ with a factor that is slightly too small,
/// so the quotients of some of these numbers need a correction.
#[test]
fn columns_of_what_is_next_to_a_multiple() {
    const EIGHT: u64 = 100_000_000;
    let most = u64::MAX / EIGHT;
    let quotients = edges().filter(|&x| x <= most).chain((0..2_000).map(|i| most - i * i * 1_000)).chain(1..2_000);
    let beside = |q: u64| [(q * EIGHT).wrapping_sub(1), q * EIGHT, q * EIGHT + 1];
    let values: Vec<u64> = quotients.flat_map(beside).collect();
    check_column(&values);
    check_column(&values.iter().map(|&x| x as i64).collect::<Vec<_>>());
}

#[test]
fn every_variant_at_the_edges() {
    for variant in VARIANTS.iter().filter(|variant| variant.is_text) {
        for x in edges() {
            for write in [Variant::each, Variant::each_called, Variant::each_plain] {
                let mut buffer = [b'~'; 20];
                let Some(length) = write(variant, &[x], &mut buffer) else { continue };
                assert_eq!(std::str::from_utf8(&buffer[..length]), Ok(&*x.to_string()), "{}", variant.name);
            }
        }
    }
}

#[test]
fn a_short_buffer_is_left_as_it_was() {
    let mut buffer = [b'~'; 19];
    assert_eq!(write(1_u64, &mut buffer), Err(TooShort { needed: 20, have: 19 }));
    assert_eq!(write(1_i32, &mut buffer[..10]), Err(TooShort { needed: 11, have: 10 }));
    assert_eq!(buffer, [b'~'; 19]);
    assert!(write(1_u32, &mut []).unwrap_err().to_string().contains("needs 10"));
}

proptest! {
    #[test]
    fn any_number(x in any::<u64>(), bits in 0..64_u32) {
        check(x >> bits);
        check((x >> bits) as i64);
        check((x >> bits) as u32);
        check((x >> bits) as i32);
    }

    #[test]
    fn any_column(values in proptest::collection::vec(any::<i64>(), 0..600), bits in 0..64_u32) {
        check_column(&values);
        check_column(&values.iter().map(|x| x >> bits).collect::<Vec<_>>());
        check_column(&values.iter().map(|x| (x >> bits) as u64).collect::<Vec<_>>());
    }
}

/// Checks all 2^32 numbers, one by one and in columns, on demand: `cargo test --release -p ascertain-numeric --test all
/// decimal -- --ignored`.
#[test]
#[ignore = "takes two minutes in a release build"]
fn every_number_of_32_bits() {
    use std::io::Write;
    let mut expected = Vec::new();
    for block in 0..=0xffff_u32 {
        let values: Vec<u32> = (0..=0xffff).map(|low| block << 16 | low).collect();
        let mut column = Vec::new();
        append_column(&values, b',', &mut column);
        expected.clear();
        let mut each = Vec::new();
        for value in &values {
            write!(expected, "{value},").unwrap();
            append(*value, &mut each);
            each.push(b',');
        }
        assert!(column == expected && each == expected, "among {} and the next 65,535", values[0]);
    }
}
