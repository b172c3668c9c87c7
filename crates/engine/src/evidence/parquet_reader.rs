//! Reads `trials.parquet` by its columns.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use ascertain_sys::files;
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, RowGroupReader, SerializedFileReader};

use super::error::Error;
use super::folder::{LINES, PARQUET, checksum_of_file};
use super::lines::{LineWriter, StoredRow, status_word};
use super::parquet::NO_LANE;
use super::trials::{Gathering, NumberedRow, SeriesKey, Trials};
use crate::experiment::Status;

/// Rows that are decoded at once.
const BATCH: usize = 1 << 12;

/// Reads the file, unless it is not there.
pub(super) fn read(path: &Path, checksum: Option<&str>) -> Result<Option<Trials>, Error> {
    let Some(reader) = open(path, checksum)? else { return Ok(None) };
    read_groups(&reader).map(Some).map_err(broken(path))
}

/// Writes the lines of `trials.jsonl` that the file was made of: byte by byte, if this version wrote them. `false` if
/// the file is not there.
pub(super) fn write_lines(path: &Path, checksum: Option<&str>, sink: impl Write) -> Result<bool, Error> {
    let Some(reader) = open(path, checksum)? else { return Ok(false) };
    let mut lines = LineWriter::new(sink);
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index).map_err(broken(path))?;
        write_group(&*group, &mut lines).map_err(broken(path))?;
    }
    lines.finish().map(|()| true).map_err(Error::write(&path.with_file_name(LINES)))
}

/// For `map_err`: the file is not what Ascertain writes.
fn broken(path: &Path) -> impl Fn(ParquetError) -> Error {
    |reason| Error::Parquet { path: path.to_path_buf(), reason: reason.to_string() }
}

/// Opens the file, unless it is not there. One with another checksum than is given is not looked at: some wrong bytes
/// pass for data, and others make the library panic.
fn open(path: &Path, checksum: Option<&str>) -> Result<Option<SerializedFileReader<File>>, Error> {
    let file = match files::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::read(path, PARQUET)(error)),
    };
    let wrong = |reason: &str| Error::Parquet { path: path.to_path_buf(), reason: reason.to_string() };
    match checksum {
        None => return Err(wrong("run.json has no checksum of it")),
        Some(sum) if sum != checksum_of_file(path).map_err(Error::read(path, PARQUET))? => {
            return Err(wrong("its checksum is not the one in run.json"));
        }
        Some(_) => {}
    }
    SerializedFileReader::new(file).map(Some).map_err(broken(path))
}

fn read_groups(reader: &SerializedFileReader<File>) -> Result<Trials, ParquetError> {
    let mut gathering = Gathering::default();
    for index in 0..reader.num_row_groups() {
        let group = reader.get_row_group(index)?;
        read_group(&*group, &mut gathering)?;
    }
    gathering.end_trial();
    Ok(gathering.into_trials())
}

fn read_group(group: &dyn RowGroupReader, gathering: &mut Gathering) -> Result<(), ParquetError> {
    let names = ["experiment", "variant", "point", "metric", "unit", "key"];
    let mut texts = Vec::new();
    for name in names {
        texts.push(Column::<ByteArrayType>::open(group, name)?);
    }
    let mut statuses = Column::<ByteArrayType>::open(group, "status")?;
    let mut trials = Column::<Int64Type>::open(group, "trial")?;
    // The first versions had none.
    let mut lanes = Column::<Int64Type>::open(group, "lane").ok();
    let mut offsets_ns = Column::<Int64Type>::open(group, "offset_ns")?;
    let mut values = Column::<DoubleType>::open(group, "value")?;
    let mut left = usize::try_from(group.metadata().num_rows())?;
    while left > 0 {
        let rows = left.min(BATCH);
        left -= rows;
        for column in &mut texts {
            column.read(rows)?;
        }
        statuses.read(rows)?;
        trials.read(rows)?;
        lanes.as_mut().map_or(Ok(()), |lanes| lanes.read(rows))?;
        offsets_ns.read(rows)?;
        values.read(rows)?;
        for row in 0..rows {
            let names: SeriesKey = std::array::from_fn(|column| texts[column].values[row].data());
            let series = gathering.series(&names).map_err(ParquetError::General)?;
            gathering.push(&NumberedRow {
                series,
                lane: lanes.as_ref().and_then(|lanes| lane(lanes.values[row])),
                trial: u64::try_from(trials.values[row])?,
                offset_ns: u64::try_from(offsets_ns.values[row])?,
                value: status(&statuses.values[row])?.bounds(values.values[row]),
            });
        }
    }
    Ok(())
}

fn write_group(group: &dyn RowGroupReader, lines: &mut LineWriter<impl Write>) -> Result<(), ParquetError> {
    let mut texts = Vec::new();
    for name in ["run_id", "experiment", "variant", "point", "metric", "key", "unit", "status", "worker"] {
        texts.push(Column::<ByteArrayType>::open(group, name)?);
    }
    let mut lanes = Column::<Int64Type>::open(group, "lane").ok();
    let mut integers = Vec::new();
    for name in ["trial", "position", "offset_ns", "start_ns"] {
        integers.push(Column::<Int64Type>::open(group, name)?);
    }
    let mut values = Column::<DoubleType>::open(group, "value")?;
    let mut left = usize::try_from(group.metadata().num_rows())?;
    while left > 0 {
        let rows = left.min(BATCH);
        left -= rows;
        texts.iter_mut().try_for_each(|column| column.read(rows))?;
        lanes.iter_mut().chain(&mut integers).try_for_each(|column| column.read(rows))?;
        values.read(rows)?;
        for row in 0..rows {
            let text = |column: usize| texts[column].values[row].as_utf8();
            let integer = |column: usize| integers[column].values[row];
            lines.write(&StoredRow {
                run_id: text(0)?,
                experiment: text(1)?,
                lane: lanes.as_ref().and_then(|lanes| lane(lanes.values[row])),
                variant: text(2)?,
                point: text(3)?,
                trial: integer(0),
                position: integer(1),
                metric: text(4)?,
                key: text(5)?,
                offset_ns: integer(2),
                value: values.values[row],
                unit: text(6)?,
                status: text(7)?,
                start_ns: integer(3),
                worker: text(8)?,
            })?;
        }
    }
    Ok(())
}

fn lane(number: i64) -> Option<u32> {
    u32::try_from(number).ok().filter(|&lane| u64::from(lane) != NO_LANE)
}

fn status(text: &ByteArray) -> Result<Status, ParquetError> {
    let known = [Status::Ok, Status::Censored, Status::Lost, Status::Failed];
    let status = known.into_iter().find(|&status| status_word(status).as_bytes() == text.data());
    status.ok_or_else(|| ParquetError::General("a status is none that Ascertain writes".into()))
}

/// A column of a group of rows, and the batch of it that was read last.
struct Column<T: DataType> {
    reader: ColumnReaderImpl<T>,
    values: Vec<T::T>,
}

impl<T: DataType> Column<T> {
    fn open(group: &dyn RowGroupReader, name: &str) -> Result<Self, ParquetError> {
        let columns = group.metadata().columns();
        let index = columns.iter().position(|column| column.column_path().string() == name);
        let index = index.ok_or_else(|| ParquetError::General(format!("it has no column `{name}`")))?;
        let column = &columns[index];
        if column.column_type() != T::get_physical_type() || column.column_descr().max_def_level() != 0 {
            return Err(ParquetError::General(format!("its column `{name}` is of another type")));
        }
        let reader = get_typed_column_reader(group.get_column_reader(index)?);
        Ok(Column { reader, values: Vec::with_capacity(BATCH) })
    }

    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.values.clear();
        while self.values.len() < rows {
            let (records, ..) = self.reader.read_records(rows - self.values.len(), None, None, &mut self.values)?;
            if records == 0 {
                return Err(ParquetError::EOF("a column has fewer values than there are rows".into()));
            }
        }
        Ok(())
    }
}
