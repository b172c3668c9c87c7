//! Compares the splitting of a command line with that of the shell.

use std::process::Command;

use ascertain_sys::process::split;
use proptest::prelude::*;

fn words_of_the_shell(line: &str) -> Vec<String> {
    let output = Command::new("sh").args(["-c", &format!("printf '%s\\0' {line}")]).output().unwrap();
    assert!(output.status.success(), "{line:?}: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

/// Parts of command lines, with at least one for each kind of character that matters.
const PARTS: [&str; 28] = [
    "a",
    "b",
    "ü",
    " ",
    " ",
    "\t",
    "''",
    "\"\"",
    "'a b'",
    "\"a 'b\"",
    "'$x|'",
    "\"\\$x \\\\ \\\" \\n\"",
    "\\ ",
    "\\'",
    "\\\"",
    "\\\n",
    "\"\\\n\"",
    "{",
    "}",
    "[",
    "]",
    ",",
    "..",
    "=",
    "~",
    "#",
    "!",
    "%^:",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn what_is_accepted_means_the_same_to_a_shell(
        parts in proptest::collection::vec(proptest::sample::select(&PARTS[..]), 1..12),
    ) {
        // The first word is a placeholder for the program, for which `split` has special rules. In the shell, `printf`
        // is the program.
        let line = format!("program {}", parts.concat());
        if let Ok(words) = split(&line) {
            prop_assert_eq!(words_of_the_shell(&line), words);
        }
    }
}
