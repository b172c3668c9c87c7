//! Tests of `compare --against` with real repositories. The programs are scripts that print a figure, so that verdicts
//! do not depend on the speed of the machine.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use ascertain_sys::testing::{left_out, wait_until};
use serde_json::Value;

use crate::common::{Ran, command, kill, ran, runs, send_signal};

/// Options for a comparison of the figure that the programs print.
const FIGURE: [&str; 5] = ["--metric", "cost=([0-9.]+) s", "--max-time", "10min", "--quick"];
const BUILD: &str = "{ echo '#!/bin/sh'; grep -v '^#' source; } >program && chmod +x program";

/// A repository, and a folder for the state of Ascertain.
struct Stand {
    folder: tempfile::TempDir,
}

/// Everything of a checkout that a command must not change.
#[derive(Debug, PartialEq)]
struct Snapshot {
    git: Vec<String>,
    index: Vec<u8>,
    config: Vec<u8>,
    git_folder: Vec<String>,
    neighbours: Vec<String>,
}

fn git(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "protocol.file.allow=always"]);
    let output = command.args(arguments).current_dir(folder).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The text of a program that needs the file `data` in its working directory.
fn source(cost: u32) -> String {
    format!("cat data && echo cost={cost} s\n")
}

impl Stand {
    /// Creates a repository whose branch `main` has one commit, with a program of cost 1.
    fn new() -> Stand {
        let stand = Stand { folder: tempfile::tempdir().unwrap() };
        for folder in ["state", "below/repository"] {
            fs::create_dir_all(stand.folder.path().join(folder)).unwrap();
        }
        stand.git(&["init", "--quiet", "--initial-branch=main"]);
        stand.write(".gitignore", "program\ndata\n");
        stand.write("data", "");
        stand.write("source", &source(1));
        stand.commit("first");
        stand
    }

    fn repository(&self) -> PathBuf {
        self.folder.path().join("below/repository")
    }

    fn state(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.repository(), arguments)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.repository().join(name), text).unwrap();
    }

    fn commit(&self, message: &str) {
        self.git(&["add", "."]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    fn short(&self, revision: &str) -> String {
        self.git(&["rev-parse", "--short=7", revision])
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = command(&self.state(), &[&["compare"], arguments].concat());
        command.current_dir(self.repository()).env("HOME", self.state()).env_remove("CARGO_TARGET_DIR");
        command.env("XDG_CACHE_HOME", self.folder.path().join("cache"));
        command
    }

    fn compare(&self, arguments: &[&str]) -> Ran {
        ran(self.command(arguments).output().unwrap())
    }

    /// Compares the figures of the programs that [`BUILD`] creates.
    fn compare_built(&self, arguments: &[&str]) -> Ran {
        self.compare(&[&FIGURE[..], &["--build", BUILD], arguments, &["--", "./program"]].concat())
    }

    fn snapshot(&self) -> Snapshot {
        let folder = self.repository().join(".git");
        Snapshot {
            git: [&["status", "--porcelain"][..], &["for-each-ref"], &["rev-parse", "HEAD"], &["worktree", "list"]]
                .map(|arguments| self.git(&[&["--no-optional-locks"], arguments].concat()))
                .to_vec(),
            index: fs::read(folder.join("index")).unwrap(),
            config: fs::read(folder.join("config")).unwrap(),
            git_folder: names(&folder),
            neighbours: names(&self.folder.path().join("below")),
        }
    }
}

fn assert_ended(ran: &Ran, code: i32, words: &[&str]) {
    let said = format!("{:?} {}{}", ran.code, ran.stdout, ran.stderr);
    assert_eq!(ran.code, Some(code), "{said}");
    let flat = said.split_whitespace().collect::<Vec<_>>().join(" ");
    words.iter().for_each(|word| assert!(flat.contains(word), "no {word:?} in: {flat}"));
}

/// Returns the facts about each arm, by the name of the arm.
fn facts(json: &Value) -> BTreeMap<String, Value> {
    let facts = json["facts"].as_array().unwrap().iter();
    facts.map(|arm| (arm["variant"].as_str().unwrap().to_owned(), arm["facts"].clone())).collect()
}

#[test]
fn uncommitted_changes_are_compared_with_a_revision() {
    let stand = Stand::new();
    let script = "#!/bin/sh\ntouch \"$(dirname \"$0\")/../../ran\"\n";
    stand.write(".git/hooks/post-checkout", script);
    fs::set_permissions(stand.repository().join(".git/hooks/post-checkout"), PermissionsExt::from_mode(0o755)).unwrap();
    stand.write("source", &source(2));
    stand.write("new", "");
    stand.git(&["add", "new"]);
    let before = stand.snapshot();
    let gate = ["--against", "main", "--fail-if", "slower", "--margin", "3%", "--format", "json"];
    let ran = stand.compare_built(&gate);
    assert_ended(&ran, 1, &["building main (", "building HEAD ("]);
    let json = ran.json();
    let short = stand.short("main");
    let [main, head] = [format!("main ({short})"), format!("HEAD ({short}, 2 files changed)")];
    let claim = &json["claims"][0];
    assert_eq!((claim["decision"].as_str(), claim["ratio"].as_f64()), (Some("slower"), Some(0.5)), "{claim}");
    let facts = facts(&json);
    assert_eq!(facts.keys().collect::<Vec<_>>(), [&head, &main]);
    assert_eq!(facts[&main]["commit"], stand.git(&["rev-parse", "main"]).as_str());
    assert_eq!((&facts[&main]["changed_files"], &facts[&head]["changed_files"]), (&0.into(), &2.into()));
    assert_eq!(facts[&head]["program_hash"], stand.git(&["hash-object", "program"]).as_str());
    assert_ne!(facts[&head]["program_hash"], facts[&main]["program_hash"]);
    assert!(["the same path", "paths of equal length"].map(Value::from).contains(&facts[&main]["built_at"]));
    assert_eq!(stand.snapshot(), before);
    assert!(!stand.folder.path().join("below/ran").exists(), "a hook ran");
    assert!(names(&stand.state().join("ascertain/worktrees")).is_empty());

    let run = runs(&stand.state()).pop().unwrap();
    let continued = crate::common::ascertain(&stand.state(), &["continue", run.to_str().unwrap()]);
    assert_ended(&continued, 2, &["the run compared revisions", "can't be continued"]);
}

#[test]
fn equal_programs_are_identical_and_not_measured() {
    let stand = Stand::new();
    stand.write("source", &format!("# a comment\n{}", source(1)));
    stand.commit("comment");
    let before = stand.snapshot();
    let gate = ["--against", "HEAD~1", "--fail-if", "slower"];
    let identical = stand.compare_built(&gate);
    let [old, new] = ["HEAD~1", "HEAD"].map(|revision| format!("`{revision} ({})`", stand.short(revision)));
    let answer =
        format!("Identical: `./program` has the same bytes in {old} and {new}, so there is nothing to measure.");
    assert_ended(&identical, 0, &[&answer, "The program is a script"]);
    assert!(runs(&stand.state()).is_empty() && identical.stderr.matches('\n').count() == 3, "{}", identical.stderr);
    let json = stand.compare_built(&["--against", "HEAD~1", "--format", "json"]).json();
    assert_eq!((&json["schema"], &json["is_script"]), (&"ascertain.identical/1".into(), &true.into()));
    let measured = stand.compare_built(&["--against", "HEAD~1", "--measure-identical", "--runs", "2"]);
    assert_ended(&measured, 0, &[&old[1..old.len() - 1], "single pairs"][..1]);
    assert_eq!(runs(&stand.state()).len(), 1);
    assert_eq!(stand.snapshot(), before);
}

#[test]
fn several_revisions_and_a_merge_base_are_compared_with_the_checkout() {
    let stand = Stand::new();
    stand.git(&["tag", "v1"]);
    stand.write("source", &source(2));
    stand.commit("second");
    stand.git(&["checkout", "--quiet", "-b", "other", "v1"]);
    stand.write("source", &source(3));
    stand.commit("third");
    let all = ["--against", "merge-base:main", "--rev", "main", "--format", "json"];
    let ran = stand.compare_built(&all);
    assert_ended(&ran, 0, &[]);
    let [base, main, head] = [("merge-base:main", "v1"), ("main", "main"), ("HEAD", "HEAD")]
        .map(|(name, at)| format!("{name} ({})", stand.short(at)));
    let json = ran.json();
    assert_eq!(facts(&json).keys().collect::<Vec<_>>(), [&head, &main, &base]);
    let decisions: Vec<_> = json["claims"].as_array().unwrap().iter().map(|claim| &claim["decision"]).collect();
    assert_eq!(decisions, ["slower", "slower"]);
    // A revision that equals the unchanged checkout is not measured twice. A commit has its abbreviation as its name.
    let commit = stand.git(&["rev-parse", "main"]);
    let json = stand.compare_built(&["--against", &commit, "--rev", "other", "--format", "json"]).json();
    let names = [commit[..7].to_owned(), format!("other ({})", stand.short("other"))];
    assert_eq!(facts(&json).keys().collect::<Vec<_>>(), [&names[0], &names[1]]);
    assert_eq!(json["claims"][0]["decision"], "slower");
}

/// Builds run in the subfolder of each revision that is the user's folder.
#[test]
fn a_subfolder_has_its_counterpart_in_each_revision() {
    let stand = Stand::new();
    let folder = stand.repository().join("sub");
    fs::create_dir(&folder).unwrap();
    stand.write("sub/mark", "old\n");
    stand.commit("subfolder");
    stand.write("sub/mark", "new\n");
    fs::write(folder.join("data"), "").unwrap();
    let build = "cat mark >>../source && cd .. && printf '#!/bin/sh\\n# %s\\ncat data; echo cost=1 s\\n' \
                 $(cat sub/mark) >program && chmod +x program";
    let arguments = [&FIGURE[..], &["--runs", "1", "--against", "main", "--build", build, "--", "../program"]].concat();
    let mut compare = stand.command(&arguments);
    assert_ended(&ran(compare.current_dir(&folder).output().unwrap()), 0, &["main ("]);
    assert_eq!(fs::read_to_string(stand.repository().join("source")).unwrap(), source(1) + "new\n");
    let absolute = stand.repository().join("program");
    let mut compare =
        stand.command(&["--runs", "1", "--against", "main", "--build", build, "--", absolute.to_str().unwrap()]);
    assert_ended(&ran(compare.current_dir(&folder).output().unwrap()), 0, &["main ("]);
    let mut compare = stand.command(&["--against", "main~1", "--build", build, "--", "../program"]);
    assert_ended(&ran(compare.current_dir(&folder).output().unwrap()), 2, &["has no folder sub"]);
}

#[test]
fn mistakes_are_explained_and_change_nothing() {
    let stand = Stand::new();
    stand.git(&["branch", "same"]);
    stand.git(&["update-ref", "refs/remotes/origin/feature", "HEAD"]);
    stand.write("source", &source(2));
    stand.commit("second");
    stand.git(&["branch", "twice"]);
    stand.git(&["tag", "twice", "HEAD~1"]);
    symlink("/bin/sh", stand.repository().join("linked")).unwrap();
    stand.commit("link");
    stand.write("source", &source(3));
    let before = stand.snapshot();
    let all: &[(&[&str], &str, i32, &[&str])] = &[
        (&["missing"], "./program", 2, &["there is no revision `missing`"]),
        (&["masn"], "./program", 2, &["there is no revision `masn`; did you mean `main`?"]),
        (&["feature"], "./program", 2, &["there is no revision `feature`; did you mean `origin/feature`?"]),
        (&["merge-base:missing"], "./program", 2, &["there is no revision `missing`"]),
        (&["twice"], "./program", 2, &["`twice` is ambiguous", "refs/heads/twice, refs/tags/twice"]),
        (&["--against=-x"], "./program", 2, &["`-x` is not a revision"]),
        (&["main:source"], "./program", 2, &["`main:source` is not a commit"]),
        (&["main", "--rev", "same"], "/bin/ls", 2, &["`/bin/ls` is outside of the repository"]),
        (&["main"], "./linked", 2, &["`./linked` leads to /", "is outside of the repository"]),
        (&["main"], "./nowhere", 2, &["has no program `./nowhere`", "does not exist", "--build"]),
        (&["main", "--rev", "HEAD"], "./program", 2, &["main and HEAD are the same commit", "--measure-identical"]),
        (
            &["main", "--build", "echo why; exit 7"],
            "./program",
            5,
            &["`echo why; exit 7` ended with exit code 7", "why"],
        ),
        (&["main", "--build", "exit 125"], "./program", 5, &["exit code 125: this revision can't be tested"]),
        (&["main", "--build", "[ -e linked ]"], "./program", 2, &["has no program `./program`"]),
        (&["same", "--build", "[ -e linked ]"], "./program", 5, &["same (", "ended with exit code 1"]),
    ];
    for (against, program, code, words) in all {
        let first: &[&str] = if against[0].starts_with("--") { &[] } else { &["--against"] };
        let refused = stand.compare(&[first, against, &["--", program]].concat());
        assert_ended(&refused, *code, words);
        assert_eq!(stand.snapshot(), before, "{against:?}");
    }
    let logs = stand.state().join("ascertain/builds");
    let logs = names(&logs).into_iter().map(|name| fs::read_to_string(logs.join(name)).unwrap());
    assert!(logs.into_iter().any(|log| log == "why\n"), "the output of a failed build is kept");
    stand.git(&["checkout", "--quiet", "--force", "main"]);
    let before = stand.snapshot();
    assert_ended(&stand.compare_built(&["--against", "HEAD"]), 2, &["HEAD and HEAD are the same commit"]);
    assert_eq!(stand.snapshot(), before);
    let mut elsewhere = stand.command(&["--against", "main", "--", "./program"]);
    assert_ended(&ran(elsewhere.current_dir(stand.state()).output().unwrap()), 2, &["is not in a git repository"]);
}

#[test]
fn a_shallow_clone_names_the_command_that_helps() {
    let stand = Stand::new();
    stand.write("source", &source(2));
    stand.commit("second");
    let from = format!("file://{}", stand.repository().display());
    let clone = stand.folder.path().join("clone");
    git(stand.folder.path(), &["clone", "--quiet", "--depth=1", &from, "clone"]);
    for (against, advice) in [
        ("HEAD~1", "this clone is shallow: `git fetch --unshallow` gets all its commits"),
        ("other", "`git fetch origin other:other` a branch"),
    ] {
        let refused =
            ran(stand.command(&["--against", against, "--", "./program"]).current_dir(&clone).output().unwrap());
        assert_ended(&refused, 2, &[&format!("there is no revision `{against}`"), advice]);
    }
}

#[test]
fn a_repository_of_another_user_is_refused() {
    let stand = Stand::new();
    if chown(stand.repository(), Some(12345), None).is_err() {
        return left_out("only root can give a repository to another user");
    }
    let advice = "belongs to another user, so git does not use it; if you trust it, run `git config --global --add";
    assert_ended(&stand.compare_built(&["--against", "main"]), 2, &[advice]);
}

/// Submodules are copied from the user's checkout, at the commits of the revision.
#[test]
fn submodules_and_files_of_git_lfs_are_not_empty() {
    let stand = Stand::new();
    let library = stand.folder.path().join("library");
    fs::create_dir(&library).unwrap();
    git(&library, &["init", "--quiet", "--initial-branch=main"]);
    for cost in ["1", "2"] {
        fs::write(library.join("cost"), cost).unwrap();
        git(&library, &["add", "."]);
        git(&library, &["commit", "--quiet", "--message", cost]);
    }
    stand.git(&["submodule", "--quiet", "add", library.to_str().unwrap(), "library"]);
    git(&stand.repository().join("library"), &["checkout", "--quiet", "HEAD~1"]);
    stand.commit("submodule");
    git(&stand.repository().join("library"), &["checkout", "--quiet", "main"]);
    let before = stand.snapshot();
    let build = "printf '#!/bin/sh\\necho cost=%s s\\n' $(cat library/cost) >program && chmod +x program";
    let compare = |against: &str| {
        let options = ["--format", "json", "--against", against, "--build", build, "--", "./program"];
        stand.compare(&[&FIGURE[..], &options].concat())
    };
    let ran = compare("HEAD");
    assert_ended(&ran, 0, &[]);
    assert_eq!(ran.json()["claims"][0]["ratio"], 0.5, "{}", ran.stderr);
    assert_eq!(stand.snapshot(), before);

    stand.write(".gitattributes", "large filter=lfs\n");
    stand.write("large", "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n");
    stand.commit("large file");
    stand.write("source", "");
    assert_ended(&compare("HEAD"), 2, &["large is in Git LFS", "git lfs fetch", "GIT_LFS_SKIP_SMUDGE=1"]);
    let mut skipping = stand.command(&["--against", "HEAD", "--", "./program"]);
    let skipping = crate::common::ran(skipping.env("GIT_LFS_SKIP_SMUDGE", "1").output().unwrap());
    assert!(!skipping.stderr.contains("LFS"), "{}", skipping.stderr);
}

/// Cargo's output folder can be shared by all packages of a user: by a variable, or by a file in the home.
#[test]
fn each_revision_has_its_own_cargo_folder() {
    let stand = Stand::new();
    fs::create_dir(stand.repository().join("src")).unwrap();
    stand.write("Cargo.toml", "[package]\nname = \"app\"\nversion = \"1.0.0\"\nedition = \"2024\"\n");
    let main = |cost: u32| format!("fn main() {{ println!(\"cost={cost} s\"); }}\n");
    stand.write("src/main.rs", &main(1));
    stand.write(".gitignore", "/target\n/Cargo.lock\n");
    stand.commit("package");
    stand.write("src/main.rs", &main(2));
    let shared = stand.folder.path().join("shared");
    fs::create_dir(stand.folder.path().join("cargo-home")).unwrap();
    let options = ["--against", "main", "--build", "cargo build --offline --quiet", "--format", "json"];
    let compare = |by: &str| {
        let mut compare = stand.command(&[&FIGURE[..], &options, &["--", "target/debug/app"]].concat());
        compare.env_remove("HOME").env("CARGO_HOME", stand.folder.path().join("cargo-home"));
        let home = std::env::home_dir().unwrap();
        compare.env("RUSTUP_HOME", std::env::var_os("RUSTUP_HOME").unwrap_or(home.join(".rustup").into()));
        match by {
            "file" => fs::write(
                stand.folder.path().join("cargo-home/config.toml"),
                format!("[build]\ntarget-dir = {shared:?}\n"),
            )
            .unwrap(),
            name => _ = compare.env(name, &shared),
        }
        ran(compare.output().unwrap())
    };
    for by in ["CARGO_TARGET_DIR", "CARGO_BUILD_BUILD_DIR", "file"] {
        let ran = compare(by);
        assert_ended(&ran, 0, &[]);
        assert_eq!(ran.json()["claims"][0]["ratio"], 0.5, "{by}");
        assert!(!shared.exists(), "{by}");
    }
}

/// Starts a comparison, and waits until the build of `main` has begun.
fn building(stand: &Stand, mark: &Path) -> Child {
    let build = format!("if [ -e new ]; then exit 0; fi; touch {}; sleep 1000", mark.display());
    let mut command = stand.command(&["--against", "main", "--build", &build, "--", "./program"]);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until("the build has begun", || {
        assert!(child.try_wait().unwrap().is_none(), "it ended before it was stopped");
        mark.exists()
    });
    child
}

/// The test sends SIGTERM, because SIGINT is ignored under `nohup` and `&`.
#[test]
fn an_interrupted_comparison_leaves_nothing() {
    let stand = Stand::new();
    stand.write("new", "");
    let before = stand.snapshot();
    let child = building(&stand, &stand.folder.path().join("mark"));
    assert_ne!(stand.snapshot().neighbours, before.neighbours, "the worktree is there");
    send_signal(&child, "-TERM");
    let ended = ran(child.wait_with_output().unwrap());
    assert_ended(&ended, 130, &["interrupted before anything was measured"]);
    assert_eq!(stand.snapshot(), before);
}

#[test]
fn clean_removes_the_worktree_of_a_killed_comparison() {
    let stand = Stand::new();
    stand.write("new", "");
    let before = stand.snapshot();
    let child = building(&stand, &stand.folder.path().join("mark"));
    let clean = || crate::common::ascertain(&stand.state(), &["clean", "."]);
    assert_ended(&clean(), 0, &["nothing to remove"]);
    assert_ne!(stand.snapshot(), before, "a worktree in use stays");
    kill(child);
    // The process group of the build ends soon after its parent.
    wait_until("the worktree is removed", || clean().stdout.starts_with("removed the worktree "));
    assert_eq!(stand.snapshot(), before);
    assert_ended(&clean(), 0, &["nothing to remove"]);
}

#[test]
fn a_full_disk_is_named_and_nothing_is_left() {
    let stand = Stand::new();
    let disk = stand.folder.path().join("disk");
    fs::create_dir(&disk).unwrap();
    let script = format!(
        "mount -t tmpfs -o size=2m none {disk} || exit 77; mkdir {disk}/repository && cd {disk}/repository && \
         git init --quiet --initial-branch=main && yes | head -c 1500000 >large && git add . && \
         git -c user.name=a -c user.email=a@example.org commit --quiet -m large && : >new && \
         \"$0\" compare --against main -- ./program; code=$?; ls .. .git && exit $code",
        disk = disk.display()
    );
    let mut full = Command::new("unshare");
    full.args(["-m", "sh", "-c", &script, env!("CARGO_BIN_EXE_ascertain")]).env("XDG_STATE_HOME", stand.state());
    let full = match full.output() {
        Ok(output) if output.status.code() != Some(77) && !output.stderr.starts_with(b"unshare:") => ran(output),
        _ => return left_out("this user may not mount a file system"),
    };
    assert_ended(&full, 2, &["`git worktree add", "if the disk is full, free some space in "]);
    assert!(full.stdout.contains("..:\nrepository\n") && !full.stdout.contains("worktrees"), "{}", full.stdout);
}

/// Git works in a build, although the path of the checkout shows another revision.
#[test]
fn builds_see_the_path_of_the_checkout_unless_the_program_names_its_files() {
    let stand = Stand::new();
    stand.write("other", "");
    stand.commit("second");
    let here = stand.repository();
    let build = "{ echo '#!/bin/sh'; echo \"# $PWD $SUFFIX\"; echo echo cost=1 s; } >program; chmod +x program
                 git rev-parse HEAD >>../commits; git status --porcelain >>../commits";
    let compare = |suffix: &str| {
        let _ = fs::remove_file(here.join("../commits"));
        let options = ["--format", "json", "--runs", "1", "--against", "HEAD~1", "--build", build, "--", "./program"];
        let mut compare = stand.command(&options);
        ran(compare.env("SUFFIX", suffix).output().unwrap())
    };
    let same = compare("");
    assert_ended(&same, 0, &["the revisions were built at "]);
    let commits = fs::read_to_string(here.join("../commits")).unwrap();
    assert_eq!(commits.lines().collect::<Vec<_>>(), ["HEAD", "HEAD~1"].map(|at| stand.git(&["rev-parse", at])));
    if same.json()["schema"] != "ascertain.identical/1" {
        assert_eq!(facts(&same.json()).into_values().next().unwrap()["built_at"], "paths of equal length");
        return left_out("this user may not mount a folder in a namespace");
    }
    assert!(same.stderr.contains("built at the same path"), "{}", same.stderr);
    let library = format!("{}/library", here.display());
    let names_files = compare(&library);
    // The variable names a folder in the checkout, which a build at this path could not see.
    assert_eq!(facts(&names_files.json()).into_values().next().unwrap()["built_at"], "paths of equal length");
    let build = "{ echo '#!/bin/sh'; echo \"# $PWD/library\"; echo echo cost=1 s; } >program; chmod +x program";
    let again = stand.compare(&["--runs", "1", "--against", "HEAD~1", "--build", build, "--", "./program"]);
    assert_ended(&again, 0, &["is built again, at another path", "built at paths of equal length"]);
}

/// A build is used again unless something changes on which it depends.
#[test]
fn a_revision_is_built_once() {
    let stand = Stand::new();
    stand.write("source", &source(2));
    let builds = stand.folder.path().join("builds");
    let build = format!("echo built >>{}; echo tool; {BUILD}; ln -sf program link", builds.display());
    let compare = |build: &str, options: &[&str], variable: &str| {
        let _ = fs::remove_file(&builds);
        let against = ["--runs", "1", "--against", "main", "--build", build];
        let mut compare = stand.command(&[&against, options, &["--", "./program"]].concat());
        let compared = ran(compare.env("CFLAGS", variable).output().unwrap());
        assert_ended(&compared, 0, &[]);
        // The checkout is always built.
        let count = fs::read_to_string(&builds).unwrap().lines().count() - 1;
        assert_eq!(compared.stderr.contains("using the build of an earlier run"), count == 0, "{}", compared.stderr);
        count
    };
    assert_eq!(compare(&build, &["--no-cache"], ""), 1);
    assert_eq!(compare(&build, &[], ""), 1);
    assert_eq!(compare(&build, &[], ""), 0);
    assert_eq!(compare(&build, &["--no-cache"], ""), 1);
    assert_eq!(compare(&build, &[], "-O2"), 1, "another environment");
    assert_eq!(compare(&format!("{build} "), &[], ""), 1, "another command");
    stand.commit("second");
    stand.write("source", &source(3));
    assert_eq!(compare(&build, &[], ""), 1, "another commit");
    // A damaged archive is not used.
    let cache = stand.folder.path().join("cache/ascertain/builds");
    names(&cache).iter().for_each(|name| fs::write(cache.join(name), "damaged").unwrap());
    assert_eq!(compare(&build, &[], ""), 1);
    assert_eq!(compare(&build, &[], ""), 0);
}
