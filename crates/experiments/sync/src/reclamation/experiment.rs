//! Readers of objects that are replaced and freed: hazard pointers and epochs over each barrier, and others' ways. All
//! read the same ring of objects.

mod contestants;
mod ours;
mod peers;

use std::sync::LazyLock;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::experiment::{
    Accepts, Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Samples, Session, Setup, Spec, TargetError, Trial,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::clock;
use ascertain_sys::machine::Machine;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use contestants::{Readers, Reclaimer, VARIANTS, contestant, is_available};

/// Reclamation.
pub struct Reclamation;

const TIME: usize = 0;
const LATENCY: usize = 1;
const HELD: usize = 2;
const FREE_TIME: usize = 3;
const UPDATE: usize = 4;
const DEFER: usize = 5;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Reading what others replace and free: hazard pointers and epochs without fences".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::new(
        "objects",
        "objects that are read in turn",
        256,
        Accepts::Integers { min: 1, max: 1 << 16 },
    )],
    metrics: vec![
        Metric::time("time", "a read among independent ones: the mean of a batch"),
        Metric::time("latency", "a read that the next one waits for: the mean of a batch"),
        Metric::new("held", "objects not freed of 4,000 replaced while a reader stalls", Unit::One, Better::Lower),
        Metric::time("free_time", "from retiring an object to its being freed, no one reading"),
        Metric::time(
            "update",
            "replacing an object by one made of it, and freeing others meanwhile: the mean of 4,000",
        ),
        Metric::time(
            "defer",
            "pinning and deferring a closure that frees an object, and calling others meanwhile: the mean of 4,000",
        ),
    ],
    plots: vec![Plot::sweep("latency", "objects")],
    ..Spec::new("reclamation", include_str!("README.md"))
});

impl Experiment for Reclamation {
    fn spec(&self) -> &Spec {
        &SPEC
    }

    fn available(&self, arm: &Arm, _: &Machine) -> Result<(), Unavailable> {
        is_available(&arm.variant)
    }

    /// Draws the order in which objects lead to one another, and finds how many rounds of them are a batch.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut targets = arms.iter().map(|arm| target(arm, setup.seed)).collect::<Result<Vec<_>, _>>()?;
        let mut timed: Vec<_> = targets.iter_mut().map(each).collect();
        let iterations = batch::iterations(&mut timed);
        drop(timed);
        Ok(Box::new(Targets { targets, iterations }))
    }
}

/// Objects replaced while a reader stalls, or in a row: some batches of everybody's.
const REPLACED: usize = 4_000;

struct Target {
    readers: Box<dyn Readers>,
    objects: usize,
}

struct Targets {
    targets: Vec<Target>,
    iterations: u64,
}

fn each(target: &mut Target) -> Timed<'_> {
    batch::timed(|| target.readers.each())
}

fn target(arm: &Arm, seed: u64) -> Result<Target, TargetError> {
    let failed = |reason: String| TargetError::Failed(format!("{arm}: {reason}"));
    let objects = arm.integer("objects")? as usize;
    if objects == 0 {
        return Err(failed("objects is above 0".into()));
    }
    let readers = contestant(&arm.variant, &ring(objects, seed)).map_err(|error| failed(error.to_string()))?;
    Ok(Target { readers, objects })
}

/// A random order of all objects, as the successor of each.
fn ring(objects: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..objects).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut ring = vec![0; objects];
    for (nth, &object) in order.iter().enumerate() {
        ring[object] = order[(nth + 1) % objects];
    }
    ring
}

/// Objects that are not freed, of those that were replaced while a reader stalled.
fn held(reclaimer: &mut dyn Reclaimer) -> u64 {
    reclaimer.stall();
    (0..REPLACED).for_each(|_| reclaimer.replace());
    let held = reclaimer.waiting();
    reclaimer.resume();
    reclaimer.hasten();
    held
}

/// How long an object takes to be freed. None where it was not freed in the end.
fn free_time_ns(reclaimer: &mut dyn Reclaimer) -> Option<u64> {
    reclaimer.hasten();
    let start_ns = clock::now_ns();
    reclaimer.replace();
    reclaimer.hasten();
    let elapsed_ns = clock::now_ns() - start_ns;
    (reclaimer.waiting() == 0).then_some(elapsed_ns)
}

/// What replacing an object takes, when it goes on: what it frees meanwhile is in it.
fn mean_ns(reclaimer: &mut dyn Reclaimer, replace: impl Fn(&mut dyn Reclaimer)) -> f64 {
    reclaimer.hasten();
    let start_ns = clock::now_ns();
    (0..REPLACED).for_each(|_| replace(reclaimer));
    let elapsed_ns = clock::now_ns() - start_ns;
    reclaimer.hasten();
    elapsed_ns as f64 / REPLACED as f64
}

impl Session for Targets {
    /// What is read is what was put there, and all that is replaced is freed in the end.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let Target { readers, objects } = &mut self.targets[arm];
        let wrong = |what: String| Err(TargetError::WrongAnswer(what));
        let (seen, expected) = (readers.each(), (0..*objects).sum::<usize>());
        if seen != expected {
            return wrong(format!("the objects' sum is {seen} instead of {expected}"));
        }
        if let Some(end) = readers.chain().filter(|end| *end != 0) {
            return wrong(format!("{objects} steps lead to object {end} instead of 0"));
        }
        if let Some(reclaimer) = readers.reclaimer() {
            let held = held(reclaimer);
            if held > REPLACED as u64 || reclaimer.waiting() > 0 {
                return wrong(format!("{} objects are never freed, of {held} held", reclaimer.waiting()));
            }
            reclaimer.update();
            reclaimer.defer();
            reclaimer.hasten();
            if reclaimer.waiting() > 0 {
                return wrong(format!("{} objects are never freed that were updated or deferred", reclaimer.waiting()));
            }
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let (target, iterations) = (&mut self.targets[arm], self.iterations);
        let reads = (iterations * target.objects as u64) as f64;
        out.push(TIME, each(target)(iterations) as f64 / reads);
        if target.readers.chain().is_some() {
            let mut chain = batch::timed(|| target.readers.chain());
            out.push(LATENCY, chain(iterations) as f64 / reads);
        }
        if let Some(reclaimer) = target.readers.reclaimer() {
            out.push(HELD, held(reclaimer) as f64);
            if let Some(elapsed_ns) = free_time_ns(reclaimer) {
                out.push(FREE_TIME, elapsed_ns as f64);
            }
            out.push(UPDATE, mean_ns(reclaimer, |reclaimer| reclaimer.update()));
            if reclaimer.defer() {
                let defer = |reclaimer: &mut dyn Reclaimer| _ = reclaimer.defer();
                out.push(DEFER, mean_ns(reclaimer, defer));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Point;

    use super::*;

    #[test]
    fn a_ring_leads_through_all_objects() {
        for objects in [1, 2, 3, 100] {
            let ring = ring(objects, 1);
            let mut seen: Vec<usize> = std::iter::successors(Some(0), |&at| Some(ring[at])).take(objects).collect();
            seen.sort_unstable();
            assert!(seen.iter().copied().eq(0..objects), "{objects}: {seen:?}");
        }
    }

    /// A batch of epochs is held by a stalled reader in whole, one object by hazard pointers.
    #[test]
    fn everybody_is_measured_who_is_there() {
        let available = VARIANTS.iter().filter(|(name, _)| is_available(name).is_ok());
        let point = Point::default().with("objects", 8);
        let arms: Vec<Arm> = available.map(|(name, _)| Arm { variant: (*name).into(), point: point.clone() }).collect();
        let mut session = Reclamation.open(&arms, &Setup { seed: 1, ..Setup::default() }).unwrap();
        for (index, arm) in arms.iter().enumerate() {
            session.verify(index).unwrap();
            session.measure(index, &Trial { number: 0, seed: 0 }, &mut Samples::default()).unwrap();
            let mut readers = contestant(&arm.variant, &ring(8, 1)).unwrap();
            let held = readers.reclaimer().map(held);
            match arm.variant.split('-').next() {
                Some("hazard") => assert!(held.is_some_and(|held| held < REPLACED as u64 / 2), "{arm}: {held:?}"),
                Some("epoch" | "crossbeam") => assert_eq!(held, Some(REPLACED as u64), "{arm}"),
                _ => assert_eq!(held, None, "{arm}"),
            }
        }
    }
}
