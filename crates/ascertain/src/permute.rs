//! Tests whether existing samples differ by more than can be expected by chance.

use ascertain_engine::unit::Unit;
pub use ascertain_permute::{
    Alternative, Budget, Comparison, Decision, End, Method, Null, Progress, Question, Sample, Statistic,
};
use ascertain_permute::{Reshuffles, decide};
use ascertain_report::permutation::{Permutation, SampleSummary};
use ascertain_sys::interrupt::Stop;

use crate::error::Error;

/// A sample, and the heading of its column, if the file has headings.
pub type HeadedSample = (Sample, Option<String>);

/// A request to compare samples by a permutation test.
#[derive(Clone, Debug)]
pub struct Permute {
    /// At least two samples, with the headings of their columns.
    pub samples: Vec<HeadedSample>,
    /// Unit of all values in the samples.
    pub unit: Unit,
    /// The statistic to compare, the kind of comparison, and the null hypothesis.
    pub question: Question,
    /// The sequential test that decides when to stop.
    pub method: Method,
    /// The limits of the number of permutations and of the time. If one is reached, the test ends without a decision.
    pub budget: Budget,
    /// Seed of the random permutations.
    pub seed: u64,
}

/// Permutes the values of the samples at random until the question is decided, the budget is used up, or `stop` is
/// requested. Calls `observe` with the progress.
///
/// ```
/// use ascertain::engine::unit::Unit;
/// use ascertain::permute::{
///     Alternative, Budget, Comparison, Decision, Method, Null, Permute, Question, Sample, Statistic, permute,
/// };
///
/// let sample = |name: &str, from: u8| (Sample::new(name, (from..from + 9).map(f64::from).collect()), None);
/// let done = permute(
///     Permute {
///         samples: vec![sample("before", 20), sample("after", 60)],
///         unit: Unit::One,
///         question: Question {
///             statistic: Statistic::Mean,
///             comparison: Comparison::Difference,
///             alternative: Alternative::TwoSided,
///             null: Null::default(),
///         },
///         method: Method::Betting { alpha: 0.05 },
///         budget: Budget { max_shuffles: 100_000, max_time: None },
///         seed: 1,
///     },
///     &Default::default(),
///     &mut |_| {},
/// )?;
/// assert_eq!((done.decision, done.observed), (Decision::Different, 40.0));
/// # Ok::<_, ascertain::Error>(())
/// ```
///
/// # Errors
/// If the samples can't answer the question. For example, a sample is empty, or a ratio is requested and a value is not
/// positive.
pub fn permute(asked: Permute, stop: &Stop, observe: &mut dyn FnMut(&Progress)) -> Result<Permutation, Error> {
    let Permute { samples, unit, question, method, budget, seed } = asked;
    let described = |(sample, heading): &HeadedSample| {
        let (name, n) = (sample.name.clone(), sample.values.len() as u64);
        SampleSummary { name, heading: heading.clone(), n, value: f64::NAN }
    };
    let summaries: Vec<SampleSummary> = samples.iter().map(described).collect();
    let samples = samples.into_iter().map(|(sample, _)| sample).collect();
    let mut reshuffles = Reshuffles::new(samples, &question, seed)?;
    let conclusion = decide(&mut reshuffles, method, &budget, &mut |progress| {
        observe(progress);
        !stop.is_requested()
    })?;
    let observed = reshuffles.observed();
    let with_value = |(summary, value): (SampleSummary, &f64)| SampleSummary { value: *value, ..summary };
    let (name, alpha, error) = match method {
        Method::Betting { alpha } => ("betting", alpha, None),
        Method::Csm { alpha, error } => ("csm", alpha, Some(error)),
    };
    Ok(Permutation {
        decision: conclusion.decision,
        end: conclusion.end,
        method: name.into(),
        statistic: question.statistic.to_string(),
        comparison: question.comparison,
        alternative: question.alternative,
        shift: question.null.shift,
        scale: question.null.scale,
        alpha,
        error,
        unit,
        samples: summaries.into_iter().zip(&observed.statistics).map(with_value).collect(),
        observed: observed.value,
        expected: observed.expected,
        shuffles: conclusion.shuffles,
        exceedances: conclusion.exceedances,
        p_anytime: conclusion.p_anytime,
        log_wealth: conclusion.log_wealth,
        p: conclusion.p,
        p_low: conclusion.p_interval.map(|interval| interval.low),
        p_high: conclusion.p_interval.map(|interval| interval.high),
        seed,
        elapsed_ns: conclusion.elapsed.as_nanos() as u64,
    })
}
