//! The commands that README and the book contain, for the tests that parse and run them.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the root folder of this repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Returns the Markdown files directly in a folder, sorted.
pub fn markdown(folder: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    let mut pages: Vec<_> =
        entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect();
    pages.sort();
    pages
}

/// A command in a document.
#[derive(Debug)]
pub struct Typed {
    /// The file name of the document.
    pub document: String,
    /// The line as a shell gets it, without a comment.
    pub line: String,
    /// `true` if the command stands in a code block, and `false` if it stands in a sentence or a table.
    pub is_block: bool,
}

/// Returns the commands of README and of the pages in these folders, in their order.
pub fn commands(folders: &[&str]) -> Vec<Typed> {
    let mut found = Vec::new();
    let pages = folders.iter().flat_map(|folder| markdown(folder));
    for path in [root().join("README.md")].into_iter().chain(pages) {
        let text = fs::read_to_string(&path).unwrap();
        let document = path.file_name().unwrap().to_string_lossy().into_owned();
        let mut add = |line: &str, is_block| {
            let line = line.replace("cargo run --release -- ", "ascertain ");
            found.push(Typed { document: document.clone(), line, is_block });
        };
        for (index, part) in text.split("```").enumerate() {
            match index % 2 {
                0 => inline(part).for_each(|line| add(&line, false)),
                _ => block(part).iter().for_each(|line| add(line, true)),
            }
        }
    }
    found
}

/// Returns the complete `ascertain` commands in the inline code of a text.
fn inline(text: &str) -> impl Iterator<Item = String> {
    let code = text.split('`').skip(1).step_by(2).map(|code| code.replace("\\|", "|").replace('\n', " "));
    code.filter(|code| code.starts_with("ascertain ") && !code.contains('…'))
}

/// Returns the lines of a code block that contain an `ascertain` command: any line of a `sh` block, or a line after `$`
/// in a `console` block.
fn block(block: &str) -> Vec<String> {
    let (language, text) = block.split_once('\n').unwrap_or_default();
    let text = text.replace("\\\n", " ");
    let lines = text.lines().filter_map(|line| match language {
        "sh" => Some(line),
        "console" => line.strip_prefix("$ "),
        _ => None,
    });
    let without_comment = |line: &str| line.split(" # ").next().unwrap_or_default().trim().to_owned();
    let is_ours =
        |line: &str| [" ascertain ", " cargo run --release -- "].iter().any(|ours| format!(" {line}").contains(ours));
    lines
        .filter(|line| is_ours(line) && !line.starts_with('#'))
        .map(without_comment)
        .filter(|line| is_ours(line))
        .collect()
}
