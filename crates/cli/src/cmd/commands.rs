//! Options that `compare` and `slo` share: how a command is started and what goes around it.

use std::path::PathBuf;
use std::time::Duration;

use ascertain_engine::command::{Input, Output};
use ascertain_sys::process;

use crate::options::duration;

/// How commands are started.
#[derive(clap::Args, Clone, Debug)]
pub struct Starting {
    /// Trials whose observations are thrown away first
    #[arg(short, long, value_name = "N", default_value_t = 0, help_heading = "Commands")]
    pub warmup: u64,
    /// Run this before each observation, untimed (once for all commands, or one for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    pub prepare: Vec<String>,
    /// Run this once before the first trial (once for all commands, or one for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    pub setup: Vec<String>,
    /// Run this once after the last trial (once for all commands, or one for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    pub cleanup: Vec<String>,
    /// Give command lines to a shell, to sh or to the one named, instead of starting the program itself
    #[arg(long, value_name = "SHELL", num_args = 0..=1, require_equals = true, default_missing_value = "sh",
          conflicts_with_all = ["no_shell", "named_shell"], help_heading = "Commands")]
    shell: Option<String>,
    /// The same as --shell=SHELL
    #[arg(short = 'S', value_name = "SHELL", conflicts_with = "no_shell", help_heading = "Commands")]
    named_shell: Option<String>,
    /// Start the program itself, without a shell (the default; for those who are used to hyperfine)
    #[arg(short = 'N', long, help_heading = "Commands")]
    pub no_shell: bool,
    /// Standard input of each command, from a file; otherwise empty
    #[arg(long, value_name = "FILE", help_heading = "Commands")]
    pub input: Option<PathBuf>,
    /// Where each command's output goes: `null`, `pipe` (read and thrown away), `inherit`, or a file
    #[arg(long, value_name = "WHERE", default_value = "null", value_parser = output, help_heading = "Commands")]
    output: Output,
    /// Show what the commands print: the same as --output inherit
    #[arg(long, conflicts_with = "output", help_heading = "Commands")]
    show_output: bool,
    /// Stop an observation that takes longer: it took more than that, and no more is known of it
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Commands")]
    pub time_limit: Option<Duration>,
}

/// How long an observation may take where nobody said.
const TIME_LIMIT: Duration = Duration::from_secs(600);

impl Starting {
    /// Where standard input comes from.
    pub fn input(&self) -> Input {
        self.input.clone().map_or(Input::Null, Input::File)
    }

    /// The shell that command lines are given to. hyperfine has words for two of them.
    pub fn shell(&self) -> Option<String> {
        match self.shell.as_ref().or(self.named_shell.as_ref())?.as_str() {
            "none" => None,
            "default" => Some("sh".into()),
            shell => Some(shell.into()),
        }
    }

    /// `--shell bash 'a' 'b'` would measure a shell that has nothing to do.
    pub fn check_shell(&self, first: &str) -> anyhow::Result<()> {
        match &self.shell {
            Some(_) if is_shell(first) => anyhow::bail!("`{first}` is taken for a command; write --shell={first}"),
            _ => Ok(()),
        }
    }

    /// Where each command's output goes.
    pub fn output(&self) -> Output {
        if self.show_output { Output::Inherit } else { self.output.clone() }
    }

    /// The limit of each observation: a command that hangs must end the trial, not the day.
    pub fn time_limit(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }

    /// The hook of the command with this index: one for all, or one for each.
    pub fn hook(&self, hooks: &[String], name: &str, index: usize, commands: usize) -> anyhow::Result<Option<String>> {
        match hooks {
            [] => Ok(None),
            [one] => Ok(Some(one.clone())),
            many if many.len() == commands => Ok(Some(many[index].clone())),
            many => anyhow::bail!(
                "{} times --{name} for {commands} commands; give it once for all of them, or once for each",
                many.len()
            ),
        }
    }
}

/// One word is a command line; several are the program and its arguments, quoted where they need it.
pub fn command_line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => process::join(words),
    }
}

/// Whether the word names a shell, with or without its folder.
pub fn is_shell(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    ["sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"].contains(&name)
}

fn output(text: &str) -> Result<Output, String> {
    match text {
        "null" => Ok(Output::Null),
        "pipe" => Ok(Output::Pipe),
        "inherit" => Ok(Output::Inherit),
        "" => Err("write null, pipe, inherit or the name of a file".into()),
        file => Ok(Output::File(PathBuf::from(file))),
    }
}
