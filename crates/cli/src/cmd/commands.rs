//! Options that `compare` and `slo` share: how a command is started and what goes around it.

use clap::ValueHint;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use ascertain_engine::command::{Input, NamedCommand, Output};
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
    prepare: Vec<String>,
    /// Run this after each observation, untimed (once for all commands, or one for each)
    #[arg(short = 'C', long, value_name = "CMD", help_heading = "Commands")]
    conclude: Vec<String>,
    /// Run this once before the first trial (once for all commands, or one for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    setup: Vec<String>,
    /// Run this once after the last trial (once for all commands, or one for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    cleanup: Vec<String>,
    /// Environment variables of the command and of what is run around it: `A=1 B='x y'` (once for all commands, or one
    /// for each)
    #[arg(long, value_name = "NAME=VALUE …", value_parser = variables, help_heading = "Commands")]
    env: Vec<Variables>,
    /// Record the values of --env in the evidence too; without this, only the names of the variables
    #[arg(long, requires = "env", help_heading = "Commands")]
    pub record_env: bool,
    /// Give command lines to a shell, to sh or to the one named, instead of starting the program itself
    #[arg(short = 'S', long, value_name = "SHELL", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with = "no_shell", help_heading = "Commands")]
    shell: Option<String>,
    /// Start the program itself, without a shell (the default; for those who are used to hyperfine)
    #[arg(short = 'N', long, help_heading = "Commands")]
    pub no_shell: bool,
    /// Standard input of each command: a file, or `null` for none [default: null]
    #[arg(long, value_name = "WHERE", value_parser = input, hide_default_value = true, default_value = "null",
          value_hint = ValueHint::FilePath, help_heading = "Commands")]
    pub input: Input,
    /// Destination of the output: `discard` (to a device that programs do not recognise), `null` (to /dev/null, where some
    /// programs do less work), `pipe` (read and thrown away), `inherit` (shown here instead of the progress line), or a
    /// file (once for all commands, or one for each) [default: discard]
    #[arg(long, value_name = "WHERE", value_parser = output, value_hint = ValueHint::FilePath,
          help_heading = "Commands")]
    output: Vec<Output>,
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
    /// The shell that command lines are given to.
    pub fn shell(&self) -> Option<String> {
        self.shell.as_deref().and_then(named_shell)
    }

    /// The same, with the commands. hyperfine has the name of a shell as a word of its own, where a command might stand
    /// too: a bare name is taken for the shell, and what may be either is refused.
    pub fn shell_and_commands<'c>(&self, commands: &'c [String]) -> anyhow::Result<(Option<String>, &'c [String])> {
        let is_bare = self.shell.as_deref() == Some("");
        let Some((first, rest)) = commands.split_first().filter(|_| is_bare) else {
            return Ok((self.shell(), commands));
        };
        if !rest.is_empty() && (is_shell(first) || ["none", "default"].contains(&first.as_str())) {
            return Ok((named_shell(first), rest));
        }
        if process::split(first).is_ok_and(|words| words.iter().any(|word| is_shell(word))) {
            bail!(
                "`{first}` after --shell or -S may be the shell or the first command: write {} for the shell, or \
                 --shell=sh where sh is the shell and this is a command",
                process::join(&[format!("--shell={first}")])
            );
        }
        Ok((self.shell(), commands))
    }

    /// Where the output of all commands goes.
    pub fn output(&self) -> Output {
        match self.output.as_slice() {
            _ if self.show_output => Output::Inherit,
            [one] => one.clone(),
            _ => Output::Discard,
        }
    }

    /// The most commands that an option was given for.
    pub fn given_for(&self) -> usize {
        let hooks = [&self.prepare, &self.conclude, &self.setup, &self.cleanup].map(Vec::len);
        hooks.into_iter().chain([self.env.len(), self.output.len()]).max().unwrap_or(0)
    }

    /// The command with this index of so many, with what goes around it.
    pub fn command(&self, name: &str, line: &str, (index, count): (usize, usize)) -> anyhow::Result<NamedCommand> {
        let hook = |hooks, name| Ok::<_, anyhow::Error>(one_of(hooks, name, index, count)?.cloned());
        Ok(NamedCommand {
            name: name.to_string(),
            line: line.to_string(),
            setup: hook(&self.setup, "setup")?,
            prepare: hook(&self.prepare, "prepare")?,
            conclude: hook(&self.conclude, "conclude")?,
            cleanup: hook(&self.cleanup, "cleanup")?,
            env: one_of(&self.env, "env", index, count)?.cloned().unwrap_or_default(),
            output: one_of(&self.output, "output", index, count)?.filter(|_| self.output.len() > 1).cloned(),
        })
    }

    /// The limit of each observation: a command that hangs must end the trial, not the day.
    pub fn time_limit(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }
}

/// What is given of the command with this index: once for all, or once for each.
fn one_of<'g, T>(given: &'g [T], name: &str, index: usize, count: usize) -> anyhow::Result<Option<&'g T>> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        many if many.len() == count => Ok(Some(&many[index])),
        many => {
            bail!("{} times --{name} for {count} commands; give it once for all of them, or once for each", many.len())
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

/// The shell with that name; hyperfine has words for two of them, and without a name it is sh.
fn named_shell(name: &str) -> Option<String> {
    match name {
        "none" => None,
        "default" | "" => Some("sh".into()),
        shell => Some(shell.into()),
    }
}

/// The environment variables that an option sets.
pub type Variables = Vec<(String, Option<String>)>;

/// Reads assignments as `A=1 B='x y'`.
pub fn variables(text: &str) -> Result<Variables, String> {
    let is_name = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let assignment = |word: &String| {
        let (name, value) = word.split_once('=')?;
        (is_name(name) && !name.is_empty()).then(|| (name.to_string(), Some(value.to_string())))
    };
    // As the arguments of a program: at the start of a line an assignment is for a shell.
    let words = process::split(&format!("env {text}"));
    let variables = words.ok().and_then(|words| words[1..].iter().map(assignment).collect());
    variables.ok_or_else(|| {
        format!("`{text}` sets no variables; write NAME=value …, with quotes around what a shell would act on")
    })
}

fn input(text: &str) -> Result<Input, String> {
    Ok(if text == "null" { Input::Null } else { Input::File(PathBuf::from(text)) })
}

fn output(text: &str) -> Result<Output, String> {
    match text {
        "discard" => Ok(Output::Discard),
        "null" => Ok(Output::Null),
        "pipe" => Ok(Output::Pipe),
        "inherit" => Ok(Output::Inherit),
        "" => Err("write discard, null, pipe, inherit or the name of a file".into()),
        file => Ok(Output::File(PathBuf::from(file))),
    }
}
