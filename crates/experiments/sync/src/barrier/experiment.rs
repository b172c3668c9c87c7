//! The time of the slow side of an asymmetric barrier, for several methods of waiting for every CPU. A trial measures a
//! single barrier, or many barriers that begin one millisecond apart.

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

/// The experiment `barrier`: methods of waiting for every CPU.
pub struct Barrier;

const TIME: usize = 0;
const OTHERS: usize = 1;
const DAEMON: usize = 2;
const PROGRAM: usize = 3;

/// The level of the factor `load` at which other threads sleep.
const IDLE: &str = "idle";
/// The level of the factor `load` at which other threads keep every CPU busy.
const BUSY: &str = "busy";
/// The level of the factor `load` at which other threads keep every CPU busy, and barriers begin a millisecond apart.
const SPACED: &str = "spaced";

const VARIANTS: [(&str, &str); 9] = [
    ("heartbeat", "sync::barrierd: wait for interrupts that the daemon sends while a client waits"),
    ("interrupts", "sync::barrierd: poll, without requesting interrupts, until each CPU was interrupted"),
    (
        "interrupts-clock",
        "like interrupts, but by CLOCK_MONOTONIC, as in the first barrierd; only timed, because it is not a reliable \
         barrier",
    ),
    ("plain", "membarrier, which waits for the scheduler"),
    ("expedited", "membarrier by interrupts, expedited"),
    ("asked", "speed limit: no barrier; a real-time thread gets a request over a socket, like the daemon, and answers"),
    (
        "asked-interrupts",
        "speed limit of a heartbeat: like asked, and the thread interrupts the CPUs of this process before it answers",
    ),
    (
        "mprotect",
        "mprotect removes the access rights of a page and restores them; only timed, because it is not a reliable \
         barrier",
    ),
    ("none", "no barrier: the cost of measuring, and the reference at load=spaced"),
];

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "The slow side of an asymmetric barrier: the time until every CPU sees the caller's writes".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::new(
        "load",
        "the rest of the machine: idle; busy (two threads per CPU at low priority); spaced (busy, with one barrier per \
         millisecond, to measure its cost to the other threads)",
        BUSY,
        Accepts::OneOf([IDLE, BUSY, SPACED].map(Into::into).to_vec()),
    )],
    metrics: vec![
        Metric::time("time", "time for one barrier"),
        Metric::new("others", "rounds per second of all busy threads together", Unit::PerSecond, Better::Higher),
        Metric::new("daemon", "CPU time of the daemon, as a share of one CPU", Unit::One, Better::Lower),
        Metric::new(
            "program",
            "run time of the daemon's BPF program that handles interrupts, as a share of each CPU's time",
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

    /// Returns arms of every variant on an idle and on a busy machine, as in the publication that the README cites. For
    /// some variants, also returns an arm that shows how much barriers slow the rest of the machine.
    fn table_arms(&self) -> Vec<Arm> {
        let arm = |name: &str, load: &str| Arm { variant: name.into(), point: Point::default().with("load", load) };
        let timed = VARIANTS.iter().flat_map(|(name, _)| [arm(name, IDLE), arm(name, BUSY)]);
        // These arms take long, so only one method of each kind is measured: one by heartbeats, one by the scheduler,
        // one by immediate interrupts, and one that does nothing.
        timed.chain(["heartbeat", "plain", "expedited", "none"].map(|name| arm(name, SPACED))).collect()
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        methods::is_available(&arm.variant).map_err(Unavailable::other)
    }

    fn shows(&self, _: &Arm, metric: usize, _: &Machine) -> Result<(), Unavailable> {
        if metric == PROGRAM { methods::program_is_counted().map_err(Unavailable::other) } else { Ok(()) }
    }

    fn open(&self, arms: &[Arm], _: &Setup) -> Result<Box<dyn Session>, TargetError> {
        BarrierSession::new(arms).map(|session| Box::new(session) as Box<dyn Session>).map_err(TargetError::Failed)
    }
}

/// Returns the level of the factor `load` of an arm, or `None` if the level is unknown.
fn load_of(arm: &Arm) -> Option<&'static str> {
    let level = arm.point.get("load")?.to_string();
    [IDLE, BUSY, SPACED].into_iter().find(|known| *known == level)
}

/// Longest random pause before the first barrier of a trial. The pause lets this barrier begin at any time between two
/// timer interrupts.
const PAUSE_MAX_NS: u64 = 4_000_000;
/// Time between the beginnings of two barriers at `load=spaced`.
const SPACE_NS: u64 = 1_000_000;
/// Minimum duration of a measurement at `load=spaced`. The measurement takes longer if the busy threads have not
/// completed a round by then.
const WINDOW_NS: u64 = 20_000_000;
/// Time after which a measurement at `load=spaced` fails if the busy threads have not completed a round. It is long,
/// because other programs may keep the machine busy.
const WINDOW_MAX_NS: u64 = 1_000_000_000;

struct BarrierUnderLoad {
    method: Method,
    load: &'static str,
}

struct BarrierSession {
    barriers: Vec<BarrierUnderLoad>,
    load: Load,
}

impl BarrierSession {
    fn new(arms: &[Arm]) -> Result<BarrierSession, String> {
        let mut connection: Option<Rc<Connection>> = None;
        let mut daemon = || match &connection {
            Some(connection) => Ok(Rc::clone(connection)),
            None => {
                let new = Rc::new(Connection::new().map_err(|error| error.to_string())?);
                Ok(Rc::clone(connection.insert(new)))
            }
        };
        let barriers = arms.iter().map(|arm| {
            let load = load_of(arm).ok_or_else(|| format!("{arm}: load must be idle, busy or spaced"))?;
            Ok(BarrierUnderLoad { method: Method::new(&arm.variant, &mut daemon)?, load })
        });
        Ok(BarrierSession { barriers: barriers.collect::<Result<_, String>>()?, load: Load::new()? })
    }
}

impl Session for BarrierSession {
    /// Runs the store-buffering test, in which two threads each write a value and then read the value of the other
    /// thread. In each round, at least one thread must see the write of the other thread. The test can detect a failure
    /// only for quick methods, such as expedited membarrier. It proves nothing about methods that take longer than
    /// about a microsecond.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        self.load.set(false);
        let method = &mut self.barriers[arm].method;
        let mut failed = None;
        let rounds = method.litmus_rounds();
        let missed = missed_rounds(rounds, || failed = failed.take().or(method.wait().err()));
        match (failed, missed) {
            (Some(error), _) => Err(TargetError::Failed(error)),
            (None, 0) => Ok(()),
            (None, missed) => {
                let what = format!("not a barrier: in {missed} of {rounds} rounds both sides missed the other's write");
                Err(TargetError::WrongAnswer(what))
            }
        }
    }

    fn measure(&mut self, arm: ArmId, trial: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let BarrierUnderLoad { method, load } = &mut self.barriers[arm];
        self.load.set([BUSY, SPACED].contains(load));
        thread::sleep(Duration::from_nanos(trial.seed % PAUSE_MAX_NS));
        let measured = if *load == SPACED { spaced(method, &self.load, out) } else { measure_single(method, out) };
        // Switches the load off, because the next measurement may be that of another experiment on an idle machine.
        self.load.set(false);
        measured.map_err(TargetError::Failed)
    }
}

fn measure_single(method: &mut Method, out: &mut Samples) -> Result<(), String> {
    let start_ns = clock::now_ns();
    method.wait()?;
    out.push(TIME, (clock::now_ns() - start_ns) as f64);
    Ok(())
}

/// Measures the work of the busy threads while barriers run. A barrier begins one millisecond after the previous one,
/// or when the previous one ends if that takes longer.
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

    /// Each method that this machine supports must be measured under each load. If the method claims to be a barrier,
    /// it must also pass the store-buffering test.
    #[test]
    fn what_is_available_is_measured() {
        let machine = ascertain_sys::machine::describe();
        let spec = Barrier.spec();
        let arm = |variant: &str, load| Arm { variant: variant.into(), point: spec.default_point().with("load", load) };
        let arms =
            [IDLE, BUSY, SPACED].into_iter().flat_map(|load| spec.variants.iter().map(move |v| arm(&v.name, load)));
        let arms: Vec<Arm> = arms.filter(|arm| Barrier.available(arm, &machine).is_ok()).collect();
        assert!(arms.contains(&arm("none", SPACED)));
        let mut session = BarrierSession::new(&arms).unwrap();
        for (index, arm) in arms.iter().enumerate() {
            session.verify(index).unwrap_or_else(|error| panic!("{arm}: {error}"));
            let mut samples = Samples::default();
            session.measure(index, &Trial { number: 0, seed: 1 }, &mut samples).unwrap();
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
        assert!(BarrierSession::new(&[arm]).err().is_some_and(|error| error.contains("idle, busy or spaced")));
    }
}
