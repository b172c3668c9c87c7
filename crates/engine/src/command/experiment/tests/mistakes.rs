//! Tests of mistakes that are found before anything runs.

use super::*;
use crate::command::{Input, Output};
use crate::experiment::{Accepts, Factor, Level};

fn mistake(set: CommandSet) -> String {
    CommandExperiment::new(set).err().expect("a mistake").to_string()
}

#[track_caller]
fn says(set: CommandSet, parts: &[&str]) {
    let message = mistake(set);
    for part in parts {
        assert!(message.contains(part), "{message}");
    }
}

fn parameter(name: &str, levels: &[&str]) -> Factor {
    let levels: Vec<Level> = levels.iter().map(|level| Level::from(*level)).collect();
    Factor { name: name.into(), about: String::new(), default: levels[0].clone(), accepts: Accepts::OneOf(levels) }
}

#[test]
fn command_lines() {
    says(plain(&[]), &["no command"]);
    says(plain(&["true", "  "]), &["command `  `: the command is empty"]);
    says(shell(vec![command("  ")]), &["the command is empty"]);
    says(plain(&["ls | wc"]), &["command `ls | wc`: ", "'|'", "use a shell"]);
    says(plain(&["echo 'a b"]), &["the quote ' is not closed"]);
    says(plain(&["true", "no-such-program -x"]), &["command `no-such-program -x`", "was not found"]);
    says(plain(&["/no/such/program"]), &["`/no/such/program` was not found"]);
    says(plain(&["/"]), &["directory"]);
    says(CommandSet { shell: Some("no-such-shell".into()), ..plain(&["true"]) }, &["`no-such-shell` was not found"]);
    says(CommandSet { shell: Some("'sh".into()), ..plain(&["true"]) }, &["shell `'sh`", "not closed"]);
}

#[test]
fn lines_around_commands() {
    let with = |setup: Option<&str>, prepare: Option<&str>, cleanup: Option<&str>| {
        let [setup, prepare, cleanup] = [setup, prepare, cleanup].map(|line| line.map(str::to_string));
        CommandSet { commands: vec![NamedCommand { setup, prepare, cleanup, ..command("true") }], ..plain(&[]) }
    };
    says(with(Some("'a"), None, None), &["set-up `'a`", "not closed"]);
    says(with(None, Some("'a"), None), &["preparation `'a`", "not closed"]);
    says(with(None, None, Some("'a")), &["clean-up `'a`", "not closed"]);
    // A script is passed to a shell, which reports its mistakes.
    CommandExperiment::new(with(Some("no-such-program; b"), Some("a; b"), Some("a; b"))).unwrap();
    says(with(Some("no-such-program"), None, None), &["set-up", "was not found"]);
    says(with(None, Some("no-such-program"), None), &["preparation", "was not found"]);
    says(with(None, None, Some("no-such-program")), &["clean-up", "was not found"]);
}

/// All set-ups run before the first trial, so both commands would be measured in the state that the last set-up leaves.
#[test]
fn set_ups_that_nothing_tells_apart() {
    let with = |line: &str, setup: &str, prepare: Option<&str>| NamedCommand {
        setup: Some(setup.into()),
        prepare: prepare.map(str::to_string),
        ..command(line)
    };
    let swept = |line: NamedCommand| CommandSet {
        parameters: vec![parameter("v", &["a", "b"])],
        commands: vec![line],
        ..plain(&[])
    };
    says(swept(with("true", "cp {v} x", None)), &["`true`", "`cp a x` and `cp b x`", "before each observation"]);
    says(
        CommandSet { commands: vec![with("true", "cp a x", None), with("true", "cp b x", None)], ..plain(&[]) },
        &["before each observation"],
    );
    let fine = |set| CommandExperiment::new(set).map(drop).unwrap();
    fine(swept(with("true {v}", "cp {v} x", None)));
    fine(swept(with("true", "cp {v} x", Some("true {v}"))));
    fine(swept(with("true {v}", "cp a x", None)));
    fine(swept(NamedCommand { env: vec![("V".into(), Some("{v}".into()))], ..with("true", "cp {v} x", None) }));
}

#[test]
fn mistakes_in_parameters() {
    let with = |line: &str, parameters: Vec<Factor>| CommandSet { parameters, ..plain(&[line]) };
    says(with("true", vec![parameter("n", &["1"])]), &["no command line has `{n}`"]);
    says(with("{program}", vec![parameter("program", &["true", "no-such-program"])]), &["`no-such-program` was"]);
    says(with("echo {n}", vec![parameter("n", &["1", "a|b"])]), &["command `echo a|b`", "use a shell"]);
    // A word in braces that is not a parameter is part of the command.
    CommandExperiment::new(plain(&["echo {n}"])).unwrap();
}

#[test]
fn mistakes_in_recorded_requests() {
    let set = CommandSet { requests: Some(Vec::new()), ..plain(&["true"]) };
    says(set, &["no recorded requests"]);
    let some = CommandSet { requests: Some(vec!["a".into()]), ..plain(&["echo {request}"]) };
    says(CommandSet { parameters: vec![parameter("request", &["1"])], ..some.clone() }, &["another name"]);
    let file = CommandSet { input: Input::File("/dev/null".into()), ..some };
    CommandExperiment::new(file.clone()).unwrap();
    says(CommandSet { commands: vec![command("cat")], ..file }, &["command `cat`", "both"]);
}

#[test]
fn mistakes_in_files_of_commands() {
    let missing = "/no/such/file";
    says(CommandSet { input: Input::File(missing.into()), ..plain(&["cat"]) }, &["standard input", missing]);
    says(CommandSet { input: Input::File("/".into()), ..plain(&["cat"]) }, &["standard input"]);
    says(CommandSet { output: Output::File(missing.into()), ..plain(&["cat"]) }, &["output", missing]);
}

#[test]
fn names_are_made_distinct_and_stay_so() {
    let named = |name: &str| NamedCommand { name: name.into(), ..command("true") };
    let set = CommandSet { commands: vec![named(""), named("true"), named("x"), named("x")], ..plain(&[]) };
    let experiment = CommandExperiment::new(set).unwrap();
    let names: Vec<&str> = experiment.spec().variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["true", "true (2)", "x", "x (2)"]);
    assert_eq!(experiment.set.spec(), *experiment.spec());
}
