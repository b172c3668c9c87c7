//! Extends errors of the libraries with the command line option that solves the problem. The libraries do not know the
//! options.

use anyhow::anyhow;
use ascertain::compare::NeedsTwo;
use ascertain::series::Problem;
use ascertain_engine::Error as EngineError;
use ascertain_engine::command::CommandError;
use ascertain_engine::evidence;
use ascertain_engine::windows::WindowError;
use ascertain_sync::barrierd;
use ascertain_sys::process;

/// Appends to the error's message the option that solves the problem, if there is one.
pub fn with_option(error: anyhow::Error) -> anyhow::Error {
    use NeedsTwo::{Gate, Margin, Metric, Precision, Tail};
    use ascertain::Error::{Engine, NeedsTwo as Needs, NoDirection};
    match error.downcast_ref() {
        Some(Needs(Gate)) => {
            anyhow!("--fail-if needs two commands to compare; give a second command, or leave out --fail-if")
        }
        Some(Needs(Precision)) => {
            anyhow!(
                "--precision needs two commands to compare; give a second command, or narrow the median with --min-runs 100"
            )
        }
        Some(Needs(Margin)) => {
            anyhow!("--margin needs two commands to compare; give a second command, or leave out --margin")
        }
        Some(Needs(Tail)) => {
            anyhow!("--tail needs two commands to compare; give a second command, or leave out --tail")
        }
        Some(Needs(Metric)) => {
            anyhow!("--metric needs two commands to compare; give a second command, or leave out --metric")
        }
        Some(NoDirection { metric }) => {
            anyhow!(
                "it is unknown whether higher or lower `{metric}` is better; add --better higher or --better lower, or a \
                 --unit that implies it"
            )
        }
        Some(Engine(EngineError::ErrorsTooLarge { own, total })) => anyhow!(
            "the claims' `error` values add up to {own}, which leaves too little of {total} for the other claims; raise \
             --error above {own}, or lower the claims' `error`"
        ),
        Some(Engine(EngineError::Command(CommandError::MissingValue(name)))) => {
            anyhow!("the run did not record the value of {name}; give it again with --env {name}=VALUE")
        }
        _ => match option(&error) {
            Some(option) => anyhow!("{error:#}{option}"),
            None => error,
        },
    }
}

/// A text to append to messages about the evidence: the options that choose its folder or turn it off.
pub const EVIDENCE_OPTIONS: &str = " (--evidence DIR, --no-evidence)";

/// Returns the option that solves the problem, to be appended to the error's message; `None` if there is none. If the
/// message suggests several solutions, the option must belong to the last solution, because the option is printed right
/// after the message.
fn option(error: &anyhow::Error) -> Option<String> {
    use ascertain::Error::{
        Engine, Evidence, Expression, NoMachineType, NoProgram, Regions, SameCommit, TooManyTrials,
    };
    use ascertain_engine::samples::Error::{Column, TooLong};
    use ascertain_sys::Error::NotFound;
    use evidence::Error::{Folder, Write};
    use process::SplitError::{ShellCharacter, ShellWord};
    let option = match error.downcast_ref() {
        Some(Engine(EngineError::Command(
            CommandError::Words { reason: ShellCharacter { .. } | ShellWord { .. }, .. }
            | CommandError::Program { reason: NotFound { is_searched: true, .. }, .. },
        ))) => " (--shell)",
        Some(Engine(EngineError::Command(CommandError::SetUpTwice { .. }))) => " (--prepare)",
        Some(Engine(EngineError::Evidence(Folder { .. } | Write { .. })) | Evidence(Folder { .. } | Write { .. })) => {
            EVIDENCE_OPTIONS
        }
        Some(Engine(EngineError::Windows(error))) => match error {
            WindowError::WindowTooLong { .. }
            | WindowError::WindowTooShort { .. }
            | WindowError::TooManyWindows { .. } => " (--window)",
            WindowError::Memory { .. } => " (--memory)",
            WindowError::TooManyAround { .. } => " (--around)",
            WindowError::Line { .. } | WindowError::LongLine { .. } => " (--unit, --count-bad-lines)",
            _ => return None,
        },
        Some(Expression(error)) if matches!(error.problem(), Problem::Sampled(_)) => {
            " (slo --series, slo --record-every 1)"
        }
        Some(NoProgram { .. }) => "; name the command that builds it (--build), or another program",
        Some(SameCommit { .. }) => ", or measure the same program twice (--measure-identical)",
        Some(NoMachineType { run }) => return Some(format!(" (--type {run}=TYPE)")),
        Some(Regions { regions, .. }) => return Some(format!(" (--region {})", regions[0])),
        Some(TooManyTrials { fitting, .. }) => return Some(format!(" (--max-trials {fitting})")),
        _ => match error.downcast_ref() {
            Some(TooLong(_)) => " (--max-values)",
            Some(Column(_)) => " (--column)",
            _ => return start_barrierd(error.downcast_ref()?),
        },
    };
    Some(option.into())
}

/// If the error is that the daemon is not running, returns the command that starts the daemon.
fn start_barrierd(error: &barrierd::Error) -> Option<String> {
    let barrierd::Error::NotRunning { path, .. } = error else { return None };
    let path = path.to_string_lossy();
    let options = if path == barrierd::DEFAULT_PATH { &[][..] } else { &["--path", &path] };
    Some(format!(": {}", process::join(&[&["sudo", "ascertain", "barrierd"], options].concat())))
}
