//! Reads the rows of a run in blocks of trials, for the operators of a plan.

use std::path::Path;

use ascertain_streams::{Advance, Evidence, Plan};

use super::catalogue::RunCatalogue;
use crate::evidence::{Error, NumberRow, RowCursor};
use crate::experiment::Status;
use crate::unit::Unit;
use crate::values::Bounds;

/// The rows of a run, one reader for each reading of the plan.
pub(super) struct RunRows<'a> {
    catalogue: &'a RunCatalogue,
    /// For each kind of row, its column.
    column_of: Vec<Option<usize>>,
    readers: Vec<Reader>,
    /// The clocks that the plan uses.
    clocks: Vec<usize>,
}

struct Reader {
    cursor: RowCursor,
    /// Number of rows of complete trials that are still to be read.
    left: u64,
    /// A row that was read, but belongs to the next trial.
    pending: Option<NumberRow>,
    /// For each column, the lower and the upper bounds of the values of the last step forward.
    columns: Vec<[Vec<f64>; 2]>,
    times: Vec<f64>,
}

/// Returns the range in which the value of a row lies. A value that was not observed is NaN.
#[inline]
pub(super) fn range_of(value: f64, status: Status, unit: Unit) -> [f64; 2] {
    if status == Status::Lost {
        return [f64::NAN; 2];
    }
    let Bounds { low, high } = status.bounds(value).in_unit(unit);
    [low, high]
}

impl<'a> RunRows<'a> {
    /// Returns the size of the columns in bytes.
    pub fn bytes(plan: &Plan) -> u64 {
        let columns = plan.series().len() as u64 * 2 + 1;
        columns * 8 * plan.block() as u64 * plan.readings() as u64
    }

    pub fn open(run: &Path, catalogue: &'a RunCatalogue, plan: &Plan) -> Result<RunRows<'a>, Error> {
        let series = plan.series();
        let column_of = |kind| series.iter().position(|index| *index == kind);
        let column_of = (0..catalogue.series.len()).map(column_of).collect();
        let open = |_| {
            let column = || Vec::with_capacity(plan.block());
            let columns = series.iter().map(|_| [column(), column()]).collect();
            let (cursor, left) = (RowCursor::open(run)?, catalogue.whole_rows);
            Ok(Reader { cursor, left, pending: None, columns, times: column() })
        };
        let readers = (0..plan.readings()).map(open).collect::<Result<_, Error>>()?;
        let clocks = series.iter().map(|index| catalogue.series[*index].clock).collect();
        Ok(RunRows { catalogue, column_of, readers, clocks })
    }
}

impl Reader {
    /// Returns the next row that belongs to a clock of the plan.
    fn next(&mut self, catalogue: &RunCatalogue, is_used: impl Fn(usize) -> bool) -> Result<Option<NumberRow>, Error> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        while self.left > 0 {
            self.left -= 1;
            let Some(row) = self.cursor.next_number()? else { break };
            let Some(series) = catalogue.series.get(row.kind) else { continue };
            if is_used(series.clock) && catalogue.has_trial(row.trial) {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}

impl Evidence for RunRows<'_> {
    type Error = Error;

    fn advance(&mut self, reading: usize, clock: Option<usize>, most: usize) -> Result<Advance, Error> {
        let (catalogue, clocks, column_of) = (self.catalogue, &self.clocks, &self.column_of);
        let is_used = |of_row: usize| clock.map_or_else(|| clocks.contains(&of_row), |clock| clock == of_row);
        let reader = &mut self.readers[reading];
        reader.columns.iter_mut().flatten().for_each(Vec::clear);
        reader.times.clear();
        let mut current: Option<(usize, u64)> = None;
        while let Some(row) = reader.next(catalogue, is_used)? {
            let of_row = catalogue.series[row.kind].clock;
            if current != Some((of_row, row.trial)) {
                let is_other = current.is_some_and(|(clock, _)| clock != of_row);
                if is_other || reader.times.len() == most {
                    reader.pending = Some(row);
                    break;
                }
                current = Some((of_row, row.trial));
                reader.columns.iter_mut().flatten().for_each(|column| column.push(f64::NAN));
                reader.times.push(row.start_ns as f64);
            }
            if let Some(column) = column_of[row.kind] {
                let range = range_of(row.value, row.status, catalogue.series[row.kind].unit());
                let [lows, highs] = &mut reader.columns[column];
                for (values, value) in [(lows, range[0]), (highs, range[1])] {
                    if let Some(last) = values.last_mut() {
                        *last = value;
                    }
                }
            }
        }
        Ok(Advance { clock: current.map_or(0, |(clock, _)| clock), observations: reader.times.len() })
    }

    fn fill(&self, reading: usize, series: usize, lows: &mut [f64], highs: &mut [f64]) {
        let Some(column) = self.column_of[series] else { return };
        let [all_lows, all_highs] = &self.readers[reading].columns[column];
        lows.copy_from_slice(all_lows);
        if !highs.is_empty() {
            highs.copy_from_slice(all_highs);
        }
    }

    fn fill_times(&self, reading: usize, times: &mut [f64]) {
        times.copy_from_slice(&self.readers[reading].times);
    }
}
