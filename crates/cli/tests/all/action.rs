//! Tests that run the steps of `action.yml` in the same way as GitHub.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::write_script;

/// Returns the script of a step, without its indentation.
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

fn run_step(step: &str, folder: &Path, variables: &[(&str, String)]) {
    run("bash", &["--noprofile", "--norc", "-eo", "pipefail", "-c", &script(step)], folder, variables);
}

/// A job can use the action several times, and each program gets its own table.
#[test]
fn a_job_may_use_the_action_twice() {
    let folder = tempfile::tempdir().unwrap();
    let (temporary, repository) = (folder.path().join("temporary"), folder.path().join("repository"));
    std::fs::create_dir(&temporary).unwrap();
    std::fs::create_dir(&repository).unwrap();
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
        ("ASCERTAIN", env!("CARGO_BIN_EXE_ascertain").into()),
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
        for step in ["Fetch the commit before", "Compare"] {
            run_step(step, &repository, &[&common[..], &own].concat());
        }
        let table = std::fs::read_to_string(temporary.join("ascertain.md")).unwrap();
        assert_eq!(table.matches("## Ascertain").count(), 1, "{table}");
    }
}

/// A test environment: the sources of Ascertain at a commit, a release, and programs that replace `gh`, `rustup` and
/// `cargo`.
struct Stand {
    folder: tempfile::TempDir,
}

impl Stand {
    const GH: &str = "#!/bin/sh
echo \"$@\" >>\"$LOG\"
case \"$*\" in
    'api repos/someone/tools/commits/v1.2.3 '*) echo \"$TAGGED\" ;;
    'release download v1.2.3 --repo someone/tools '*) cp \"$RELEASE\"/* \"$9\" ;;
    *) exit 1 ;;
esac
";
    const CARGO: &str = "#!/bin/sh
echo cargo >>\"$LOG\"
while [ \"$1\" != --target-dir ]; do shift; done
mkdir -p \"$2/release\"
cp \"$PROGRAM\" \"$2/release/ascertain\"
";

    fn new() -> Stand {
        let stand = Stand { folder: tempfile::tempdir().unwrap() };
        for folder in ["bin", "temporary", "release", "source/.cargo", "source/crates"] {
            fs::create_dir_all(stand.path(folder)).unwrap();
        }
        write_script(&stand.path("program"), "#!/bin/sh\necho 'ascertain 1.2.3'\n");
        for (name, text) in [("gh", Stand::GH), ("rustup", "#!/bin/sh\n"), ("cargo", Stand::CARGO)] {
            write_script(&stand.path("bin").join(name), text);
        }
        fs::write(stand.path("source/Cargo.toml"), "[workspace.package]\nversion = \"1.2.3\"\n").unwrap();
        fs::write(stand.path("source/Cargo.lock"), "").unwrap();
        fs::write(stand.path("source/crates/code"), "one").unwrap();
        stand.git(&["init", "--quiet"]);
        stand.git(&["remote", "add", "origin", "https://github.com/someone/tools.git"]);
        stand.git(&["add", "."]);
        stand.git(&["commit", "--quiet", "--message", "sources"]);
        stand.write_release();
        stand
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn git(&self, arguments: &[&str]) {
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
        run("git", &[&author[..], arguments].concat(), &self.path("source"), &[]);
    }

    fn head(&self) -> String {
        let source = self.path("source");
        let output = Command::new("git").args(["rev-parse", "HEAD"]).current_dir(source).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Creates the files of a release, as release.yml does.
    fn write_release(&self) {
        let pack = "name=ascertain-v1.2.3-$(uname -m)-unknown-linux-gnu; mkdir $name; cp ../program $name/ascertain
            tar -czf $name.tar.gz $name; sha256sum $name.tar.gz >$name.tar.gz.sha256; rm -r $name";
        run("bash", &["-euc", pack], &self.path("release"), &[]);
    }

    /// Runs a step, and returns the outputs of all steps so far.
    fn step(&self, step: &str, variables: &[(&str, String)]) -> BTreeMap<String, String> {
        let path = |name: &str| self.path(name).display().to_string();
        let common = [
            ("PATH", format!("{}:{}", path("bin"), std::env::var("PATH").unwrap())),
            ("LOG", path("log")),
            ("PROGRAM", path("program")),
            ("RELEASE", path("release")),
            ("SOURCE", path("source")),
            ("RUNNER_TEMP", path("temporary")),
            ("GITHUB_OUTPUT", path("output")),
            ("REPOSITORY", String::new()),
            ("REF", String::new()),
            ("TAGGED", "another commit".into()),
        ];
        run_step(step, self.folder.path(), &[&common[..], variables].concat());
        let outputs = fs::read_to_string(self.path("output")).unwrap();
        let outputs = outputs.lines().filter_map(|line| line.split_once('='));
        outputs.map(|(name, value)| (name.to_owned(), value.to_owned())).collect()
    }

    fn find(&self, variables: &[(&str, String)]) -> BTreeMap<String, String> {
        self.step("Find Ascertain", variables)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }
}

#[test]
fn the_binary_of_a_release_is_downloaded() {
    let stand = Stand::new();
    let found = stand.find(&[("TAGGED", stand.head())]);
    assert_eq!(found["ready"], "true", "{}", stand.log());
    assert!(Path::new(&found["folder"]).join("ascertain").is_file());
    // When the action is checked out by the tag of a release, there is no git repository.
    let stand = Stand::new();
    fs::remove_dir_all(stand.path("source/.git")).unwrap();
    let by_tag = [("REPOSITORY", "someone/tools".into()), ("REF", "v1.2.3".into())];
    assert_eq!(stand.find(&by_tag)["ready"], "true", "{}", stand.log());
}

#[test]
fn without_a_release_ascertain_is_built_once() {
    let stand = Stand::new();
    let found = stand.find(&[]);
    assert_eq!(found["ready"], "false");
    assert!(!stand.log().contains("download"), "the tag is on another commit: {}", stand.log());
    stand.step("Build Ascertain", &[("FOLDER", found["folder"].clone())]);
    assert_eq!(stand.find(&[])["ready"], "true", "the job uses the action again");
    assert_eq!(stand.log().matches("cargo").count(), 1);
    assert!(found["key"].starts_with("ascertain-1.2.3-"), "{found:?}");
    fs::write(stand.path("source/crates/code"), "two").unwrap();
    let changed = stand.find(&[]);
    assert!(changed["ready"] == "false" && changed["key"] != found["key"], "{changed:?}");
}

#[test]
fn a_download_that_is_damaged_or_does_not_run_is_not_used() {
    let damaged = Stand::new();
    let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().path();
    let files = fs::read_dir(damaged.path("release")).unwrap().map(name);
    let sums = files.filter(|path| path.extension().is_some_and(|extension| extension == "sha256"));
    for path in sums {
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{}{}", "0".repeat(64), &text[64..])).unwrap();
    }
    let other = Stand::new();
    write_script(&other.path("program"), "#!/bin/sh\nexit 1\n");
    other.write_release();
    for stand in [damaged, other] {
        let found = stand.find(&[("TAGGED", stand.head())]);
        assert!(found["ready"] == "false" && stand.log().contains("download"), "{}", stand.log());
        assert!(!Path::new(&found["folder"]).exists());
    }
}
