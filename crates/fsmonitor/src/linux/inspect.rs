//! The state of a monitor: the report of the daemon, and the settings of git that make it useless.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use super::client::Client;
use super::protocol::Request;
use super::{daemon, git, monitor, place, settings, walk};
use crate::{Answer, Error, MonitorStatus, Reason};

/// Estimated kernel memory of a watch, with the inode that it keeps in memory, in bytes.
const WATCH_BYTES: u64 = 1080;

/// Returns the state of the monitor for the worktree that contains `path`, and the reasons why it does not help. Starts
/// no daemon.
///
/// # Errors
/// [`Error::NotAWorktree`], [`Error::Bare`] or [`Error::Git`].
pub fn status(path: &Path) -> Result<MonitorStatus, Error> {
    let worktree = git::worktree(path)?;
    let mut status = MonitorStatus { root: worktree.root.clone(), ..MonitorStatus::default() };
    status.watches.limit = monitor::watch_limit();
    let own = walk::limit("user/max_inotify_instances").unwrap_or(u64::MAX);
    status.watches.instances_limit = own.min(walk::limit("fs/inotify/max_user_instances").unwrap_or(128));
    if let Some((value, _)) = settings::configured(&worktree)? {
        status.is_enabled = settings::own_hook(&value).is_some_and(|hook| hook.exists());
        status.configured = Some(String::from_utf8_lossy(&value).into_owned());
    }
    status.failure = daemon::failure(&worktree).map(|(why, _)| why);
    let asked = Client::connect(&worktree.git_dir).and_then(|mut client| {
        status.pid = u32::try_from(client.pid).ok();
        client.request(&Request::Status, Instant::now() + Duration::from_secs(2))
    });
    match asked {
        Ok(text) => read(&mut status, &String::from_utf8_lossy(&text)),
        Err(error) if status.pid.is_some() => {
            status.hints.push(format!("the daemon does not react ({error}); until it does, every answer is `/`"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            status.hints.push("the socket belongs to another user; its answers are not trusted".into());
        }
        Err(_) => {}
    }
    status.watches.kernel_bytes = (status.watches.folders + status.watches.files) * WATCH_BYTES;
    add_process(&mut status);
    add_hints(&mut status, &worktree)?;
    Ok(status)
}

fn read(status: &mut MonitorStatus, text: &str) {
    for (name, value) in text.lines().filter_map(|line| line.split_once('=')) {
        let number = || value.parse().unwrap_or(0);
        match name {
            "ready" => status.is_ready = value == "true",
            "walk_us" => status.walk_us = number(),
            "walks" => status.walks = number(),
            "age_s" => status.age_s = number(),
            "pending" => status.pending = number(),
            "folders" => status.watches.folders = number(),
            "files" => status.watches.files = number(),
            "linked" => status.links.files = number(),
            "always" => status.links.always = number(),
            "all_watched" => status.links.are_all_watched = value == "true",
            "nested" => status.nested = number(),
            "answers" => status.answers = number(),
            "everything" => status.everything.extend(
                value.split_once(' ').and_then(|(code, count)| Some((Reason::from_code(code)?, count.parse().ok()?))),
            ),
            "answer" => status.last.extend(answer(value)),
            _ => {}
        }
    }
}

fn answer(text: &str) -> Option<Answer> {
    let mut words = text.splitn(4, ' ');
    let (age_ms, paths) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let everything = Reason::from_code(words.next()?);
    Some(Answer { age_ms, paths, everything, command: words.next().unwrap_or_default().to_owned() })
}

/// Adds memory and CPU time of the daemon.
fn add_process(status: &mut MonitorStatus) {
    let Some(pid) = status.pid else { return };
    let file = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap_or_default();
    let value = |line: &str| line.split_whitespace().nth(1).and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    let rollup = file("smaps_rollup");
    status.memory_bytes = rollup.lines().find(|line| line.starts_with("Pss:")).map_or(0, value) * 1024;
    let schedstat = file("schedstat");
    let ran_ns = schedstat.split_whitespace().next().and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
    status.cpu_ms = ran_ns / 1_000_000;
}

fn add_hints(status: &mut MonitorStatus, worktree: &place::Worktree) -> Result<(), Error> {
    let is = |key: &str, wanted: &str| -> Result<bool, Error> {
        Ok(git::config(worktree, &["--get", key])?.is_some_and(|value| value.trim_ascii() == wanted.as_bytes()))
    };
    let mut add = |hint: &str| status.hints.push(hint.to_owned());
    match &status.configured {
        None => add("the monitor is not enabled in this repository"),
        Some(_) if status.is_enabled => {}
        Some(value) if settings::own_hook(value.as_bytes()).is_some() => {
            add("the hook is missing, so git looks at all files; enable the monitor again");
        }
        Some(_) => add("git uses another monitor"),
    }
    if !status.is_enabled {
        return Ok(());
    }
    if !is("core.fsmonitorHookVersion", "2")? {
        add("core.fsmonitorHookVersion is not 2, so git looks at all files; enable the monitor again");
    }
    if !is("core.untrackedCache", "true")? {
        add("core.untrackedCache is not true, so git searches all folders for untracked files");
    }
    let asks_for_all = |answer: &&Answer| {
        ["-uall", "--untracked-files=all", "-u "].iter().any(|option| format!("{} ", answer.command).contains(option))
    };
    let (count, all) = (status.last.len(), status.last.iter().filter(asks_for_all).count());
    let shows_all = is("status.showUntrackedFiles", "all")?;
    let has_others = status.last.iter().any(|answer| !answer.command.is_empty() && !asks_for_all(&answer));
    let removed = status.last.iter().skip(1).filter(|answer| answer.everything == Some(Reason::NoToken)).count();
    if all > 0 && !shows_all {
        add(&format!(
            "{all} of the last {count} questions came from `git status -uall`, which bypasses git's cache of untracked \
             files. Enable the monitor for all untracked files if your programs use that form"
        ));
    }
    if shows_all && has_others {
        add("status.showUntrackedFiles is `all`, so `git status -unormal` bypasses git's cache of untracked files");
    }
    if removed > 0 {
        add(&format!(
            "{removed} of the last {count} questions came without a token. A program removes the monitor's data from the \
             index each time, such as an editor that runs `git -c core.fsmonitor=false status`"
        ));
    }
    if status.last.iter().rev().take(3).filter(|answer| answer.paths > 5000).count() == 3 {
        add("the last answers were long: programs that read without storing the index never renew its token; run \
             `git status` once");
    }
    if status.links.always > 0 {
        add("tracked files with several names have no watch, and are in every answer");
    }
    Ok(())
}
