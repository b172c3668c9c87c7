//! Measures how long `git status` takes, with and without a file system monitor.
#![cfg_attr(not(target_os = "linux"), allow(dead_code))]

#[cfg(target_os = "linux")]
mod changes;
#[cfg(target_os = "linux")]
mod git;
#[cfg(target_os = "linux")]
mod monitors;
#[cfg(target_os = "linux")]
mod repository;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere.rs")]
mod session;
#[cfg(all(test, target_os = "linux"))]
mod tests;
#[cfg(target_os = "linux")]
mod trace;
#[cfg(target_os = "linux")]
mod watchman;

use std::sync::LazyLock;

use ascertain_engine::experiment::Better::{Higher, Lower};
use ascertain_engine::experiment::{
    Accepts, Arm, Experiment, Factor, Level, Metric, Plot, Session, Setup, Spec, TargetError, Unavailable,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::machine::Machine;

/// The experiment `git-status`.
pub struct GitStatus;

const PLAIN: &str = "plain";
const UNTRACKED_CACHE: &str = "untracked-cache";
const HOOK: &str = "hook";
const BUILT_IN: &str = "built-in";
const WATCHMAN: &str = "watchman";

/// The default level of `git`: the git that is found in `PATH`.
const INSTALLED: &str = "git";
/// The levels of `untracked`, which are the values of git's option `-u`.
const NORMAL: &str = "normal";
const NO: &str = "no";
const ALL: &str = "all";
/// The levels of `changes`.
const EDIT: &str = "edit";
const MIXED: &str = "mixed";
/// The levels of `cache`.
const ON: &str = "on";
const OFF: &str = "off";

const WALL: usize = 0;
const SYSTEM: usize = 1;
const USER: usize = 2;
const LOOKED_UP: usize = 3;
const SHORT: usize = 4;
const MONITOR_CPU: usize = 5;
const PHASE: usize = 6;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Duration of git status with and without a file system monitor".into(),
    variants: vec![
        (PLAIN, "git without a monitor and without the untracked cache").into(),
        (UNTRACKED_CACHE, "git without a monitor, with the untracked cache").into(),
        (HOOK, "git with the monitor of `ascertain fsmonitor`, by git's hook protocol").into(),
        (BUILT_IN, "git with its own monitor, which Linux has since git 2.55").into(),
        (WATCHMAN, "git with watchman, by git's sample hook in Perl").into(),
    ],
    factors: vec![
        Factor::integer("files", "number of tracked files, ten per folder", 10_000, 1..=10_000_000),
        Factor::integer("changed", "number of files that change before each trial", 10, 0..=1_000_000),
        Factor::one_of(
            "changes",
            "edit: the same files get a new content each time; mixed: other files change, in every way",
            [EDIT, MIXED],
        ),
        Factor::one_of("untracked", "untracked files to report: git's option -u", [NORMAL, NO, ALL]),
        Factor::one_of("cache", "git's untracked cache, in the variants with a monitor", [ON, OFF]),
        Factor::new(
            "git",
            "git to measure: a program, its path, or a version such as 2.55 (fetched by `cargo xtask gits`)",
            INSTALLED,
            Accepts::Anything,
        ),
    ],
    metrics: vec![
        Metric::time("wall", "wall time of git status"),
        Metric::time("system", "CPU time in the kernel, of git status and its hook"),
        Metric::time("user", "CPU time outside of the kernel, of git status and its hook"),
        Metric::new("looked_up", "number of files that git looked up in the file system", Unit::One, Lower),
        Metric::share("short", "share of answers in which the monitor named the changed files", Higher),
        Metric::time("monitor_cpu", "CPU time of the monitor's daemon during git status"),
        Metric::time("phase", "duration of each phase of git status, according to Trace2").by_key(),
    ],
    plots: vec![Plot::sweep("wall", "files"), Plot::Waterfall { metric: "phase".into() }],
    ..Spec::new("git-status", include_str!("README.md"))
});

impl Experiment for GitStatus {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        session::is_available(arm)
    }

    /// Returns whether the arm has a monitor, for the metrics about monitors.
    fn shows(&self, arm: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        match metric {
            SHORT | MONITOR_CPU if !has_monitor(&arm.variant) => {
                Err(Unavailable::levels(format!("{} has no monitor", arm.variant)))
            }
            _ => Ok(()),
        }
    }

    fn has(&self, arm: &Arm, factor: &str) -> bool {
        factor != "cache" || has_monitor(&arm.variant)
    }

    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        session::open(arms, setup)
    }
}

fn has_monitor(variant: &str) -> bool {
    ![PLAIN, UNTRACKED_CACHE].contains(&variant)
}

/// Returns whether git uses the untracked cache in this arm.
fn has_untracked_cache(arm: &Arm) -> bool {
    match &*arm.variant {
        PLAIN => false,
        UNTRACKED_CACHE => true,
        _ => text(arm, "cache") == ON,
    }
}

/// Returns the level of a factor as text.
fn text(arm: &Arm, factor: &str) -> String {
    arm.point.get(factor).map(Level::to_string).unwrap_or_default()
}
