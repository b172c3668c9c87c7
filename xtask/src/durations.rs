//! Refuses tests that compare a measured duration: on a busy machine such a test fails by chance.
//!
//! A statement of a test is refused if it compares something and contains a duration that was measured: a call of
//! `elapsed` or `duration_since`, or a variable that such a call was assigned to.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use proc_macro2::{Delimiter, LineColumn, Span, TokenStream, TokenTree};

use crate::tools;

/// Comparisons that cannot fail because a machine is busy, each with its file, function and reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/cli/tests/all/progress.rs", "until", ENDS_A_HANG),
    ("crates/experiments/storage/src/transfer/tests.rs", "a_bucket_is_full_when_a_move_begins", LEAST),
    ("crates/netlab/tests/all/link.rs", "a_connection_takes_a_round_trip", LEAST),
    ("crates/netlab/tests/all/store/faults.rs", "a_clock_that_is_wrong_refuses_everybody", OTHER_CLOCKS),
    ("crates/netlab/tests/all/store/faults.rs", "answers_are_as_late_as_they_are_to_be", LEAST),
    ("crates/netlab/tests/all/store/faults.rs", "connections_are_as_slow_as_they_are_to_be", LEAST),
    ("crates/sync/tests/all/event_count.rs", "a_deadline_ends_a_wait", LEAST),
    ("crates/transfer/tests/all/moving/faults.rs", "a_store_that_asks_for_time_gets_it", SIMULATED),
    ("crates/transfer/tests/all/moving/paths.rs", "shares", SIMULATED),
];

const ENDS_A_HANG: &str = "a limit that only ends a test which would otherwise wait for ever";
const LEAST: &str = "a lower bound, which the code guarantees on every machine";
const OTHER_CLOCKS: &str = "a difference of 1,000 s between two clocks, which the test sets";
const SIMULATED: &str = "tokio's paused clock";

/// A comparison of a measured duration.
#[derive(Debug, PartialEq, Eq)]
struct Comparison {
    function: String,
    line: usize,
}

/// Fails if a test compares a measured duration and is not among the exceptions.
pub fn check() -> anyhow::Result<()> {
    let mut is_used = [false; EXCEPTIONS.len()];
    let mut refused = Vec::new();
    let mut files = BTreeSet::new();
    for folder in ["crates", "xtask"] {
        files.extend(tools::files(&tools::root().join(folder), "rs")?);
    }
    let mut codes = Vec::new();
    for path in &files {
        let code: TokenStream =
            fs::read_to_string(path)?.parse().ok().with_context(|| format!("{}", path.display()))?;
        codes.push((path, code));
    }
    // The modules of a file of tests are files of tests, too.
    let mut of_tests = BTreeSet::from([tools::root().join("crates/sys/src/testing.rs")]);
    let searches = loop {
        let count = of_tests.len();
        let mut searches = Vec::new();
        for (path, code) in &codes {
            let is_test = path.iter().any(|part| part == "tests") || of_tests.contains(*path);
            let mut search = Search { is_test, ..Search::default() };
            search.items(code.clone());
            of_tests.extend(search.test_modules.iter().flat_map(|name| module_files(path, name)));
            searches.push((*path, search));
        }
        if of_tests.len() == count {
            break searches;
        }
    };
    for (path, search) in searches {
        let file = path.strip_prefix(tools::root()).unwrap_or(path).to_string_lossy().into_owned();
        for Comparison { function, line } in search.found {
            match EXCEPTIONS.iter().position(|exception| (exception.0, exception.1) == (&*file, &*function)) {
                Some(at) => is_used[at] = true,
                None => refused.push(format!("{file}:{line}: `{function}` compares a measured duration")),
            }
        }
    }
    ensure!(
        refused.is_empty(),
        "{}\nCount events, or use a clock that the test controls; exceptions are in xtask/src/durations.rs.",
        refused.join("\n")
    );
    let unused = EXCEPTIONS.iter().zip(is_used).filter(|(_, is_used)| !is_used);
    let unused: Vec<_> = unused.map(|((file, function, _), _)| format!("`{function}` in {file}")).collect();
    ensure!(
        unused.is_empty(),
        "exceptions that match no comparison: {}; remove them from xtask/src/durations.rs",
        unused.join(", ")
    );
    Ok(())
}

/// Returns the paths at which the code of `mod name;` in this file may be.
fn module_files(file: &Path, name: &str) -> [PathBuf; 4] {
    let beside = file.parent().unwrap_or(file);
    let below = beside.join(file.file_stem().unwrap_or_default());
    [
        beside.join(format!("{name}.rs")),
        beside.join(name).join("mod.rs"),
        below.join(format!("{name}.rs")),
        below.join(name).join("mod.rs"),
    ]
}

/// A search through the items of a file.
#[derive(Default)]
struct Search {
    is_test: bool,
    found: Vec<Comparison>,
    /// The modules that exist only for tests and have their own files.
    test_modules: Vec<String>,
}

impl Search {
    fn items(&mut self, stream: TokenStream) {
        let mut is_marked = false;
        let mut trees = stream.into_iter().peekable();
        while let Some(tree) = trees.next() {
            match &tree {
                TokenTree::Punct(punct) if punct.as_char() == '#' => {
                    if let Some(TokenTree::Group(group)) = trees.peek() {
                        is_marked |= is_test_attribute(group.stream());
                    }
                }
                TokenTree::Ident(ident) if ident == "mod" || ident == "fn" => {
                    let Some(TokenTree::Ident(name)) = trees.next() else { continue };
                    let was_test = self.is_test;
                    self.is_test |= is_marked;
                    let body = trees.by_ref().find_map(|tree| match tree {
                        TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(Some(group.stream())),
                        TokenTree::Punct(punct) if punct.as_char() == ';' => Some(None),
                        _ => None,
                    });
                    match body.flatten() {
                        Some(body) if ident == "fn" && self.is_test => {
                            let mut measured = BTreeSet::new();
                            let lines = comparisons(body, &mut measured);
                            let function = name.to_string();
                            self.found
                                .extend(lines.into_iter().map(|line| Comparison { function: function.clone(), line }));
                        }
                        Some(body) if ident == "mod" => self.items(body),
                        None if ident == "mod" && self.is_test => self.test_modules.push(name.to_string()),
                        _ => (),
                    }
                    (self.is_test, is_marked) = (was_test, false);
                }
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                    self.items(group.stream());
                    is_marked = false;
                }
                TokenTree::Punct(punct) if punct.as_char() == ';' => is_marked = false,
                _ => (),
            }
        }
    }
}

/// Returns whether an attribute is `#[test]`, `#[tokio::test]` or a `cfg` that selects tests.
fn is_test_attribute(attribute: TokenStream) -> bool {
    let words: Vec<TokenTree> = attribute.into_iter().collect();
    let is_cfg = matches!(words.first(), Some(TokenTree::Ident(ident)) if ident == "cfg");
    let is_test = |tree: &TokenTree| matches!(tree, TokenTree::Ident(ident) if ident == "test");
    match words.get(1) {
        Some(TokenTree::Group(group)) if is_cfg => {
            let text = group.to_string();
            text.split(|c: char| !c.is_alphanumeric()).any(|word| word == "test") && !text.contains("not")
        }
        _ => words.iter().any(is_test),
    }
}

/// Returns the lines of the statements in a block that compare a measured duration.
fn comparisons(block: TokenStream, measured: &mut BTreeSet<String>) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut statement = Statement::default();
    for tree in block {
        match tree {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                lines.extend(std::mem::take(&mut statement).end(measured));
                lines.extend(comparisons(group.stream(), measured));
            }
            TokenTree::Punct(punct) if punct.as_char() == ';' => {
                lines.extend(std::mem::take(&mut statement).end(measured));
            }
            tree => statement.add(tree),
        }
    }
    lines.extend(statement.end(measured));
    lines
}

/// The tokens of a statement, including those between parentheses and brackets.
#[derive(Default)]
struct Statement(Vec<Token>);

struct Token {
    text: String,
    start: LineColumn,
    end: LineColumn,
}

impl Statement {
    fn add(&mut self, tree: TokenTree) {
        let mut push = |text: String, span: Span| self.0.push(Token { text, start: span.start(), end: span.end() });
        match tree {
            TokenTree::Group(group) => {
                push("(".into(), group.span_open());
                group.stream().into_iter().for_each(|tree| self.add(tree));
                self.0.push(Token {
                    text: ")".into(),
                    start: group.span_close().start(),
                    end: group.span_close().end(),
                });
            }
            tree => push(tree.to_string(), tree.span()),
        }
    }

    /// Returns the line of the statement if it compares a measured duration. Adds to `measured` the variables that the
    /// statement assigns such a duration to.
    fn end(self, measured: &mut BTreeSet<String>) -> Option<usize> {
        let words: Vec<&str> = self.0.iter().map(|token| &*token.text).collect();
        let measures = words.windows(2).any(|pair| matches!(pair, ["elapsed" | "duration_since", "("]));
        if !measures && !words.iter().any(|word| measured.contains(*word)) {
            return None;
        }
        if words.first() == Some(&"let") {
            let pattern = words.iter().skip(1).take_while(|word| !["=", ":"].contains(word));
            let names = pattern.filter(|word| word.starts_with(|c: char| c.is_lowercase()) && **word != "mut");
            measured.extend(names.map(|&name| name.to_owned()));
        }
        let is_operator = |at: usize| self.is_comparison(at) || ["contains", "partial_cmp", "cmp"].contains(&words[at]);
        (0..words.len()).any(is_operator).then(|| self.0[0].start.line)
    }

    /// Returns whether the token is a comparison operator. Formatted code has spaces around these operators, and none
    /// around the angle brackets of types.
    fn is_comparison(&self, at: usize) -> bool {
        let [before, token, after @ ..] = &self.0[at.saturating_sub(1)..] else { return false };
        let is_apart = |left: &Token, right: &Token| left.end != right.start;
        match (&*token.text, after) {
            ("<" | ">", [next, ..]) => is_apart(before, token) && (is_apart(token, next) || next.text == "="),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(code: &str) -> Vec<usize> {
        let mut search = Search::default();
        search.items(code.parse().unwrap());
        search.found.into_iter().map(|found| found.line).collect()
    }

    #[test]
    fn a_compared_duration_is_refused_however_it_is_written() {
        for statement in [
            "assert!(start.elapsed() < Duration::from_secs(1));",
            "assert!(Duration::from_secs(1) >= start.elapsed(), \"slow\");",
            "if end.duration_since(start) > LIMIT { panic!() }",
            "while start.elapsed() < LIMIT { step(); }",
            "let took = start.elapsed(); assert!(took <= LIMIT);",
            "let took_s = start.elapsed().as_secs_f64(); let ratio = took_s / 2.0; assert!(ratio < 1.5);",
            "assert!((LOW..HIGH).contains(&start.elapsed()));",
        ] {
            let code = format!("#[test]\nfn a_test() {{ {statement} }}");
            assert_eq!(refused(&code), [2], "{statement}");
            let code = format!("#[cfg(test)]\nmod tests {{\nfn helper() {{ {statement} }} }}");
            assert_eq!(refused(&code), [3], "{statement}");
            assert!(refused(&format!("fn no_test() {{ {statement} }}")).is_empty(), "{statement}");
        }
    }

    #[test]
    fn other_comparisons_and_types_are_not() {
        for statement in [
            "let took: Vec<Duration> = vec![start.elapsed()];",
            "let took = start.elapsed(); println!(\"{took:?}\"); assert!(requests < 3);",
            "wait_until(\"the end\", || done() > 1);",
            "let bits = start.elapsed().as_nanos() << 3;",
        ] {
            assert!(refused(&format!("#[test] fn a_test() {{ {statement} }}")).is_empty(), "{statement}");
        }
    }

    #[test]
    fn modules_for_tests_in_files_of_their_own_are_found() {
        let mut search = Search::default();
        search.items("#[cfg(all(test, unix))] mod tests; #[cfg(not(test))] mod others; mod plain;".parse().unwrap());
        assert_eq!(search.test_modules, ["tests"]);
    }
}
