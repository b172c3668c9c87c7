//! Bad input and faults of the machine.

use std::fs;
use std::os::unix::net::UnixListener;
use std::path::PathBuf;
use std::process::Command;

use ascertain_fsmonitor::{Changes, EnableOptions, Error, Untracked, disable, enable, log, since, status};
use ascertain_sys::testing::{left_out, wait_until};

use crate::common::{HOOK, Repo, append, in_namespaces, is_running, run, signal};

fn options() -> EnableOptions {
    EnableOptions { hook: Some(HOOK.into()), ..EnableOptions::default() }
}

fn config(repo: &Repo) -> String {
    fs::read_to_string(repo.path(".git/config")).unwrap()
}

#[test]
fn disable_restores_the_configuration() {
    let repo = Repo::new(1);
    let before = config(&repo);
    repo.enable();
    assert!(config(&repo).contains("untrackedCache = true") && !config(&repo).contains("fsmonitor = true"));
    // Enabling twice must not take the monitor's own settings for the earlier ones.
    enable(&repo.root, &EnableOptions { untracked: Untracked::All, ..options() }).unwrap();
    assert_eq!(repo.text(["config", "status.showUntrackedFiles"]), "all\n");
    assert!(disable(&repo.root).unwrap());
    assert_eq!(config(&repo).replace("[status]\n", ""), before);
    assert!(!disable(&repo.root).unwrap());
    let left: Vec<PathBuf> = repo.path(".git").read_dir().unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(!left.iter().any(|path| path.to_string_lossy().contains("ascertain")), "{left:?}");
    // Earlier values, one of them twice.
    repo.git(["config", "core.untrackedCache", "false"]);
    repo.git(["config", "core.fsmonitor", "/one"]);
    repo.git(["config", "--add", "core.fsmonitor", "/two\nlines"]);
    let before = repo.text(["config", "--local", "--list"]);
    enable(&repo.root, &EnableOptions { replace: true, ..options() }).unwrap();
    assert!(disable(&repo.root).unwrap());
    let sorted = |text: &str| {
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&repo.text(["config", "--local", "--list"])), sorted(&before));
}

/// `git sparse-checkout` gives each worktree its own configuration file.
#[test]
fn disable_restores_the_configuration_after_a_sparse_checkout() {
    let repo = Repo::new(1);
    fs::create_dir(repo.path("d")).unwrap();
    repo.write("d/f", "1");
    repo.git(["add", "."]);
    repo.git(["commit", "-qm", "b"]);
    let fsmonitor = || repo.command().args(["config", "core.fsmonitor"]).output().unwrap().stdout;
    let daemon = repo.enable().problem;
    assert_eq!(daemon, None);
    repo.git(["sparse-checkout", "set", "d"]);
    assert_eq!(repo.text(["config", "--local", "extensions.worktreeConfig"]), "true\n");
    assert!(disable(&repo.root).unwrap());
    assert_eq!((fsmonitor(), repo.pid()), (Vec::new(), None));
    // With that file from the start, only this worktree is enabled.
    repo.git(["worktree", "add", "-q", "../linked"]);
    repo.enable();
    assert!(!fsmonitor().is_empty());
    let of_linked = repo.command_in(&repo.beside("linked")).args(["config", "core.fsmonitor"]).output().unwrap();
    assert_eq!(of_linked.stdout, b"");
    assert!(disable(&repo.root).unwrap());
    assert_eq!(fsmonitor(), b"");
}

#[test]
fn enable_for_normal_untracked_files_undoes_enable_for_all() {
    let repo = Repo::new(1);
    let shown = || repo.command().args(["config", "--local", "status.showUntrackedFiles"]).output().unwrap().stdout;
    let all = EnableOptions { untracked: Untracked::All, ..options() };
    for before in ["", "no\n"] {
        if !before.is_empty() {
            repo.git(["config", "status.showUntrackedFiles", before.trim()]);
        }
        enable(&repo.root, &all).unwrap();
        assert_eq!(shown(), b"all\n");
        enable(&repo.root, &options()).unwrap();
        assert_eq!(shown(), before.as_bytes());
        assert!(disable(&repo.root).unwrap());
        assert_eq!(shown(), before.as_bytes());
    }
    // A value that the user has set since stays.
    enable(&repo.root, &all).unwrap();
    repo.git(["config", "status.showUntrackedFiles", "normal"]);
    enable(&repo.root, &options()).unwrap();
    assert_eq!(shown(), b"normal\n");
}

#[test]
fn a_hook_with_odd_characters_in_its_path_works() {
    let repo = Repo::new(1);
    let folder = repo.outside().join("it's a $HOME `x`\"");
    fs::create_dir(&folder).unwrap();
    let hook = folder.join(ascertain_fsmonitor::HOOK);
    fs::copy(HOOK, &hook).unwrap();
    enable(&repo.root, &EnableOptions { hook: Some(hook.clone()), ..EnableOptions::default() }).unwrap();
    repo.prime();
    repo.append("f1", "2");
    assert_eq!(repo.same(), " M f1\n");
    assert!(status(&repo.root).unwrap().is_enabled);
    // An upgrade replaces the program while the daemon runs.
    fs::remove_file(&hook).unwrap();
    fs::copy(HOOK, &hook).unwrap();
    repo.append("f1", "3");
    repo.same();
    // Without the hook, git looks at all files, and `status` prints the reason.
    fs::remove_file(&hook).unwrap();
    repo.append("f1", "4");
    assert_eq!(repo.same(), " M f1\n");
    let hints = status(&repo.root).unwrap().hints;
    assert!(hints.iter().any(|hint| hint.contains("hook is missing")), "{hints:?}");
}

#[test]
fn folders_that_cannot_be_watched_are_refused() {
    let repo = Repo::new(1);
    let plain = repo.outside().join("plain");
    fs::create_dir(&plain).unwrap();
    for folder in [&plain, &repo.outside().join("missing")] {
        assert!(matches!(enable(folder, &options()), Err(Error::NotAWorktree { .. })));
        assert!(matches!(status(folder), Err(Error::NotAWorktree { .. })));
        assert!(matches!(since(folder, b""), Err(Error::NotAWorktree { .. })));
    }
    run(repo.command_in(&plain).args(["init", "-q", "--bare"]));
    assert!(matches!(enable(&plain, &options()), Err(Error::Bare(_))));
    let missing = EnableOptions { hook: Some(plain.join("nothing")), ..EnableOptions::default() };
    assert!(matches!(enable(&repo.root, &missing), Err(Error::HookMissing(_))));
    // A locked configuration: nothing changes.
    let before = config(&repo);
    fs::write(repo.path(".git/config.lock"), "").unwrap();
    assert!(matches!(enable(&repo.root, &options()), Err(Error::Git { .. })));
    fs::remove_file(repo.path(".git/config.lock")).unwrap();
    assert_eq!(config(&repo), before);
    // A locked index: the monitor works, and git stores its token later.
    fs::write(repo.path(".git/index.lock"), "").unwrap();
    assert_eq!(enable(&repo.root, &options()).unwrap().problem, None);
    fs::remove_file(repo.path(".git/index.lock")).unwrap();
    repo.append("f1", "2");
    assert_eq!(repo.same(), " M f1\n");
}

#[test]
fn a_setting_that_hides_ours_is_reported() {
    let repo = Repo::new(1);
    fs::write(repo.beside("more"), "[core]\n\tfsmonitor = false\n").unwrap();
    append(&repo.path(".git/config"), "[include]\n\tpath = ../../more\n");
    let before = config(&repo);
    // The setting of the included file comes later than ours.
    assert!(matches!(enable(&repo.root, &options()), Err(Error::Overridden { .. })));
    assert_eq!(config(&repo), before);
    // The monitor was enabled before: a call that fails must not disable it.
    fs::write(repo.beside("more"), "").unwrap();
    enable(&repo.root, &options()).unwrap();
    fs::write(repo.beside("more"), "[core]\n\tfsmonitorHookVersion = 1\n").unwrap();
    assert!(matches!(enable(&repo.root, &options()), Err(Error::Overridden { .. })));
    assert_eq!(repo.text(["config", "core.fsmonitor"]).trim(), HOOK);
    assert!(disable(&repo.root).unwrap());
    assert_eq!(repo.command().args(["config", "core.fsmonitor"]).output().unwrap().stdout, b"");
}

#[test]
fn other_files_in_place_of_the_socket_are_replaced() {
    let repo = Repo::new(1);
    repo.enable();
    repo.prime();
    let socket = repo.daemon_file("sock").unwrap();
    for what in ["file", "other socket", "nothing"] {
        let pid = repo.pid().unwrap();
        fs::remove_file(&socket).unwrap();
        match what {
            "file" => fs::write(&socket, "text").unwrap(),
            // No process listens any more.
            "other socket" => drop(UnixListener::bind(&socket).unwrap()),
            _ => {}
        }
        wait_until("a daemon without a socket ends", || !is_running(pid));
        repo.append("f1", "2");
        repo.same();
        repo.same();
        assert!(repo.pid().is_some_and(|new| new != pid), "{what}");
    }
}

#[test]
fn a_stopped_daemon_delays_git_only_until_the_deadline() {
    let repo = Repo::new(3);
    repo.enable();
    repo.prime();
    let pid = repo.pid().unwrap();
    signal(pid, "STOP");
    for _ in 0..2 {
        repo.append("f1", "2");
        assert_eq!(repo.same(), " M f1\n");
    }
    let (code, token, paths) = repo.hook(&repo.root, &["2", ""]);
    assert_eq!((code, &*token, &*paths[0]), (0, "ascertain-fsmonitor:none", "/"));
    signal(pid, "CONT");
    repo.prime();
    repo.append("f2", "2");
    assert_eq!(repo.same(), " M f1\n M f2\n");
    // A stopped daemon is ended by force.
    signal(pid, "STOP");
    assert!(disable(&repo.root).unwrap());
    wait_until("the stopped daemon is gone", || !is_running(pid));
}

#[test]
fn a_daemon_ends_with_its_repository() {
    let repo = Repo::new(3);
    repo.enable();
    let pid = repo.pid().unwrap();
    // The folder must be empty at the end, although the daemon notices in between.
    run(Command::new("rm").arg("-rf").arg(&repo.root));
    assert!(!repo.root.exists());
    wait_until("the daemon is gone", || !is_running(pid));
    // The queue overflows, so the daemon does not get the events of the removal.
    let repo = Repo::new(3);
    repo.enable();
    let pid = repo.pid().unwrap();
    repo.overflow(pid);
    run(Command::new("rm").arg("-rf").arg(&repo.root));
    signal(pid, "CONT");
    wait_until("the daemon is gone after an overflow", || !is_running(pid));
    // A linked worktree.
    let mut repo = Repo::new(3);
    repo.git(["worktree", "add", "-q", "../linked"]);
    repo.enable();
    let linked = repo.beside("linked");
    run(repo.command_in(&linked).arg("status"));
    let pid = status(&linked).unwrap().pid.unwrap();
    repo.git(["worktree", "remove", "../linked"]);
    wait_until("the daemon of the linked worktree is gone", || !is_running(pid));
    assert!(repo.pid().is_some());
    // Only the folder is removed, not its git folder, and the daemon does not get the event.
    repo.git(["worktree", "add", "-q", "--force", "-B", "other", "../linked"]);
    run(repo.command_in(&linked).arg("status"));
    let pid = status(&linked).unwrap().pid.unwrap();
    let root = std::mem::replace(&mut repo.root, linked);
    repo.overflow(pid);
    run(Command::new("rm").arg("-rf").arg(&repo.root));
    repo.root = root;
    signal(pid, "CONT");
    wait_until("the daemon of the removed folder is gone", || !is_running(pid));
}

#[test]
fn an_idle_daemon_ends() {
    let mut repo = Repo::empty().with_limits("idle_ms=50");
    repo.commit_files(2);
    repo.enable();
    repo.git(["status"]);
    wait_until("the idle daemon is gone", || repo.pid().is_none());
    assert!(log(&repo.root).unwrap().contains("end: no program has sent a query"), "{}", log(&repo.root).unwrap());
    repo.append("f1", "2");
    assert_eq!(repo.same(), " M f1\n");
}

#[test]
fn only_one_daemon_runs_however_many_programs_ask() {
    let repo = Repo::new(3);
    repo.enable();
    for _ in 0..5 {
        repo.kill();
        let children: Vec<_> =
            (0..8).map(|_| repo.command().arg("status").stdout(std::process::Stdio::null()).spawn()).collect();
        children.into_iter().for_each(|child| assert!(child.unwrap().wait().unwrap().success()));
        let count = || {
            let listed = run(Command::new("ps").args(["-eo", "args"]));
            let own = format!("detached-daemon {} ", repo.root.display());
            String::from_utf8_lossy(&listed).lines().filter(|line| line.contains(&own)).count()
        };
        wait_until("one daemon is left", || count() == 1);
        repo.same();
    }
}

#[test]
fn an_overflow_makes_the_daemon_read_everything_again() {
    let repo = Repo::new(3);
    repo.enable();
    repo.prime();
    let pid = repo.pid().unwrap();
    repo.overflow(pid);
    fs::create_dir(repo.path("late")).unwrap();
    repo.append("f1", "2");
    signal(pid, "CONT");
    assert_eq!(repo.same(), " M f1\n");
    wait_until("the folders are read again", || repo.status().walks >= 2 && repo.status().is_ready);
    // The folder that came during the overflow is watched.
    repo.prime();
    repo.write("late/x", "1");
    assert_eq!(repo.same(), " M f1\n?? late/\n");
    assert!(repo.status().last.last().unwrap().everything.is_none(), "{:?}", repo.status());
}

#[test]
fn a_full_disk_stops_neither_git_nor_the_monitor() {
    let script = "mkdir m && mount -t tmpfs -o size=300k none m && cd m && git init -q r && cd r && echo 1 >f &&
        git add . && git -c user.name=t -c user.email=e commit -qm a &&
        git config core.fsmonitor \"$HOOK\" && git config core.fsmonitorHookVersion 2 &&
        git status --porcelain
        export GIT_OPTIONAL_LOCKS=0
        dd if=/dev/zero of=../full bs=1k count=1000 >/dev/null 2>&1
        git status --porcelain
        echo 2 >>f
        git status --porcelain
        git status --porcelain
        \"$HOOK\" 2 x | tr '\\0' ' '";
    let Some((text, errors)) = in_namespaces(script) else { return };
    // The file has a byte of content even on a full disk, because its block exists. Without the optional locks, git
    // does not write its index, which fails on a full disk.
    assert!(text.contains(" M f\n M f\n") && text.ends_with("/ "), "{text}{errors}");
}

#[test]
fn mounts_below_the_root_are_noticed() {
    let script = "git init -q r && cd r && mkdir m && echo 1 >f && echo 1 >m/t && git add . &&
        git -c user.name=t -c user.email=e commit -qm a && git config core.fsmonitor \"$HOOK\" &&
        git config core.fsmonitorHookVersion 2 && git config core.untrackedCache true
        git status; git status; git status
        mount -t tmpfs none m; echo 1 >m/u; git status --porcelain; echo -
        git status --porcelain; echo 2 >m/v; git status --porcelain -uall; echo -
        umount m; git status --porcelain; echo 2 >>m/t; git status --porcelain; echo -";
    let Some((text, errors)) = in_namespaces(script) else { return };
    let expected = " D m/t\n?? m/u\n-\n D m/t\n?? m/u\n D m/t\n?? m/u\n?? m/v\n-\n M m/t\n-\n";
    assert!(text.ends_with(expected), "{text}{errors}");
}

/// Both paths of a folder have the same watch, so an event names only one of them.
#[test]
fn a_bind_mount_below_the_root_gets_the_answer_everything() {
    let script = "git init -q r && cd r && mkdir a m && echo 1 >a/f && echo 1 >m/f && git add . &&
        git -c user.name=t -c user.email=e commit -qm a && git config core.fsmonitor \"$HOOK\" &&
        git config core.fsmonitorHookVersion 2 && git config core.untrackedCache true
        export ASCERTAIN_FSMONITOR_LIMITS=files=0
        mount --bind a m; git status; git status; git status
        echo 2 >>a/f; git status --porcelain; echo -
        umount m; git status --porcelain; git status --porcelain; echo -";
    let Some((text, errors)) = in_namespaces(script) else { return };
    assert!(text.ends_with(" M a/f\n M m/f\n-\n M a/f\n M a/f\n-\n"), "{text}{errors}");
}

#[test]
fn another_namespace_gets_the_answer_everything() {
    let repo = Repo::new(2);
    repo.enable();
    repo.prime();
    let (_, token, _) = repo.hook(&repo.root, &["2", ""]);
    let (_, token, _) = repo.hook(&repo.root, &["2", &token]);
    assert!(repo.hook(&repo.root, &["2", &token]).2.is_empty());
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", HOOK, "2", &token]).current_dir(&repo.root);
    let output = command.output().unwrap();
    if !output.status.success() {
        left_out(format!("no namespace: {}", String::from_utf8_lossy(&output.stderr)));
        return;
    }
    // The token is not valid, because git may store it in the index that both namespaces share.
    assert_eq!(output.stdout, b"ascertain-fsmonitor:none\0/\0");
}

#[test]
fn since_answers_other_programs() {
    let repo = Repo::new(2);
    repo.enable();
    let (token, changes) = since(&repo.root, b"").unwrap();
    assert!(matches!(changes, Changes::Everything(_)));
    repo.write("new", "1");
    let expected = Changes::Paths(vec![b"new".to_vec()]);
    assert_eq!(since(&repo.root, &token).unwrap().1, expected);
    let (next, changes) = since(&repo.root, &token).unwrap();
    assert_eq!(changes, expected);
    assert_eq!(since(&repo.root, &next).unwrap().1, Changes::Paths(Vec::new()));
    let pid = repo.pid();
    for token in [&b"a\0b"[..], &b"ascertain-fsmonitor:".repeat(10_000)] {
        assert!(matches!(since(&repo.root, token).unwrap().1, Changes::Everything(_)));
    }
    assert_eq!(repo.pid(), pid, "no token ends the daemon");
    repo.kill();
    assert!(matches!(since(&repo.root, &next).unwrap().1, Changes::Everything(_)));
}

#[test]
fn since_finds_the_hook_beside_its_program() {
    let repo = Repo::new(1);
    let folder = repo.outside().join("bin");
    fs::create_dir(&folder).unwrap();
    let program = folder.join("program");
    fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    fs::copy(HOOK, folder.join(ascertain_fsmonitor::HOOK)).unwrap();
    run(Command::new(program).args(["faults::since_here", "--exact", "--ignored"]).current_dir(&repo.root));
    assert!(repo.pid().is_some());
}

#[test]
#[ignore = "a part of another test"]
fn since_here() {
    since(".".as_ref(), b"").unwrap();
}

#[test]
fn a_git_folder_apart_from_its_worktree_works() {
    let repo = Repo::new(1);
    let (home, dots) = (repo.outside().join("home"), repo.outside().join("dots"));
    fs::create_dir(&home).unwrap();
    fs::write(home.join("a"), "1").unwrap();
    let git = |arguments: &[&str]| {
        let mut command = repo.command_in(&home);
        command.arg("--git-dir=../dots").arg("--work-tree=.").args(arguments);
        String::from_utf8(run(&mut command)).unwrap()
    };
    run(repo.command_in(repo.outside()).args(["init", "-q", "--bare", "dots"]));
    git(&["config", "core.bare", "false"]);
    git(&["add", "a"]);
    // The environment of `enable` is what git would have.
    run(Command::new(std::env::current_exe().unwrap())
        .args(["faults::enable_by_environment", "--exact", "--ignored"])
        .env("GIT_DIR", &dots)
        .env("GIT_WORK_TREE", &home)
        .current_dir(&home));
    for _ in 0..3 {
        git(&["status"]);
    }
    fs::write(home.join("a"), "22").unwrap();
    assert_eq!(git(&["status", "--porcelain", "-uno"]), "AM a\n");
    let socket =
        fs::read_dir(&dots).unwrap().flatten().any(|entry| entry.path().extension().is_some_and(|e| e == "sock"));
    assert!(socket, "a daemon runs");
    // From another folder, the answer is `/`.
    let elsewhere = repo.outside().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let status = run(repo.command_in(&elsewhere).args(["--git-dir=../dots", "--work-tree=.", "status", "--porcelain"]));
    assert_eq!(status, b"AD a\n");
    run(Command::new("rm").arg("-rf").arg(&dots));
}

#[test]
#[ignore = "a part of another test"]
fn enable_by_environment() {
    enable(".".as_ref(), &options()).unwrap();
}

#[test]
fn answers_stay_right_while_the_daemon_is_killed_all_the_time() {
    let repo = Repo::new(20);
    repo.enable();
    for round in 0..10 {
        repo.append(&format!("f{}", round + 1), "2");
        if let Some(pid) = repo.pid() {
            signal(pid, "KILL");
        }
        repo.same();
        repo.write(&format!("u{round}"), "");
        repo.same();
    }
}
