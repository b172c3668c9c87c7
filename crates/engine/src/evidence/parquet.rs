//! `trials.parquet`: writes and reads rows column by column.

mod footer;

use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ascertain_sys::files;
use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReaderImpl, get_column_reader, get_typed_column_reader};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::RowGroupMetaData;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::serialized_reader::SerializedPageReader;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use serde::de::value::Error as WordError;

use super::error::Error;
use super::folder::{PARQUET, checksum_of_file, replace};
use super::lines::LineReader;
use super::numbers::{Follower, NumberRow, RowKinds};
use super::row::{Row, RowReader};
use crate::experiment::Status;
use footer::Footer;

/// The end of the message of [`Error::NoRows`], after a semicolon: another way to restore the rows.
pub(super) const WITHOUT_LINES: &str = "or restore its trials.parquet, which has the same rows";
/// Number of rows in a row group. The writer holds a group in memory (about 20 MB). Readers can skip groups, or read
/// several in parallel. Tests use a small number, so that a few rows need several groups.
const GROUP_ROWS: usize = if cfg!(test) { 3 } else { 1 << 18 };
/// Number of values of a column that are encoded or decoded in one call of the library.
const BATCH: usize = 1 << 12;

/// Copies the rows from the run's `trials.jsonl` to its Parquet file. Returns the checksum of the Parquet file.
pub(super) fn finish(run: &Path) -> Result<Option<String>, Error> {
    let path = run.join(PARQUET);
    replace(&path, |file| write(&mut LineReader::open(run)?, file, &path))?;
    checksum_of_file(&path).map(Some).map_err(Error::read(&path, PARQUET))
}

/// Writes the Parquet file of a run from rows in memory. Returns its checksum.
pub(super) fn write_rows(run: &Path, rows: impl Iterator<Item = Row<'static>>) -> Result<Option<String>, Error> {
    let path = run.join(PARQUET);
    replace(&path, |file| write(&mut GivenRows { rows, path: &path }, file, &path))?;
    checksum_of_file(&path).map(Some).map_err(Error::read(&path, PARQUET))
}

/// Rows from an iterator, for the file at a path.
struct GivenRows<'a, I> {
    rows: I,
    path: &'a Path,
}

impl<I: Iterator<Item = Row<'static>>> RowReader for GivenRows<'_, I> {
    fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        Ok(self.rows.next())
    }

    fn ends_trial(&self) -> bool {
        true
    }

    fn end_bytes(&self) -> u64 {
        0
    }

    fn malformed(&self, reason: String) -> Error {
        Error::Parquet { path: self.path.to_path_buf(), reason }
    }
}

/// Writes rows as a Parquet file. `path` is only used in errors.
fn write(reader: &mut dyn RowReader, file: &File, path: &Path) -> Result<(), Error> {
    let failed = Error::write(path);
    let mut columns = columns();
    let (schema, properties) = layout(&columns).map_err(&failed)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(&failed)?;
    loop {
        let mut rows = 0;
        while rows < GROUP_ROWS
            && let Some(row) = reader.next_row()?
        {
            columns.iter_mut().for_each(|(_, column)| column.push(&row));
            rows += 1;
        }
        if rows == 0 {
            writer.close().map_err(&failed)?;
            return Ok(());
        }
        write_group(&mut columns, &mut writer).map_err(&failed)?;
    }
}

fn write_group(
    columns: &mut [(&'static str, ColumnWriter)],
    writer: &mut SerializedFileWriter<&File>,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let mut writer = group.next_column()?.expect("every column is in the schema");
        column.write_to(&mut writer)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// A column of the file. Each variant has a function that reads the column's value from a row, and a buffer of values
/// that are not written yet.
enum ColumnWriter {
    Text(for<'a> fn(&'a Row<'_>) -> &'a str, Texts),
    Integer(fn(&Row) -> u64, Vec<i64>),
    Real(fn(&Row) -> f64, Vec<f64>),
}

/// Returns the columns with their names, in the order of the fields of [`Row`].
fn columns() -> [(&'static str, ColumnWriter); 15] {
    let text = |value| ColumnWriter::Text(value, Texts::default());
    let integer = |value| ColumnWriter::Integer(value, Vec::new());
    [
        ("run_id", text(|row| &row.run_id)),
        ("experiment", text(|row| &row.experiment)),
        ("lane", integer(|row| row.lane.into())),
        ("variant", text(|row| &row.variant)),
        ("point", text(|row| &row.point)),
        ("trial", integer(|row| row.trial)),
        ("position", integer(|row| row.position.into())),
        ("metric", text(|row| &row.metric)),
        ("key", text(|row| &row.key)),
        ("offset_ns", integer(|row| row.offset_ns)),
        ("value", ColumnWriter::Real(|row| row.value, Vec::new())),
        ("unit", text(|row| row.unit.symbol())),
        ("status", text(|row| row.status.word())),
        ("start_ns", integer(|row| row.start_ns)),
        ("worker", text(|row| &row.worker)),
    ]
}

fn layout(columns: &[(&'static str, ColumnWriter)]) -> Result<(Type, WriterProperties), ParquetError> {
    let mut fields = Vec::new();
    let mut properties =
        WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Chunk).set_dictionary_enabled(false);
    for (name, column) in columns {
        let path = ColumnPath::from(*name);
        let (physical, logical) = match column {
            ColumnWriter::Text(..) => {
                properties = properties.set_column_dictionary_enabled(path.clone(), true);
                // Computing the minimum and maximum of texts takes a third of the time. Readers use these statistics to
                // skip row groups without the wanted run or experiment. The other text columns have the same texts in
                // every group, so statistics would not help there.
                if !["run_id", "experiment"].contains(name) {
                    properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
                }
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
            ColumnWriter::Integer(..) => {
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
                (Physical::INT64, None)
            }
            ColumnWriter::Real(..) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        fields.push(Arc::new(field.with_logical_type(logical).build()?));
    }
    let schema = Type::group_type_builder("trials").with_fields(fields).build()?;
    Ok((schema, properties.build()))
}

impl ColumnWriter {
    fn push(&mut self, row: &Row) {
        match self {
            ColumnWriter::Text(value, texts) => texts.push(value(row)),
            // Values above `i64::MAX` would need a run of more than 292 years.
            ColumnWriter::Integer(value, values) => values.push(value(row).try_into().unwrap_or(i64::MAX)),
            ColumnWriter::Real(value, values) => values.push(value(row)),
        }
    }

    fn write_to(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        match self {
            ColumnWriter::Text(_, texts) => texts.write_to(writer)?,
            ColumnWriter::Integer(_, values) => {
                writer.typed::<Int64Type>().write_batch(values, None, None)?;
                values.clear();
            }
            ColumnWriter::Real(_, values) => {
                writer.typed::<DoubleType>().write_batch(values, None, None)?;
                values.clear();
            }
        }
        Ok(())
    }
}

/// The values of a column of texts, with each distinct text kept once.
#[derive(Default)]
struct Texts {
    known: HashMap<String, u32>,
    values: Vec<ByteArray>,
    rows: Vec<u32>,
}

impl Texts {
    fn push(&mut self, text: &str) {
        let index = self.known.get(text).copied().unwrap_or_else(|| {
            let index = self.values.len() as u32;
            self.known.insert(text.to_string(), index);
            self.values.push(text.as_bytes().to_vec().into());
            index
        });
        self.rows.push(index);
    }

    fn write_to(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        let mut batch = Vec::with_capacity(BATCH);
        for rows in self.rows.chunks(BATCH) {
            batch.clear();
            batch.extend(rows.iter().map(|&index| self.values[index as usize].clone()));
            writer.typed::<ByteArrayType>().write_batch(&batch, None, None)?;
        }
        *self = Texts::default();
        Ok(())
    }
}

/// Opens the Parquet file for reading its rows; returns `None` if it does not exist. If `checksum` does not match, the
/// file is not read, because wrong bytes may look like data or make the library panic.
pub(super) fn open(path: &Path, checksum: Option<&str>) -> Result<Option<Box<dyn RowReader>>, Error> {
    let file = match files::open_regular(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Error::read(path, PARQUET)(error)),
    };
    let broken = |reason: String| Error::Parquet { path: path.to_path_buf(), reason };
    let expected = checksum.ok_or_else(|| broken("run.json has no checksum of this file".into()))?;
    if expected != checksum_of_file(path).map_err(Error::read(path, PARQUET))? {
        return Err(broken("its checksum differs from that in run.json".into()));
    }
    let footer = Footer::open(&file).map_err(|error| broken(error.to_string()))?;
    Ok(Some(Box::new(ParquetReader {
        path: path.to_path_buf(),
        file: Arc::new(file),
        footer,
        group: None,
        known: Vec::new(),
        follower: Follower::default(),
    })))
}

/// A reader of the rows of the file, one row group after the other. Its memory does not depend on their number.
struct ParquetReader {
    path: PathBuf,
    file: Arc<File>,
    footer: Footer,
    group: Option<GroupReader>,
    /// The texts of each kind and status that numbers had so far, with the index of the kind.
    known: Vec<KnownTexts>,
    follower: Follower,
}

/// The texts of a row in [`NUMBER_TEXTS`], and its lane. The library hands out the same bytes for all rows of a group
/// that have the same text, so a comparison of addresses is usually enough. The bytes cannot be replaced by others while
/// they are held here.
struct KnownTexts {
    texts: [ByteArray; NUMBER_TEXTS.len()],
    lane: i64,
    kind: usize,
    status: Status,
}

impl KnownTexts {
    fn are_of(&self, group: &GroupReader) -> bool {
        let is_same = |known: &ByteArray, text: &ByteArray| {
            let (known, text) = (known.data(), text.data());
            known.as_ptr() == text.as_ptr() && known.len() == text.len()
        };
        let mut texts = self.texts.iter().zip(NUMBER_TEXTS);
        self.lane == group.integers[0].values[group.place - 1]
            && texts.all(|(known, column)| is_same(known, &group.texts[column].values[group.place - 1]))
    }
}

impl ParquetReader {
    /// Goes to the next row. Returns `false` if there is none. If `is_whole` is false, only the columns that numbers
    /// need are decoded.
    fn advance(&mut self, is_whole: bool) -> Result<bool, ParquetError> {
        while !self.group.as_mut().map_or(Ok(false), GroupReader::advance)? {
            // The buffers of the last group are freed first.
            self.group = None;
            let Some(group) = self.footer.next_group(&self.file)? else { return Ok(false) };
            self.group = Some(GroupReader::open(&self.file, &group, is_whole)?);
        }
        Ok(true)
    }

    fn number(&mut self, kinds: &mut RowKinds) -> Result<Option<NumberRow>, ParquetError> {
        if !self.advance(false)? {
            return Ok(None);
        }
        let Some(group) = &self.group else { return Ok(None) };
        let known = &self.known;
        let found = match self.follower.find(known.len(), |index| known[index].are_of(group)) {
            Some(found) => found,
            None => {
                let NumberRow { kind, status, .. } = kinds.number(&group.row()?);
                let texts = NUMBER_TEXTS.map(|column| group.texts[column].values[group.place - 1].clone());
                let lane = group.integers[0].values[group.place - 1];
                let place = known.iter().position(|known| (known.kind, known.status) == (kind, status));
                let place = place.unwrap_or(known.len());
                let texts = KnownTexts { texts, lane, kind, status };
                match self.known.get_mut(place) {
                    Some(known) => *known = texts,
                    None => self.known.push(texts),
                }
                place
            }
        };
        let integer = |column: usize| u64::try_from(group.integers[column].values[group.place - 1]);
        let KnownTexts { kind, status, .. } = self.known[found];
        let value = group.values.values[group.place - 1];
        Ok(Some(NumberRow { kind, trial: integer(1)?, start_ns: integer(4)?, value, status }))
    }
}

impl RowReader for ParquetReader {
    fn next_number(&mut self, kinds: &mut RowKinds) -> Result<Option<NumberRow>, Error> {
        self.number(kinds).map_err(|error| self.malformed(error.to_string()))
    }

    fn next_row(&mut self) -> Result<Option<Row<'_>>, Error> {
        let row = match self.advance(true) {
            Ok(true) => self.group.as_ref().map(GroupReader::row).transpose(),
            Ok(false) => Ok(None),
            Err(error) => Err(error),
        };
        row.map_err(|error| self.malformed(error.to_string()))
    }

    /// Returns `true`, because the file contains only complete trials.
    fn ends_trial(&self) -> bool {
        true
    }

    fn end_bytes(&self) -> u64 {
        0
    }

    fn malformed(&self, reason: String) -> Error {
        Error::Parquet { path: self.path.clone(), reason }
    }
}

const TEXTS: [&str; 9] = ["run_id", "experiment", "variant", "point", "metric", "key", "unit", "status", "worker"];
const INTEGERS: [&str; 5] = ["lane", "trial", "position", "offset_ns", "start_ns"];
/// The columns that numbers need, as indices into [`TEXTS`] and [`INTEGERS`]. The other columns are then empty or 0.
const NUMBER_TEXTS: [usize; 7] = [1, 2, 3, 4, 5, 6, 7];
const NUMBER_INTEGERS: [usize; 3] = [0, 1, 4];

/// A reader of one row group of the file. It decodes the rows in batches.
struct GroupReader {
    /// The readers of the columns in [`TEXTS`].
    texts: Vec<ColumnReader<ByteArrayType>>,
    /// The readers of the columns in [`INTEGERS`].
    integers: Vec<ColumnReader<Int64Type>>,
    values: ColumnReader<DoubleType>,
    /// Number of rows of the group that are still to be decoded.
    left: usize,
    /// Number of rows in the batch that was decoded last.
    rows: usize,
    /// Number of rows of the last decoded batch that have been read, including the current one.
    place: usize,
}

impl GroupReader {
    fn open(file: &Arc<File>, group: &RowGroupMetaData, is_whole: bool) -> Result<GroupReader, ParquetError> {
        let texts = TEXTS.iter().enumerate().map(|(column, name)| {
            let is_read = is_whole || NUMBER_TEXTS.contains(&column);
            ColumnReader::open(file, group, name, is_read)
        });
        let integers = INTEGERS.iter().enumerate().map(|(column, name)| {
            let is_read = is_whole || NUMBER_INTEGERS.contains(&column);
            ColumnReader::open(file, group, name, is_read)
        });
        Ok(GroupReader {
            texts: texts.collect::<Result<_, _>>()?,
            integers: integers.collect::<Result<_, _>>()?,
            values: ColumnReader::open(file, group, "value", true)?,
            left: usize::try_from(group.num_rows())?,
            rows: 0,
            place: 0,
        })
    }

    /// Goes to the next row. Returns `false` if there is none.
    fn advance(&mut self) -> Result<bool, ParquetError> {
        if self.place == self.rows {
            (self.place, self.rows) = (0, self.left.min(BATCH));
            self.left -= self.rows;
            self.texts.iter_mut().try_for_each(|column| column.read(self.rows))?;
            self.integers.iter_mut().try_for_each(|column| column.read(self.rows))?;
            self.values.read(self.rows)?;
        }
        self.place += 1;
        Ok(self.place <= self.rows)
    }

    fn row(&self) -> Result<Row<'_>, ParquetError> {
        let index = self.place - 1;
        let text = |column: usize| self.texts[column].values.get(index).map_or(Ok(""), ByteArray::as_utf8);
        let integer = |column: usize| u64::try_from(self.integers[column].values.get(index).copied().unwrap_or(0));
        Ok(Row {
            run_id: Cow::Borrowed(text(0)?),
            experiment: Cow::Borrowed(text(1)?),
            lane: integer(0)?.try_into()?,
            variant: Cow::Borrowed(text(2)?),
            point: Cow::Borrowed(text(3)?),
            trial: integer(1)?,
            position: integer(2)?.try_into()?,
            metric: Cow::Borrowed(text(4)?),
            key: Cow::Borrowed(text(5)?),
            offset_ns: integer(3)?,
            value: self.values.values[index],
            unit: word(text(6)?)?,
            status: word(text(7)?)?,
            start_ns: integer(4)?,
            worker: Cow::Borrowed(text(8)?),
        })
    }
}

/// Parses a word such as `ok` or `ns`. Returns the value that serde serialises as this word.
fn word<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, ParquetError> {
    T::deserialize(text.into_deserializer()).map_err(|error: WordError| ParquetError::General(error.to_string()))
}

/// A column of a row group, with the batch of its values that was decoded last.
struct ColumnReader<T: DataType> {
    reader: ColumnReaderImpl<T>,
    /// `false` if the column stays empty, because its values are not needed.
    is_read: bool,
    values: Vec<T::T>,
}

impl<T: DataType> ColumnReader<T> {
    fn open(file: &Arc<File>, group: &RowGroupMetaData, name: &str, is_read: bool) -> Result<Self, ParquetError> {
        let columns = group.columns();
        let index = columns.iter().position(|column| column.column_path().string() == name);
        let index = index.ok_or_else(|| ParquetError::General(format!("there is no column `{name}`")))?;
        let column = &columns[index];
        if column.column_type() != T::get_physical_type() || column.column_descr().max_def_level() != 0 {
            return Err(ParquetError::General(format!("the column `{name}` has an unexpected type")));
        }
        let pages = SerializedPageReader::new(file.clone(), column, usize::try_from(group.num_rows())?, None)?;
        let reader = get_typed_column_reader(get_column_reader(column.column_descr_ptr(), Box::new(pages)));
        Ok(ColumnReader { reader, is_read, values: Vec::with_capacity(if is_read { BATCH } else { 0 }) })
    }

    fn read(&mut self, rows: usize) -> Result<(), ParquetError> {
        self.values.clear();
        while self.is_read && self.values.len() < rows {
            let (records, ..) = self.reader.read_records(rows - self.values.len(), None, None, &mut self.values)?;
            if records == 0 {
                return Err(ParquetError::EOF("a column has fewer values than there are rows".into()));
            }
        }
        Ok(())
    }
}
