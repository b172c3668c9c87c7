//! Reads the rows of a run in blocks of trials, for the operators of a plan.

use std::path::Path;

use ascertain_engine::evidence::{Error as EvidenceError, Row, RowCursor};
use ascertain_engine::experiment::Status;
use ascertain_engine::unit::Unit;
use ascertain_engine::values::Bounds;
use ascertain_streams::{Advance, Evidence, Plan};

use super::catalogue::{Matcher, RunCatalogue};

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
    matcher: Matcher,
    /// A row that was read, but belongs to the next trial.
    pending: Option<Decoded>,
    /// For each column, the lower and the upper bounds of the values of the last step forward.
    columns: Vec<[Vec<f64>; 2]>,
    times: Vec<f64>,
}

/// The parts of a row that a plan needs.
#[derive(Clone, Copy)]
struct Decoded {
    kind: usize,
    trial: u64,
    start_ns: u64,
    range: [f64; 2],
}

/// Returns the range in which the value of a row lies. A value that was not observed is NaN.
pub(super) fn range_of(row: &Row) -> [f64; 2] {
    let Bounds { low, high } = row.status.bounds(row.value);
    match row.status {
        Status::Lost => [f64::NAN; 2],
        // It is unknown how far the observation had come. Only numbers without a unit can be negative.
        _ if low == Bounds::CUT_OFF.low && high == f64::INFINITY => match row.unit {
            Unit::One => [f64::NEG_INFINITY, f64::INFINITY],
            _ => [0.0, f64::INFINITY],
        },
        _ => [low, high],
    }
}

impl<'a> RunRows<'a> {
    /// Returns the size of the columns in bytes.
    pub fn bytes(plan: &Plan) -> u64 {
        let columns = plan.series().len() as u64 * 2 + 1;
        columns * 8 * plan.block() as u64 * plan.readings() as u64
    }

    pub fn open(run: &Path, catalogue: &'a RunCatalogue, plan: &Plan) -> Result<RunRows<'a>, EvidenceError> {
        let series = plan.series();
        let column_of = (0..catalogue.kinds.len()).map(|kind| series.iter().position(|index| *index == kind)).collect();
        let open = |_| {
            let column = || Vec::with_capacity(plan.block());
            let columns = series.iter().map(|_| [column(), column()]).collect();
            let (matcher, pending, times) = (Matcher::default(), None, column());
            let (cursor, left) = (RowCursor::open(run)?, catalogue.whole_rows);
            Ok(Reader { cursor, left, matcher, pending, columns, times })
        };
        let readers = (0..plan.readings()).map(open).collect::<Result<_, EvidenceError>>()?;
        let clocks = series.iter().map(|index| catalogue.kinds[*index].clock).collect();
        Ok(RunRows { catalogue, column_of, readers, clocks })
    }
}

impl Reader {
    /// Returns the next row that belongs to a clock of the plan.
    fn next(
        &mut self,
        catalogue: &RunCatalogue,
        is_used: impl Fn(usize) -> bool,
    ) -> Result<Option<Decoded>, EvidenceError> {
        if let Some(pending) = self.pending.take() {
            return Ok(Some(pending));
        }
        while self.left > 0 {
            self.left -= 1;
            let Some(row) = self.cursor.next_row()? else { break };
            let Some(kind) = self.matcher.find(&catalogue.kinds, &row) else { continue };
            if is_used(catalogue.kinds[kind].clock) && catalogue.has_trial(row.trial) {
                return Ok(Some(Decoded { kind, trial: row.trial, start_ns: row.start_ns, range: range_of(&row) }));
            }
        }
        Ok(None)
    }
}

impl Evidence for RunRows<'_> {
    type Error = EvidenceError;

    fn advance(&mut self, reading: usize, clock: Option<usize>, most: usize) -> Result<Advance, EvidenceError> {
        let (catalogue, clocks, column_of) = (self.catalogue, &self.clocks, &self.column_of);
        let is_used = |of_row: usize| clock.map_or_else(|| clocks.contains(&of_row), |clock| clock == of_row);
        let reader = &mut self.readers[reading];
        reader.columns.iter_mut().flatten().for_each(Vec::clear);
        reader.times.clear();
        let mut current: Option<(usize, u64)> = None;
        while let Some(row) = reader.next(catalogue, is_used)? {
            let of_row = catalogue.kinds[row.kind].clock;
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
                let [lows, highs] = &mut reader.columns[column];
                for (values, value) in [(lows, row.range[0]), (highs, row.range[1])] {
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
