//! Finds the program of a command line in the folder of a revision.

use std::fs;
use std::path::{Path, PathBuf};

use ascertain_report::terminal::escape_controls;
use ascertain_sys::process;

use crate::error::{Error, refused};

/// A command line whose first word is looked up in the folder of each revision.
pub(super) struct Line<'a> {
    /// The program, as the user wrote it.
    pub program: String,
    /// The path of a program that the user wrote as an absolute path, relative to the top folder of the checkout.
    below_top: Option<PathBuf>,
    /// The rest of the line, with the blank before it.
    arguments: &'a str,
}

impl<'a> Line<'a> {
    /// Splits a command line after its first word. `top` is the top folder of the user's checkout: an absolute path in
    /// it stands for the same path in each revision.
    pub fn parse(line: &'a str, top: &Path) -> Result<Line<'a>, Error> {
        let line = line.trim_start();
        let (first, arguments) = line.split_at(end_of_word(line));
        let program = match process::split(first) {
            Ok(words) => words.concat(),
            Err(error) => return refused(format!("`{}`: {error}", escape_controls(line))),
        };
        let path = Path::new(&program);
        let below = |path: &Path| path.strip_prefix(top).ok().map(Path::to_owned);
        let below_top = below(path).or_else(|| below(&fs::canonicalize(path).ok()?)).filter(|_| path.is_absolute());
        if path.is_absolute() && below_top.is_none() {
            return outside(&program, None);
        }
        Ok(Line { program, below_top, arguments })
    }

    /// Finds the program in the folder of a revision. Returns its file, and the command line that runs this file.
    /// `name` is the name of the revision, and `top` is its top folder.
    pub fn at(&self, (name, folder, top): (&str, &Path, &Path)) -> Result<(PathBuf, String), Error> {
        let path = match &self.below_top {
            Some(below) => top.join(below),
            None => folder.join(&self.program),
        };
        // Leaves out the `.` of `./program`.
        let path: PathBuf = path.components().collect();
        let (Ok(file), Ok(top)) = (fs::canonicalize(&path), fs::canonicalize(top)) else {
            return Err(Error::NoProgram { name: name.into(), program: escape_controls(&self.program), path });
        };
        if !file.starts_with(top) {
            return outside(&self.program, Some(&file));
        }
        let Some(text) = path.to_str() else {
            return refused(format!("{} is not valid UTF-8; use a folder whose path is", path.display()));
        };
        let line = format!("{}{}", process::join(&[text]), self.arguments);
        Ok((file, line))
    }
}

/// Returns the index of the first blank in a command line that is neither quoted nor escaped.
fn end_of_word(line: &str) -> usize {
    let (mut quote, mut is_escaped) = (None, false);
    for (index, letter) in line.char_indices() {
        match (letter, quote) {
            _ if is_escaped => is_escaped = false,
            ('\\', None | Some('"')) => is_escaped = true,
            ('\'' | '"', None) => quote = Some(letter),
            (_, Some(open)) if open == letter => quote = None,
            (_, None) if letter.is_whitespace() => return index,
            _ => {}
        }
    }
    line.len()
}

/// Refuses a program outside of the repository. `file` is the file to which its path leads, if that is another one.
fn outside<T>(program: &str, file: Option<&Path>) -> Result<T, Error> {
    let program = escape_controls(program);
    let leads = file.map_or_else(String::new, |file| format!(" leads to {}, which", file.display()));
    refused(format!(
        "`{program}`{leads} is outside of the repository, so all revisions would run the same program; name a program \
         that the build creates inside of the repository, such as target/release/app"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_split_from_the_arguments() {
        for (line, program, arguments) in [
            ("target/app --input data", "target/app", " --input data"),
            (" './my app'  x", "./my app", "  x"),
            (r"./my\ app | sort", "./my app", " | sort"),
            ("\"./it's\" y", "./it's", " y"),
            ("app", "app", ""),
        ] {
            let split = Line::parse(line, Path::new("/top")).unwrap();
            assert_eq!((split.program.as_str(), split.arguments), (program, arguments));
        }
        for line in ["", "$APP x", "'open"] {
            assert!(Line::parse(line, Path::new("/top")).is_err(), "{line}");
        }
        assert_eq!(Line::parse("/top/a/b c", Path::new("/top")).unwrap().below_top, Some("a/b".into()));
        assert!(Line::parse("/topper/a", Path::new("/top")).is_err());
    }
}
