//! How long the slow side of an asymmetric barrier takes: ways to wait for every CPU, one barrier at a time or many a
//! millisecond apart.

mod daemon;
mod load;
mod methods;

use std::rc::Rc;
use std::sync::LazyLock;
use std::thread;
use std::time::Duration;

use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Metric, Point, Samples, Session, Setup, Spec, TargetError, Trial,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sync::barrierd::missed_rounds;
use ascertain_sys::clock;
use ascertain_sys::machine::Machine;

use daemon::Connection;
use load::Load;
use methods::Method;

/// Ways to wait for every CPU.
pub struct Barrier;

const TIME: usize = 0;
const OTHERS: usize = 1;
const DAEMON: usize = 2;
const PROGRAM: usize = 3;

/// Levels of `load`.
const IDLE: &str = "idle";
const BUSY: &str = "busy";
const SPACED: &str = "spaced";

const VARIANTS: [(&str, &str); 8] = [
    ("heartbeat", "sync::barrierd: wait for interrupts, which the daemon makes while somebody waits"),
    ("interrupts", "sync::barrierd: look, by virtual time, whether each CPU happens to have been interrupted"),
    ("interrupts-clock", "the same by CLOCK_MONOTONIC, as the source's daemon first did; to be timed only"),
    ("plain", "membarrier, which waits for the scheduler"),
    ("expedited", "membarrier by interrupts, expedited"),
    ("asked", "limit: no barrier, a thread in real time is asked over a socket, as the daemon is, and answers"),
    ("mprotect", "a page's rights taken away and given back; no barrier, to be timed only"),
    ("none", "no barrier: what measuring takes, and what the others are held against at load=spaced"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "The slow side of an asymmetric barrier: how long until every CPU has passed".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::new(
        "load",
        "the rest of the machine: idle; busy (two threads a CPU at low priority); spaced (busy, and one barrier a \
         millisecond, to see what that costs the others)",
        BUSY,
        Accepts::OneOf([IDLE, BUSY, SPACED].map(Into::into).to_vec()),
    )],
    metrics: vec![
        Metric::time("time", "time for one barrier"),
        Metric::new("others", "rounds a second of the busy threads, all together", Unit::PerSecond, Better::Higher),
        Metric::new("daemon", "CPU time of the daemon, as a share of one CPU", Unit::One, Better::Lower),
        Metric::new(
            "program",
            "time that the daemon's program takes at interrupts, as a share of each CPU",
            Unit::One,
            Better::Lower,
        ),
    ],
    ..Spec::new("barrier", include_str!("README.md"))
});

impl Experiment for Barrier {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    /// As the source's figures: idle, and loaded; and what it costs the rest of the machine.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, load: &str| Arm { variant: name.into(), point: Point::default().with("load", load) };
        let timed = VARIANTS.iter().flat_map(|(name, _)| [arm(name, IDLE), arm(name, BUSY)]);
        // One of each kind, for they take long: by heartbeats, by the scheduler, by interrupts at once.
        timed.chain(["heartbeat", "plain", "expedited", "none"].map(|name| arm(name, SPACED))).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        methods::is_available(&arm.variant).map_err(Unavailable::other)
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        if metric == PROGRAM { methods::program_is_counted().map_err(Unavailable::other) } else { Ok(()) }
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        Targets::new(arms).map(|targets| Box::new(targets) as Box<dyn Session>).map_err(TargetError::Failed)
    }
}

/// The load of an arm: one of the levels.
fn load_of(arm: &Arm) -> Option<&'static str> {
    let level = arm.point.get("load")?.to_string();
    [IDLE, BUSY, SPACED].into_iter().find(|known| *known == level)
}

/// Barriers begin at any time between two of the timer's interrupts: a pause of up to 4 ms before each, one in a trial.
const PAUSE_MAX_NS: u64 = 4_000_000;
/// From one barrier's beginning to the next one's, and for how long.
const SPACE_NS: u64 = 1_000_000;
const WINDOW_NS: u64 = 20_000_000;
/// On a machine that is busy with others' work the busy threads may get nothing done meanwhile: it is longer then.
const WINDOW_MAX_NS: u64 = 1_000_000_000;

struct Target {
    method: Method,
    load: &'static str,
}

struct Targets {
    targets: Vec<Target>,
    load: Load,
}

impl Targets {
    fn new(arms: &[Arm]) -> Result<Targets, String> {
        let mut connection: Option<Rc<Connection>> = None;
        let mut daemon = || match &connection {
            Some(connection) => Ok(Rc::clone(connection)),
            None => {
                let new = Rc::new(Connection::new().map_err(|error| error.to_string())?);
                Ok(Rc::clone(connection.insert(new)))
            }
        };
        let targets = arms.iter().map(|arm| {
            let load = load_of(arm).ok_or_else(|| format!("{arm}: load is idle, busy or spaced"))?;
            Ok(Target { method: Method::new(&arm.variant, &mut daemon)?, load })
        });
        Ok(Targets { targets: targets.collect::<Result<_, String>>()?, load: Load::new()? })
    }
}

impl Session for Targets {
    /// Store buffers must not show: no round in which both sides miss what the other wrote. That can fail for what is
    /// quick, as expedited membarrier is: of what takes longer than a microsecond or so it proves nothing.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.load.set(false);
        let method = &mut self.targets[arm].method;
        let mut failed = None;
        let rounds = method.litmus_rounds();
        let missed = missed_rounds(rounds, || failed = failed.take().or(method.wait().err()));
        match (failed, missed) {
            (Some(error), _) => Err(TargetError::Failed(error)),
            (None, 0) => Ok(()),
            (None, missed) => {
                let what = format!("no barrier: in {missed} of {rounds} rounds both sides missed the other's write");
                Err(TargetError::WrongAnswer(what))
            }
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let Target { method, load } = &mut self.targets[arm];
        self.load.set([BUSY, SPACED].contains(load));
        thread::sleep(Duration::from_nanos(trial.seed % PAUSE_MAX_NS));
        let measured = if *load == SPACED { spaced(method, &self.load, out) } else { one(method, out) };
        // What is measured next may be another experiment's, and finds the machine as idle as this one did.
        self.load.set(false);
        measured.map_err(TargetError::Failed)
    }
}

fn one(method: &mut Method, out: &mut Samples) -> Result<(), String> {
    let start_ns = clock::now_ns();
    method.wait()?;
    out.push(TIME, (clock::now_ns() - start_ns) as f64);
    Ok(())
}

/// What the busy threads get done beside barriers that begin a millisecond apart, or as soon as the last one ended.
fn spaced(method: &mut Method, load: &Load, out: &mut Samples) -> Result<(), String> {
    let counted = method.count()?;
    let (start_ns, rounds, daemon_ns) = (clock::now_ns(), load.rounds(), method.daemon_ns());
    let mut now_ns = start_ns;
    while now_ns - start_ns < WINDOW_NS || load.rounds() == rounds {
        if now_ns - start_ns > WINDOW_MAX_NS {
            return Err("the busy threads got no CPU for a second".into());
        }
        let next_ns = now_ns + SPACE_NS;
        method.wait()?;
        thread::sleep(Duration::from_nanos(next_ns.saturating_sub(clock::now_ns())));
        now_ns = clock::now_ns();
    }
    let elapsed_ns = (now_ns - start_ns) as f64;
    out.push(OTHERS, (load.rounds() - rounds) as f64 / elapsed_ns * 1e9);
    if let (Some(before_ns), Some(after_ns)) = (daemon_ns, method.daemon_ns()) {
        out.push(DAEMON, after_ns.saturating_sub(before_ns) as f64 / elapsed_ns);
    }
    if let Some((counted, cpus)) = counted {
        let run_ns = counted.run_ns().map_err(|error| error.to_string())?;
        out.push(PROGRAM, run_ns as f64 / elapsed_ns / cpus as f64);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each way that this machine has is a barrier, as far as it claims to be one, and is measured under each load.
    #[test]
    fn what_is_available_is_measured() {
        let machine = ascertain_sys::machine::describe();
        let spec = Barrier.spec();
        let arm = |variant: &str, load| Arm { variant: variant.into(), point: spec.default_point().with("load", load) };
        let arms =
            [IDLE, BUSY, SPACED].into_iter().flat_map(|load| spec.variants.iter().map(move |v| arm(&v.name, load)));
        let arms: Vec<Arm> = arms.filter(|arm| Barrier.available(arm, &machine).is_ok()).collect();
        assert!(arms.contains(&arm("none", SPACED)));
        let mut targets = Targets::new(&arms).unwrap();
        for (index, arm) in arms.iter().enumerate() {
            targets.verify(index).unwrap_or_else(|error| panic!("{arm}: {error}"));
            let mut samples = Samples::default();
            targets.measure(index, &Trial { number: 0, seed: 1 }, &mut samples).unwrap();
            let measured = format!("{samples:?}");
            let is_spaced = load_of(arm) == Some(SPACED);
            let metric = if is_spaced { OTHERS } else { TIME };
            assert!(measured.contains(&format!("metric: {metric}")), "{arm}: {measured}");
            let is_counted = is_spaced && arm.variant == "heartbeat" && Barrier.shows(arm, PROGRAM, &machine).is_ok();
            assert_eq!(measured.contains(&format!("metric: {PROGRAM}")), is_counted, "{arm}: {measured}");
        }
    }

    #[test]
    fn a_load_that_is_none_is_an_error() {
        let arm = Arm { variant: "mprotect".into(), point: Barrier.spec().default_point().with("load", "heavy") };
        assert!(Targets::new(&[arm]).err().is_some_and(|error| error.contains("idle, busy or spaced")));
    }
}
