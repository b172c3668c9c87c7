//! The session: prepares the repositories and monitors, and measures `git status`.

use std::borrow::Cow;
use std::fs::{self, File};
use std::path::PathBuf;
use std::rc::Rc;
use std::thread::sleep;
use std::time::Duration;

use ascertain_engine::experiment::{
    Arm, ArmId, Point, Sample, Samples, Session, Setup, Status, TargetError, Trial, Unavailable,
};
use ascertain_sys::process::{Command, Output, Prepared};
use ascertain_sys::scratch::ScratchFolder;

use super::changes::Pattern;
use super::git::{self, Git, failed};
use super::monitors;
use super::repository::{Repository, status_arguments, with_index};
use super::trace::Trace;
use super::{LOOKED_UP, MONITOR_CPU, PHASE, SHORT, SYSTEM, USER, WALL, has_monitor, has_untracked_cache, text};

/// Number of statuses before the first trial. The first one adds the data of the untracked cache and the monitor to the
/// index, the second one fills them, and the third one finds everything in place.
const WARM_UPS: u32 = 3;
/// Largest number of statuses before the first trial, for a monitor that is still reading the worktree.
const MOST_WARM_UPS: u32 = 40;
/// Time between the statuses for a monitor that is still reading the worktree.
const EACH: Duration = Duration::from_millis(100);

/// Checks that this machine has the arm's git and monitor.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    let git = Git::find(&text(arm, "git")).map_err(Unavailable::other)?;
    monitors::is_available(&arm.variant, &git)
}

/// Opens a session. Repositories are created when an arm is verified.
pub fn open(arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
    let folder = ScratchFolder::new("git").map_err(failed)?;
    let state = |arm: &Arm| {
        let git = Git::find(&text(arm, "git")).map_err(TargetError::Failed)?;
        Ok(ArmState { arm: arm.clone(), git: Rc::new(git), repository: 0, status: None })
    };
    let arms = arms.iter().map(state).collect::<Result<_, TargetError>>()?;
    Ok(Box::new(StatusSession { repositories: Vec::new(), arms, setup: setup.clone(), folder, is_settled: true }))
}

struct StatusSession {
    // Dropped before the folder, because the daemons of the monitors use it.
    repositories: Vec<Repository>,
    arms: Vec<ArmState>,
    setup: Setup,
    folder: ScratchFolder,
    /// `false` if files changed for the check of one arm. The next status of the other arms then has more work.
    is_settled: bool,
}

struct ArmState {
    arm: Arm,
    git: Rc<Git>,
    /// Index of the repository in [`StatusSession::repositories`].
    repository: usize,
    /// `None` before the arm was verified.
    status: Option<ArmStatus>,
}

/// The command of an arm, and its files.
struct ArmStatus {
    prepared: Prepared,
    command: Command,
    output: PathBuf,
    trace: PathBuf,
}

/// The result of one `git status`.
struct Measured {
    wall_ns: u64,
    system_ns: u64,
    user_ns: u64,
    trace: Trace,
    output: Vec<u8>,
}

impl StatusSession {
    /// Returns the repository for an arm, and creates it if necessary.
    fn repository(&mut self, arm: ArmId) -> Result<usize, TargetError> {
        let Self { repositories, arms, setup, folder, .. } = self;
        let ArmState { arm, git, .. } = &arms[arm];
        if let Some(index) = repositories.iter().position(|repository| repository.is_for(arm, git)) {
            return Ok(index);
        }
        let place = folder.path().join(repositories.len().to_string());
        let home = place.join("home");
        fs::create_dir_all(&home).map_err(failed)?;
        repositories.push(Repository::create(arm, git.clone(), (&place, &home), &setup.stop)?);
        Ok(repositories.len() - 1)
    }

    /// Runs a status of each arm, so that all arms know the same changes before a trial.
    fn settle(&mut self) -> Result<(), TargetError> {
        if !self.is_settled {
            for status in self.arms.iter().filter_map(|arm| arm.status.as_ref()) {
                status.run()?;
            }
            self.is_settled = true;
        }
        Ok(())
    }

    /// Prepares the command of an arm, with a separate index.
    fn prepare(&mut self, arm: ArmId) -> Result<ArmStatus, TargetError> {
        let place = |what: &str| self.folder.path().join(format!("{arm}.{what}"));
        let [index, output, trace] = ["index", "output", "trace"].map(place);
        let ArmState { arm, git, repository, .. } = &self.arms[arm];
        let repository = &mut self.repositories[*repository];
        repository.monitors.start(&arm.variant, git)?;
        repository.copy_index(&index)?;
        let (mut settings, variables) = repository.monitors.settings(&arm.variant, git)?;
        settings.push(format!("core.untrackedCache={}", has_untracked_cache(arm)));
        let arguments = status_arguments(&text(arm, "untracked"));
        let command = repository.command(&settings, &arguments.each_ref().map(String::as_str));
        let (stdout, stderr) = (Output::File(output.clone()), Output::Memory);
        let mut command = with_index(Command { stdout, stderr, ..command }, &index);
        command.env.extend(variables);
        command.env.push(("GIT_TRACE2_EVENT".into(), trace.clone().into()));
        let prepared = git::prepare(&command, &self.setup.stop)?;
        Ok(ArmStatus { prepared, command, output, trace })
    }
}

impl ArmStatus {
    /// Runs the command once.
    fn run(&self) -> Result<Measured, TargetError> {
        File::create(&self.trace).map_err(failed)?;
        let usage = self.prepared.run(Some(git::LIMIT));
        let messages = String::from_utf8_lossy(&self.prepared.captured_output()).trim_end().to_owned();
        let usage = git::succeeded(usage, &self.command, &messages)?;
        let trace = Trace::read(&fs::read_to_string(&self.trace).map_err(failed)?, usage.wall_ns as f64);
        let output = fs::read(&self.output).map_err(failed)?;
        let (wall_ns, system_ns, user_ns) = (usage.wall_ns, usage.system_ns, usage.user_ns);
        Ok(Measured { wall_ns, system_ns, user_ns, trace, output })
    }
}

impl Session for StatusSession {
    /// Fills the arm's index with the data of its untracked cache and its monitor, and compares each output with plain
    /// git's.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        if self.arms[arm].status.is_none() {
            self.arms[arm].repository = self.repository(arm)?;
            self.arms[arm].status = Some(self.prepare(arm)?);
        }
        let ArmState { arm, repository, status, .. } = &self.arms[arm];
        let repository = &mut self.repositories[*repository];
        repository.expect(&text(arm, "untracked"));
        let Some(status) = status else { return Ok(()) };
        // The monitor must be right about every way in which a file can change.
        repository.renew(Pattern::Mixed, self.setup.seed)?;
        repository.check(arm, &status.run()?.output)?;
        repository.renew(repository.pattern(), self.setup.seed)?;
        for run in 1..=MOST_WARM_UPS {
            let measured = status.run()?;
            repository.check(arm, &measured.output)?;
            if run >= WARM_UPS && measured.trace.is_short != Some(false) {
                break;
            }
            if run >= WARM_UPS {
                sleep(EACH);
            }
        }
        self.is_settled = false;
        Ok(())
    }

    fn facts(&mut self, arm: ArmId) -> Result<Point, TargetError> {
        Ok(Point::default().with("git_version", &*self.arms[arm].git.version))
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        self.settle()?;
        let ArmState { arm, repository, status, .. } = &self.arms[arm];
        let repository = &mut self.repositories[*repository];
        let status = status.as_ref().ok_or_else(|| failed("the arm was not prepared"))?;
        repository.enter(trial)?;
        let before_ns = repository.monitors.cpu_ns(&arm.variant);
        let measured = status.run()?;
        let after_ns = repository.monitors.cpu_ns(&arm.variant);
        repository.check(arm, &measured.output)?;
        out.push(WALL, measured.wall_ns as f64);
        out.push(SYSTEM, measured.system_ns as f64);
        out.push(USER, measured.user_ns as f64);
        if let Some(files) = measured.trace.looked_up {
            out.push(LOOKED_UP, files as f64);
        }
        if let Some(is_short) = measured.trace.is_short.filter(|_| has_monitor(&arm.variant)) {
            out.push(SHORT, f64::from(u8::from(is_short)));
        }
        if let (Some(before_ns), Some(after_ns)) = (before_ns, after_ns) {
            out.push(MONITOR_CPU, after_ns.saturating_sub(before_ns) as f64);
        }
        for (phase, ns) in measured.trace.phases {
            let key = Cow::Borrowed(phase);
            out.push_sample(Sample { metric: PHASE, key, offset_ns: 0, value: ns, status: Status::Ok });
        }
        Ok(())
    }
}
