//! Command lines made ready: parameters replaced, cut into words or given to a shell, with what a trial adds.

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

/// Stands for the recorded request.
pub(super) const REQUEST: &str = "{request}";
/// The environment variable in which a shell gets the request.
const VARIABLE: &str = "ASCERTAIN_REQUEST";
/// The environment variables that hold the trial's number, from 0, or `warmup-0` and so on; the second is hyperfine's.
const ITERATION: [&str; 2] = ["ASCERTAIN_ITERATION", "HYPERFINE_ITERATION"];
/// The shell of what goes around commands, where they have none and it needs one.
const SHELL: &str = "sh";

/// What a trial adds to a command line.
#[derive(Clone, Copy, Default)]
pub(super) struct Occasion<'t> {
    /// The recorded request.
    pub request: Option<&'t str>,
    /// The trial's number in words.
    pub iteration: Option<&'t str>,
    /// Whether its last words are kept, where they would go nowhere.
    pub is_heard: bool,
    /// Whether the output is discarded by a device that is not recognised, in place of `/dev/null`.
    pub is_neutral: bool,
}

/// A command line at one point.
pub(super) struct CommandLine {
    what: &'static str,
    /// As it is shown: with its parameters replaced.
    pub text: String,
    command: Command,
    request: Option<RequestPlace>,
    is_counted: bool,
}

/// Where a command gets its request.
#[derive(Clone, Copy, PartialEq)]
enum RequestPlace {
    Arguments,
    Environment,
    StandardInput,
}

impl CommandLine {
    /// The line of a command that is measured.
    ///
    /// # Errors
    /// When it can't be cut into words.
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

    /// A line that is run before or after; `what` says which in messages. Its output is seen when that of the command
    /// is. Where the line means something to a shell it gets one: that is not timed.
    ///
    /// # Errors
    /// When it can't be cut into words.
    pub fn around(
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

    /// Whether it gets its requests on standard input.
    pub fn reads_requests(&self) -> bool {
        self.request == Some(RequestPlace::StandardInput)
    }

    /// Returns whether output goes to `/dev/null`, which programs may recognise.
    pub fn discards_to_null(&self) -> bool {
        self.command.stdout == Output::Null
    }

    /// The command in a trial.
    pub fn command(&self, Occasion { request, iteration, is_heard, is_neutral }: Occasion) -> Command {
        let mut command = self.command.clone();
        let variable = |iteration: &str| ITERATION.map(|name| (name.into(), iteration.into()));
        command.env.extend(iteration.map(variable).into_iter().flatten());
        if is_neutral && self.discards_to_null() {
            (command.stdout, command.stderr) = (Output::Discard, Output::Discard);
        }
        if is_heard && [Output::Null, Output::Discard].contains(&command.stderr) {
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

    /// Looks for the program.
    ///
    /// # Errors
    /// When it is not there, or can't be started.
    pub fn find_program(&self, occasion: Occasion) -> Result<(), CommandError> {
        self.prepare(occasion).map(drop)
    }

    fn prepare(&self, occasion: Occasion) -> Result<Prepared, CommandError> {
        Prepared::new(&self.command(occasion)).map_err(|reason| CommandError::Program {
            what: self.what,
            line: self.text.clone(),
            reason,
        })
    }

    /// Runs the command to its end, or to its time limit. Its last words are given where they were kept.
    ///
    /// It is prepared anew each time: the small process that starts a command has a place on the machine,
    /// and one that were kept would make of two equal commands one on the busy CPU and one on the other,
    /// trial after trial. Nothing that lasts may belong to an arm.
    ///
    /// # Errors
    /// When it can't be started, and when somebody asked for the end.
    pub fn run(
        &self,
        occasion: Occasion,
        time_limit: Option<Duration>,
        stop: &Stop,
    ) -> Result<(Usage, LastWords), TargetError> {
        let prepared = self.prepare(occasion).map_err(|error| self.failed(error.to_string()))?;
        let prepared = if self.is_counted { prepared.counting() } else { prepared };
        let prepared = if self.discards_to_null() { prepared.counting_reads() } else { prepared };
        let prepared = prepared.stopping_with(stop);
        let usage = prepared.run(time_limit).map_err(|error| match error {
            ascertain_sys::Error::Interrupted => TargetError::Interrupted,
            error => self.failed(format!("{}: {error}", self.called())),
        })?;
        let is_shown = matches!(self.command.stderr, Output::Inherit | Output::Memory);
        Ok((usage, LastWords::of(prepared.said(), is_shown)))
    }

    /// That it failed; `how` calls it by its name.
    pub fn failed(&self, how: String) -> TargetError {
        TargetError::Command { line: self.text.clone(), how }
    }

    /// The files that are there and that the line reads by name: its program, its arguments, and what looks like one in
    /// a script, unless that is written to.
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

    /// `command `sort x``: how messages call it.
    pub fn called(&self) -> String {
        format!("{} `{}`", self.what, self.text)
    }
}

/// What a command said last: nothing where nobody listened.
pub(super) struct LastWords {
    said: String,
    is_shown: bool,
    /// The end of its output, if that was kept.
    pub output: Vec<u8>,
}

impl LastWords {
    /// So many lines are shown,
    const LINES: usize = 3;
    /// and so many characters.
    const CHARACTERS: usize = 300;
    /// of so many bytes.
    const BYTES: usize = 1024;

    fn of(output: Vec<u8>, is_shown: bool) -> LastWords {
        let said = String::from_utf8_lossy(&output[output.len().saturating_sub(Self::BYTES)..]);
        let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        let last = lines[lines.len().saturating_sub(Self::LINES)..].join(" / ");
        let surplus = last.chars().count().saturating_sub(Self::CHARACTERS);
        let cut = if surplus > 0 { "…" } else { "" };
        let said = cut.to_string() + &last.chars().skip(surplus).collect::<String>();
        LastWords { said, is_shown, output }
    }

    /// What it said, if it was heard.
    pub fn said(&self) -> Option<String> {
        Some(self.said.clone()).filter(|said| !said.is_empty())
    }

    /// The end of its output, as messages continue with it.
    pub fn as_end(&self) -> String {
        match &*self.said {
            "" => "; it printed nothing".into(),
            said => format!("; the output ends with `{said}`"),
        }
    }

    /// How a failure goes on: what it said, or how to hear it, which is the same for a command of a file of claims.
    pub fn or_advice(&self) -> String {
        match &*self.said {
            "" if self.is_shown => String::new(),
            "" => "; `compare --show-output` shows what it says".into(),
            said => format!(", saying `{said}`"),
        }
    }
}

/// Where a command's output goes.
pub(super) fn output_of<'s>(set: &'s CommandSet, command: &'s NamedCommand) -> &'s Output {
    command.output.as_ref().unwrap_or(&set.output)
}

fn environment(named: &NamedCommand, point: &Point) -> Vec<(OsString, OsString)> {
    named.variables().map(|(name, value)| (name.into(), point.fill(value).into())).collect()
}

/// The words of a command line, or of the shell that it is given to.
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

/// A shell script in which `{request}` is the value of a variable, as one word.
///
/// The request itself is never a part of the script: whatever it holds, the shell does not act on
/// it. Where the place stands within quotes they are closed before it and opened again behind.
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
            // The next character is quoted, and no quote itself.
            (None | Some('"'), '\\') => taken += rest[1..].chars().next().map_or(0, char::len_utf8),
            _ => {}
        }
        result.push_str(&rest[..taken]);
        rest = &rest[taken..];
    }
    result
}

/// What goes around a command: a set-up and the clean-up that belongs to it, and what is run around each observation.
pub(super) struct Around {
    pub setup: Option<CommandLine>,
    pub prepare: Option<CommandLine>,
    pub conclude: Option<CommandLine>,
    pub cleanup: Option<CommandLine>,
}

/// Set-ups are the same when their lines, those of their clean-ups, and the variables are: parameters replaced.
pub(super) type Key = ([Option<String>; 2], Vec<(OsString, OsString)>);

impl Around {
    /// What goes around a command at a point.
    ///
    /// # Errors
    /// When a line can't be cut into words.
    pub fn new(set: &CommandSet, command: &NamedCommand, point: &Point) -> Result<Around, CommandError> {
        let line = |what, line: &Option<String>| {
            line.as_ref().map(|line| CommandLine::around(set, command, what, line, point)).transpose()
        };
        Ok(Around {
            setup: line("set-up", &command.setup)?,
            prepare: line("preparation", &command.prepare)?,
            conclude: line("conclusion", &command.conclude)?,
            cleanup: line("clean-up", &command.cleanup)?,
        })
    }

    pub fn key(&self) -> Key {
        let lines = [&self.setup, &self.cleanup].map(Option::as_ref);
        let env = lines.into_iter().flatten().next().map(|line| line.command.env.clone());
        (lines.map(|line| line.map(|line| line.text.clone())), env.unwrap_or_default())
    }
}

/// Recorded requests. Trial n takes the request at place n mod N of pass n / N, so that each pass
/// takes every request once; all arms of a trial take the same.
pub(super) struct Requests {
    texts: Vec<String>,
    seed: u64,
    pass: u64,
    order: Vec<usize>,
}

impl Requests {
    /// The texts are not empty.
    pub fn new(texts: Vec<String>, seed: u64) -> Self {
        let order = order(texts.len(), seed, 0);
        Requests { texts, seed, pass: 0, order }
    }

    /// The request of a trial.
    pub fn of(&mut self, trial: u64) -> &str {
        let count = self.texts.len() as u64;
        let (pass, place) = (trial / count, trial % count);
        if pass != self.pass {
            self.pass = pass;
            self.order = order(self.texts.len(), self.seed, pass);
        }
        &self.texts[self.order[place as usize]]
    }
}

/// The order of one pass, which depends on nothing but the seed and the pass.
fn order(count: usize, seed: u64, pass: u64) -> Vec<usize> {
    // An odd factor takes no two passes to one seed; the generator's own seeding mixes the bits.
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
        (0..COUNT).map(|place| requests.of(pass * COUNT + place).to_string()).collect()
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
        assert!(requests(1).of(u64::MAX).parse::<u64>().unwrap() < COUNT);
    }
}
