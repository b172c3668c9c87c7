//! Options that `compare` and `slo` share: how to start a command, and which commands to run before and after it.

use clap::ValueHint;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::bail;
use ascertain_engine::command::{Input, NamedCommand, Output};
use ascertain_sys::process;

use crate::options::duration;

/// Options that determine how commands are started.
#[derive(clap::Args, Clone, Debug)]
pub struct Starting {
    /// Number of trials at the start whose observations are discarded
    #[arg(short, long, value_name = "N", default_value_t = 0, help_heading = "Commands")]
    pub warmup: u64,
    /// Command to run before each observation, untimed (give this option once for all commands, or once for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    prepare: Vec<String>,
    /// Command to run after each observation, untimed (give this option once for all commands, or once for each)
    #[arg(short = 'C', long, value_name = "CMD", help_heading = "Commands")]
    conclude: Vec<String>,
    /// Command to run once before the first trial (give this option once for all commands, or once for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    setup: Vec<String>,
    /// Command to run once after the last trial (give this option once for all commands, or once for each)
    #[arg(short, long, value_name = "CMD", help_heading = "Commands")]
    cleanup: Vec<String>,
    /// Environment variables of the command and its hooks (--setup, --prepare, --conclude, --cleanup), such as `A=1
    /// B='x y'` (give this option once for all commands, or once for each)
    #[arg(long, value_name = "NAME=VALUE …", value_parser = variables, help_heading = "Commands")]
    env: Vec<Variables>,
    /// Record the values of the --env variables in the evidence, not only their names
    #[arg(long, requires = "env", help_heading = "Commands")]
    pub record_env: bool,
    /// Shell that runs the command lines, instead of starting programs directly; without a value, it is sh
    #[arg(short = 'S', long, value_name = "SHELL", num_args = 0..=1, require_equals = true, default_missing_value = "",
          conflicts_with = "no_shell", help_heading = "Commands")]
    shell: Option<String>,
    /// Start programs directly, without a shell (the default; accepted for compatibility with hyperfine)
    #[arg(short = 'N', long, help_heading = "Commands")]
    pub no_shell: bool,
    /// Standard input of each command: a file, or `null` for none [default: null]
    #[arg(long, value_name = "WHERE", value_parser = input, hide_default_value = true, default_value = "null",
          value_hint = ValueHint::FilePath, help_heading = "Commands")]
    pub input: Input,
    /// Destination of the output of the commands: `discard`, `null`, `pipe`, `inherit` or a file (give this option once
    /// for all commands, or once for each) [default: discard]
    ///
    /// `discard` throws the output away in a way that programs do not detect. `null` is /dev/null; some programs do
    /// less work if they detect it. `pipe` reads the output and throws it away. `inherit` shows the output here,
    /// instead of the progress line.
    #[arg(long, value_name = "WHERE", value_parser = output, value_hint = ValueHint::FilePath,
          help_heading = "Commands")]
    output: Vec<Output>,
    /// Show the output of the commands (the same as --output inherit)
    #[arg(long, conflicts_with = "output", help_heading = "Commands")]
    show_output: bool,
    /// Time limit of an observation; a command that exceeds it is stopped and counts as slower than the limit
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "Commands")]
    pub time_limit: Option<Duration>,
}

/// Default time limit of a command's execution, so that a command that hangs does not block the run for ever.
const TIME_LIMIT: Duration = Duration::from_secs(600);

impl Starting {
    /// Returns the shell that runs the command lines, or `None` if programs are started directly.
    pub fn shell(&self) -> Option<String> {
        self.shell.as_deref().and_then(named_shell)
    }

    /// Returns the shell, if any, and the commands to run. For compatibility with hyperfine, the word after `--shell`
    /// may be the shell. So if `--shell` has no value, and the first of `commands` is just the name of a shell, this
    /// command is taken as the shell. If the first command has such a name among other words, both meanings are
    /// possible, so this is an error.
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
                "`{first}` after --shell or -S could mean the shell or the first command; write {} if it is the \
                 shell, or --shell=sh to run it as a command in sh",
                process::join(&[format!("--shell={first}")])
            );
        }
        Ok((self.shell(), commands))
    }

    /// Returns the destination of the output for all commands. If each command has its own destination, returns the
    /// default.
    pub fn output(&self) -> Output {
        match self.output.as_slice() {
            _ if self.show_output => Output::Inherit,
            [one] => one.clone(),
            _ => Output::Discard,
        }
    }

    /// Returns the number of commands that the user expects. It is the largest number of values for any option that
    /// takes one value per command.
    pub fn given_for(&self) -> usize {
        let hooks = [&self.prepare, &self.conclude, &self.setup, &self.cleanup].map(Vec::len);
        hooks.into_iter().chain([self.env.len(), self.output.len()]).max().unwrap_or(0)
    }

    /// Returns the command with this index, out of `count` commands, with its own hooks, variables and output.
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
            revision: None,
        })
    }

    /// Returns the time limit of each observation.
    pub fn time_limit(&self) -> Duration {
        self.time_limit.unwrap_or(TIME_LIMIT)
    }
}

/// Returns the value of the option `name` for the command with this index, out of `count` commands. If the option was
/// given once, its value applies to all commands. `None` if it was not given.
fn one_of<'g, T>(given: &'g [T], name: &str, index: usize, count: usize) -> anyhow::Result<Option<&'g T>> {
    match given {
        [] => Ok(None),
        [one] => Ok(Some(one)),
        many if many.len() == count => Ok(Some(&many[index])),
        many => {
            bail!("--{name} is given {} times for {count} commands; give it once for all, or once for each", many.len())
        }
    }
}

/// Returns the command line for these words. A single word is a complete command line; several words are quoted and
/// joined.
pub fn command_line(words: &[String]) -> String {
    match words {
        [line] => line.clone(),
        words => process::join(words),
    }
}

/// Returns whether the word names a shell, with or without its folder.
pub fn is_shell(word: &str) -> bool {
    let name = word.rsplit('/').next().unwrap_or(word);
    ["sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"].contains(&name)
}

/// Returns the shell with this name; `sh` if the name is empty. Also handles hyperfine's `none` and `default`.
fn named_shell(name: &str) -> Option<String> {
    match name {
        "none" => None,
        "default" | "" => Some("sh".into()),
        shell => Some(shell.into()),
    }
}

/// Names and values of environment variables; `None` stands for a value that was not recorded.
pub type Variables = Vec<(String, Option<String>)>;

/// Parses assignments such as `A=1 B='x y'`.
pub fn variables(text: &str) -> Result<Variables, String> {
    let is_name = |name: &str| {
        name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_') && !name.starts_with(|c: char| c.is_ascii_digit())
    };
    let assignment = |word: &String| {
        let (name, value) = word.split_once('=')?;
        (is_name(name) && !name.is_empty()).then(|| (name.to_string(), Some(value.to_string())))
    };
    // With `env` in front, the assignments are arguments of a program. At the start of a command line, they would need
    // a shell.
    let words = process::split(&format!("env {text}"));
    let variables = words.ok().and_then(|words| words[1..].iter().map(assignment).collect());
    variables.ok_or_else(|| {
        format!("`{text}` does not set variables; write NAME=value …, and quote what a shell would interpret")
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
