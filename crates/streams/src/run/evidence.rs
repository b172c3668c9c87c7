//! The observations that a run reads.

use std::convert::Infallible;

/// A step forward in the evidence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advance {
    /// The clock to which the observations belong.
    pub clock: usize,
    /// The number of observations; 0 if there are no more.
    pub observations: usize,
}

/// A source of observations, in their order. A null is NaN.
pub trait Evidence {
    /// The error of reading.
    type Error;

    /// Advances by at most `most` observations of one clock. `reading` is 0, or the number of an `again`. If `clock` is
    /// given, observations of other clocks are skipped.
    ///
    /// # Errors
    /// If the evidence cannot be read.
    fn advance(&mut self, reading: usize, clock: Option<usize>, most: usize) -> Result<Advance, Self::Error>;

    /// Writes the values of a series for the observations of the last step forward: to `lows` the values, or the lower
    /// bounds, and to `highs` the upper bounds. `highs` is empty unless the plan has ranges.
    fn fill(&self, reading: usize, series: usize, lows: &mut [f64], highs: &mut [f64]);

    /// Writes the times of the observations of the last step forward, in nanoseconds.
    fn fill_times(&self, reading: usize, times: &mut [f64]);
}

/// Series in memory that share one clock. Their observations are 1 ms apart, unless times are given.
#[derive(Clone, Debug, Default)]
pub struct Recorded<'a> {
    series: Vec<[&'a [f64]; 2]>,
    times: Option<&'a [f64]>,
    /// For each reading, the range of the last observations.
    places: Vec<(usize, usize)>,
}

impl<'a> Recorded<'a> {
    /// Makes evidence of these series, in the order of the catalogue.
    #[must_use]
    pub fn new(series: &[&'a [f64]]) -> Recorded<'a> {
        Recorded { series: series.iter().map(|values| [*values, *values]).collect(), times: None, places: Vec::new() }
    }

    /// Makes evidence of these series of ranges: the lower bounds and the upper bounds of each.
    #[must_use]
    pub fn ranges(series: &[[&'a [f64]; 2]]) -> Recorded<'a> {
        Recorded { series: series.to_vec(), times: None, places: Vec::new() }
    }

    /// Sets the times of the observations.
    #[must_use]
    pub fn at(self, times: &'a [f64]) -> Recorded<'a> {
        Recorded { times: Some(times), ..self }
    }

    /// Reserves the places of this many readings, so that reading allocates nothing.
    #[must_use]
    pub fn for_readings(mut self, readings: usize) -> Recorded<'a> {
        self.places = vec![(0, 0); readings];
        self
    }
}

impl Evidence for Recorded<'_> {
    type Error = Infallible;

    fn advance(&mut self, reading: usize, _clock: Option<usize>, most: usize) -> Result<Advance, Infallible> {
        if reading >= self.places.len() {
            self.places.resize(reading + 1, (0, 0));
        }
        let all = self.series.iter().map(|[lows, _]| lows.len()).min().unwrap_or(0);
        let (_, start) = self.places[reading];
        let end = start.saturating_add(most).min(all);
        self.places[reading] = (start, end);
        Ok(Advance { clock: 0, observations: end - start })
    }

    fn fill(&self, reading: usize, series: usize, lows: &mut [f64], highs: &mut [f64]) {
        let (start, end) = self.places[reading];
        lows.copy_from_slice(&self.series[series][0][start..end]);
        if !highs.is_empty() {
            highs.copy_from_slice(&self.series[series][1][start..end]);
        }
    }

    fn fill_times(&self, reading: usize, times: &mut [f64]) {
        let (start, end) = self.places[reading];
        match self.times {
            Some(all) => times.copy_from_slice(&all[start..end]),
            None => times.iter_mut().zip(start..end).for_each(|(time, index)| *time = index as f64 * 1e6),
        }
    }
}
