//! Tests of reading a column of numbers.

use std::io::{self, Read};

use proptest::prelude::*;

use crate::samples::read_column;

const MOST: usize = 100_000;

fn read(text: &str, column: Option<&str>) -> Result<Vec<f64>, String> {
    let read = read_column(text.as_bytes(), "f.csv", column, MOST);
    read.map(|column| column.values).map_err(|error| error.to_string())
}

#[test]
fn a_heading_is_told() {
    let heading = |text: &str, column| read_column(text.as_bytes(), "f.csv", column, MOST).unwrap().heading;
    assert_eq!(heading("1.O5\n1\n2\n", None).as_deref(), Some("1.O5"));
    assert_eq!(heading("a, b \n1,2\n", Some("2")).as_deref(), Some("b"));
    assert_eq!(heading("1\n2\n", None), None);
}

#[test]
fn one_number_a_line() {
    for text in [
        "1\n2.5\n-3e2\n",
        "1\r\n2.5\r\n-3e2",
        "\u{feff}1\n2.5\n-3e2\n",
        "wall\n1\n\n 2.5 \n+-3e2\n".replace("+-", "-").as_str(),
    ] {
        assert_eq!(read(text, None).unwrap(), [1.0, 2.5, -300.0], "{text:?}");
    }
}

#[test]
fn columns_by_name_and_by_number() {
    let text = "name,wall (ms),user\nfirst,1,10\n\"second, with\n\"\"quotes\"\"\",\"2\",20\n";
    assert_eq!(read(text, Some("wall (ms)")).unwrap(), [1.0, 2.0]);
    assert_eq!(read(text, Some("2")).unwrap(), [1.0, 2.0]);
    assert_eq!(read(text, Some("3")).unwrap(), [10.0, 20.0]);
    assert_eq!(read("name,2024\n1,2\n", Some("name")).unwrap(), [1.0], "asked for by name, so it is a heading");
    assert_eq!(read("1,x\n2,y\n", Some("1")).unwrap(), [1.0, 2.0], "no heading");
    assert_eq!(read("a;b\n1;2\n3;4\n", Some("b")).unwrap(), [2.0, 4.0]);
    assert_eq!(read("a\tb\n1\t2\n3\t4\n", Some("a")).unwrap(), [1.0, 3.0]);
    assert_eq!(read("\"a;b\",c\n1,2\n", Some("c")).unwrap(), [2.0]);
}

#[test]
fn mistakes_say_where_they_are_and_what_to_do() {
    let wrong = |text: &str, column, message: &str| {
        let said = read(text, column).unwrap_err();
        assert!(said.contains(message), "{text:?}: {said}");
    };
    wrong("", None, "f.csv contains no numbers");
    wrong("\n\n", None, "f.csv contains no numbers");
    wrong("wall\n", None, "f.csv contains no numbers");
    wrong("", Some("wall"), "f.csv contains no numbers");
    wrong("1\n2\nfast\n", None, "f.csv:3:1: `fast` is not a number; remove or correct the line");
    wrong("1\r\n\r\n2\r\nfast\r\n", None, "f.csv:4:1: `fast`");
    wrong("1\n2\nfast", None, "f.csv:3:1: `fast`");
    wrong("a,b\n1,2\n3,\n", Some("b"), "f.csv:3:2: the field is empty");
    wrong("1\nNaN\n", None, "f.csv:2:1: `NaN` is not a finite number");
    wrong("NaN\n1\n", None, "f.csv:1:1: `NaN` is not a finite number");
    wrong("1\n-inf\n", None, "`-inf` is not a finite number");
    wrong("1\n1e999\n", None, "`1e999` is not a finite number");
    wrong("1\n\"1,5\"\n", None, "`1,5` is not a number: write a point instead of a decimal comma; remove");
    wrong("a;b\n1,5;2\n", Some("a"), "`1,5` is not a number: write a point instead of a decimal comma; remove");
    wrong("1,5\n2,5\n", None, "a number from 1 to 2; if that is one number, write a point instead of a decimal comma");
    wrong("wall\n1,5\n", None, "2 fields where the first line has 1: write a point instead of a decimal comma");
    wrong("1\n\"1,5,5\"\n", None, "`1,5,5` is not a number; remove");
    wrong("a,b,a\n1,2,3\n", Some("a"), "f.csv has 2 columns with the name `a`; choose one by its number: 1, 3");
    wrong("Größe \"x\",it's\n1,2\n", Some("z"), "choose one of `Größe \"x\"`, `it's`");
    wrong("\"a\nb\",c\n1,2\n", Some("z"), "choose one of `a\\nb`, `c`");
    wrong("a,c\n1,2\n", Some("x\ny"), "has no column `x\\ny`");
    wrong("1\n5 ms\n", None, "`5 ms` is not a number");
    wrong("1\n\u{1b}[31m\n", None, "`\\u{1b}[31m` is not a number");
    wrong(&format!("1\n{}5\n", "x".repeat(1 << 12)), None, &format!("f.csv:2:1: `{}` is not", "x".repeat(60)));
    wrong("a,b\n1,2\n3\n", Some("a"), "f.csv:3: 1 field where the first line has 2");
    wrong("a,b\n1,2\n3,4,5\n", Some("a"), "f.csv:3: 3 fields where the first line has 2");
    wrong("1,2\n3,4\n", None, "f.csv has 2 columns; choose a number from 1 to 2; if");
    wrong("wall,user\n3,4\n", None, "choose one of `wall`, `user`");
    wrong("wall,user\n3,4\n", Some("wal"), "no column `wal`; choose one of `wall`, `user`; did you mean `wall`?");
    wrong("wall,user\n3,4\n", Some("3"), "no column `3`");
    wrong("wall,user\n3,4\n", Some("0"), "no column `0`");
    wrong("3,4\n", Some("wall"), "no column `wall`; choose a number from 1 to 2");
    wrong(&format!("1\n{}\n", "9".repeat(100_000)), None, "f.csv:2:1");
    assert_eq!(
        read(&format!("x,{}\n1,\"{}\"\n", "n".repeat(5000), "long ".repeat(100_000)), Some("x")).unwrap(),
        [1.0]
    );
}

#[test]
fn a_quote_that_is_not_closed_is_named_where_it_is_opened() {
    let said = |text: &str| read(text, Some("1")).unwrap_err();
    let open = "the quote that is opened here is not closed";
    assert!(said("a\n1\n\n\"2\n3\n").starts_with(&format!("f.csv:4: {open}")), "{}", said("a\n1\n\n\"2\n3\n"));
    assert!(said("a,b\r\n1,2\r\n3,\"4\"\"\r\n5,6\r\n").starts_with("f.csv:3: the quote"));
    assert!(said("1\n2\n\"").starts_with("f.csv:3: the quote"));
    // The next quote closes the field, which is then not a number.
    assert!(
        said("1\n\"2\n3\n\"4\"\n")
            .contains("f.csv:4:1: `2\\n3\\n4\"` is not a number (its quote was opened in line 2)")
    );
    let endless = format!("1\n2\n\"{}", "3\n".repeat(1 << 23));
    assert!(said(&endless).starts_with("f.csv:3: the quote"), "before the end is seen");
    assert_eq!(read("1\n\"2\"", None).unwrap(), [1.0, 2.0]);
    assert_eq!(read("a,b\n1,\"x\"\"\"", Some("a")).unwrap(), [1.0]);
}

/// An endless pipe is refused, without using more memory.
#[test]
fn what_has_no_end_is_refused() {
    struct Endless(&'static [u8]);
    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let count = buffer.len() / self.0.len();
            buffer.chunks_exact_mut(self.0.len()).for_each(|piece| piece.copy_from_slice(self.0));
            Ok(count * self.0.len())
        }
    }
    for (text, message) in [
        (&b"1\n"[..], "f has more than 100000 numbers; use a random part of them (shuf -n 100000), or, for"),
        (b"1,", "f:1: more than 65536 fields in a line"),
        (b"x", "f:1: this is not UTF-8 text"),
        (b"\0", "f:1: this is not UTF-8 text"),
        (b"\"1", "f:1: the quote"),
        (b"\n", "f:131073: more than 100000 bytes of blank lines"),
        (b"\r\n", "f:65537: more than 100000 bytes of blank lines"),
    ] {
        let error = read_column(Endless(text), "f", None, MOST).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
    let begins = io::Cursor::new(b"1,2\n");
    let error = read_column(begins.chain(Endless(b"1,")), "f", Some("1"), MOST).unwrap_err();
    assert_eq!(error.to_string(), "f:2: 65537 fields where the first line has 2");
    let begins = io::Cursor::new(b"1\n2\n");
    let error = read_column(begins.chain(Endless(b"\n")), "f", None, MOST).unwrap_err().to_string();
    assert!(error.contains("bytes of blank lines"), "{error}");
    let gaps = format!("1\n{0}2\n{0}", "\n".repeat(MOST - 1000));
    assert_eq!(read(&gaps, None).unwrap(), [1.0, 2.0]);
    let exactly: String = "1\n".repeat(MOST);
    assert_eq!(read(&exactly, None).unwrap().len(), MOST);
}

#[test]
fn of_many_columns_some_are_named() {
    let names: Vec<String> = (1..=500).map(|number| format!("c{number}")).collect();
    let said = read(&(names.join(",") + "\n"), None).unwrap_err();
    assert!(said.ends_with("has 500 columns; choose one of `c1`, `c2`, `c3`, `c4`, `c5`, `c6`, `c7`, `c8`, `c9`, `c10`, `c11`, `c12`, `c13`, `c14`, `c15`, `c16`, `c17`, `c18`, `c19`, `c20` and 480 more"), "{said}");
}

#[test]
fn bytes_that_are_no_text() {
    let error = read_column(&b"1\n\xff\xfe\n"[..], "f", None, MOST).unwrap_err();
    assert!(error.to_string().starts_with("f:2:1: `\u{fffd}\u{fffd}` is not a number"), "{error}");
}

/// Input that arrives in pieces. The fields are the input, the number of bytes in a piece, and whether reading fails at
/// the end of the input.
struct Pieces<'a>(&'a [u8], usize, bool);

impl Read for Pieces<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.0.is_empty() && self.2 {
            return Err(io::Error::other("the disk is gone"));
        }
        let count = self.1.min(self.0.len()).min(buffer.len());
        buffer[..count].copy_from_slice(&self.0[..count]);
        self.0 = &self.0[count..];
        Ok(count)
    }
}

#[test]
fn a_failing_disk_is_named() {
    let error = read_column(Pieces(b"1\n2\n", 3, true), "f", None, MOST).unwrap_err();
    assert_eq!(error.to_string(), "f could not be read: the disk is gone");
}

/// Tests a file that is larger than the buffer, with lines that cross the ends of the buffer.
#[test]
fn long_files_are_read_whole() {
    let numbers: Vec<f64> = (0..60_000).map(|i| f64::from(i) * 0.37).collect();
    let text: String = numbers.iter().map(|number| format!("{number},x\n")).collect();
    assert_eq!(read(&text, Some("1")).unwrap(), numbers);
}

proptest! {
    #[test]
    fn numbers_are_read_as_they_were_written(
        numbers in proptest::collection::vec(any::<f64>().prop_filter("finite", |x| x.is_finite()), 1..200),
        piece in 1..40_usize,
        end in prop_oneof![Just("\n"), Just("\r\n")],
    ) {
        let text: String = numbers.iter().map(|number| format!("{number:e}{end}")).collect();
        prop_assert_eq!(read_column(Pieces(text.as_bytes(), piece, false), "f", None, MOST).unwrap().values, numbers);
    }

    #[test]
    fn nothing_makes_it_panic(bytes in proptest::collection::vec(prop_oneof![any::<u8>(), Just(b','), Just(b'\n'), Just(b'"'), Just(b'1')], 0..300)) {
        let _ = read_column(bytes.as_slice(), "f", Some("1"), MOST);
        let _ = read_column(bytes.as_slice(), "f", None, MOST);
    }
}
