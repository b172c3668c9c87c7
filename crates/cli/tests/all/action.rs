//! The steps of `action.yml`, run as GitHub runs them.

use std::path::Path;
use std::process::Command;

/// The script of a step, without its indentation.
fn script(step: &str) -> String {
    let action = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../action.yml")).unwrap();
    let heading = format!("    - name: {step}\n");
    let (_, after) = action.split_once(&heading).unwrap();
    let (_, body) = after.split_once("      run: |\n").unwrap();
    let lines = body.lines().take_while(|line| line.is_empty() || line.starts_with("        "));
    lines.map(|line| line.strip_prefix("        ").unwrap_or_default().to_owned() + "\n").collect()
}

fn run(program: &str, arguments: &[&str], folder: &Path, variables: &[(&str, String)]) {
    let output = Command::new(program).args(arguments).current_dir(folder).envs(variables.iter().cloned()).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {}{said}", String::from_utf8_lossy(&output.stdout));
}

/// A job may judge several programs, each with its own table.
#[test]
fn a_job_may_use_the_action_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (temporary, repository) = (folder.path().join("temporary"), folder.path().join("repository"));
    let release = temporary.join("ascertain/release");
    std::fs::create_dir_all(&release).unwrap();
    std::fs::create_dir(&repository).unwrap();
    std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_ascertain"), release.join("ascertain")).unwrap();
    let git = |arguments: &[&str]| {
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        run("git", &[&author[..], arguments].concat(), &repository, &[]);
    };
    git(&["init", "--quiet"]);
    for comment in ["before", "after"] {
        std::fs::write(repository.join("program"), format!("#!/bin/sh\n# {comment}\n")).unwrap();
        git(&["add", "."]);
        git(&["commit", "--quiet", "--message", comment]);
    }
    let path = |name: &str| folder.path().join(name).display().to_string();
    let common = [
        ("RUNNER_TEMP", path("temporary")),
        ("GITHUB_OUTPUT", path("output")),
        ("GITHUB_STEP_SUMMARY", path("summary")),
        ("XDG_STATE_HOME", path("state")),
        ("ARGUMENTS", String::new()),
        ("MARGIN", "400%".into()),
        ("MAX_TIME", "10min".into()),
    ];
    for name in ["one", "two"] {
        let own = [("BUILD", format!("cp program {name}; chmod +x {name}")), ("PROGRAM", name.into())];
        for step in ["Build both", "Compare"] {
            let shell = ["--noprofile", "--norc", "-eo", "pipefail", "-c", &script(step)];
            run("bash", &shell, &repository, &[&common[..], &own].concat());
        }
        let table = std::fs::read_to_string(temporary.join("ascertain.md")).unwrap();
        assert_eq!(table.matches("## Ascertain").count(), 1, "{table}");
    }
}
