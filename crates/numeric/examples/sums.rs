//! Shows the sum of terms that cancel, computed by several methods, and a column of integers as text.
#![allow(clippy::print_stdout)]

use ascertain_numeric::sum::{Element, exact, sum};
use ascertain_numeric::{decimal, sum as sums};

fn main() {
    // A million small numbers between two large ones that cancel. The true sum is 100,000.
    let mut numbers = vec![0.1; 1_000_000];
    numbers.insert(0, 1e17);
    numbers.push(-1e17);
    for variant in ["naive", "pairwise", "kahan", "neumaier"] {
        let function =
            f64::variant(variant).and_then(|variant| variant.function(1)).expect("scalar variants run everywhere");
        println!("{variant:>10}  {}", function(&numbers));
    }
    println!("{:>10}  {}  (by {})", "sum", sum(&numbers), sums::chosen::<f64>(numbers.len()).0.name);
    println!("{:>10}  {}", "exact", exact(&numbers));

    let mut text = Vec::new();
    decimal::append_column(&[-1, 42, i64::MAX], b'\n', &mut text);
    print!("{}", String::from_utf8_lossy(&text));
}
