//! Command lines that are ready to run. Their parameters are replaced, and each line is split into words or passed to a
//! shell. Every trial adds its own environment variables.

use std::borrow::Cow;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{self, Command, Prepared, SplitError, Usage};
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::CommandError;
use crate::command::{CommandSet, Input, NamedCommand, Output};
use crate::experiment::{Point, TargetError};

/// Placeholder in a command line. Each trial replaces it with a recorded request, which is an input of the command.
pub(super) const REQUEST: &str = "{request}";
/// Name of the environment variable that contains the request, for command lines that a shell runs.
const VARIABLE: &str = "ASCERTAIN_REQUEST";
/// Names of the environment variables that contain the index of the trial, from 0; in warm-up trials `warmup-0`,
/// `warmup-1` and so on. Scripts for hyperfine use the second name.
const ITERATION: [&str; 2] = ["ASCERTAIN_ITERATION", "HYPERFINE_ITERATION"];
/// The shell for set-ups and other command lines that run before or after a measured command. It is used if such a line
/// needs a shell and [`CommandSet::shell`] is `None`.
const SHELL: &str = "sh";

/// Everything that may differ from one execution of a command line to the next.
#[derive(Clone, Copy, Default)]
pub(super) struct Invocation<'t> {
    /// The recorded request, if the commands take requests.
    pub request: Option<&'t str>,
    /// The index of the trial, as text.
    pub iteration: Option<&'t str>,
    /// `true` if the last bytes of standard error are kept for messages, even if the command's output is otherwise
    /// discarded.
    pub keeps_output: bool,
    /// `true` if discarded output goes to a device that programs do not recognise, instead of `/dev/null`.
    pub is_neutral: bool,
}

/// A command line with its parameters replaced by levels, ready to run.
#[derive(Clone)]
pub(super) struct CommandLine {
    what: &'static str,
    /// The command line with its parameters replaced, as shown in messages.
    pub text: String,
    command: Command,
    request: Option<RequestPlace>,
    is_counted: bool,
}

/// The way in which a command receives its request.
#[derive(Clone, Copy, PartialEq)]
enum RequestPlace {
    Arguments,
    Environment,
    StandardInput,
}

impl CommandLine {
    /// Returns the line of a command that is measured. `point` has the levels that replace the parameters.
    ///
    /// # Errors
    /// If the command line cannot be split into words.
    pub fn measured(set: &CommandSet, named: &NamedCommand, point: &Point) -> Result<CommandLine, CommandError> {
        let text = point.fill(&named.line);
        let request = set.requests.as_ref().map(|_| match (text.contains(REQUEST), &set.shell) {
            (false, _) => RequestPlace::StandardInput,
            (true, None) => RequestPlace::Arguments,
            (true, Some(_)) => RequestPlace::Environment,
        });
        let script = match request {
            Some(RequestPlace::Environment) => Cow::Owned(request_by_variable(&text)),
            _ => Cow::Borrowed(&*text),
        };
        let mut command = command("command", set.shell.as_deref(), &script)?;
        command.env = environment(named, point);
        command.stdin = match &set.input {
            Input::Null => process::Input::Null,
            Input::File(path) => process::Input::File(path.clone()),
        };
        command.stdout = if set.printed.is_empty() { output_of(set, named).clone() } else { Output::Memory };
        command.stderr = command.stdout.clone();
        Ok(CommandLine { what: "command", text, command, request, is_counted: set.counters })
    }

    /// Returns a command line that runs before or after a command. `what` is its role in messages, such as `set-up`.
    /// Its output is shown if the command's output is shown. If the line needs a shell, it runs in one, even if the
    /// user requested no shell. The start of a shell does no harm here, because the time of this line is not measured.
    ///
    /// # Errors
    /// If the command line cannot be split into words.
    pub fn hook(
        set: &CommandSet,
        named: &NamedCommand,
        what: &'static str,
        line: &str,
        point: &Point,
    ) -> Result<CommandLine, CommandError> {
        let text = point.fill(line);
        let is_script =
            || matches!(process::split(&text), Err(SplitError::ShellCharacter { .. } | SplitError::ShellWord { .. }));
        let shell = set.shell.as_deref().or_else(|| is_script().then_some(SHELL));
        let mut command = command(what, shell, &text)?;
        command.env = environment(named, point);
        command.stdout = match output_of(set, named) {
            Output::Inherit => Output::Inherit,
            _ => Output::Memory,
        };
        command.stderr = command.stdout.clone();
        Ok(CommandLine { what, text, command, request: None, is_counted: false })
    }

    /// Returns whether the command receives its requests on standard input.
    pub fn reads_requests(&self) -> bool {
        self.request == Some(RequestPlace::StandardInput)
    }

    /// Returns whether the output of the command goes to `/dev/null`, which programs may recognise.
    pub fn discards_to_null(&self) -> bool {
        self.command.stdout == Output::Null
    }

    /// Returns the program to start for one execution, with its arguments, environment, inputs and outputs.
    pub fn command(&self, Invocation { request, iteration, keeps_output, is_neutral }: Invocation) -> Command {
        let mut command = self.command.clone();
        let variable = |iteration: &str| ITERATION.map(|name| (name.into(), iteration.into()));
        command.env.extend(iteration.map(variable).into_iter().flatten());
        if is_neutral && self.discards_to_null() {
            (command.stdout, command.stderr) = (Output::Discard, Output::Discard);
        }
        if keeps_output && [Output::Null, Output::Discard].contains(&command.stderr) {
            command.stderr = Output::Memory;
        }
        match (self.request, request) {
            (Some(RequestPlace::Arguments), Some(request)) => {
                for word in &mut command.args {
                    *word = word.to_string_lossy().replace(REQUEST, request).into();
                }
            }
            (Some(RequestPlace::Environment), Some(request)) => {
                command.env.push((VARIABLE.into(), request.into()));
            }
            (Some(RequestPlace::StandardInput), Some(request)) => {
                command.stdin = process::Input::Bytes(format!("{request}\n").into_bytes());
            }
            (_, None) | (None, _) => {}
        }
        command
    }

    /// Checks that the program exists.
    ///
    /// # Errors
    /// If the program does not exist or cannot be started.
    pub fn find_program(&self, invocation: Invocation) -> Result<(), CommandError> {
        self.prepare(invocation).map(drop)
    }

    fn prepare(&self, invocation: Invocation) -> Result<Prepared, CommandError> {
        Prepared::new(&self.command(invocation)).map_err(|reason| CommandError::Program {
            what: self.what,
            line: self.text.clone(),
            reason,
        })
    }

    /// Runs the command until it ends or reaches its time limit. Returns the resources that it used, and the last bytes
    /// of its output, which are empty if they were not kept.
    ///
    /// The command is prepared anew for each execution. A small process starts the command and is assigned to a CPU. If
    /// that process were kept, one of two equal commands might always run on the busier CPU. So nothing that belongs to
    /// an arm may last from one execution to the next.
    ///
    /// # Errors
    /// If the command cannot be started, or if it is interrupted.
    pub fn run(
        &self,
        invocation: Invocation,
        time_limit: Option<Duration>,
        stop: &Stop,
    ) -> Result<(Usage, LastOutput), TargetError> {
        let prepared = self.prepare(invocation).map_err(|error| self.failed(error.to_string()))?;
        let prepared = if self.is_counted { prepared.counting() } else { prepared };
        let prepared = if self.discards_to_null() { prepared.counting_reads() } else { prepared };
        let prepared = prepared.stopping_with(stop);
        let usage = prepared.run(time_limit).map_err(|error| match error {
            ascertain_sys::Error::Interrupted => TargetError::Interrupted,
            error => self.failed(format!("{}: {error}", self.name())),
        })?;
        let is_shown = matches!(self.command.stderr, Output::Inherit | Output::Memory);
        Ok((usage, LastOutput::new(prepared.captured_output(), is_shown)))
    }

    /// Returns the error for a failure of the command. `how` describes the failure in words that include the command's
    /// name.
    pub fn failed(&self, how: String) -> TargetError {
        TargetError::Command { line: self.text.clone(), how }
    }

    /// Returns the existing files that the command reads by name: its program, its arguments, and names in a shell
    /// script. Files that are only written to are left out.
    pub fn files(&self) -> Vec<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let words: Vec<&str> = self.command.args.iter().filter_map(|word| word.to_str()).collect();
        let read = words.iter().flat_map(|word| {
            let (first, written) = word.split_once('>').unwrap_or((word, ""));
            let behind = written.split('>').filter_map(|text| text.trim_start().split_once(char::is_whitespace));
            behind.map(|(_, rest)| rest).chain([first])
        });
        let parts = read.flat_map(|text| text.split(|c: char| c.is_whitespace() || "'\"`;&|<()$={},".contains(c)));
        let named =
            parts.chain(words.iter().copied()).chain(self.command.program.to_str()).filter(|word| !word.is_empty());
        let places = named.flat_map(|word| {
            let found = std::env::split_paths(&path).filter(|_| !word.contains('/')).map(|folder| folder.join(word));
            found.chain([PathBuf::from(word)]).collect::<Vec<_>>()
        });
        let mut files: Vec<PathBuf> = places.filter(|place| place.is_file()).collect();
        files.sort_unstable();
        files.dedup();
        files
    }

    /// Returns the name of the command in messages, such as `command `sort x``.
    pub fn name(&self) -> String {
        format!("{} `{}`", self.what, self.text)
    }
}

/// The last part of a command's output; empty if it was not kept.
pub(super) struct LastOutput {
    /// The last lines of the output, for messages.
    text: String,
    is_shown: bool,
    /// The last bytes of the output.
    pub bytes: Vec<u8>,
}

impl LastOutput {
    /// Maximum number of lines of output in a message.
    const LINES: usize = 3;
    /// Maximum number of characters of output in a message.
    const CHARACTERS: usize = 300;
    /// Maximum number of bytes from which the lines for messages are taken, counted from the end of the output.
    const BYTES: usize = 1024;

    fn new(bytes: Vec<u8>, is_shown: bool) -> LastOutput {
        let end = String::from_utf8_lossy(&bytes[bytes.len().saturating_sub(Self::BYTES)..]);
        let lines: Vec<&str> = end.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(Self::LINES)..].join(" / ");
        let surplus = last.chars().count().saturating_sub(Self::CHARACTERS);
        let cut = if surplus > 0 { "…" } else { "" };
        let text = cut.to_string() + &last.chars().skip(surplus).collect::<String>();
        LastOutput { text, is_shown, bytes }
    }

    /// Returns the last lines of the output, if there are any.
    pub fn text(&self) -> Option<String> {
        Some(self.text.clone()).filter(|text| !text.is_empty())
    }

    /// Returns the last lines of the output as a clause that can be appended to a sentence.
    pub fn output_clause(&self) -> String {
        match &*self.text {
            "" => "; it printed nothing".into(),
            text => format!("; the output ends with `{text}`"),
        }
    }

    /// Returns the last lines of the output as a clause to append to the description of a failure. If no output was
    /// kept, the clause advises the user to show the output. It does not say how, because this differs between options
    /// and claims files.
    pub fn failure_clause(&self) -> String {
        match &*self.text {
            "" if self.is_shown => String::new(),
            "" => "; show its output to see the reason".into(),
            text => format!("; its output ends with `{text}`"),
        }
    }
}

/// Returns the destination of this command's output: the command's own destination, or else the destination of the
/// whole set.
pub(super) fn output_of<'s>(set: &'s CommandSet, command: &'s NamedCommand) -> &'s Output {
    command.output.as_ref().unwrap_or(&set.output)
}

fn environment(named: &NamedCommand, point: &Point) -> Vec<(OsString, OsString)> {
    named.variables().map(|(name, value)| (name.into(), point.fill(value).into())).collect()
}

/// Splits a command line into program and arguments, or returns the call of the shell that runs it.
fn command(what: &'static str, shell: Option<&str>, line: &str) -> Result<Command, CommandError> {
    let words = |what, line: &str| {
        process::split(line).map_err(|reason| CommandError::Words { what, line: line.to_string(), reason })
    };
    let mut words = match shell {
        None => words(what, line)?,
        Some(_) if line.trim().is_empty() => {
            return Err(CommandError::Words { what, line: line.to_string(), reason: SplitError::Empty });
        }
        Some(shell) => [words("shell", shell)?, vec!["-c".to_string(), line.to_string()]].concat(),
    };
    let args = words.split_off(1).into_iter().map(Into::into).collect();
    Ok(Command { program: words.remove(0).into(), args, ..Command::default() })
}

/// Returns a shell script in which the environment variable [`VARIABLE`] replaces `{request}`. The variable is quoted,
/// so that the request is a single word.
///
/// The request itself is never part of the script, so the shell does not interpret its contents. Quotes around the
/// placeholder are closed before it and reopened after it.
fn request_by_variable(script: &str) -> String {
    let mut result = String::with_capacity(script.len() + VARIABLE.len());
    let mut quote = None;
    let mut rest = script;
    while let Some(character) = rest.chars().next() {
        if let Some(behind) = rest.strip_prefix(REQUEST) {
            let quote = quote.map_or(String::new(), String::from);
            result.push_str(&format!("{quote}\"${VARIABLE}\"{quote}"));
            rest = behind;
            continue;
        }
        let mut taken = character.len_utf8();
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if open == character => quote = None,
            // The next character is escaped, so it is not a quote.
            (None | Some('"'), '\\') => taken += rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        result.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    result
}

/// The command lines that run before and after a measured command. Set-up and clean-up run once. The other lines run
/// for each observation.
pub(super) struct HookLines {
    pub setup: Option<CommandLine>,
    pub prepare: Option<CommandLine>,
    pub conclude: Option<CommandLine>,
    pub cleanup: Option<CommandLine>,
}

/// The identity of a set-up: two commands with the same key share one set-up. The key has the command lines of set-up
/// and clean-up, and the environment variables, all with their parameters replaced.
pub(super) type SetupKey = ([Option<String>; 2], Vec<(OsString, OsString)>);

impl HookLines {
    /// Returns the lines that run before and after a command. `point` has the levels that replace the parameters.
    ///
    /// # Errors
    /// If a line cannot be split into words.
    pub fn new(set: &CommandSet, command: &NamedCommand, point: &Point) -> Result<HookLines, CommandError> {
        let line = |what, line: &Option<String>| {
            line.as_ref().map(|line| CommandLine::hook(set, command, what, line, point)).transpose()
        };
        Ok(HookLines {
            setup: line("set-up", &command.setup)?,
            prepare: line("preparation", &command.prepare)?,
            conclude: line("conclusion", &command.conclude)?,
            cleanup: line("clean-up", &command.cleanup)?,
        })
    }

    pub fn key(&self) -> SetupKey {
        let lines = [&self.setup, &self.cleanup].map(Option::as_ref);
        let env = lines.into_iter().flatten().next().map(|line| line.command.env.clone());
        (lines.map(|line| line.map(|line| line.text.clone())), env.unwrap_or_default())
    }
}

/// Recorded requests, which the trials use in passes. Each pass uses every request once, in random order. With N
/// requests, trial n belongs to pass n / N; all its arms use the request at index n mod N of that pass.
pub(super) struct Requests {
    texts: Vec<String>,
    seed: u64,
    pass: u64,
    order: Vec<usize>,
}

impl Requests {
    /// Creates the list of requests from their texts. There must be at least one request.
    pub fn new(texts: Vec<String>, seed: u64) -> Self {
        let order = order(texts.len(), seed, 0);
        Requests { texts, seed, pass: 0, order }
    }

    /// Returns the request for the trial with this index.
    pub fn get(&mut self, trial: u64) -> &str {
        let count = self.texts.len() as u64;
        let (pass, place) = (trial / count, trial % count);
        if pass != self.pass {
            self.pass = pass;
            self.order = order(self.texts.len(), self.seed, pass);
        }
        &self.texts[self.order[place as usize]]
    }
}

/// Returns the order in which one pass uses the `count` requests, as their indices. It only depends on the seed and the
/// pass.
fn order(count: usize, seed: u64, pass: u64) -> Vec<usize> {
    // Multiplication by an odd factor gives each pass another seed. These seeds are similar, which does no harm: the
    // generator mixes their bits.
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(!seed ^ pass.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let mut order: Vec<usize> = (0..count).collect();
    order.shuffle(&mut rng);
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> Point {
        Point::default().with("n", 4).with("file", "a b.txt").with("braces", "{n}")
    }

    #[test]
    fn parameters_are_replaced_once_and_other_braces_stay() {
        for (line, filled) in [
            ("sort -n{n} {file}", "sort -n4 a b.txt"),
            ("find -exec {} {other} {n", "find -exec {} {other} {n"),
            ("{{n}} {{n}", "{4} {4"),
            ("{braces}", "{n}"),
            ("", ""),
            ("ü{n}é", "ü4é"),
        ] {
            assert_eq!(point().fill(line), filled, "{line}");
        }
    }

    #[test]
    fn a_request_in_a_script_is_one_word_wherever_it_stands() {
        for (script, by_variable) in [
            ("curl {request}", r#"curl "$ASCERTAIN_REQUEST""#),
            (r#"curl "http://x/{request}?a""#, r#"curl "http://x/""$ASCERTAIN_REQUEST""?a""#),
            ("curl 'x/{request}'", r#"curl 'x/'"$ASCERTAIN_REQUEST"''"#),
            (r"echo \'{request}", r#"echo \'"$ASCERTAIN_REQUEST""#),
            (r#"echo "\"{request}""#, r#"echo "\"""$ASCERTAIN_REQUEST""""#),
            (r"echo '\'{request}", r#"echo '\'"$ASCERTAIN_REQUEST""#),
            (r"echo ü\", r"echo ü\"),
        ] {
            assert_eq!(request_by_variable(script), by_variable, "{script}");
        }
    }

    const COUNT: u64 = 40;

    fn requests(seed: u64) -> Requests {
        Requests::new((0..COUNT).map(|number| number.to_string()).collect(), seed)
    }

    fn pass(requests: &mut Requests, pass: u64) -> Vec<String> {
        (0..COUNT).map(|place| requests.get(pass * COUNT + place).to_string()).collect()
    }

    #[test]
    fn every_pass_takes_each_request_once_in_another_order() {
        let mut requests = requests(7);
        let passes: Vec<Vec<String>> = (0..5).map(|number| pass(&mut requests, number)).collect();
        for (number, taken) in passes.iter().enumerate() {
            let mut sorted: Vec<u64> = taken.iter().map(|text| text.parse().unwrap()).collect();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..COUNT).collect::<Vec<_>>());
            assert!(!passes[..number].contains(taken), "pass {number} repeats an order");
        }
    }

    #[test]
    fn the_order_depends_on_seed_and_pass_only() {
        let (mut here, mut there) = (requests(7), requests(7));
        let later = pass(&mut here, 3);
        assert_eq!(pass(&mut there, 0), pass(&mut here, 0), "whatever was asked before");
        assert_eq!(pass(&mut there, 3), later);
        assert_ne!(pass(&mut requests(8), 3), later);
    }

    #[test]
    fn the_last_trial_number_is_as_good_as_any() {
        assert!(requests(1).get(u64::MAX).parse::<u64>().unwrap() < COUNT);
    }
}
