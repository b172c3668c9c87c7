//! Which lane has the machine next, and for how long.

use std::time::Duration;

use ascertain_sys::{clock, interrupt};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::evidence;
use crate::experiment::TargetError;
use crate::judging::{ClaimJudge, Closed};
use crate::lane::{Bench, Lane};
use crate::outcome::ClaimResult;
use crate::plan::Config;
use crate::run::{Observer, Progress};
use crate::summary::{self, Setting};
use crate::unit::Unit;

/// A lane keeps the machine to itself for that long before another may have it.
const SLICE_NS: u64 = 250_000_000;
/// The observer hears of the run this often.
const PROGRESS_NS: u64 = 100_000_000;

/// Why a run ends early.
pub(crate) enum Stop {
    Interrupted,
    Evidence(evidence::Error),
}

/// The lanes, and whose turn it is.
pub(crate) struct Schedule<'r, 'a> {
    pub config: &'r Config,
    pub setting: &'r Setting<'r>,
    pub lanes: Vec<Lane<'a>>,
    pub start_ns: u64,
    pub ends_ns: u64,
    pub next_progress_ns: u64,
    pub observer: &'r mut dyn Observer,
}

impl Schedule<'_, '_> {
    /// Measures until nobody wants more, the time is up, or somebody interrupts.
    pub fn go(&mut self, bench: &mut Bench) -> Result<(), Stop> {
        let pilots = match self.lanes.len() {
            0 | 1 => self.config.warmup_trials,
            _ => self.config.warmup_trials.max(1),
        };
        for index in 0..self.lanes.len() {
            self.pilot(index, pilots, bench)?;
        }
        while let Some(index) = self.choose(bench) {
            self.slice(index, bench)?;
        }
        if interrupt::requested() {
            return Ok(());
        }
        // Other lanes promised more a second.
        for lane in &mut self.lanes {
            if lane.is_open() && lane.trials == 0 && lane.wants_more(bench) {
                let why = "the time was up before its turn came; give more with --max-time";
                lane.give_up(&Closed::Deferred(why.into()), bench);
            }
        }
        Ok(())
    }

    fn time_left_ns(&self) -> u64 {
        self.ends_ns.saturating_sub(clock::now_ns())
    }

    /// Opens a lane and learns what a trial of it costs.
    fn pilot(&mut self, index: usize, pilots: u64, bench: &mut Bench) -> Result<(), Stop> {
        let ends_ns = self.ends_ns;
        let lane = &mut self.lanes[index];
        if !lane.wants_more(bench) {
            return Ok(());
        }
        if ends_ns <= clock::now_ns() {
            if lane.trials == 0 {
                let why = "the time was up before it could be tried; give more with --max-time";
                lane.give_up(&Closed::Deferred(why.into()), bench);
            }
            return Ok(());
        }
        match lane.open(bench) {
            Ok(()) => {}
            Err(TargetError::Interrupted) => return Err(Stop::Interrupted),
            Err(error) => {
                lane.give_up(&Closed::Failed(error.to_string()), bench);
                return Ok(());
            }
        }
        for _ in 0..pilots {
            if ends_ns <= clock::now_ns() {
                break;
            }
            self.lanes[index].warm_up(bench).map_err(|_| Stop::Interrupted)?;
            self.report_progress_if_due(clock::now_ns(), index, bench)?;
        }
        self.defer(index, bench);
        Ok(())
    }

    /// Defers the claims whose shortest possible verdict does not fit in the time that is left. Where there
    /// is one lane alone nothing would be won: its figures are better than none.
    fn defer(&self, index: usize, bench: &mut Bench) {
        let left_ns = self.time_left_ns() as f64;
        let lane = &self.lanes[index];
        if self.lanes.len() == 1 || lane.trials > 0 || self.config.exact_trials.is_some() {
            return;
        }
        for &claim in &lane.claims {
            let judge = &mut bench.claims[claim];
            let need_ns = lane.cost_ns * judge.soonest_verdict() as f64;
            if need_ns > left_ns {
                let need = Unit::Nanosecond.human(need_ns);
                let why = format!("its shortest possible verdict takes {need}; give more with --max-time");
                judge.close(Closed::Deferred(why));
            }
        }
    }

    /// The lane that is to have the next slice: tables fill first, then whichever expects most
    /// log-evidence a second. The choice looks only at the past, so it does not touch validity.
    fn choose(&mut self, bench: &mut Bench) -> Option<usize> {
        if self.time_left_ns() == 0 || interrupt::requested() {
            return None;
        }
        let mut best = None;
        for (index, lane) in self.lanes.iter_mut().enumerate() {
            if !lane.is_open() {
                continue;
            }
            if !lane.wants_more(bench) {
                lane.shut();
                continue;
            }
            let waits = lane.table_waits(self.config);
            let open = lane.claims.iter().map(|&claim| &bench.claims[claim]).filter(|judge| judge.is_open());
            let growth: f64 = open.map(ClaimJudge::expected_growth).sum();
            let score = match waits {
                true => f64::MAX / (lane.trials as f64 + 2.0),
                false => growth / lane.cost_ns.max(1.0),
            };
            if best.is_none_or(|(_, most)| score > most) {
                best = Some((index, score));
            }
        }
        best.map(|(index, _)| index)
    }

    fn slice(&mut self, index: usize, bench: &mut Bench) -> Result<(), Stop> {
        let slice_ends_ns = self.ends_ns.min(clock::now_ns().saturating_add(SLICE_NS));
        loop {
            if !self.wait_for_gap(index, bench)? {
                return Ok(());
            }
            let lane = &mut self.lanes[index];
            lane.trial(bench).map_err(|_| Stop::Interrupted)?;
            let now_ns = clock::now_ns();
            if let Some(evidence) = bench.evidence.as_deref_mut() {
                evidence.end_trial(lane.cost_ns).map_err(Stop::Evidence)?;
            }
            let goes_on = now_ns < slice_ends_ns && lane.wants_more(bench) && !interrupt::requested();
            self.report_progress_if_due(now_ns, index, bench)?;
            if !goes_on {
                return Ok(());
            }
        }
    }

    /// Trials that are to be spread over time start at random moments: a fixed rhythm could beat with
    /// what else the machine does. False when the run ends meanwhile.
    fn wait_for_gap(&mut self, index: usize, bench: &mut Bench) -> Result<bool, Stop> {
        let Some(gap) = self.config.gap else { return Ok(true) };
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(self.config.seed ^ self.lanes[index].trials.rotate_left(32));
        let wait_ns = (gap.as_nanos() as f64 * 2.0 * rng.random::<f64>()) as u64;
        let until_ns = clock::now_ns().saturating_add(wait_ns).min(self.ends_ns);
        loop {
            let now_ns = clock::now_ns();
            if now_ns >= until_ns || interrupt::requested() {
                return Ok(now_ns < self.ends_ns && !interrupt::requested());
            }
            self.report_progress_if_due(now_ns, index, bench)?;
            std::thread::sleep(Duration::from_nanos((until_ns - now_ns).min(20_000_000)));
        }
    }

    fn report_progress_if_due(&mut self, now_ns: u64, index: usize, bench: &mut Bench) -> Result<(), Stop> {
        if now_ns < self.next_progress_ns {
            return Ok(());
        }
        self.next_progress_ns = now_ns + PROGRESS_NS;
        // Nobody learns of a trial that a kill could still undo.
        if let Some(evidence) = bench.evidence.as_deref_mut() {
            evidence.flush().map_err(Stop::Evidence)?;
        }
        let lane = &self.lanes[index];
        let mut open = lane.claims.iter().map(|&claim| &bench.claims[claim]).filter(|judge| judge.is_open());
        let headline = open.next().map_or_else(
            || format!("{}: {} trials", lane.experiment.spec().id, lane.trials),
            |judge| format!("{}: {}", judge.claim.id, judge.headline()),
        );
        self.observer.progress(&Progress {
            elapsed: Duration::from_nanos(now_ns.saturating_sub(self.start_ns)),
            max_time: self.config.max_time,
            claims_closed: bench.claims.iter().filter(|judge| !judge.is_open()).count(),
            claims: bench.claims.len(),
            headline,
        });
        if self.lanes.iter().any(|lane| lane.trials > 0) && self.observer.outcome_due(now_ns) {
            // Looking at a judge moves its interval: copies are looked at, so that the run goes as it would have.
            let claims: Vec<ClaimResult> = bench.claims.iter().map(|judge| judge.clone().result()).collect();
            let outcome = summary::outcome(self.setting, bench.observations, claims, false);
            self.observer.outcome(&outcome, bench.observations);
        }
        Ok(())
    }
}
