//! Runs `ascertain compare` under hyperfine's name, for hyperfine's own tests. Translates each option to the one that a
//! user of `compare` would give.

use std::os::unix::process::CommandExt;

fn main() {
    let variable = |name: &str| std::env::var(name).expect("the tests are run by cargo xtask");
    let mut arguments: Vec<String> = ["compare", "--no-evidence", "--max-time=5s", "--seed=3"].map(String::from).into();
    let (mut given, mut names_shell) = (std::env::args().skip(1), false);
    while let Some(argument) = given.next() {
        names_shell |= ["--shell", "-S", "-N"].iter().any(|option| argument.starts_with(option));
        match argument.as_str() {
            // A hidden option of hyperfine for simulated times. `compare` has no such option.
            "--debug-mode" => std::process::exit(64),
            "--shell" => arguments.push(format!("--shell={}", given.next().unwrap_or_default())),
            _ => arguments.push(argument),
        }
    }
    // By default, hyperfine 1 starts commands through a shell.
    if variable("HYPERFINE").starts_with('1') && !names_shell {
        arguments.insert(1, "--shell=sh".into());
    }
    panic!("{}", std::process::Command::new(variable("ASCERTAIN")).args(arguments).exec());
}
