//! Hazard pointers and epochs on x86 with store buffers, in every order of their steps:
//! `RUSTFLAGS='--cfg model="tso"' cargo test -p ascertain-sync --test reclamation_tso`.
#![cfg(model = "tso")]
#![allow(missing_docs)]

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use ascertain_sync::barrier::{Barrier, Fences, Ticket};
use ascertain_sync::hazard::Domain;
use ascertain_sync::model::tso::{self, AtomicU32, Explored, Failure, Quarantine, thread};
use ascertain_sync::{epoch, hazard};

#[global_allocator]
static QUARANTINE: Quarantine = Quarantine;

/// A heavy side that empties all store buffers, and a light side that is nothing.
#[derive(Clone)]
struct Asymmetric;

// SAFETY: what precedes a light side is in memory, or the light side comes after the heavy one.
unsafe impl Barrier for Asymmetric {
    fn light(&self) {}

    fn ticket(&self) -> Ticket {
        tso::heavy();
        Ticket::passed()
    }
}

/// The control: no barrier, not even of one's own buffer.
#[derive(Clone)]
struct Missing;

// SAFETY: it is not one, which the models are to find.
unsafe impl Barrier for Missing {
    fn light(&self) {}

    fn ticket(&self) -> Ticket {
        Ticket::passed()
    }
}

/// The other control: a fence of one's own on the heavy side, and none on the light one.
#[derive(Clone)]
struct HalfFenced;

// SAFETY: as of `Missing`.
unsafe impl Barrier for HalfFenced {
    fn light(&self) {}

    fn ticket(&self) -> Ticket {
        Fences.ticket()
    }
}

/// The model finds out when its atomic is used after it was dropped.
struct Object(AtomicU32);

impl Object {
    fn new(value: u32) -> Self {
        Self(AtomicU32::new(value))
    }

    fn read(&self) -> u32 {
        self.0.load(Relaxed)
    }
}

/// A reader against a writer that replaces the object once and frees it.
fn hazard_protects(barrier: impl Barrier) -> Result<Explored, Failure> {
    tso::explore(move || {
        let domain = Domain::new(barrier.clone());
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let guard = published.load(&mut hazard);
                let value = guard.read();
                assert!(value == 1 || value == 2);
            }
        });
        published.replace(Object::new(2), &mut retirer);
        retirer.flush();
        reader.join().unwrap();
    })
}

#[test]
fn hazard_pointers_protect() {
    for explored in [hazard_protects(Asymmetric), hazard_protects(Fences)] {
        let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
        eprintln!("{explored:?}");
        assert!(explored.executions > 10, "{explored:?}");
    }
}

#[test]
fn hazard_pointers_without_a_barrier_do_not() {
    for failure in [hazard_protects(Missing), hazard_protects(HalfFenced)] {
        let failure = failure.unwrap_err();
        assert!(failure.what.contains("dropped"), "{failure}");
    }
}

/// A reader that takes its slot while the writer looks at the slots, and reads twice with one slot.
#[test]
fn a_slot_that_is_made_during_a_scan() {
    let explored = tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let mut retirer = domain.retirer();
        let reader = thread::spawn({
            let (published, domain) = (published.clone(), domain.clone());
            move || {
                let mut hazard = domain.hazard();
                published.load(&mut hazard).read();
                published.load(&mut hazard).read();
            }
        });
        published.replace(Object::new(2), &mut retirer);
        retirer.flush();
        reader.join().unwrap();
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    eprintln!("{explored:?}");
}

/// Two writers, one of whom ends before it could free anything.
#[test]
fn what_a_writer_leaves_behind_is_protected_too() {
    let explored = tso::explore(|| {
        let domain = Domain::new(Asymmetric);
        let published = Arc::new(hazard::Published::new(Object::new(1), &domain));
        let (mut hazard, mut retirer) = (domain.hazard(), domain.retirer());
        let writer = thread::spawn({
            let (published, domain) = (published.clone(), domain.clone());
            move || published.replace(Object::new(2), &mut domain.retirer())
        });
        let reader = thread::spawn(move || {
            published.load(&mut hazard).read();
        });
        retirer.flush();
        writer.join().unwrap();
        reader.join().unwrap();
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    eprintln!("{explored:?}");
}

/// A reader that pins against a writer that replaces the object, advances as far as it can, and frees.
fn epoch_protects(barrier: impl Barrier, first: u64) -> Result<Explored, Failure> {
    tso::explore(move || {
        let collector = epoch::Collector::starting_at(first, barrier.clone());
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let (reading, writing) = (collector.register(), collector.register());
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                let value = published.load(&reading.pin()).read();
                assert!(value == 1 || value == 2);
            }
        });
        published.replace(Object::new(2), &writing);
        writing.collect();
        writing.collect();
        reader.join().unwrap();
    })
}

#[test]
fn epochs_protect() {
    // The second begins with the last epoch but one, after which comes 0.
    for explored in [epoch_protects(Asymmetric, 0), epoch_protects(Asymmetric, u64::MAX / 2 - 1), epoch_protects(Fences, 0)] {
        let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
        eprintln!("{explored:?}");
        assert!(explored.executions > 10, "{explored:?}");
    }
}

#[test]
fn epochs_without_a_barrier_do_not() {
    for failure in [epoch_protects(Missing, 0), epoch_protects(HalfFenced, 0)] {
        let failure = failure.unwrap_err();
        assert!(failure.what.contains("dropped"), "{failure}");
    }
}

/// A reader that is pinned twice, in different epochs, against a writer that retires in between.
#[test]
fn a_reader_that_pins_again() {
    let explored = tso::explore(|| {
        let collector = epoch::Collector::new(Asymmetric);
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let (reading, writing) = (collector.register(), collector.register());
        let reader = thread::spawn({
            let published = published.clone();
            move || {
                published.load(&reading.pin()).read();
                published.load(&reading.pin()).read();
            }
        });
        published.replace(Object::new(2), &writing);
        writing.collect();
        writing.collect();
        reader.join().unwrap();
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    eprintln!("{explored:?}");
}

/// Two that advance the epoch at the same time.
#[test]
fn two_writers() {
    let explored = tso::explore(|| {
        let collector = epoch::Collector::new(Asymmetric);
        let published = Arc::new(epoch::Published::new(Object::new(1), &collector));
        let (reading, one, other) = (collector.register(), collector.register(), collector.register());
        let writer = thread::spawn({
            let published = published.clone();
            move || {
                published.replace(Object::new(2), &one);
                one.collect();
            }
        });
        let reader = thread::spawn(move || {
            published.load(&reading.pin()).read();
        });
        other.collect();
        other.collect();
        writer.join().unwrap();
        reader.join().unwrap();
    });
    let explored = explored.unwrap_or_else(|failure| panic!("{failure}"));
    eprintln!("{explored:?}");
}
