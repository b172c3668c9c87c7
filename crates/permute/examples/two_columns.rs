//! Tests whether the medians of two samples differ by more than chance: `two_columns [FILE FILE]`. Each file has one
//! number per line. Without files, two built-in samples are compared.
#![allow(clippy::print_stdout)]

use std::error::Error;

use ascertain_permute::{Budget, Method, Question, Reshuffles, Sample, Statistic, decide};

fn main() -> Result<(), Box<dyn Error>> {
    let files: Vec<String> = std::env::args().skip(1).collect();
    let samples = match files.as_slice() {
        [] => vec![
            Sample::new("before", vec![12.1, 12.4, 11.9, 12.8, 12.2, 12.0, 15.3, 12.5]),
            Sample::new("after", vec![11.2, 11.5, 11.1, 12.3, 11.4, 11.0, 11.3, 14.9]),
        ],
        files => files.iter().map(|file| read(file)).collect::<Result<_, _>>()?,
    };
    let question = Question { statistic: Statistic::Quantile(0.5), ..Question::default() };
    let mut reshuffles = Reshuffles::new(samples, &question, 1)?;
    println!("the medians differ by {:.3}", reshuffles.observed().value);
    let method = Method::Csm { alpha: 0.05, error: 0.001 };
    let conclusion = decide(&mut reshuffles, method, &Budget::default(), &mut |_| true)?;
    if let Some(p) = conclusion.p_interval {
        println!("{}: the p-value is within {:.4} to {:.4}", conclusion.decision.word(), p.low, p.high);
    }
    println!("{} of {} reshuffles differ at least as much", conclusion.exceedances, conclusion.shuffles);
    Ok(())
}

fn read(file: &str) -> Result<Sample, Box<dyn Error>> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("{file}: {error}"))?;
    let number = |line: &str| line.trim().parse().map_err(|_| format!("{file}: `{line}` is not a number"));
    Ok(Sample::new(file, text.lines().map(number).collect::<Result<_, _>>()?))
}
