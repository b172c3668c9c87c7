//! Samples that cannot be compared must be refused, with a reason that tells the user what to do.

use crate::{Alternative, Comparison, Error, Null, Question, Reshuffles, Sample, Statistic};

fn refusal(samples: &[&[f64]], question: Question) -> String {
    let names = ["a", "b", "c"];
    let samples = samples.iter().zip(names).map(|(values, name)| Sample::new(name, values.to_vec())).collect();
    Reshuffles::new(samples, &question, 1).err().map_or_else(String::new, |error| error.to_string())
}

#[test]
fn samples_that_say_nothing() {
    let plain = Question::default();
    assert!(refusal(&[], plain).contains("two or more samples, but there are 0"));
    assert!(refusal(&[&[1.0, 2.0]], plain).contains("two or more samples"));
    assert_eq!(refusal(&[&[1.0, 2.0], &[3.0]], plain), "`b` has 1 value: a sample needs two or more");
    assert!(refusal(&[&[], &[3.0, 4.0]], plain).contains("`a` has 0 values"));
    assert!(refusal(&[&[1.0, f64::NAN], &[3.0, 4.0]], plain).contains("value 2 of `a` is NaN"));
    assert!(refusal(&[&[1.0, 2.0], &[f64::INFINITY, 4.0]], plain).contains("value 1 of `b` is inf"));
    assert!(refusal(&[&[1e308, 1.7e308], &[1e308, 1e308]], plain).contains("a larger unit"));
    let std = Question { statistic: Statistic::StandardDeviation, ..plain };
    assert!(refusal(&[&[1e200, 2e200], &[1e200, 3e200]], std).contains("a larger unit"));
    assert!(
        refusal(&[&[1e154, -1e154], &[9e153, 1e153]], std).contains("a larger unit"),
        "the square of a sum overflows"
    );
    assert_eq!(refusal(&[&[1e200, 2e200], &[1e200, 3e200]], plain), "");
}

#[test]
fn questions_that_do_not_fit_the_samples() {
    let plain = Question::default();
    let three: [&[f64]; 3] = [&[1.0, 2.0], &[1.0, 3.0], &[2.0, 4.0]];
    assert!(
        refusal(&three, Question { alternative: Alternative::Less, ..plain })
            .contains("a one-sided test needs two samples, but there are 3")
    );
    assert!(refusal(&three, Question { null: Null { shift: 1.0, scale: 1.0 }, ..plain }).contains("there are 3"));
    for (shift, scale) in [(0.0, 0.0), (0.0, -1.0), (f64::NAN, 1.0), (0.0, f64::INFINITY)] {
        assert!(
            refusal(&three[..2], Question { null: Null { shift, scale }, ..plain })
                .contains("is invalid; use a finite scale")
        );
    }
}

#[test]
fn ratios_of_what_is_not_positive() {
    let ratio = Question { comparison: Comparison::Ratio, ..Question::default() };
    assert!(refusal(&[&[1.0, 2.0], &[0.0, 3.0]], ratio).contains("value 1 of `b` is 0"));
    assert!(refusal(&[&[1.0, -2.0], &[1.0, 3.0]], ratio).contains("value 2 of `a` is -2"));
    let shifted = Question { null: Null { shift: 2.0, scale: 1.0 }, ..ratio };
    assert!(refusal(&[&[1.0, 2.0], &[1.0, 3.0]], shifted).contains("value 1 of `b` is -1"));
    let std = Question { statistic: Statistic::StandardDeviation, ..ratio };
    assert!(refusal(&[&[1.0, 2.0], &[3.0, 3.0]], std).contains("`b` are all equal"));
    assert_eq!(refusal(&[&[-1.0, 2.0], &[3.0, 4.0]], std), "");
}

#[test]
fn statistics_are_read_as_they_are_written() {
    for text in ["mean", "std", "median", "p99", "p99.9", "p1", "p0", "p100", "p12.5"] {
        assert_eq!(text.parse::<Statistic>().unwrap().to_string(), text);
    }
    assert_eq!("q0.9".parse(), Ok(Statistic::Quantile(0.9)));
    assert_eq!("q.999".parse::<Statistic>().unwrap().to_string(), "p99.9");
    for text in ["", "p", "q", "p101", "q1.5", "q-0.1", "qNaN", "p1e1", "p-1", "average", "max", "Median"] {
        let error = text.parse::<Statistic>().unwrap_err();
        assert!(matches!(&error, Error::UnknownStatistic(_)) && error.to_string().contains("use mean"), "{text}");
    }
}
