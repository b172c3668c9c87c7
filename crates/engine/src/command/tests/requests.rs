//! Recorded requests on their way to the command.

use super::*;

const REQUESTS: [&str; 5] = ["a", "two words", "it's", "$(touch intruder) \"*\" \\", ""];

fn recorded(line: &str, shell: Option<&str>, log: &Log) -> CommandExperiment {
    let set = CommandSet {
        shell: shell.map(str::to_string),
        requests: Some(REQUESTS.map(String::from).into()),
        ..plain(&[&line.replace("LOG", &format!("\"{}\"", log.path("log")))])
    };
    CommandExperiment::new(set).unwrap()
}

/// What the command notes of each request of a pass.
fn noted(experiment: &CommandExperiment, pass: u64, log: &Log) -> Vec<String> {
    let mut session = open(experiment).unwrap();
    let _ = fs::remove_file(log.path("log"));
    for place in 0..REQUESTS.len() as u64 {
        measure(&mut *session, 0, pass * REQUESTS.len() as u64 + place).unwrap();
    }
    log.read()
}

fn sorted(mut lines: Vec<String>) -> Vec<String> {
    lines.sort();
    lines
}

#[test]
fn requests_arrive_as_they_are_wherever_they_are_taken() {
    let expected = |around: [&str; 2]| sorted(REQUESTS.map(|text| [around[0], text, around[1]].concat()).into());
    let print = r#"printf "%s\n""#;
    for (line, shell, around) in [
        // Arguments: sh is but the program that notes them.
        (r#"sh -c 'printf "%s\n" "$1" >> LOG' sh {request}"#, None, ["", ""]),
        (r#"sh -c 'printf "%s\n" "$1" >> LOG' sh "<{request}>""#, None, ["<", ">"]),
        // Scripts, where it may stand within quotes.
        (&*format!("{print} {{request}} >> LOG"), Some("sh"), ["", ""]),
        (&*format!("{print} \"<{{request}}>\" >> LOG"), Some("sh"), ["<", ">"]),
        (&*format!("{print} '<{{request}}>' >> LOG"), Some("sh -e"), ["<", ">"]),
        // Standard input.
        ("sh -c 'cat >> LOG'", None, ["", ""]),
        ("cat >> LOG", Some("sh"), ["", ""]),
    ] {
        let log = Log::new();
        let experiment = recorded(line, shell, &log);
        for pass in 0..2 {
            assert_eq!(sorted(noted(&experiment, pass, &log)), expected(around), "{line}");
        }
    }
    assert!(!std::path::Path::new("intruder").exists());
}

#[test]
fn the_same_seed_gives_the_same_order_and_all_arms_of_a_trial_the_same_request() {
    let log = Log::new();
    let line = format!("cat >> '{}'", log.path("log"));
    let set = CommandSet {
        requests: Some((0..20).map(|number| number.to_string()).collect()),
        ..shell(vec![command(&line), command(&line)])
    };
    let experiment = CommandExperiment::new(set).unwrap();
    let order = |seed, arm| {
        let mut session = experiment.open(&arms(&experiment), &Setup { seed, ..Setup::default() }).unwrap();
        let _ = fs::remove_file(log.path("log"));
        for trial in 0..20 {
            measure(&mut *session, arm, trial).unwrap();
        }
        log.read()
    };
    assert_eq!(order(1, 0), order(1, 1));
    assert_ne!(order(1, 0), order(2, 0));
}
