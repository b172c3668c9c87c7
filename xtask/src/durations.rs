//! Refuses tests that compare a measured duration, because such a test can fail by chance on a busy machine.
//!
//! The check refuses each statement of a test that compares something and contains a measured duration. A measured
//! duration is a call of `elapsed` or `duration_since`, or a variable that holds the result of such a call.

use std::collections::BTreeSet;
use std::fs;

use anyhow::{Context, ensure};
use proc_macro2::{Delimiter, Span, TokenStream, TokenTree};

use crate::lines::{is_within, read_sources};
use crate::tools;

/// Comparisons that cannot fail on a busy machine, each with its file, function and reason.
const EXCEPTIONS: &[(&str, &str, &str)] = &[
    ("crates/cli/tests/all/progress.rs", "until", ENDS_A_HANG),
    ("crates/experiments/transfer/src/transfer/tests.rs", "a_bucket_is_full_when_a_transfer_begins", LEAST),
    ("crates/netlab/tests/all/link.rs", "a_connection_takes_a_round_trip", LEAST),
    ("crates/netlab/tests/all/store/faults.rs", "a_clock_that_is_wrong_refuses_everybody", OTHER_CLOCKS),
    ("crates/netlab/tests/all/store/faults.rs", "answers_are_as_late_as_they_are_to_be", LEAST),
    ("crates/netlab/tests/all/store/faults.rs", "connections_are_as_slow_as_they_are_to_be", LEAST),
    ("crates/sync/tests/all/event_count.rs", "a_deadline_ends_a_wait", LEAST),
    ("crates/transfer/tests/all/transfers/faults.rs", "a_store_that_asks_for_time_gets_it", SIMULATED),
    ("crates/transfer/tests/all/transfers/paths.rs", "shares", SIMULATED),
];

const ENDS_A_HANG: &str = "a limit that only ends a test which would otherwise wait for ever";
const LEAST: &str = "a lower bound, which the code guarantees on every machine";
const OTHER_CLOCKS: &str = "a difference of 1,000 s between two clocks, which the test sets";
const SIMULATED: &str = "tokio's paused clock";

/// A statement of a test that compares a measured duration.
#[derive(Debug, PartialEq, Eq)]
struct Comparison {
    function: String,
    line: usize,
}

/// Fails if a test compares a measured duration and is not among the exceptions, or if an exception matches no
/// comparison.
pub fn check() -> anyhow::Result<()> {
    let mut is_used = [false; EXCEPTIONS.len()];
    let mut refused = Vec::new();
    let mut files = Vec::new();
    for folder in ["crates", "xtask"] {
        files.extend(tools::files(&tools::root().join(folder), "rs")?);
    }
    let (sources, mut test_modules) = read_sources(files)?;
    test_modules.insert(tools::root().join("crates/sys/src/testing"));
    for path in sources.keys() {
        let is_test = path.iter().any(|part| part == "tests") || is_within(path, &test_modules);
        let mut search = Search { is_test, ..Search::default() };
        search.items(fs::read_to_string(path)?.parse().ok().with_context(|| format!("{}", path.display()))?);
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

/// The state of the search for comparisons in one file.
#[derive(Default)]
struct Search {
    is_test: bool,
    found: Vec<Comparison>,
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

/// Returns whether an attribute is `#[test]`, `#[tokio::test]`, `#[cfg(test)]` or `#[cfg(all(test, …))]`.
pub fn is_test_attribute(attribute: TokenStream) -> bool {
    let words: Vec<TokenTree> = attribute.into_iter().collect();
    match &words[..] {
        [TokenTree::Ident(name), TokenTree::Group(condition)] if name == "cfg" => {
            let condition = condition.to_string().replace(' ', "");
            condition == "(test)" || condition.starts_with("(all(test,")
        }
        _ => words.iter().any(|word| matches!(word, TokenTree::Ident(ident) if ident == "test")),
    }
}

/// Returns the line numbers of the statements in a block that compare a measured duration. Variables with such
/// durations are added to `measured`.
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

/// The tokens of one statement, including those in parentheses and brackets.
#[derive(Default)]
struct Statement(Vec<(String, Span)>);

impl Statement {
    fn add(&mut self, tree: TokenTree) {
        match tree {
            TokenTree::Group(group) => {
                self.0.push(("(".into(), group.span_open()));
                group.stream().into_iter().for_each(|tree| self.add(tree));
                self.0.push((")".into(), group.span_close()));
            }
            tree => self.0.push((tree.to_string(), tree.span())),
        }
    }

    /// Ends the statement. Returns its line number if it compares a measured duration. Adds the variables to which it
    /// assigns such a duration to `measured`.
    fn end(self, measured: &mut BTreeSet<String>) -> Option<usize> {
        let words: Vec<&str> = self.0.iter().map(|(text, _)| &**text).collect();
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
        (0..words.len()).any(is_operator).then(|| self.0[0].1.start().line)
    }

    /// Returns whether the token at this index is a comparison operator. Formatted code has spaces around these
    /// operators, but not around the angle brackets of types.
    fn is_comparison(&self, at: usize) -> bool {
        let [before, token, after @ ..] = &self.0[at.saturating_sub(1)..] else { return false };
        let is_apart = |left: &Span, right: &Span| left.end() != right.start();
        match (&*token.0, after) {
            ("<" | ">", [(next, at), ..]) => is_apart(&before.1, &token.1) && (is_apart(&token.1, at) || next == "="),
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
}
