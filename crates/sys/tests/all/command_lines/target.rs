//! What must be true of every command line: also run by `fuzz/`.

use ascertain_sys::process::{SplitError, join, split};

/// Words come back as they were; an error names a place within the line.
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
