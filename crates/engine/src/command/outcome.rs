//! What the end of a command means.

use ascertain_sys::process::{Exit, Usage};

use super::OnFailure;
use super::line::Line;
use crate::experiment::{Samples, Status, TargetError};

/// The places of the metrics in [`metrics`](super::metrics).
pub(super) const WALL: usize = 0;
const USER: usize = 1;
const SYSTEM: usize = 2;
const MEMORY_PEAK: usize = 3;
pub(super) const EXIT: usize = 4;

/// Notes what was seen of a command that has ended.
///
/// # Errors
/// When it failed, and that is to stop it.
pub(super) fn observe(usage: &Usage, on_failure: OnFailure, line: &Line, out: &mut Samples) -> Result<(), TargetError> {
    let timed_out = usage.exit == Exit::TimedOut;
    let failure = failure(usage.exit).filter(|_| on_failure != OnFailure::Ignore || timed_out);
    let status = match failure {
        // A time-out is an observation, whatever failures are.
        Some(reason) if on_failure == OnFailure::Stop && !timed_out => {
            let called = line.called();
            let message = format!("{called} {reason}; {ADVICE}, or go on all the same with -i (compare)");
            return Err(TargetError::Failed(message));
        }
        Some(_) => Status::Failed,
        None => Status::Ok,
    };
    let (wall_ns, wall_status) = match timed_out {
        true => (f64::INFINITY, Status::Censored),
        false => (usage.wall_ns as f64, status),
    };
    let (exit, exit_status) = match usage.exit {
        Exit::Code(code) => (f64::from(code), Status::Ok),
        Exit::Signal(signal) => (f64::from(128 + signal), Status::Ok),
        Exit::TimedOut => (f64::INFINITY, Status::Censored),
    };
    out.push_with(WALL, wall_ns, wall_status);
    out.push_with(USER, usage.user_ns as f64, status);
    out.push_with(SYSTEM, usage.system_ns as f64, status);
    out.push_with(MEMORY_PEAK, usage.memory_peak_bytes as f64, status);
    out.push_with(EXIT, exit, exit_status);
    Ok(())
}

/// Runs what goes around a command.
///
/// # Errors
/// When it does not succeed.
pub(super) fn run_untimed(line: &Line) -> Result<(), TargetError> {
    match failure(line.run(None, None)?.exit) {
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
    }
}
