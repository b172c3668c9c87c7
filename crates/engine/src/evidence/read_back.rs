//! Reads a run's rows back, from whichever of its two files is as the run left it.

use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::Path;

use ascertain_sys::files;

use super::error::Error;
use super::folder::{Header, LINES, LinesThen, PARQUET, checksum_of_start, lines_bytes, read_header};
use super::lines::{Lines, Row};
use super::parquet;
use super::trials::Trials;
use crate::plan::Grouping;

/// Reads a run's rows in the order in which they were observed, one after the other, as far as they are
/// written when this is called. A last line that is cut off, as a killed run leaves it, is left out.
///
/// # Errors
/// When the run has no rows' file. The iterator gives an error, and then ends, at a line that is not
/// what Ascertain writes, and if the file becomes shorter while it is read, as at the end of its run.
///
/// # Memory
/// The rows of a run that has ended are held as text, some 250 bytes each.
pub fn read_rows(run: &Path) -> Result<Rows, Error> {
    let lines = Lines::open(run)?;
    if lines_bytes(run) > Some(0) {
        return Ok(Rows { lines: Some(lines) });
    }
    let header = read_header(run)?;
    let mut text = Vec::new();
    if header.lines_then().is_some_and(|then| then.bytes > 0)
        && !parquet::write_lines(&run.join(PARQUET), header.parquet_checksum.as_deref(), &mut text)?
    {
        return Err(Error::NoRows { run: run.into() });
    }
    let bytes = text.len() as u64;
    Ok(Rows { lines: Some(Lines::of(run.join(LINES), Box::new(Cursor::new(text)), bytes)) })
}

/// A run's rows, read as they are asked for. From [`read_rows`].
pub struct Rows {
    /// None behind the last row and behind an error.
    lines: Option<Lines>,
}

impl Iterator for Rows {
    type Item = Result<Row, Error>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut lines = self.lines.take()?;
        let row = lines.advance().and_then(|more| if more { lines.row().map(Some) } else { Ok(None) });
        if let Ok(Some(_)) = row {
            self.lines = Some(lines);
        }
        row.transpose()
    }
}

/// The rows of a run's whole trials, as far as they can be read.
#[derive(Debug)]
pub(crate) struct ReadBack {
    pub trials: Trials,
    /// What is wrong with the run's files, in plain words.
    pub faults: Vec<String>,
    /// Set where rows are missing that the run had when it ended.
    pub lost: Option<Error>,
}

/// Reads the rows of a run's whole trials, as far as they are written: from `trials.parquet` where that has all
/// of them, since it is a thirtieth of the size, else from `trials.jsonl`. Neither is read where it has another
/// checksum than in `run.json`. What a kill left of a last trial is left out.
///
/// # Errors
/// When there are no rows' files, or what there is was changed since the run ended, or is not what Ascertain writes.
pub(crate) fn read_trials(run: &Path, header: &Header) -> Result<ReadBack, Error> {
    let then = header.lines_then();
    // An empty file has its rows in the other one.
    let length = lines_bytes(run).filter(|&length| length > 0 || then.is_none_or(|then| then.bytes == 0));
    let mut faults = Vec::new();
    // A run that has not ended has no other file, and one that was continued has more lines than that.
    if length.is_none() || then.is_some_and(|then| !went_on(run, then)) {
        match parquet::read(&run.join(PARQUET), header.parquet_checksum.as_deref()) {
            Ok(Some(mut trials)) => {
                adapt(&mut trials, header);
                let how = length.and_then(|length| differs(run, then, length));
                faults.extend(how.map(|how| format!("{how}; the rows are those of {PARQUET}")));
                return Ok(ReadBack { trials, faults, lost: None });
            }
            Err(error) if length.is_none() => return Err(error),
            Ok(None) if lines_bytes(run).is_some() && length.is_none() => {
                return Err(Error::NoRows { run: run.to_path_buf() });
            }
            Err(Error::Parquet { reason, .. }) if header.parquet_checksum.is_some() => {
                faults.push(format!("{PARQUET} is damaged ({reason}); the rows are those of {LINES}"));
            }
            Ok(None) | Err(_) => {}
        }
    }
    let how = length.and_then(|length| differs(run, then, length));
    faults.extend(how.map(|how| format!("{how}; only the rows that are left are used")));
    let (mut trials, _, lost) = read_lines(run, header)?;
    adapt(&mut trials, header);
    Ok(ReadBack { trials, faults, lost })
}

/// Reads the lines that the outcome speaks of, where there is one, and those of a continuation, as they are written;
/// says where in the file the last whole trial ends, and whether any are lost.
pub(super) fn read_lines(run: &Path, header: &Header) -> Result<(Trials, u64, Option<Error>), Error> {
    let mut lines = Lines::open(run)?;
    let Some(then) = header.lines_then() else {
        let (trials, whole_end) = Trials::of_lines(lines)?;
        return Ok((trials, whole_end, None));
    };
    if !went_on(run, then) {
        let path = run.join(LINES);
        let is_there = lines_bytes(run) >= Some(then.bytes);
        if is_there && !then.has_sum_of(&path).map_err(Error::read(&path, LINES))? {
            return Err(Error::Changed { run: run.to_path_buf() });
        }
        lines = lines.up_to(then.bytes);
    }
    let (trials, whole_end) = Trials::of_lines(lines)?;
    let lost = (whole_end < then.bytes).then(|| Error::LostRows {
        run: run.to_path_buf(),
        bytes: then.bytes,
        found_bytes: whole_end,
    });
    Ok((trials, whole_end, lost))
}

/// Earlier versions did not record which lane measured, nor where a command was cut off: at its time limit, with no
/// exit code yet.
pub(super) fn adapt(trials: &mut Trials, header: &Header) {
    if header.grouping() == Grouping::ByMachine {
        trials.forget_lanes();
    }
    for series in &mut trials.series {
        let set = header.plan.commands.iter().find(|set| set.id == series.experiment);
        match (series.metric.as_str(), set.and_then(|set| set.time_limit)) {
            ("wall", Some(limit)) => series.values.cut_off_at(limit.as_nanos() as f64),
            ("exit", Some(_)) => series.values.cut_off_at(0.0),
            _ => {}
        }
    }
}

/// Whether the run was continued after it had ended: the lines that it had then are followed by more. Other bytes
/// there are somebody else's.
pub(crate) fn went_on(run: &Path, then: LinesThen) -> bool {
    const NEXT_ROW: &[u8] = b"\n{\"run_id\":";
    let path = run.join(LINES);
    let is_followed = || -> io::Result<bool> {
        if lines_bytes(run) <= Some(then.bytes) {
            return Ok(false);
        }
        let from = then.bytes.saturating_sub(1);
        let expected = &NEXT_ROW[usize::from(then.bytes == 0)..];
        Ok(read_at(&path, from, expected.len())? == expected && then.has_sum_of(&path)?)
    };
    is_followed().unwrap_or(false)
}

/// How `trials.jsonl` differs from the one that the run left, as far as its length tells.
fn differs(run: &Path, then: Option<LinesThen>, length: u64) -> Option<String> {
    let then = then?;
    let how = match length {
        _ if length < then.bytes => "shorter",
        _ if length == then.bytes || went_on(run, then) || is_blank_from(run, then.bytes, length) => return None,
        _ => "longer",
    };
    Some(format!("{LINES} is {how} than when the run ended ({length} bytes, and {} then)", then.bytes))
}

/// Whether there is nothing but blank lines behind the last row: they do no harm.
fn is_blank_from(run: &Path, end: u64, length: u64) -> bool {
    const MOST: u64 = 1 << 16;
    let added = || read_at(&run.join(LINES), end.saturating_sub(1), MOST as usize);
    let is_blank = |added: Vec<u8>| added.trim_ascii().is_empty() && (end == 0 || added.starts_with(b"\n"));
    length - end < MOST && added().is_ok_and(is_blank)
}

fn read_at(path: &Path, start: u64, most: usize) -> io::Result<Vec<u8>> {
    let mut file = files::open_regular(path)?;
    file.seek(SeekFrom::Start(start))?;
    let mut bytes = Vec::with_capacity(most);
    file.take(most as u64).read_to_end(&mut bytes)?;
    Ok(bytes)
}

impl LinesThen<'_> {
    /// Whether the file still begins with the lines of then; so it is taken where there is no checksum of them.
    fn has_sum_of(self, path: &Path) -> io::Result<bool> {
        self.checksum.map_or(Ok(true), |sum| Ok(checksum_of_start(path, self.bytes)? == sum))
    }
}
