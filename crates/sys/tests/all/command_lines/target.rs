//! A check of how any command line is split into words. A fuzzer in `fuzz/` runs the same check.

use ascertain_sys::process::{SplitError, join, split};

/// Checks that joined words are split into the same words, and that the column of an error is in the line.
pub fn command_lines(bytes: &[u8]) {
    let Ok(line) = std::str::from_utf8(bytes) else { return };
    match split(line) {
        Ok(words) => assert_eq!(split(&join(&words)).as_ref(), Ok(&words), "{line:?}"),
        Err(error) => {
            let columns = line.chars().count();
            let _ = error.to_string();
            if let SplitError::ShellCharacter { column, .. } = error {
                assert!((1..=columns).contains(&column), "{line:?}: {error}");
            }
        }
    }
}
