//! Exact sums as values: bytes, comparison, operators, references.

use ascertain_numeric::sum::{Exact, ExactBytesError, dot_of, mean_of, sum_of, variance_of};

#[test]
fn bytes_are_checked() {
    let sum: Exact = [1.5, -2.25].into_iter().collect();
    let bytes = sum.to_bytes();
    assert_eq!(bytes.len(), Exact::LENGTH);
    assert_eq!(Exact::from_bytes(&bytes).unwrap().round(), -0.75);
    let wrong = |place: usize, byte: u8| {
        let mut bytes = bytes;
        bytes[place] = byte;
        Exact::from_bytes(&bytes).unwrap_err()
    };
    assert_eq!(Exact::from_bytes(&[]).unwrap_err(), ExactBytesError::Length(0));
    assert_eq!(Exact::from_bytes(&bytes[1..]).unwrap_err(), ExactBytesError::Length(Exact::LENGTH - 1));
    assert_eq!(wrong(0, b'A'), ExactBytesError::NotASum);
    assert_eq!(wrong(4, 2), ExactBytesError::Version(2));
    assert_eq!(wrong(5, 5), ExactBytesError::Damaged, "this kind does not exist");
    assert_eq!(wrong(5, 2), ExactBytesError::Damaged, "an infinity has no digits");
    assert_eq!(wrong(5, 0), ExactBytesError::Damaged, "nor has the sum of no numbers");
    assert_eq!(wrong(Exact::LENGTH - 1, 0x7f), ExactBytesError::Damaged, "there is no room for a carry");
    assert!(wrong(4, 2).to_string().contains("version 2"));
}

#[test]
fn equal_sums_have_equal_bytes() {
    let bytes = |xs: &[f64]| xs.iter().copied().collect::<Exact>().to_bytes();
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    for (left, right) in [
        (&[1e300, -1.0, -1e300] as &[f64], &[-1.0] as &[f64]),
        (&[], &[-0.0, -0.0]),
        (&[0.0], &[5.0, -5.0]),
        (&[inf, 3.0], &[inf, inf, -7.0]),
        (&[nan, 1.0], &[inf, -inf]),
    ] {
        assert_eq!(bytes(left), bytes(right), "{left:?} {right:?}");
    }
    let different = [&[] as &[f64], &[0.0], &[1.0], &[-1.0], &[f64::from_bits(1)], &[inf], &[-inf], &[nan]];
    for (i, left) in different.iter().enumerate() {
        for right in &different[..i] {
            assert_ne!(bytes(left), bytes(right), "{left:?} {right:?}");
        }
    }
}

/// The bytes are a file format: every later version must be able to read the bytes of earlier versions.
#[test]
fn bytes_of_a_sum_stay_as_they_are() {
    let bytes = [-1.0].into_iter().collect::<Exact>().to_bytes();
    assert_eq!(bytes[..6], [b'a', b's', b'u', b'm', 1, 1]);
    // −1 is −2^1074 units. Digit 33 (bits 1056 to 1087) is therefore 2^32 − 2^18, and all digits after it are 2^32 − 1,
    // as in two's complement.
    let digit = |i: usize| u32::from_le_bytes(bytes[6 + 4 * i..][..4].try_into().unwrap());
    assert!((0..33).all(|i| digit(i) == 0));
    assert_eq!(digit(33), u32::MAX - (1 << 18) + 1);
    assert!((34..69).all(|i| digit(i) == u32::MAX));
}

#[test]
fn a_sum_that_outgrows_its_room_is_an_infinity() {
    for (number, infinity) in [(f64::MAX, f64::INFINITY), (-f64::MAX, f64::NEG_INFINITY)] {
        let mut sum: Exact = [number].into_iter().collect();
        for _ in 0..200 {
            sum.merge(&sum.clone());
            assert_eq!(Exact::from_bytes(&sum.to_bytes()).unwrap(), sum);
        }
        assert_eq!(sum.round(), infinity);
        assert_eq!(sum, [infinity].into_iter().collect());
    }
}

/// Bytes that were accepted must not make any operation panic, even if their last digit is the largest possible.
#[test]
fn bytes_that_someone_made_up_can_be_used() {
    let largest = [(1_i64 << 62) - 1, 1 - (1 << 62)].map(|top| {
        let mut bytes = [1.0].into_iter().collect::<Exact>().to_bytes();
        bytes[6..Exact::LENGTH - 8].fill(0xff);
        bytes[Exact::LENGTH - 8..].copy_from_slice(&top.to_le_bytes());
        Exact::from_bytes(&bytes).unwrap()
    });
    let [up, down] = &largest;
    for (left, right, sum) in [(up, up, f64::INFINITY), (down, down, f64::NEG_INFINITY)] {
        let mut merged = left.clone();
        merged.merge(right);
        assert_eq!(merged.round(), sum);
        merged.merge(right);
        assert_eq!((merged.round(), Exact::from_bytes(&merged.to_bytes()).unwrap()), (sum, merged));
        let mut more = left.clone();
        more.extend([f64::MAX.copysign(sum); 10_000]);
        assert_eq!(more.round(), sum);
        assert_eq!(Exact::from_bytes(&more.to_bytes()).unwrap(), more);
        assert_eq!(Exact::from_bytes(&left.to_bytes()).unwrap(), *left);
    }
}

#[test]
fn sums_are_compared_before_they_are_rounded() {
    let sum = |xs: &[f64]| xs.iter().collect::<Exact>();
    assert_eq!(sum(&[1e300, -1.0, -1e300]), sum(&[-1.0]));
    assert_eq!(sum(&[0.0]), sum(&[-0.0]));
    assert_eq!(sum(&[f64::INFINITY, 3.0]), sum(&[f64::INFINITY]));
    assert_ne!(sum(&[f64::INFINITY]), sum(&[f64::NEG_INFINITY]));
    assert_ne!(sum(&[f64::INFINITY]), sum(&[]));
    assert_ne!(sum(&[1.0, 1e-300]), sum(&[1.0]), "{}: the sums differ", sum(&[1.0, 1e-300]).round());
    assert_ne!(sum(&[f64::NAN]), sum(&[f64::NAN]));
}

#[test]
fn references_and_operators() {
    let (singles, doubles) = (vec![0.5_f32, 0.25], vec![1e100, 1.0, -1e100]);
    assert_eq!((sum_of(&singles), sum_of(&doubles), sum_of(doubles.iter().rev())), (0.75, 1.0, 1.0));
    assert_eq!(
        (mean_of(&singles), variance_of([1.0, 3.0].iter()), dot_of(&doubles, [1.0; 3])),
        (Some(0.375), Some(2.0), 1.0)
    );
    let mut sum = Exact::new();
    sum.extend(&singles);
    sum.extend(doubles.iter());
    sum += doubles.iter().collect::<Exact>();
    sum += &Exact::from_iter(&singles);
    let doubled = sum.clone() + &sum + Exact::new();
    assert_eq!((sum.round(), doubled.round()), (3.5, 7.0));
    let parts = [sum, doubled];
    assert_eq!(parts.iter().sum::<Exact>().round(), 10.5);
    assert_eq!(parts.into_iter().sum::<Exact>().round(), 10.5);
}
