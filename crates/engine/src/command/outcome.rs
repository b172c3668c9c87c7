//! What the end of a command means.

use ascertain_sys::interrupt::Stop;
use ascertain_sys::process::{Exit, Usage};

use super::line::Line;
use super::{CommandSet, OnFailure};
use crate::experiment::{Samples, Status, TargetError};

/// The places of the metrics in [`metrics`](super::metrics).
pub(crate) const WALL: usize = 0;
const USER: usize = 1;
const SYSTEM: usize = 2;
const MEMORY_PEAK: usize = 3;
pub(crate) const EXIT: usize = 4;

/// Notes what was seen of a command that has ended, or was stopped at its time limit.
///
/// # Errors
/// When it failed, and that is to stop it. `Interrupted` when a signal came: what had been seen by then is noted.
pub(super) fn observe(usage: &Usage, set: &CommandSet, line: &Line, out: &mut Samples) -> Result<(), TargetError> {
    let failure = failure(usage.exit);
    let is_stopped = matches!(usage.exit, Exit::TimedOut | Exit::Interrupted);
    let status = match failure {
        // A time-out is an observation, whatever failures are; and all that is known of it is what had gone by.
        _ if is_stopped => Status::Censored,
        Some(reason) if set.on_failure == OnFailure::Stop => {
            let called = line.called();
            let message = format!("{called} {reason}; {ADVICE}, or go on all the same with -i (compare)");
            return Err(TargetError::Failed(message));
        }
        Some(_) if set.on_failure == OnFailure::Observe => Status::Failed,
        _ => Status::Ok,
    };
    // The same of all that met it.
    let limit_ns = set.time_limit.filter(|_| usage.exit == Exit::TimedOut).map(|limit| limit.as_nanos() as f64);
    out.push_with(WALL, limit_ns.unwrap_or(usage.wall_ns as f64), status);
    out.push_with(USER, usage.user_ns as f64, status);
    out.push_with(SYSTEM, usage.system_ns as f64, status);
    out.push_with(MEMORY_PEAK, usage.memory_peak_bytes as f64, status);
    match usage.exit {
        Exit::Code(code) => out.push(EXIT, f64::from(code)),
        Exit::Signal(signal) => out.push(EXIT, f64::from(128 + signal)),
        // It has no exit code: it did not succeed in its time.
        Exit::TimedOut => out.push_with(EXIT, 0.0, Status::Censored),
        // Who knows how it would have ended?
        Exit::Interrupted => return Err(TargetError::Interrupted),
    }
    Ok(())
}

/// Runs what goes around a command.
///
/// # Errors
/// When it does not succeed.
pub(super) fn run_untimed(line: &Line, stop: &Stop) -> Result<(), TargetError> {
    let exit = line.run(None, None, stop)?.exit;
    match failure(exit) {
        _ if exit == Exit::Interrupted => Err(TargetError::Interrupted),
        None => Ok(()),
        Some(reason) => Err(TargetError::Failed(format!("{} {reason}; {ADVICE}", line.called()))),
    }
}

/// A file of claims has no such options: there the command is to be run alone.
const ADVICE: &str = "run it alone to see what it says, or use --output inherit (compare, slo)";

fn failure(exit: Exit) -> Option<String> {
    match exit {
        Exit::Code(0) => None,
        Exit::Code(code) => Some(format!("ended with exit code {code}")),
        Exit::Signal(signal) => Some(format!("was ended by signal {signal}")),
        Exit::TimedOut => Some("met its time limit".into()),
        Exit::Interrupted => None,
    }
}
