//! Tests of the whole experiment, against stores in this process, stores that misbehave, and installed servers.

mod bad_input;
mod calibration;
mod cases;
mod deletion;
mod servers;
mod session;
mod stub;

use ascertain_engine::experiment::{Arm, Experiment, Level, Samples, Session, Setup, TargetError, Trial};

use ascertain_engine::finding::Remark;
use ascertain_transfer::Environment;

use super::session::StorageSession;
use super::{SPEC, Storage};

/// Returns an arm with these levels, and the default level of every other factor that applies.
fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let point = levels.iter().fold(SPEC.default_point(), |point, (factor, level)| point.with(factor, level.clone()));
    Storage.trimmed(&Arm { variant: variant.into(), point })
}

/// A session with one arm, and the folder of its journals. The session is dropped first.
struct Opened {
    session: StorageSession,
    folder: tempfile::TempDir,
}

/// Credentials that every stub accepts.
fn credentials() -> Environment {
    [("AWS_ACCESS_KEY_ID", "ascertain"), ("AWS_SECRET_ACCESS_KEY", "not-a-secret-at-all")].into_iter().collect()
}

fn open(arm: &Arm) -> Result<Opened, TargetError> {
    open_with(arm, &credentials())
}

fn open_with(arm: &Arm, environment: &Environment) -> Result<Opened, TargetError> {
    let (folder, setup) = (tempfile::tempdir().unwrap(), Setup::default());
    let session = StorageSession::open(std::slice::from_ref(arm), &setup, (folder.path(), environment))?;
    Ok(Opened { session, folder })
}

/// Returns the reason why an arm cannot be measured.
fn refusal(arm: &Arm) -> String {
    open(arm).and_then(|mut opened| opened.measure(1).map(drop)).unwrap_err().to_string()
}

impl Opened {
    /// Measures `trials` trials, and returns all samples.
    fn measure(&mut self, trials: u64) -> Result<Samples, TargetError> {
        self.session.verify(0)?;
        let mut out = Samples::default();
        for number in 0..trials {
            self.session.measure(0, &Trial { number, seed: number + 1 }, &mut out)?;
        }
        Ok(out)
    }
}

impl Opened {
    /// Returns the only remark of a kind.
    fn remark(&self, is_it: impl Fn(&Remark) -> bool) -> Option<Remark> {
        self.session.remarks(0).into_iter().find(|remark| is_it(remark))
    }

    /// Returns the number of journals.
    fn journals(&self) -> usize {
        std::fs::read_dir(self.folder.path()).unwrap().count()
    }
}

/// Returns the values of a metric.
fn values(out: &Samples, metric: usize) -> Vec<f64> {
    out.iter().filter(|sample| sample.metric == metric).map(|sample| sample.value).collect()
}
