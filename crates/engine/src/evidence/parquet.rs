//! Writes `trials.parquet`.

use std::collections::HashMap;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::schema::types::{ColumnPath, Type};

use super::error::Error;
use super::folder::{PARQUET, checksum_of_file, replace};
use super::lines::{JsonLine, Lines, status_word};
pub(super) use super::parquet_reader::{read, write_lines};

/// What can be done for a run without lines.
pub(super) const WITHOUT_LINES: &str = "or restore its trials.parquet, which has the same rows";
/// Rows that are in memory at once, some 20 MB of them. Readers skip and share out whole groups. Few in
/// tests, so that they come to a second group.
const GROUP_ROWS: usize = if cfg!(test) { 3 } else { 1 << 18 };
/// Stands for a lane where rows of the first versions have none.
pub(super) const NO_LANE: u64 = u32::MAX as u64;
/// Texts that are handed over at once.
const BATCH: usize = 1 << 12;

/// Writes the rows of the run's lines into its Parquet file as well. Gives its checksum.
pub(super) fn finish(run: &Path) -> Result<Option<String>, Error> {
    let path = run.join(PARQUET);
    replace(&path, |file| write(Lines::open(run)?, file, &path))?;
    checksum_of_file(&path).map(Some).map_err(Error::read(&path, PARQUET))
}

/// Writes the rows of these lines as a Parquet file. `path` is for errors.
fn write(mut lines: Lines, file: &File, path: &Path) -> Result<(), Error> {
    let failed = Error::write(path);
    let mut columns = columns();
    let (schema, properties) = layout(&columns).map_err(&failed)?;
    let mut writer = SerializedFileWriter::new(file, Arc::new(schema), Arc::new(properties)).map_err(&failed)?;
    loop {
        let mut rows = 0;
        while rows < GROUP_ROWS && lines.advance()? {
            let line: JsonLine = lines.parse()?;
            columns.iter_mut().for_each(|(_, column)| column.push(&line));
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
    columns: &mut [(&'static str, Column)],
    writer: &mut SerializedFileWriter<&File>,
) -> Result<(), ParquetError> {
    let mut group = writer.next_row_group()?;
    for (_, column) in columns {
        let mut writer = group.next_column()?.expect("the schema is made of these columns");
        column.write_to(&mut writer)?;
        writer.close()?;
    }
    group.close()?;
    Ok(())
}

/// A column: how a line gives its value, and the values that are not written yet.
enum Column {
    Text(for<'a> fn(&'a JsonLine<'_>) -> &'a str, Texts),
    Integer(fn(&JsonLine) -> u64, Vec<i64>),
    Real(fn(&JsonLine) -> f64, Vec<f64>),
}

/// The columns in their order. JSON lines have the same: the row buffer writes them.
fn columns() -> [(&'static str, Column); 15] {
    let text = |of| Column::Text(of, Texts::default());
    let integer = |of| Column::Integer(of, Vec::new());
    [
        ("run_id", text(|line| &line.run_id)),
        ("experiment", text(|line| &line.experiment)),
        ("lane", integer(|line| line.lane.map_or(NO_LANE, u64::from))),
        ("variant", text(|line| &line.variant)),
        ("point", text(|line| &line.point)),
        ("trial", integer(|line| line.trial)),
        ("position", integer(|line| line.position.into())),
        ("metric", text(|line| &line.metric)),
        ("key", text(|line| &line.key)),
        ("offset_ns", integer(|line| line.offset_ns)),
        ("value", Column::Real(|line| line.value(), Vec::new())),
        ("unit", text(|line| line.unit.symbol())),
        ("status", text(|line| status_word(line.status))),
        ("start_ns", integer(|line| line.start_ns)),
        ("worker", text(|line| &line.worker)),
    ]
}

fn layout(columns: &[(&'static str, Column)]) -> Result<(Type, WriterProperties), ParquetError> {
    let mut fields = Vec::new();
    let mut properties =
        WriterProperties::builder().set_statistics_enabled(EnabledStatistics::Chunk).set_dictionary_enabled(false);
    for (name, column) in columns {
        let path = ColumnPath::from(*name);
        let (physical, logical) = match column {
            Column::Text(..) => {
                properties = properties.set_column_dictionary_enabled(path.clone(), true);
                // The least and the greatest of texts take a third of the time. Whole groups are skipped by
                // these two columns at most: a group has all the others' texts.
                if !["run_id", "experiment"].contains(name) {
                    properties = properties.set_column_statistics_enabled(path, EnabledStatistics::None);
                }
                (Physical::BYTE_ARRAY, Some(LogicalType::String))
            }
            Column::Integer(..) => {
                properties = properties.set_column_encoding(path, Encoding::DELTA_BINARY_PACKED);
                (Physical::INT64, None)
            }
            Column::Real(..) => (Physical::DOUBLE, None),
        };
        let field = Type::primitive_type_builder(name, physical).with_repetition(Repetition::REQUIRED);
        fields.push(Arc::new(field.with_logical_type(logical).build()?));
    }
    let schema = Type::group_type_builder("trials").with_fields(fields).build()?;
    Ok((schema, properties.build()))
}

impl Column {
    fn push(&mut self, line: &JsonLine) {
        match self {
            Column::Text(of, texts) => texts.push(of(line)),
            // Counts and nanoseconds that are greater would need 292 years.
            Column::Integer(of, values) => values.push(of(line).try_into().unwrap_or(i64::MAX)),
            Column::Real(of, values) => values.push(of(line)),
        }
    }

    fn write_to(&mut self, writer: &mut SerializedColumnWriter) -> Result<(), ParquetError> {
        match self {
            Column::Text(_, texts) => texts.write_to(writer)?,
            Column::Integer(_, values) => {
                writer.typed::<Int64Type>().write_batch(values, None, None)?;
                values.clear();
            }
            Column::Real(_, values) => {
                writer.typed::<DoubleType>().write_batch(values, None, None)?;
                values.clear();
            }
        }
        Ok(())
    }
}

/// Texts of which most come again and again: each is kept once.
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
