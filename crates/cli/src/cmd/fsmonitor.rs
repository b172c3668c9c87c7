//! `ascertain fsmonitor`: sets up, stops and queries the file system monitor for git.

use std::fmt::Write;
use std::io::{self, IsTerminal, Write as _};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::bail;
use ascertain::Ending;
use ascertain_engine::unit::Unit;
use ascertain_fsmonitor::{
    Changes, EnableOptions, Enabled, Error, MonitorStatus, Untracked, disable, enable, log, since,
};
use ascertain_report::plot::escape_controls;
use serde::Serialize;
use serde_json::json;

use crate::options::{Display, Format};
use crate::{errors, output};

const EXAMPLES: &str = "\
Examples:
  ascertain fsmonitor enable
      Make `git status` faster in this repository
  ascertain fsmonitor status
      Print what the monitor does, and why it may not help";

/// Watch a git worktree, so that `git status` is faster
///
/// Works with every git since 2.26, on Linux. Git calls a hook, which asks a daemon for the files that changed. If the
/// daemon does not know, git looks at all files, as it does without a monitor. The daemon starts when git needs it, and
/// ends after four hours without a question.
#[derive(clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    #[command(subcommand)]
    command: Subcommand,
}

#[derive(clap::Subcommand)]
enum Subcommand {
    Enable(EnableArgs),
    Disable(DisableArgs),
    Status(StatusArgs),
    Logs(LogsArgs),
    Since(SinceArgs),
}

/// The worktree of a command.
#[derive(clap::Args)]
struct Place {
    /// Folder in the worktree
    #[arg(short = 'C', long, value_name = "FOLDER", default_value = ".")]
    folder: PathBuf,
}

const ENABLE_EXAMPLES: &str = "\
Examples:
  ascertain fsmonitor enable
      Enable the monitor in this repository
  ascertain fsmonitor enable --untracked all
      Enable it for editors that call `git status -uall`";

/// Set git up so that it asks the monitor, and start the monitor
///
/// Sets core.fsmonitor, core.fsmonitorHookVersion and core.untrackedCache in the repository. `disable` restores the
/// earlier values. All worktrees of a repository share the settings; submodules are enabled one at a time.
#[derive(clap::Args)]
#[command(after_help = ENABLE_EXAMPLES)]
struct EnableArgs {
    #[command(flatten)]
    place: Place,
    /// Form of `git status` that can use git's cache of untracked files
    ///
    /// The cache serves only one form. With `all`, `enable` also sets status.showUntrackedFiles to
    /// `all`; `git status` then lists every untracked file.
    #[arg(long, value_name = "FORM", value_parser = crate::options::one_of(UNTRACKED), default_value = "normal")]
    untracked: Untracked,
    /// Replace another monitor that is already set, without asking
    #[arg(long)]
    replace: bool,
    /// Program that git is to call [default: ascertain-fsmonitor-hook in the folder of `ascertain`]
    #[arg(long, value_name = "FILE")]
    hook: Option<PathBuf>,
    #[command(flatten)]
    display: Display,
}

/// The words that `--untracked` accepts.
const UNTRACKED: &[crate::options::Word<Untracked>] = &[
    (&["normal"], "`git status` and `git status -unormal`", Untracked::Normal),
    (&["all"], "`git status -uall`, which VS Code calls", Untracked::All),
];

const DISABLE_EXAMPLES: &str = "\
Examples:
  ascertain fsmonitor disable
      Restore the settings of this repository";

/// Restore git's settings, and stop the monitor
#[derive(clap::Args)]
#[command(after_help = DISABLE_EXAMPLES)]
struct DisableArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    display: Display,
}

const STATUS_EXAMPLES: &str = "\
Examples:
  ascertain fsmonitor status
      Print the state of the monitor of this worktree";

/// Print what the monitor does, and why it may not help
///
/// Exit code 4: the monitor is not enabled here.
#[derive(clap::Args)]
#[command(after_help = STATUS_EXAMPLES)]
struct StatusArgs {
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    display: Display,
}

const LOGS_EXAMPLES: &str = "\
Examples:
  ascertain fsmonitor logs
      Print when the daemon started and ended, and why";

/// Print the log of the monitor
#[derive(clap::Args)]
#[command(after_help = LOGS_EXAMPLES)]
struct LogsArgs {
    #[command(flatten)]
    place: Place,
}

const SINCE_EXAMPLES: &str = "\
Examples:
  ascertain fsmonitor since ''
      Print a token for the first question
  ascertain fsmonitor since TOKEN
      List the files that changed since then";

/// List the files that changed since a token
///
/// Prints the token for the next question, and the paths, each with a NUL byte at its end. The path `/` means that any
/// file may have changed. A path `DIR/_` (or `_` for the root) means that the entries of the folder may have changed; a
/// file of this name need not exist. `--format json` gives the reason for `/`. The answer depends on the token alone,
/// so any number of programs can ask. The monitor need not be enabled for git.
#[derive(clap::Args)]
#[command(after_help = SINCE_EXAMPLES)]
struct SinceArgs {
    /// Token of the last answer; an empty one for the first question
    #[arg(value_name = "TOKEN")]
    token: std::ffi::OsString,
    #[command(flatten)]
    place: Place,
    #[command(flatten)]
    display: Display,
}

pub fn execute(args: &Args) -> anyhow::Result<Ending> {
    let done = match &args.command {
        Subcommand::Enable(args) => run_enable(args),
        Subcommand::Disable(args) => run_disable(args),
        Subcommand::Status(args) => run_status(args),
        Subcommand::Logs(args) => log(&args.place.folder).map_err(Into::into).and_then(|log| {
            output::print_for_people(&log)?;
            Ok(Ending::Done)
        }),
        Subcommand::Since(args) => run_since(args),
    };
    match done {
        Err(error) if error.downcast_ref().is_some_and(|error| matches!(error, Error::Unavailable)) => {
            output::note(&format!("error: {:#}", errors::with_option(error)));
            Ok(Ending::Nothing)
        }
        done => done,
    }
}

fn refuse_format(display: &Display) -> anyhow::Result<()> {
    if matches!(display.format, Format::Csv | Format::Markdown) {
        bail!("`fsmonitor` does not support this format; use --format table or --format json");
    }
    Ok(())
}

/// Prints a result as JSON, with the name of its schema, or as text.
fn show(
    display: &Display,
    schema: &'static str,
    result: &impl Serialize,
    text: impl FnOnce() -> String,
) -> anyhow::Result<()> {
    #[derive(Serialize)]
    struct Schema<'a, T> {
        schema: &'static str,
        #[serde(flatten)]
        result: &'a T,
    }
    match display.format {
        Format::Json => output::print(&format!("{:#}\n", serde_json::to_value(Schema { schema, result })?)),
        _ if display.quiet => Ok(()),
        _ => output::print_for_people(&text()),
    }
}

fn run_enable(args: &EnableArgs) -> anyhow::Result<Ending> {
    refuse_format(&args.display)?;
    let options = EnableOptions { hook: args.hook.clone(), replace: args.replace, untracked: args.untracked };
    let enabled = match enable(&args.place.folder, &options) {
        Err(Error::AlreadySet { value, origin }) if may_replace(&value, &origin) => {
            enable(&args.place.folder, &EnableOptions { replace: true, ..options })?
        }
        other => other?,
    };
    show(&args.display, "ascertain.fsmonitor-enable/1", &enabled, || enabled_text(&enabled))?;
    Ok(Ending::Done)
}

/// Asks the user, if there is one, whether another monitor may be replaced.
fn may_replace(value: &str, origin: &str) -> bool {
    if !io::stdin().is_terminal() || !io::stderr().is_terminal() {
        return false;
    }
    let value = escape_controls(value);
    let _ = write!(io::stderr(), "core.fsmonitor is already set to `{value}` ({origin}). Replace it here? [y/N] ");
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).is_ok() && ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

fn enabled_text(enabled: &Enabled) -> String {
    let path = |path: &Path| escape_controls(&path.to_string_lossy());
    let mut text = format!("the monitor is enabled in {}\n", path(&enabled.root));
    match &enabled.problem {
        None => text.push_str("the daemon runs, and the next `git status` uses it\n"),
        Some(problem) => {
            let _ = writeln!(text, "it cannot help yet: {}", escape_controls(problem));
        }
    }
    if enabled.worktrees > 1 {
        let _ = writeln!(text, "the settings apply to all {} worktrees of the repository", enabled.worktrees);
    }
    if enabled.submodules > 0 {
        let _ = writeln!(text, "{} submodules are not enabled; run this command in each one", enabled.submodules);
    }
    if enabled.has_builtin {
        text.push_str(BUILTIN);
    }
    text
}

const BUILTIN: &str = "\
this git has a monitor of its own (core.fsmonitor=true), which starts no process for a question
  choose git's own for the fastest answers
  choose this one if the tree has mounts or hard links, or if an older git also uses it
";

fn run_disable(args: &DisableArgs) -> anyhow::Result<Ending> {
    refuse_format(&args.display)?;
    let was_enabled = disable(&args.place.folder)?;
    let text = if was_enabled { "git's earlier settings are restored\n" } else { "the monitor was not enabled here\n" };
    show(&args.display, "ascertain.fsmonitor-disable/1", &json!({ "was_enabled": was_enabled }), || text.into())?;
    Ok(Ending::Done)
}

fn run_status(args: &StatusArgs) -> anyhow::Result<Ending> {
    refuse_format(&args.display)?;
    let status = ascertain_fsmonitor::status(&args.place.folder)?;
    show(&args.display, "ascertain.fsmonitor-status/1", &status, || status_text(&status))?;
    Ok(if status.is_enabled { Ending::Done } else { Ending::Nothing })
}

fn status_text(status: &MonitorStatus) -> String {
    let bytes = |count: u64| Unit::Byte.human(count as f64);
    let mut text = format!("worktree   {}\n", escape_controls(&status.root.to_string_lossy()));
    let _ = match (status.pid, &status.failure) {
        (Some(pid), _) => writeln!(
            text,
            "daemon     pid {pid}, {}, {} of memory, {} ms of CPU time in {} s",
            if status.is_ready { "ready" } else { "reading the folders" },
            bytes(status.memory_bytes),
            status.cpu_ms,
            status.age_s
        ),
        (None, Some(failure)) => writeln!(text, "daemon     not running: {}", escape_controls(failure)),
        (None, None) => writeln!(text, "daemon     not running; git starts it when it needs it"),
    };
    if status.pid.is_some() {
        let watches = &status.watches;
        let _ = writeln!(
            text,
            "watches    {} folders and {} files of {} allowed watches, {} in the kernel; each worktree takes one of {} \
             inotify instances",
            watches.folders,
            watches.files,
            watches.limit,
            bytes(watches.kernel_bytes),
            watches.instances_limit
        );
        let _ = writeln!(text, "journal    {} changed paths; folders read in {} µs", status.pending, status.walk_us);
        let _ = writeln!(
            text,
            "links      {} tracked files with several names, {} of them in every answer",
            status.links.files, status.links.always
        );
        answers_text(status, &mut text);
    }
    for hint in &status.hints {
        let _ = writeln!(text, "note       {}", escape_controls(hint));
    }
    text
}

fn answers_text(status: &MonitorStatus, text: &mut String) {
    let everything: u64 = status.everything.values().sum();
    let _ = writeln!(text, "answers    {}, of which {everything} were `/` (anything may have changed)", status.answers);
    for (reason, count) in &status.everything {
        let _ = writeln!(text, "           {count} because {}", reason.explanation());
    }
    for answer in status.last.iter().rev().take(8) {
        let content = answer
            .everything
            .map_or_else(|| format!("{} paths", answer.paths), |reason| format!("/ ({})", reason.code()));
        let age = Unit::Nanosecond.human(answer.age_ms as f64 * 1e6);
        let _ = writeln!(text, "           {age} ago: {content}  {}", escape_controls(&answer.command));
    }
}

fn run_since(args: &SinceArgs) -> anyhow::Result<Ending> {
    refuse_format(&args.display)?;
    let (token, changes) = since(&args.place.folder, args.token.as_bytes())?;
    if args.display.format == Format::Json {
        let lossy = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        let (paths, everything) = match &changes {
            Changes::Everything(reason) => (None, Some(reason)),
            Changes::Paths(paths) => (Some(paths.iter().map(lossy).collect::<Vec<_>>()), None),
        };
        let json = json!({ "token": lossy(&token), "paths": paths, "everything": everything });
        show(&args.display, "ascertain.fsmonitor-since/1", &json, String::new)?;
        return Ok(Ending::Done);
    }
    let paths = match changes {
        Changes::Everything(_) => vec![b"/".to_vec()],
        Changes::Paths(paths) => paths,
    };
    // A path need not be UTF-8, so the bytes are written as they are.
    let text = [token].into_iter().chain(paths).flat_map(|part| [part, vec![0]].concat()).collect::<Vec<u8>>();
    let written = io::stdout().lock().write_all(&text);
    written.or_else(|error| if error.kind() == io::ErrorKind::BrokenPipe { Ok(()) } else { Err(error) })?;
    Ok(Ending::Done)
}
