//! `cargo xtask lines`: counts the source lines of each crate.
//!
//! A line counts if it contains a token of code. Comments, documentation, blank lines, tests, examples and benches do
//! not count.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use crate::changes::is_documentation;
use crate::durations::is_test_attribute;
use crate::tools;

/// Prints the number of source lines of each crate. With `--since COMMIT`, prints the number at that commit, the
/// present number and the difference.
pub fn run(arguments: &[String]) -> anyhow::Result<()> {
    let after = count_tree(&tools::root())?;
    let before = match arguments {
        [] => None,
        [option, commit] if option == "--since" => Some(count_tree(&extract(commit)?)?),
        _ => bail!("usage: cargo xtask lines [--since COMMIT]"),
    };
    print!("{}", table(before.as_ref(), &after));
    Ok(())
}

/// Writes the files of a commit to a new folder, and returns the folder.
fn extract(commit: &str) -> anyhow::Result<PathBuf> {
    let (folder, archive) = (tools::new_folder("xtask-lines")?, tools::in_target("xtask-lines.tar"));
    tools::output_of("git", &["archive", "--output", &archive, commit])?;
    tools::output_of("tar", &["-xf", &archive, "-C", &folder])?;
    Ok(folder.into())
}

/// Returns the number of source lines of each package below `root`, by the package's folder.
fn count_tree(root: &Path) -> anyhow::Result<BTreeMap<String, usize>> {
    let (mut counts, mut files) = (BTreeMap::new(), Vec::new());
    for folder in fs::read_dir(root)?.map(|entry| Ok(entry?.path())).collect::<anyhow::Result<Vec<_>>>()? {
        let is_ours = folder.is_dir() && !["target", ".git", "node_modules"].iter().any(|name| folder.ends_with(name));
        files.extend(if is_ours { tools::files(&folder, "rs")? } else { Vec::new() });
    }
    let (sources, test_modules) = read_sources(files)?;
    for (path, source) in &sources {
        let below = path.strip_prefix(root)?.with_extension("");
        let is_test = below.iter().any(|part| part == "tests" || part == "examples" || part == "benches");
        if is_test || is_within(path, &test_modules) {
            continue;
        }
        let package = below.ancestors().find(|folder| root.join(folder).join("Cargo.toml").exists());
        let name = package.unwrap_or(Path::new("")).to_string_lossy().into_owned();
        *counts.entry(name).or_default() += source.lines.len();
    }
    Ok(counts)
}

/// Reads Rust files. Returns the sources by path. Also returns the paths, without extensions, of modules that have
/// their own files and are only compiled for tests.
pub fn read_sources(files: Vec<PathBuf>) -> anyhow::Result<(BTreeMap<PathBuf, Source>, BTreeSet<PathBuf>)> {
    let source = |path: PathBuf| Ok((path.clone(), Source::parse(&path, &fs::read_to_string(&path)?)?));
    let sources: BTreeMap<PathBuf, Source> = files.into_iter().map(source).collect::<anyhow::Result<_>>()?;
    let test_modules = sources.values().flat_map(|source| source.test_modules.clone()).collect();
    Ok((sources, test_modules))
}

/// Returns whether a file belongs to one of the modules, or to a module inside one.
pub fn is_within(file: &Path, modules: &BTreeSet<PathBuf>) -> bool {
    file.with_extension("").ancestors().any(|module| modules.contains(module))
}

/// The source lines of a Rust file.
#[derive(Default)]
pub struct Source {
    path: PathBuf,
    /// Line numbers of the lines that contain code.
    lines: BTreeSet<usize>,
    /// Paths, without extensions, of modules that have their own files and are only compiled for tests.
    test_modules: Vec<PathBuf>,
}

impl Source {
    fn parse(path: &Path, text: &str) -> anyhow::Result<Source> {
        let mut source = Source { path: path.to_owned(), ..Source::default() };
        source.add(text.parse().ok().with_context(|| format!("could not parse {}", path.display()))?);
        let blank: BTreeSet<usize> =
            (1..).zip(text.lines()).filter(|(_, line)| line.trim().is_empty()).map(|(at, _)| at).collect();
        source.lines.retain(|line| !blank.contains(line));
        Ok(source)
    }

    fn add(&mut self, stream: TokenStream) {
        let mut trees = stream.into_iter().peekable();
        while let Some(tree) = trees.next() {
            if is_punct(&tree, '#') {
                let is_inner = trees.next_if(|next| is_punct(next, '!')).is_some();
                match trees.peek() {
                    Some(next) if is_documentation(next) => {
                        trees.next();
                        continue;
                    }
                    Some(TokenTree::Group(group)) if is_test_attribute(group.stream()) => {
                        self.skip_item(&mut trees, is_inner);
                        continue;
                    }
                    _ => (),
                }
            }
            match tree {
                TokenTree::Group(group) => {
                    self.add_span(group.span_open());
                    self.add(group.stream());
                    self.add_span(group.span_close());
                }
                tree => self.add_span(tree.span()),
            }
        }
    }

    fn add_span(&mut self, span: Span) {
        self.lines.extend(span.start().line..=span.end().line);
    }

    /// Skips the item to which a test attribute applies. After an inner attribute, skips all items to the end.
    fn skip_item(&mut self, trees: &mut Peekable<impl Iterator<Item = TokenTree>>, is_inner: bool) {
        let mut words = Vec::new();
        for tree in trees.by_ref() {
            words.push(tree.to_string());
            let is_block = matches!(&tree, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace);
            if !is_inner && (is_block || is_punct(&tree, ';')) {
                break;
            }
        }
        trees.next_if(|next| is_punct(next, ';'));
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        if let [before @ .., "mod", name, ";"] = &words[..] {
            let folder = self.path.parent().unwrap_or(Path::new(""));
            let file = before.iter().find_map(|word| word.strip_prefix("[path = \"")?.strip_suffix(".rs\"]"));
            let is_root = ["lib", "main", "mod"].iter().any(|name| self.path.ends_with(format!("{name}.rs")));
            self.test_modules.push(match file {
                Some(file) => folder.join(file),
                None if is_root => folder.join(name),
                None => self.path.with_extension("").join(name),
            });
        }
    }
}

pub fn is_punct(tree: &TokenTree, char: char) -> bool {
    matches!(tree, TokenTree::Punct(punct) if punct.as_char() == char)
}

/// Returns a table with one line per package, and a line with the total.
fn table(before: Option<&BTreeMap<String, usize>>, after: &BTreeMap<String, usize>) -> String {
    let names: BTreeSet<&String> = before.into_iter().chain([after]).flat_map(BTreeMap::keys).collect();
    let count = |counts: &BTreeMap<String, usize>, name: &str| counts.get(name).copied().unwrap_or(0);
    let total = |counts: &BTreeMap<String, usize>| counts.values().sum::<usize>();
    let mut rows: Vec<_> =
        names.into_iter().map(|name| (&**name, before.map(|before| count(before, name)), count(after, name))).collect();
    rows.push(("total", before.map(total), total(after)));
    let width = rows.iter().map(|(name, ..)| name.len()).max().unwrap_or(0);
    let line = |(name, before, after): (&str, Option<usize>, usize)| match before {
        Some(before) => format!("{name:width$}  {before:6}  {after:6}  {:+10}\n", after as i64 - before as i64),
        None => format!("{name:width$}  {after:6}\n"),
    };
    let head = if before.is_some() { "  before   after  difference" } else { "   lines" };
    format!("{:width$}{head}\n", "") + &rows.into_iter().map(line).collect::<String>()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
//! A crate.
#![allow(dead_code)]

/* a
comment */
/// Adds.
#[inline] // one
fn add(a: &str) -> bool { // two
    /* a comment */ a == \"// a string\" /*
    */ || a == \"
        two lines, and between them

    \"
}

#[cfg(test)]
use std::{
    fmt,
};

#[cfg(all(test, unix))]
#[path = \"simulated.rs\"]
mod simulated;
#[cfg(test)]
mod tests;

#[cfg(not(test))]
mod others;
#[cfg(test)]
mod inline {
    fn f() {}
}
";

    #[test]
    fn only_lines_of_code_count() {
        let source = Source::parse(Path::new("a/b.rs"), TEXT).unwrap();
        assert_eq!(source.lines.into_iter().collect::<Vec<_>>(), [2, 7, 8, 9, 10, 11, 13, 14, 27, 28]);
        assert_eq!(source.test_modules, [Path::new("a/simulated"), Path::new("a/b/tests")]);
        let root = Source::parse(Path::new("a/lib.rs"), TEXT).unwrap();
        assert_eq!(root.test_modules[1], Path::new("a/tests"));
        assert_eq!(Source::parse(Path::new("a/c.rs"), "#![cfg(test)]\nfn f() {}\nfn g() {}").unwrap().lines.len(), 0);
    }

    #[test]
    fn modules_for_tests_in_files_of_their_own_are_found() {
        let text = "#[cfg(all(test, not(unix)))] mod tests; #[cfg(not(test))] mod others; mod plain;";
        let modules = BTreeSet::from_iter(Source::parse(Path::new("a/lib.rs"), text).unwrap().test_modules);
        assert_eq!(modules, BTreeSet::from(["a/tests".into()]));
        for (file, is_test) in [("a/tests.rs", true), ("a/tests/parts.rs", true), ("a/others.rs", false)] {
            assert_eq!(is_within(Path::new(file), &modules), is_test, "{file}");
        }
    }

    #[test]
    fn a_renamed_crate_is_listed_twice() {
        let counts = |list: &[(&str, usize)]| list.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
        let (before, after) = (counts(&[("crates/a", 10), ("old", 5)]), counts(&[("crates/a", 12), ("new", 4)]));
        let expected = "
          before   after  difference
crates/a      10      12          +2
new            0       4          +4
old            5       0          -5
total         15      16          +1
";
        assert_eq!(table(Some(&before), &after), expected[1..]);
        assert_eq!(table(None, &after).lines().last(), Some("total         16"));
    }

    /// The packages in the table must be the packages that cargo lists for this workspace.
    #[test]
    fn every_package_is_counted_by_itself() {
        let counts = count_tree(&tools::root()).unwrap();
        for package in ["crates/stats", "crates/experiments", "crates/experiments/sync", "xtask", "fuzz"] {
            assert!(counts[package] > 0, "{package}");
        }
        assert!(counts.keys().all(|name| !name.contains("tests")), "{counts:?}");
    }
}
