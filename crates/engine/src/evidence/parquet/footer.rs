//! Reads the descriptions of the row groups in the footer of a Parquet file one by one. The library reads all of them
//! at once, so its memory would grow with the number of rows.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use parquet::errors::ParquetError;
use parquet::file::metadata::{ParquetMetaDataReader, RowGroupMetaData};

/// Bytes at the end of a file: the length of the footer, and `PAR1`.
const TAIL_BYTES: u64 = 8;
/// Bytes of the footer that are read at first. If they do not contain a whole element, more are read.
const FIRST_BYTES: usize = 1 << 14;
/// Number of the field that lists the row groups, and types of Thrift's compact protocol.
const ROW_GROUPS: i64 = 4;
const LIST: u8 = 9;
const STRUCT: u8 = 12;
/// Most structures within one another. The footers that we write have five.
const MOST_DEPTH: u32 = 16;

/// A place in the footer of a file, in front of a row group.
pub(super) struct Footer {
    /// The bytes before the row groups, and the header of a list of one.
    start: Vec<u8>,
    groups_left: u64,
    place: u64,
    end: u64,
}

impl Footer {
    pub fn open(file: &File) -> Result<Footer, ParquetError> {
        let malformed = || ParquetError::General("the footer is not valid".into());
        let end = file.metadata()?.len().checked_sub(TAIL_BYTES).ok_or_else(malformed)?;
        let mut tail = [0; TAIL_BYTES as usize];
        file.read_exact_at(&mut tail, end)?;
        let [length @ .., b'P', b'A', b'R', b'1'] = tail else { return Err(malformed()) };
        let place = end.checked_sub(u32::from_le_bytes(length).into()).ok_or_else(malformed)?;
        let mut footer = Footer { start: Vec::new(), groups_left: 0, place, end };
        (footer.start, ()) = footer.read(file, |bytes| bytes.skip_to_groups())?;
        (_, footer.groups_left) = footer.read(file, |bytes| match bytes.list()? {
            (STRUCT, count) => Some(count),
            _ => None,
        })?;
        footer.start.push(1 << 4 | STRUCT);
        Ok(footer)
    }

    /// Returns the description of the next row group.
    pub fn next_group(&mut self, file: &File) -> Result<Option<RowGroupMetaData>, ParquetError> {
        if self.groups_left == 0 {
            return Ok(None);
        }
        self.groups_left -= 1;
        let (group, ()) = self.read(file, |bytes| bytes.skip_group())?;
        // The last byte ends the structure of the footer.
        let single = [&self.start[..], &group, &[0]].concat();
        let metadata = ParquetMetaDataReader::decode_metadata(&single)?;
        Ok(metadata.into_builder().take_row_groups().pop())
    }

    /// Parses an element at the current place. Returns its bytes, and goes behind it.
    fn read<T>(
        &mut self,
        file: &File,
        parse: impl Fn(&mut Compact) -> Option<T>,
    ) -> Result<(Vec<u8>, T), ParquetError> {
        let left = self.end - self.place;
        let mut length = FIRST_BYTES;
        loop {
            let mut bytes = vec![0; length.min(usize::try_from(left).unwrap_or(usize::MAX))];
            file.read_exact_at(&mut bytes, self.place)?;
            let mut rest = Compact(&bytes);
            if let Some(parsed) = parse(&mut rest) {
                let used = bytes.len() - rest.0.len();
                self.place += used as u64;
                return Ok((bytes[..used].to_vec(), parsed));
            }
            if bytes.len() as u64 == left {
                let error = io::Error::new(io::ErrorKind::InvalidData, "the footer is not valid");
                return Err(error.into());
            }
            length *= 2;
        }
    }
}

/// The rest of some bytes in Thrift's compact protocol. The functions return `None` if the bytes end too early.
struct Compact<'a>(&'a [u8]);

impl Compact<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn skip_bytes(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    /// Reads a number with seven bits in each byte, the lowest first.
    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    /// Reads the type and the number of the next field. The type is 0 at the end of a structure.
    fn field(&mut self, last: i64) -> Option<(u8, i64)> {
        let byte = self.byte()?;
        let (step, kind) = (byte >> 4, byte & 0xf);
        if step > 0 || kind == 0 {
            return Some((kind, last + i64::from(step)));
        }
        let number = self.number()?;
        Some((kind, (number >> 1) as i64 ^ -((number & 1) as i64)))
    }

    /// Reads the type and the number of the elements of a list.
    fn list(&mut self) -> Option<(u8, u64)> {
        let byte = self.byte()?;
        let count = if byte >> 4 == 0xf { self.number()? } else { u64::from(byte >> 4) };
        Some((byte & 0xf, count))
    }

    fn skip(&mut self, kind: u8, depth: u32) -> Option<()> {
        match kind {
            // The type of a field contains its truth value.
            1 | 2 => Some(()),
            3 => self.skip_bytes(1),
            4..=6 => self.number().map(|_| ()),
            7 => self.skip_bytes(8),
            8 => self.number().and_then(|bytes| self.skip_bytes(bytes)),
            9 | 10 => {
                let (kind, count) = self.list()?;
                (0..count).try_for_each(|_| self.skip_element(kind, depth))
            }
            STRUCT => {
                let depth = depth.checked_sub(1)?;
                let mut last = 0;
                loop {
                    let (kind, number) = self.field(last)?;
                    if kind == 0 {
                        return Some(());
                    }
                    self.skip(kind, depth)?;
                    last = number;
                }
            }
            _ => None,
        }
    }

    fn skip_element(&mut self, kind: u8, depth: u32) -> Option<()> {
        // Only truth values take another number of bytes in lists.
        if matches!(kind, 1 | 2) { self.skip_bytes(1) } else { self.skip(kind, depth) }
    }

    fn skip_group(&mut self) -> Option<()> {
        self.skip(STRUCT, MOST_DEPTH)
    }

    /// Goes to the list of row groups.
    fn skip_to_groups(&mut self) -> Option<()> {
        let mut last = 0;
        loop {
            match self.field(last)? {
                (LIST, ROW_GROUPS) => return Some(()),
                (0, _) => return None,
                (kind, number) => {
                    self.skip(kind, MOST_DEPTH)?;
                    last = number;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};
    use std::sync::Arc;

    use parquet::data_type::Int64Type;
    use parquet::file::properties::WriterProperties;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    /// Writes a file with groups of one row.
    fn file_of(groups: i64) -> File {
        let file = tempfile::tempfile().unwrap();
        let schema = Arc::new(parse_message_type("message m { required int64 number; }").unwrap());
        let properties = Arc::new(WriterProperties::default());
        let mut writer = SerializedFileWriter::new(file.try_clone().unwrap(), schema, properties).unwrap();
        for number in 0..groups {
            let mut group = writer.next_row_group().unwrap();
            let mut column = group.next_column().unwrap().unwrap();
            column.typed::<Int64Type>().write_batch(&[number], None, None).unwrap();
            column.close().unwrap();
            group.close().unwrap();
        }
        writer.close().unwrap();
        file
    }

    #[test]
    fn each_group_is_as_the_library_reads_it() {
        for groups in [0, 1, 14, 15, 1000] {
            let file = file_of(groups);
            let mut footer = Footer::open(&file).unwrap();
            let library = SerializedFileReader::new(file.try_clone().unwrap()).unwrap();
            for expected in library.metadata().row_groups() {
                let group = footer.next_group(&file).unwrap().unwrap();
                assert_eq!(group.columns(), expected.columns());
                assert_eq!((group.num_rows(), group.ordinal()), (1, expected.ordinal()));
            }
            assert!(footer.next_group(&file).unwrap().is_none(), "{groups} groups");
        }
    }

    #[test]
    fn a_damaged_footer_is_an_error() {
        let mut file = file_of(3);
        file.rewind().unwrap();
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).unwrap();
        let with = |bytes: &[u8]| {
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(bytes).unwrap();
            let Ok(mut footer) = Footer::open(&file) else { return };
            // The library may panic when it decodes damaged bytes, so they are only skipped here.
            (0..9).take_while(|_| footer.read(&file, |bytes| bytes.skip_group()).is_ok()).for_each(drop);
        };
        with(b"");
        with(b"PAR1PAR1");
        for length in 0..bytes.len() {
            with(&[&bytes[..length], b"\xff\0\0\0PAR1"].concat());
        }
        for place in 0..bytes.len() {
            for byte in [0, 0x1c, 0x55, 0xff] {
                let mut damaged = bytes.clone();
                damaged[place] = byte;
                with(&damaged);
            }
        }
    }
}
