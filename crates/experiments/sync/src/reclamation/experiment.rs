//! Measures how readers protect objects that are replaced and freed: by hazard pointers and epochs over each barrier,
//! and by the methods of other crates. All methods read the same ring of objects.

mod contestants;
mod limits;
mod ours;
mod peers;

use std::sync::LazyLock;

use ascertain_engine::batch::{self, Timed};
use ascertain_engine::experiment::{
    Arm, ArmId, Better, Experiment, Factor, Metric, Plot, Samples, Session, Setup, Spec, TargetError, Trial,
    Unavailable, Variant,
};
use ascertain_engine::unit::Unit;
use ascertain_sys::clock;
use ascertain_sys::machine::Machine;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

use contestants::{Readers, Reclaimer, VARIANTS, contestant, is_available};

/// The experiment `reclamation`.
pub struct Reclamation;

const TIME: usize = 0;
const LATENCY: usize = 1;
const HELD: usize = 2;
const FREE_TIME: usize = 3;
const UPDATE: usize = 4;
const DEFER: usize = 5;

static SPEC: LazyLock<Spec> = LazyLock::new(|| Spec {
    title: "Reading objects that other threads replace and free: hazard pointers and epochs without fences".into(),
    variants: VARIANTS.map(Variant::from).to_vec(),
    factors: vec![Factor::integer("objects", "number of objects, which are read in turn", 256, 1..=1 << 16)],
    metrics: vec![
        Metric::time("time", "time per read if no read waits for another: the mean of a batch"),
        Metric::time("latency", "time per read if each read waits for the previous read: the mean of a batch"),
        Metric::new(
            "held",
            "number of objects not freed, of 4,000 that were replaced while a reader stalled",
            Unit::One,
            Better::Lower,
        ),
        Metric::time("free_time", "time from retiring an object to freeing it, without readers"),
        Metric::time(
            "update",
            "time to replace an object with a changed copy, including the time to free old objects: the mean of 4,000 replacements",
        ),
        Metric::time(
            "defer",
            "time to pin and to defer a closure that frees an object, including the time to call earlier closures: the mean of 4,000 closures",
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

    /// Draws the order in which objects lead to one another, and finds out how many rounds of reads a batch needs.
    fn open(&self, arms: &[Arm], setup: &Setup) -> Result<Box<dyn Session>, TargetError> {
        let mut rings = arms.iter().map(|arm| object_ring(arm, setup.seed)).collect::<Result<Vec<_>, _>>()?;
        let mut timed: Vec<_> = rings.iter_mut().map(reads).collect();
        let iterations = batch::iterations(&mut timed);
        drop(timed);
        Ok(Box::new(ReclamationSession { rings, iterations }))
    }
}

/// Number of objects that one measurement replaces. The measurement counts the objects that a stalled reader holds
/// back, or times the replacements. Every method frees objects in batches that are several times smaller.
const REPLACED: usize = 4_000;

struct ObjectRing {
    readers: Box<dyn Readers>,
    objects: usize,
}

struct ReclamationSession {
    rings: Vec<ObjectRing>,
    iterations: u64,
}

fn reads(ring: &mut ObjectRing) -> Timed<'_> {
    batch::timed(|| ring.readers.read_all())
}

fn object_ring(arm: &Arm, seed: u64) -> Result<ObjectRing, TargetError> {
    let failed = |reason: String| TargetError::Failed(format!("{arm}: {reason}"));
    let objects = arm.integer("objects")? as usize;
    if objects == 0 {
        return Err(failed("objects must be above 0".into()));
    }
    let readers = contestant(&arm.variant, &ring(objects, seed)).map_err(|error| failed(error.to_string()))?;
    Ok(ObjectRing { readers, objects })
}

/// Returns a random ring of all objects: for each object the index of the next one.
fn ring(objects: usize, seed: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..objects).collect();
    order.shuffle(&mut Xoshiro256PlusPlus::seed_from_u64(seed));
    let mut ring = vec![0; objects];
    for (nth, &object) in order.iter().enumerate() {
        ring[object] = order[(nth + 1) % objects];
    }
    ring
}

/// Replaces objects while a reader is stalled in a read. Returns how many of the replaced objects are not freed
/// meanwhile.
fn held(reclaimer: &mut dyn Reclaimer) -> usize {
    reclaimer.stall();
    (0..REPLACED).for_each(|_| reclaimer.replace());
    let held = reclaimer.waiting();
    reclaimer.resume();
    reclaimer.hasten();
    held
}

/// Returns the time from replacing an object to freeing it, or `None` if it was not freed.
fn free_time_ns(reclaimer: &mut dyn Reclaimer) -> Option<u64> {
    reclaimer.hasten();
    let start_ns = clock::now_ns();
    reclaimer.replace();
    reclaimer.hasten();
    let elapsed_ns = clock::now_ns() - start_ns;
    (reclaimer.waiting() == 0).then_some(elapsed_ns)
}

/// Returns the mean time of a replacement in nanoseconds, including the time of freeing other objects meanwhile.
fn mean_ns(reclaimer: &mut dyn Reclaimer, replace: impl Fn(&mut dyn Reclaimer)) -> f64 {
    reclaimer.hasten();
    let start_ns = clock::now_ns();
    (0..REPLACED).for_each(|_| replace(reclaimer));
    let elapsed_ns = clock::now_ns() - start_ns;
    reclaimer.hasten();
    elapsed_ns as f64 / REPLACED as f64
}

impl Session for ReclamationSession {
    /// Checks that reads return the right objects, and that all replaced objects are eventually freed.
    fn verify(&mut self, arm: ArmId) -> Result<(), TargetError> {
        let ObjectRing { readers, objects } = &mut self.rings[arm];
        let wrong = |what: String| Err(TargetError::WrongAnswer(what));
        let (seen, expected) = (readers.read_all(), (0..*objects).sum::<usize>());
        if seen != expected {
            return wrong(format!("the sum of the objects is {seen} instead of {expected}"));
        }
        if let Some(end) = readers.chain().filter(|end| *end != 0) {
            return wrong(format!("{objects} steps lead to object {end} instead of 0"));
        }
        if let Some(reclaimer) = readers.reclaimer() {
            let held = held(reclaimer);
            if held > REPLACED || reclaimer.waiting() > 0 {
                return wrong(format!("{} of {held} objects that were held back are never freed", reclaimer.waiting()));
            }
            reclaimer.update();
            reclaimer.defer();
            reclaimer.hasten();
            if reclaimer.waiting() > 0 {
                return wrong(format!("{} updated or deferred objects are never freed", reclaimer.waiting()));
            }
        }
        Ok(())
    }

    fn measure(&mut self, arm: ArmId, _: &Trial, out: &mut Samples) -> Result<(), TargetError> {
        let (ring, iterations) = (&mut self.rings[arm], self.iterations);
        let count = (iterations * ring.objects as u64) as f64;
        out.push(TIME, reads(ring)(iterations) as f64 / count);
        if ring.readers.chain().is_some() {
            let mut chain = batch::timed(|| ring.readers.chain());
            out.push(LATENCY, chain(iterations) as f64 / count);
        }
        if let Some(reclaimer) = ring.readers.reclaimer() {
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

    /// With epochs, a stalled reader must hold back all replaced objects; with hazard pointers, it must hold back fewer
    /// than half of them.
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
                Some("hazard") => assert!(held.is_some_and(|held| held < REPLACED / 2), "{arm}: {held:?}"),
                Some("epoch" | "crossbeam") => assert_eq!(held, Some(REPLACED), "{arm}"),
                _ => assert_eq!(held, None, "{arm}"),
            }
        }
    }
}
