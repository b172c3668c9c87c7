//! `sum`, `dot`, `mean` and `variance` must return the bits in this file on every machine, whatever instructions it
//! has.

use ascertain_numeric::sum::{dot, mean, sum, variance};

/// The numbers span 80 powers of two and both signs, so that every addition rounds.
fn number(i: usize) -> f64 {
    ((i * 7919 % 1000) as f64 - 400.3) * 2_f64.powi((i * 31 % 80) as i32 - 40)
}

#[test]
fn are_the_same_on_every_machine() {
    let xs: Vec<f64> = (0..10_007).map(number).collect();
    let ys: Vec<f64> = (0..10_007).map(|i| number(3 * i + 1)).collect();
    let singles = |xs: &[f64]| xs.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let (small_xs, small_ys) = (singles(&xs), singles(&ys));
    let of_f64 = [sum(&xs), dot(&xs, &ys), mean(&xs).unwrap(), variance(&xs).unwrap()];
    assert_eq!(
        of_f64.map(f64::to_bits),
        [4848544609369392827, 5003905938149888794, 4788696460855707990, 5005915164339010420]
    );
    let of_f32 = [sum(&small_xs), dot(&small_xs, &small_ys), mean(&small_xs).unwrap(), variance(&small_xs).unwrap()];
    assert_eq!(
        of_f32.map(f64::to_bits),
        [4848544609706039443, 5003905938364393853, 4788696461131295986, 5005915164535793687]
    );
}
