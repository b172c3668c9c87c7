//! Reads the rows of a run from `trials.parquet` or `trials.jsonl`, whichever is intact.

use std::io::{self, Read, Seek, SeekFrom};
use std::iter;
use std::path::Path;

use ascertain_sys::files;

use super::error::Error;
use super::folder::{FinalLines, Header, LINES, PARQUET, checksum_of_start, lines_bytes, read_header};
use super::lines::LineReader;
use super::numbers::{NumberRow, RowKind, RowKinds};
use super::parquet;
use super::row::{Row, RowReader};
use super::trials::Trials;

/// Reads the rows of a run one by one, in the order in which they were observed. Rows that are written after the call
/// are not read, nor is an incomplete last line, which a killed run may leave.
///
/// # Errors
/// If the run has no file of rows. The iterator returns an error, and then ends, at a row that is not valid. It does
/// the same if the run ends while the rows are read, because the file then becomes shorter.
pub fn read_rows(run: &Path) -> Result<impl Iterator<Item = Result<Row<'static>, Error>>, Error> {
    let mut cursor = Some(RowCursor::open(run)?);
    Ok(iter::from_fn(move || {
        let row = cursor.as_mut()?.next_row().map(|row| row.map(Row::into_owned)).transpose();
        if !matches!(row, Some(Ok(_))) {
            cursor = None;
        }
        row
    }))
}

/// A reader of the rows of a run, which holds only a block of them in memory.
pub struct RowCursor {
    reader: Box<dyn RowReader>,
    kinds: RowKinds,
}

impl RowCursor {
    /// Opens the file of rows of a run.
    ///
    /// # Errors
    /// If the run has no file of rows.
    pub fn open(run: &Path) -> Result<RowCursor, Error> {
        let lines = LineReader::open(run)?;
        if lines_bytes(run) == Some(0) {
            let header = read_header(run)?;
            if header.final_lines().is_some_and(|lines| lines.bytes > 0) {
                let parquet = parquet::open(&run.join(PARQUET), header.parquet_checksum.as_deref())?;
                return parquet.map(RowCursor::new).ok_or_else(|| Error::NoRows(run.into()));
            }
        }
        Ok(RowCursor::new(Box::new(lines)))
    }

    fn new(reader: Box<dyn RowReader>) -> RowCursor {
        RowCursor { reader, kinds: RowKinds::default() }
    }

    /// Reads the number of the next row, in the order in which the rows were observed. Returns `None` after the last
    /// row. This is several times as fast as [`next_row`](Self::next_row). Call only one of the two.
    ///
    /// # Errors
    /// As [`next_row`](Self::next_row).
    pub fn next_number(&mut self) -> Result<Option<NumberRow>, Error> {
        self.reader.next_number(&mut self.kinds)
    }

    /// Returns the kinds of the rows of which [`next_number`](Self::next_number) has read the numbers.
    #[must_use]
    pub fn kinds(&self) -> &[RowKind] {
        self.kinds.kinds()
    }

    /// Reads the next row, in the order in which the rows were observed. Returns `None` after the last row.
    ///
    /// # Errors
    /// If the row is not valid, or if the run ends while its rows are read.
    pub fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        self.reader.next_row()
    }

    /// Returns whether the latest row is known to be the last of its trial. If it is the last row of all and this is
    /// `false`, the run was killed during its last trial, and some rows of this trial are missing.
    #[must_use]
    pub fn ends_trial(&self) -> bool {
        self.reader.ends_trial()
    }
}

/// The evidence of a run: `run.json`, and the rows of complete trials as far as they can be read.
#[derive(Debug)]
pub struct RunEvidence {
    /// The contents of `run.json`: everything about the run except its rows.
    pub header: Header,
    /// The trials in the order in which they were measured.
    pub trials: Trials,
    /// Messages about files of the run that are damaged, or that became longer or shorter after the run ended.
    pub faults: Vec<String>,
    /// The error for missing rows, if fewer rows could be read than the run had when it ended.
    pub lost_rows: Option<Error>,
}

/// Reads the complete trials of a run, as far as they are written. If `trials.parquet` has all of them, reads this
/// file, which is 30 times smaller. Otherwise reads `trials.jsonl`. A file is only read if it has the checksum in
/// `run.json`. An incomplete last trial, which a kill may leave, is left out.
///
/// # Errors
/// If both files of rows are missing, were changed since the run ended, or are not valid.
pub(crate) fn read_run(run: &Path) -> Result<RunEvidence, Error> {
    let header = read_header(run)?;
    let then = header.final_lines();
    // An empty file counts as missing if the run had rows when it ended: `trials.parquet` has these rows.
    let length = lines_bytes(run).filter(|&length| length > 0 || then.is_none_or(|then| then.bytes == 0));
    let mut faults = Vec::new();
    // A run that has not ended has no `trials.parquet`. A continued run still has its old one, which lacks the new
    // rows.
    if length.is_none() || then.is_some_and(|then| !was_continued(run, then)) {
        let parquet = parquet::open(&run.join(PARQUET), header.parquet_checksum.as_deref());
        match parquet.and_then(|reader| reader.map(|mut reader| Trials::read(&mut *reader)).transpose()) {
            Ok(Some((trials, _))) => {
                let how = length.and_then(|length| differs(run, then, length));
                faults.extend(how.map(|how| format!("{how}; the rows come from {PARQUET}")));
                return Ok(RunEvidence { header, trials, faults, lost_rows: None });
            }
            Err(error) if length.is_none() => return Err(error),
            Ok(None) if lines_bytes(run).is_some() && length.is_none() => {
                return Err(Error::NoRows(run.to_path_buf()));
            }
            Err(Error::Parquet { reason, .. }) if header.parquet_checksum.is_some() => {
                faults.push(format!("{PARQUET} is damaged ({reason}); the rows come from {LINES}"));
            }
            Ok(None) | Err(_) => {}
        }
    }
    let how = length.and_then(|length| differs(run, then, length));
    faults.extend(how.map(|how| format!("{how}; only the remaining rows are used")));
    let (trials, _, lost_rows) = read_lines(run, &header)?;
    Ok(RunEvidence { header, trials, faults, lost_rows })
}

/// Reads the complete trials in `trials.jsonl`. Returns the trials, the offset at which the last complete trial ends,
/// and an error if rows are missing. If the run has already ended once, rows that were appended later are only read if
/// a continuation wrote them.
pub(super) fn read_lines(run: &Path, header: &Header) -> Result<(Trials, u64, Option<Error>), Error> {
    let mut lines = LineReader::open(run)?;
    let then = header.final_lines();
    if let Some(then) = then.filter(|then| !was_continued(run, *then)) {
        let path = run.join(LINES);
        let is_there = lines_bytes(run) >= Some(then.bytes);
        if is_there && !then.are_start_of(&path).map_err(Error::read(&path, LINES))? {
            return Err(Error::Changed(run.to_path_buf()));
        }
        lines = lines.up_to(then.bytes);
    }
    let (trials, whole_end) = Trials::read(&mut lines)?;
    let lost = then.filter(|then| whole_end < then.bytes).map(|then| Error::LostRows {
        run: run.to_path_buf(),
        bytes: then.bytes,
        found_bytes: whole_end,
    });
    Ok((trials, whole_end, lost))
}

/// Returns whether the run was continued after it had ended. `then` is the state of `trials.jsonl` when the run ended.
/// The file must still begin with the same lines, and a further row must follow them.
pub(crate) fn was_continued(run: &Path, then: FinalLines) -> bool {
    const NEXT_ROW: &[u8] = b"\n{\"run_id\":";
    let path = run.join(LINES);
    let is_followed = || -> io::Result<bool> {
        if lines_bytes(run) <= Some(then.bytes) {
            return Ok(false);
        }
        let from = then.bytes.saturating_sub(1);
        let expected = &NEXT_ROW[usize::from(then.bytes == 0)..];
        Ok(read_at(&path, from, expected.len())? == expected && then.are_start_of(&path)?)
    };
    is_followed().unwrap_or(false)
}

/// Returns in words how the size of `trials.jsonl`, `length`, differs from its size when the run ended. Returns `None`
/// if it does not differ, or if only blank lines or the rows of a continuation were added.
fn differs(run: &Path, then: Option<FinalLines>, length: u64) -> Option<String> {
    let then = then?;
    let how = match length {
        _ if length < then.bytes => "shorter",
        _ if length == then.bytes || was_continued(run, then) || is_blank_from(run, then.bytes, length) => return None,
        _ => "longer",
    };
    Some(format!("{LINES} is {how} than when the run ended ({length} bytes instead of {})", then.bytes))
}

/// Returns whether the file has only blank lines from the offset `end` to its size `length`. Blank lines do no harm.
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

impl FinalLines<'_> {
    /// Returns whether the file at `path` still begins with the lines that it had when the run ended. If the checksum
    /// of these lines was not recorded, they count as unchanged.
    fn are_start_of(self, path: &Path) -> io::Result<bool> {
        self.checksum.map_or(Ok(true), |sum| Ok(checksum_of_start(path, self.bytes)? == sum))
    }
}
