//! Public reports of faults of monitors: each is a test, with its neighbours.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::{Command, Stdio};

use ascertain_fsmonitor::{EnableOptions, Error, Reason, enable};
use ascertain_sys::testing::{left_out, wait_until};

use crate::common::{HOOK, Repo, append, run};

/// jj-vcs/jj#6440: git takes the current folder for the worktree if it is called with `--git-dir`.
#[test]
fn a_repository_used_from_elsewhere_gets_the_answer_everything() {
    let repo = Repo::new(3);
    repo.enable();
    repo.prime();
    let elsewhere = repo.beside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    fs::write(elsewhere.join("x"), "").unwrap();
    for _ in 0..2 {
        let status = run(repo.command_in(&elsewhere).args(["--git-dir=../r/.git", "status", "--porcelain"]));
        assert_eq!(String::from_utf8(status).unwrap(), " D f1\n D f2\n D f3\n?? x\n");
    }
    assert!(!elsewhere.join(".git").exists());
    repo.append("f2", "9");
    assert_eq!(repo.same(), " M f2\n");
    // Files of the same content, so that git may mark them as unchanged.
    for name in ["f1", "f2", "f3"] {
        fs::copy(repo.path(name), elsewhere.join(name)).unwrap();
    }
    run(repo.command_in(&elsewhere).args(["--git-dir=../r/.git", "status", "--porcelain"]));
    repo.append("f3", "9");
    assert_eq!(repo.same(), " M f2\n M f3\n");
}

/// max-sixty/worktrunk#1648: the daemon keeps nothing of the process that started it.
#[test]
fn a_daemon_that_git_starts_inherits_nothing() {
    let repo = Repo::new(3);
    repo.enable();
    repo.prime();
    let lock = repo.beside("lock");
    for _ in 0..3 {
        repo.kill();
        // The output ends only when all writers have closed the pipe.
        let script = "exec 9>../lock; flock 9; git status --porcelain 2>&1";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).current_dir(&repo.root).stdin(Stdio::null());
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        run(&mut shell);
        run(Command::new("flock").args(["--nonblock".as_ref(), lock.as_os_str(), "true".as_ref()]));
        let pid = repo.pid().expect("git started a daemon");
        let fds = fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
        for fd in fds.map(|fd| fs::read_link(fd.path()).unwrap_or_default()) {
            let text = fd.to_string_lossy().into_owned();
            let is_own = ["/dev/null", "anon_inode:inotify", "socket:"].iter().any(|own| text.starts_with(own))
                || text.starts_with(&*repo.root.to_string_lossy())
                || text.ends_with("/mountinfo");
            assert!(is_own, "{text}");
        }
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let words: Vec<&str> = stat.rsplit(") ").next().unwrap().split(' ').collect();
        assert_eq!(words[4], "0", "a session of its own without a terminal");
        assert_ne!(words[1], std::process::id().to_string(), "not a child that the caller must wait for");
        assert_eq!(fs::read_link(format!("/proc/{pid}/cwd")).unwrap().to_str(), Some("/"));
    }
}

/// microsoft/scalar#386: the index holds a token of another monitor.
#[test]
fn a_foreign_token_gets_the_answer_everything() {
    let repo = Repo::new(3);
    let old = repo.beside("old.sh");
    fs::write(&old, "#!/bin/sh\nprintf '1700000000000000000\\0'\n").unwrap();
    fs::set_permissions(&old, fs::Permissions::from_mode(0o755)).unwrap();
    repo.git(["config", "core.fsmonitor", old.to_str().unwrap()]);
    repo.git(["update-index", "--fsmonitor"]);
    repo.git(["status"]);
    repo.append("f1", "2");
    repo.git(["status"]);
    let options = EnableOptions { hook: Some(HOOK.into()), ..EnableOptions::default() };
    assert!(matches!(enable(&repo.root, &options), Err(Error::AlreadySet { .. })));
    assert_eq!(repo.text(["config", "core.fsmonitor"]).trim(), old.to_str().unwrap());
    enable(&repo.root, &EnableOptions { replace: true, ..options }).unwrap();
    assert_eq!(repo.same(), " M f1\n");
    let long = "9".repeat(100_000);
    let calls: [&[&str]; 10] = [
        &["1", "1700000000000000000"],
        &["2", "junk"],
        &["2"],
        &["2", ""],
        &["3", "abc"],
        &[],
        &[""],
        &["2", "1700000000000000000"],
        &["2", &long],
        &["2", "ascertain-fsmonitor:none", "more"],
    ];
    repo.hook(&repo.root, &["2", ""]);
    let pid = repo.pid();
    assert!(pid.is_some());
    for call in calls {
        let (code, token, paths) = repo.hook(&repo.root, call);
        let is_everything = token.starts_with("ascertain-fsmonitor:") && paths == ["/"];
        assert!(code != 0 || is_everything, "{call:?}: {code} {token} {paths:?}");
        assert!(code == 0 || call.first() != Some(&"2"), "{call:?}: version 2 never fails");
    }
    assert_eq!(repo.pid(), pid, "no token ends the daemon");
    let (code, token, _) = repo.hook(&repo.root, &["2", "junk"]);
    assert_eq!(code, 0);
    let (_, token, paths) = repo.hook(&repo.root, &["2", &token]);
    assert_eq!(paths, ["_"], "after the answer `/`, git must read every folder again");
    assert_eq!(repo.hook(&repo.root, &["2", &token]).2, Vec::<String>::new());
    // A token of the future, or with another number, was never given out.
    let (start, _) = token.rsplit_once(':').unwrap();
    assert_eq!(repo.hook(&repo.root, &["2", &format!("{start}:99999999")]).2, ["/"]);
    // No repository at all.
    let (code, token, paths) = repo.hook(repo.outside(), &["2", &token]);
    assert_eq!((code, &*token, &paths[..]), (0, "ascertain-fsmonitor:none", &["/".to_owned()][..]));
}

/// jj-vcs/jj#2613 and #5775: ignored files show up when the rule goes away.
#[test]
fn files_that_are_no_longer_ignored_show_up() {
    for rules in [".gitignore", ".git/info/exclude", "../global"] {
        let repo = Repo::new(3);
        repo.git(["config", "core.excludesFile", repo.beside("global").to_str().unwrap()]);
        repo.write(rules, "big/\n");
        repo.git(["add", "."]);
        repo.git(["commit", "-qm", "b", "--allow-empty"]);
        repo.enable();
        fs::create_dir(repo.path("big")).unwrap();
        (1..=50).for_each(|number| repo.write(&format!("big/g{number}"), "1"));
        repo.prime();
        repo.write(rules, "");
        assert!(repo.same().contains("?? big/"), "{rules}");
        repo.write(rules, "big/\n");
        repo.prime();
        fs::rename(repo.path("big"), repo.path("src")).unwrap();
        assert!(repo.same().contains("?? src/"), "{rules}");
        repo.write("src/g7", "2");
        let all = repo.text(["status", "--porcelain", "-uall"]);
        assert_eq!(all.matches("src/").count(), 50, "{rules}");
        fs::rename(repo.path("src"), repo.path("big")).unwrap();
        assert!(!repo.same().contains("?? "), "{rules}");
    }
}

/// git-for-windows/git#3326 and bazelbuild/bazel#23647: many worktrees reach the kernel's limits.
#[test]
fn limits_of_instances_and_watches_are_reported() {
    let limit = |path: &str, value: &str| format!("echo {value} >/proc/sys/user/{path} && ");
    for (limits, name) in [
        (limit("max_inotify_instances", "0"), "max_user_instances"),
        (limit("max_inotify_watches", "20"), "max_user_watches"),
    ] {
        let repo = Repo::new(3);
        (0..40).for_each(|number| fs::create_dir(repo.path(format!("e{number}"))).unwrap());
        repo.enable();
        repo.kill();
        let script = format!("{limits} git status --porcelain && git status --porcelain && sleep 0.3");
        let mut shell = Command::new("unshare");
        shell.args(["--user", "--map-root-user", "sh", "-c", &script]).current_dir(&repo.root);
        shell.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        repo.append("f1", "x");
        let output = shell.output().unwrap();
        if !output.status.success() {
            left_out(format!("no user namespace: {}", String::from_utf8_lossy(&output.stderr)));
            return;
        }
        assert_eq!(String::from_utf8_lossy(&output.stdout), " M f1\n M f1\n");
        let failure = || repo.status().failure;
        wait_until("the daemon reports the limit", || failure().is_some());
        let text = failure().unwrap();
        assert!(text.contains(name) && text.contains("sysctl"), "{text}");
        assert_eq!(repo.pid(), None, "no idle daemon is left");
        // No other attempt within a minute, even if the limit is higher now.
        repo.same();
        assert_eq!(repo.pid(), None);
        // A clock that jumped back must not forbid attempts for ever.
        let lock = repo.daemon_file("lock").unwrap();
        run(Command::new("touch").args(["-d".as_ref(), "2100-01-01".as_ref(), lock.as_os_str()]));
        repo.same();
        assert!(repo.pid().is_some());
    }
}

/// hubblestack/pulsar#60: a write through another name of a file.
#[test]
fn writes_through_other_names_are_noticed() {
    let repo = Repo::new(6);
    let out = |number: u8| repo.beside(&format!("out{number}"));
    fs::hard_link(repo.path("f1"), out(1)).unwrap();
    repo.enable();
    repo.prime();
    append(&out(1), "2");
    assert_eq!(repo.same(), " M f1\n");
    // The second name is made after the daemon has read the tree.
    fs::hard_link(repo.path("f2"), out(2)).unwrap();
    repo.prime();
    append(&out(2), "2");
    assert_eq!(repo.same(), " M f1\n M f2\n");
    assert_eq!(repo.status().links.files, 2);
    // Both names are in the worktree.
    fs::hard_link(repo.path("f3"), repo.path("g3")).unwrap();
    repo.git(["add", "g3"]);
    repo.prime();
    append(&repo.path("g3"), "2");
    assert_eq!(repo.same(), " M f1\n M f2\n M f3\nAM g3\n");
    // A rename replaces the file, and the other name no longer counts.
    fs::write(repo.path("new"), "n").unwrap();
    fs::rename(repo.path("new"), repo.path("f1")).unwrap();
    repo.prime();
    append(&out(1), "3");
    repo.same();
    assert_eq!(repo.status().links.files, 3);
    // The other name is a folder that was moved out and in.
    fs::create_dir(repo.path("d")).unwrap();
    fs::rename(repo.path("f4"), repo.path("d/f4")).unwrap();
    fs::hard_link(repo.path("d/f4"), out(4)).unwrap();
    repo.git(["add", "-A"]);
    repo.prime();
    fs::rename(repo.path("d"), repo.beside("d")).unwrap();
    append(&out(4), "2");
    repo.same();
    fs::rename(repo.beside("d"), repo.path("d")).unwrap();
    repo.prime();
    append(&out(4), "2");
    assert!(repo.same().contains("d/f4"));
}

#[test]
fn files_with_several_names_are_in_every_answer_if_no_watch_is_left() {
    let mut repo = Repo::empty().with_limits("files=0,scan_pauses=0");
    repo.commit_files(3);
    fs::hard_link(repo.path("f1"), repo.beside("out")).unwrap();
    repo.enable();
    repo.prime();
    let links = || (repo.status().links.files, repo.status().links.always);
    wait_until("the file is found", || links() == (1, 1));
    repo.prime();
    for _ in 0..2 {
        append(&repo.beside("out"), "2");
        assert_eq!(repo.same(), " M f1\n");
        repo.git(["commit", "-qam", "b"]);
    }
    assert_eq!(links(), (1, 1));
    // Untracked files with several names, such as those of a package manager, are in the answers only until a scan.
    repo.write(".gitignore", "ign\n");
    repo.write("package", "1");
    fs::create_dir(repo.path("ign")).unwrap();
    repo.git(["add", "."]);
    repo.git(["commit", "-qm", "c"]);
    for number in 0..10_001 {
        fs::hard_link(repo.path("package"), repo.path(format!("ign/{number}"))).unwrap();
    }
    wait_until("only the tracked files are left", || {
        repo.git(["status"]);
        links() == (2, 2)
    });
    for name in ["out", "r/ign/7"] {
        append(&repo.beside(name), "2");
    }
    assert_eq!(repo.same(), " M f1\n M package\n");
    assert_eq!(repo.status().last.last().unwrap().everything, None);
}

/// pre-commit/pre-commit#2795: answers depend on the token alone, and temporary indices work.
#[test]
fn asking_does_not_use_changes_up() {
    let repo = Repo::new(500);
    let hook = repo.path(".git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    fs::write(&hook, "#!/bin/sh\ngit diff-index --quiet $(git write-tree) -- || { echo stale; exit 1; }\n").unwrap();
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).unwrap();
    repo.enable();
    repo.prime();
    repo.append("f1", "2");
    for _ in 0..3 {
        assert_eq!(repo.text(["--no-optional-locks", "status", "--porcelain"]), " M f1\n");
    }
    repo.git(["commit", "-qm", "b", "f1"]);
    repo.append("f2", "3");
    repo.git(["commit", "-qam", "c"]);
    assert_eq!(repo.same(), "");
    repo.kill();
    repo.git(["commit", "-q", "--allow-empty", "-m", "d"]);
    repo.append("f3", "3");
    let before = repo.text(["diff", "--stat"]);
    repo.git(["stash"]);
    assert_eq!(repo.same(), "");
    repo.git(["stash", "pop"]);
    assert_eq!(repo.text(["diff", "--stat"]), before);
}

/// A command that lists no untracked files stores the token, but not their state.
#[test]
fn untracked_files_are_right_after_a_restart_and_another_command() {
    for arguments in [&["status", "-uall"][..], &["status", "-uno"], &["add", "f1"], &["commit", "-qam", "b"]] {
        let repo = Repo::new(2);
        fs::create_dir_all(repo.path("d/e")).unwrap();
        repo.write("d/e/t", "");
        repo.git(["add", "."]);
        repo.enable();
        repo.prime();
        repo.kill();
        repo.append("f1", "2");
        repo.write("d/e/u", "");
        repo.write("u", "");
        repo.git(arguments);
        assert_eq!(repo.same().matches("?? ").count(), 2, "{arguments:?}");
        repo.same();
    }
}

/// Editors run `git -c core.fsmonitor=false status`, which removes the monitor's data from the index.
#[test]
fn a_program_that_removes_the_extension_is_named() {
    let repo = Repo::new(3);
    repo.enable();
    for _ in 0..3 {
        repo.append("f1", "2");
        repo.git(["-c", "core.fsmonitor=false", "status"]);
        repo.same();
    }
    let status = repo.status();
    assert!(status.everything.get(&Reason::NoToken) >= Some(&3), "{:?}", status.everything);
    assert!(status.hints.iter().any(|hint| hint.contains("without a token")), "{:?}", status.hints);
}

#[test]
fn status_explains_that_all_untracked_files_bypass_the_cache() {
    let repo = Repo::new(3);
    repo.enable();
    // The command is known if git still ran when the daemon looked.
    wait_until("the daemon knows a command", || {
        repo.git(["status", "-uall"]);
        repo.status().last.iter().any(|answer| answer.command.contains("-uall"))
    });
    assert!(repo.status().hints.iter().any(|hint| hint.contains("-uall")), "{:?}", repo.status().hints);
}

/// Git's own t3600: `git mv` and `git rm` change `.gitmodules` after the query, and then add it to the index.
#[test]
fn moving_and_removing_a_submodule_stages_gitmodules() {
    let (repo, sub) = (Repo::new(1), Repo::new(1));
    repo.git(["-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.root.to_str().unwrap(), "sub"]);
    repo.git(["commit", "-qm", "b"]);
    repo.enable();
    for (arguments, status) in [
        (&["mv", "sub", "moved"][..], "M  .gitmodules\nR  sub -> moved\n"),
        (&["rm", "-q", "moved"], "M  .gitmodules\nD  moved\n"),
        (&["-c", "alias.mine=mv", "mine", "moved", "again"], "M  .gitmodules\nR  moved -> again\n"),
    ] {
        repo.prime();
        repo.git(arguments);
        assert_eq!(repo.same(), status, "{arguments:?}");
        if arguments[0] == "rm" {
            repo.git(["reset", "-q", "--hard"])
        } else {
            repo.git(["commit", "-qm", "c"])
        };
    }
}

#[test]
fn submodules_and_linked_worktrees_have_daemons_of_their_own() {
    let sub = Repo::new(2);
    let repo = Repo::new(3);
    repo.git(["-c", "protocol.file.allow=always", "submodule", "add", "-q", sub.root.to_str().unwrap(), "sub"]);
    repo.git(["commit", "-qm", "sub"]);
    repo.git(["worktree", "add", "-q", "../linked"]);
    let enabled = repo.enable();
    assert_eq!((enabled.worktrees, enabled.submodules), (2, 1));
    repo.enable_in(&repo.path("sub"));
    repo.prime();
    let linked = repo.beside("linked");
    let status_in = |folder: &std::path::Path| {
        let ours = run(repo.command_in(folder).args(["status", "--porcelain"]));
        let mut plain = repo.command_in(folder);
        plain.env("GIT_OPTIONAL_LOCKS", "0").args(["-c", "core.fsmonitor=false", "status", "--porcelain"]);
        assert_eq!(ours, run(&mut plain), "{}", folder.display());
        String::from_utf8(ours).unwrap()
    };
    status_in(&linked);
    status_in(&linked);
    append(&linked.join("f1"), "2");
    assert_eq!(status_in(&linked), " M f1\n");
    assert_eq!(repo.same(), "");
    append(&repo.path("sub/f1"), "2");
    assert_eq!(repo.same(), " M sub\n");
    assert_eq!(status_in(&repo.path("sub")), " M f1\n");
    // A commit changes only the submodule's git folder.
    run(repo.command_in(&repo.path("sub")).args(["-c", "user.name=t", "-c", "user.email=e", "commit", "-qam", "s"]));
    assert_eq!(repo.same(), " M sub\n");
    assert_eq!(repo.status().nested, 1);
    // These commands call the submodule's hook in the folder of the superproject.
    append(&repo.path("sub/f2"), "2");
    for arguments in [&["ls-files", "--recurse-submodules"][..], &["grep", "-c", "--recurse-submodules", "2"]] {
        let plain = run(repo.plain().args(arguments));
        assert_eq!(repo.git(arguments), plain, "{arguments:?}");
    }
    assert_eq!(status_in(&repo.path("sub")), " M f2\n");
    let pid = |folder: &std::path::Path| ascertain_fsmonitor::status(folder).unwrap().pid;
    let pids = [pid(&repo.root), pid(&linked), pid(&repo.path("sub"))];
    assert!(pids.iter().all(Option::is_some) && pids[0] != pids[1] && pids[0] != pids[2], "{pids:?}");
    assert!(ascertain_fsmonitor::disable(&repo.path("sub")).unwrap());
    assert!(ascertain_fsmonitor::disable(&repo.root).unwrap());
    assert_eq!([pid(&repo.root), pid(&linked), pid(&repo.path("sub"))], [None; 3]);
}

#[test]
fn folders_that_move_take_their_contents_along() {
    let repo = Repo::new(1);
    fs::create_dir_all(repo.path("a/b/c")).unwrap();
    repo.write("a/b/c/t", "1");
    repo.write("a/b/t", "1");
    repo.git(["add", "."]);
    repo.git(["commit", "-qm", "b"]);
    repo.write("a/b/c/u", "1");
    repo.enable();
    repo.prime();
    let steps: [(&str, &str); 6] =
        [("a/b", "../out"), ("../out", "a/b"), ("a", "z"), ("z", "a"), ("a/b/c", "a/c"), ("a/c", "a/b/c")];
    for (from, to) in steps {
        fs::rename(repo.path(from), repo.path(to)).unwrap();
        repo.same();
        // An event in the moved folder.
        if to.starts_with('a') && repo.path("a/b/c").exists() {
            repo.append("a/b/c/t", "2");
            repo.append("a/b/c/u", "2");
            repo.same();
            repo.git(["checkout", "-q", "a"]);
        }
    }
    // Another folder of the same name, which is empty.
    repo.prime();
    fs::rename(repo.path("a/b/c"), repo.beside("gone")).unwrap();
    fs::create_dir(repo.path("a/b/c")).unwrap();
    repo.same();
    // A link in place of a folder.
    fs::remove_dir(repo.path("a/b/c")).unwrap();
    symlink(repo.beside("gone"), repo.path("a/b/c")).unwrap();
    repo.same();
    append(&repo.beside("gone/t"), "3");
    repo.same();
}

#[test]
fn a_repository_that_moves_keeps_its_daemon() {
    let mut repo = Repo::new(3);
    repo.enable();
    repo.prime();
    let pid = repo.pid();
    let to = repo.beside("moved");
    fs::rename(&repo.root, &to).unwrap();
    repo.root = to;
    repo.append("f1", "2");
    fs::create_dir(repo.path("d")).unwrap();
    repo.write("d/x", "1");
    assert_eq!(repo.same(), " M f1\n?? d/\n");
    repo.write("d/y", "1");
    assert_eq!(repo.text(["status", "--porcelain", "-uall"]), " M f1\n?? d/x\n?? d/y\n");
    assert_eq!(repo.pid(), pid);
    assert!(repo.status().last.last().unwrap().everything.is_none());
}

/// The path of a socket may have at most 107 bytes.
#[test]
fn a_repository_with_a_long_path_has_a_daemon() {
    let mut repo = Repo::new(1);
    let to = repo.beside(&"n".repeat(120));
    fs::rename(&repo.root, &to).unwrap();
    repo.root = to;
    assert_eq!(repo.enable().problem, None);
    repo.prime();
    repo.append("f1", "2");
    assert_eq!(repo.same(), " M f1\n");
    assert_eq!(repo.status().last.last().unwrap().everything, None);
}

#[test]
fn names_that_are_not_utf_8_and_long_paths_work() {
    let repo = Repo::new(1);
    repo.enable();
    repo.prime();
    let odd = repo.path(crate::common::os(b"\xff\xfe\n'\"\\"));
    fs::create_dir(&odd).unwrap();
    fs::write(odd.join("x"), "1").unwrap();
    repo.git(["add", "."]);
    repo.prime();
    append(&odd.join("x"), "2");
    assert!(repo.same().contains("AM"));
    // Git ignores these paths if a monitor reports them.
    for name in ["back\\slash", "git~1", "d\\e/x", "d\\e/y", ".git\u{feff}x"] {
        let path = repo.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "").unwrap();
        assert!(repo.same().contains("??"));
        let all = ["status", "--porcelain", "-uall"];
        assert_eq!(repo.git(all), run(repo.plain().args(all)), "{name}");
    }
    // Git refuses to track `git~1`, and tracks the others. It uses their paths for its index.
    fs::remove_file(repo.path("git~1")).unwrap();
    for name in [".git.bak", "git~notes"] {
        repo.write(name, "");
    }
    repo.git(["add", "-f", "."]);
    repo.git(["commit", "-qm", "b"]);
    repo.prime();
    for (name, line) in [
        ("back\\slash", " M \"back\\\\slash\"\n"),
        (".git\u{feff}x", " M \".git\\357\\273\\277x\"\n"),
        (".git.bak", " M .git.bak\n"),
        ("git~notes", " M git~notes\n"),
    ] {
        repo.append(name, "2");
        assert_eq!(repo.same(), line);
        repo.git(["commit", "-qam", "c"]);
        repo.prime();
    }
    // A folder whose path git ignores for that cache.
    fs::rename(repo.path("d\\e"), repo.beside("d")).unwrap();
    assert_eq!(repo.same().matches(" D ").count(), 2);
    // Deep enough for a path of more than 4,095 bytes from the file system's root.
    let name = "n".repeat(200);
    let script = format!("for i in $(seq 18); do mkdir {name} && cd {name}; done; echo 1 >deep; echo 1 >../deep2");
    run(Command::new("sh").args(["-c", &script]).current_dir(&repo.root));
    repo.same();
    let deeper = format!("for i in $(seq 18); do cd {name}; done; echo 2 >>deep; echo 1 >deep3");
    run(Command::new("sh").args(["-c", &deeper]).current_dir(&repo.root));
    repo.same();
}
