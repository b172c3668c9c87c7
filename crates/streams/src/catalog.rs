//! The recorded series that an expression can name.

use crate::unit::Unit;

/// A recorded series, as the planner sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// Unit of the values.
    pub unit: Unit,
    /// The clock of the series: series with the same clock have one value each per observation. Numbers are chosen by
    /// the catalogue.
    pub clock: usize,
    /// Number of observations, if it is known. A window that is longer is refused.
    pub observations: Option<u64>,
    /// Times of the first and of the last observation in nanoseconds, if they are known. A window of time that does not
    /// fit between them is refused.
    pub times_ns: Option<[u64; 2]>,
    /// `true` if a value can be negative. The flat quantile table of such a series has two halves.
    pub is_signed: bool,
    /// The gaps of the series, as a clause for a message: the observations without a value. `None` if it has no gaps.
    pub gaps: Option<String>,
}

/// Finds the series that an expression names.
pub trait Catalogue {
    /// Returns the index and the description of a series. `arm` is `None` if the expression names only a metric.
    ///
    /// # Errors
    /// A message for the user, if the series does not exist or if several series match.
    fn find(&self, arm: Option<&str>, metric: &str) -> Result<(usize, Series), String>;
}

/// A catalogue of series that share one clock, each under a plain name.
///
/// ```
/// use ascertain_streams::{OneClock, Plan, Unit};
///
/// let catalogue = OneClock::new(&[("time", Unit::TIME), ("memory", Unit::BYTES)]);
/// let plan = Plan::new("memory / time", &catalogue)?;
/// assert_eq!(plan.unit(), Unit::BYTES_PER_SECOND);
/// # Ok::<(), ascertain_streams::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct OneClock {
    series: Vec<(String, Series)>,
}

impl OneClock {
    /// Makes a catalogue of series with these names and units. A series is signed if its unit is 1.
    #[must_use]
    pub fn new(series: &[(&str, Unit)]) -> OneClock {
        let entry = |(name, unit): &(&str, Unit)| {
            let is_signed = *unit == Unit::ONE;
            let series = Series { unit: *unit, clock: 0, observations: None, times_ns: None, is_signed, gaps: None };
            ((*name).to_string(), series)
        };
        OneClock { series: series.iter().map(entry).collect() }
    }

    /// Sets the number of observations of every series.
    #[must_use]
    pub fn with_observations(mut self, observations: u64) -> OneClock {
        self.series.iter_mut().for_each(|(_, series)| series.observations = Some(observations));
        self
    }

    /// Sets the times of the first and of the last observation of every series, in nanoseconds.
    #[must_use]
    pub fn with_times(mut self, times_ns: [u64; 2]) -> OneClock {
        self.series.iter_mut().for_each(|(_, series)| series.times_ns = Some(times_ns));
        self
    }

    /// Sets the clause about the gaps of the series with this name.
    #[must_use]
    pub fn with_gaps(mut self, name: &str, gaps: &str) -> OneClock {
        let of_name = self.series.iter_mut().filter(|(known, _)| known == name);
        of_name.for_each(|(_, series)| series.gaps = Some(gaps.to_string()));
        self
    }
}

impl Catalogue for OneClock {
    fn find(&self, arm: Option<&str>, metric: &str) -> Result<(usize, Series), String> {
        if let Some(arm) = arm {
            return Err(format!("there is no arm `{arm}`; name only the metric"));
        }
        let known = || self.series.iter().map(|(name, _)| name.as_str());
        match self.series.iter().position(|(name, _)| name == metric) {
            Some(index) => Ok((index, self.series[index].1.clone())),
            None => {
                let names: Vec<&str> = known().collect();
                let hint = crate::error::near(metric, known());
                Err(format!("there is no series `{metric}`; the series are {}{hint}", names.join(", ")))
            }
        }
    }
}
