//! Tests for the common properties of hazard pointers and epochs: each test runs for both.

use std::sync::Arc;
use std::thread;

use ascertain_sync::barrier::{Barrier, Fences};
use ascertain_sync::{epoch, hazard};

use crate::common::panics::panic_message;
use crate::common::reclaimed::{Counted, Drops};

/// The handles that one thread needs to read and to write.
trait Participant: Send {
    type Published<T: Send + Sync + 'static>: Send + Sync + 'static;

    /// Returns another participant of the same domain or collector.
    fn another(&self) -> Self;
    /// Returns a participant of another domain or collector.
    fn stranger(&self) -> Self;
    fn publish<T: Send + Sync>(&self, object: T) -> Self::Published<T>;
    fn read<T: Send + Sync, R>(&mut self, published: &Self::Published<T>, read: impl FnOnce(&T) -> R) -> R;
    fn replace<T: Send + Sync>(&mut self, published: &Self::Published<T>, object: T);
    fn exchange<T: Send + Sync>(&mut self, published: &Self::Published<T>, current: &T, object: T) -> Result<(), T>;
    fn update<T: Send + Sync>(&mut self, published: &Self::Published<T>, change: impl FnMut(&T) -> Option<T>) -> bool;
    fn flush(&mut self);
    fn waiting(&self) -> usize;
}

struct OfDomain<B: Barrier> {
    domain: hazard::Domain<B>,
    hazard: hazard::Hazard<B>,
    retirer: hazard::Retirer<B>,
}

impl<B: Barrier> OfDomain<B> {
    fn over(domain: hazard::Domain<B>) -> Self {
        Self { hazard: domain.hazard(), retirer: domain.retirer(), domain }
    }
}

impl<B: Barrier> Participant for OfDomain<B> {
    type Published<T: Send + Sync + 'static> = hazard::Published<T, B>;

    fn another(&self) -> Self {
        Self::over(self.domain.clone())
    }

    fn stranger(&self) -> Self {
        Self::over(hazard::Domain::new(self.domain.barrier().clone()))
    }

    fn publish<T: Send + Sync>(&self, object: T) -> Self::Published<T> {
        hazard::Published::new(object, &self.domain)
    }

    fn read<T: Send + Sync, R>(&mut self, published: &Self::Published<T>, read: impl FnOnce(&T) -> R) -> R {
        read(&published.load(&mut self.hazard))
    }

    fn replace<T: Send + Sync>(&mut self, published: &Self::Published<T>, object: T) {
        published.replace(object, &mut self.retirer);
    }

    fn exchange<T: Send + Sync>(&mut self, published: &Self::Published<T>, current: &T, object: T) -> Result<(), T> {
        published.compare_exchange(current, object, &mut self.retirer)
    }

    fn update<T: Send + Sync>(&mut self, published: &Self::Published<T>, change: impl FnMut(&T) -> Option<T>) -> bool {
        published.update(&mut self.hazard, &mut self.retirer, change)
    }

    fn flush(&mut self) {
        self.retirer.flush();
    }

    fn waiting(&self) -> usize {
        self.retirer.waiting()
    }
}

struct OfCollector<B: Barrier> {
    collector: epoch::Collector<B>,
    handle: epoch::Handle<B>,
}

impl<B: Barrier> OfCollector<B> {
    fn over(collector: epoch::Collector<B>) -> Self {
        Self { handle: collector.register(), collector }
    }
}

impl<B: Barrier> Participant for OfCollector<B> {
    type Published<T: Send + Sync + 'static> = epoch::Published<T, B>;

    fn another(&self) -> Self {
        Self::over(self.collector.clone())
    }

    fn stranger(&self) -> Self {
        Self::over(epoch::Collector::new(self.collector.barrier().clone()))
    }

    fn publish<T: Send + Sync>(&self, object: T) -> Self::Published<T> {
        epoch::Published::new(object, &self.collector)
    }

    fn read<T: Send + Sync, R>(&mut self, published: &Self::Published<T>, read: impl FnOnce(&T) -> R) -> R {
        read(published.load(&self.handle.pin()))
    }

    fn replace<T: Send + Sync>(&mut self, published: &Self::Published<T>, object: T) {
        published.replace(object, &self.handle);
    }

    fn exchange<T: Send + Sync>(&mut self, published: &Self::Published<T>, current: &T, object: T) -> Result<(), T> {
        published.compare_exchange(current, object, &self.handle)
    }

    fn update<T: Send + Sync>(&mut self, published: &Self::Published<T>, change: impl FnMut(&T) -> Option<T>) -> bool {
        published.update(&self.handle, change)
    }

    fn flush(&mut self) {
        self.handle.flush();
    }

    fn waiting(&self) -> usize {
        self.handle.waiting()
    }
}

/// Defines a module of tests for hazard pointers and epochs, each with every barrier. Each test passes a participant to
/// the function that has the same name as the module.
macro_rules! for_both_with_each_barrier {
    ($name:ident) => {
        mod $name {
            fn hazard_pointers(barrier: impl super::Barrier) {
                super::$name(super::OfDomain::over(super::hazard::Domain::new(barrier)));
            }
            crate::with_each_barrier!(hazard_pointers);

            fn epochs(barrier: impl super::Barrier) {
                super::$name(super::OfCollector::over(super::epoch::Collector::new(barrier)));
            }
            crate::with_each_barrier!(epochs);
        }
    };
}

/// Defines tests like [`for_both_with_each_barrier`], but with [`Fences`] as the only barrier.
macro_rules! for_both {
    ($name:ident) => {
        mod $name {
            #[test]
            fn hazard_pointers() {
                super::$name(super::OfDomain::over(super::hazard::Domain::new(super::Fences)));
            }

            #[test]
            fn epochs() {
                super::$name(super::OfCollector::over(super::epoch::Collector::new(super::Fences)));
            }
        }
    };
}

fn value(object: &Counted) -> usize {
    object.value
}

fn what_a_thread_leaves_behind_is_freed_by_another(mut participant: impl Participant) {
    let drops = Drops::default();
    let published = participant.publish(drops.object(0));
    let mut leaving = participant.another();
    thread::scope(|scope| {
        scope.spawn(|| {
            leaving.replace(&published, drops.object(1));
            drop(leaving);
        });
    });
    assert_eq!(drops.count(), 0);
    participant.flush();
    assert_eq!(drops.count(), 1);
}
for_both!(what_a_thread_leaves_behind_is_freed_by_another);

/// Many short-lived participants must leave only a limited number of waiting objects, as in a server with a thread and
/// a participant for each request.
fn participants_that_end_leave_a_bounded_number(participant: impl Participant) {
    let drops = Drops::default();
    let published = participant.publish(drops.object(0));
    for value in 1..if cfg!(miri) { 1_100 } else { 5_000 } {
        participant.another().replace(&published, drops.object(value));
        assert!(participant.waiting() <= 3 * 1_024, "{} after {value}", participant.waiting());
    }
}
for_both_with_each_barrier!(participants_that_end_leave_a_bounded_number);

/// Several threads update an object by read-copy-update at the same time: no write is lost, and each object is freed.
fn no_update_is_lost(mut participant: impl Participant) {
    const UPDATES: usize = if cfg!(miri) { 50 } else { 2_000 };
    let drops = Drops::default();
    let published = participant.publish(drops.object(0));
    thread::scope(|scope| {
        for mut adding in [(); 3].map(|()| participant.another()) {
            let (drops, published) = (&drops, &published);
            scope.spawn(move || {
                for _ in 0..UPDATES {
                    assert!(adding.update(published, |object| Some(drops.object(object.value + 1))));
                }
            });
        }
    });
    assert_eq!(participant.read(&published, value), 3 * UPDATES);
    drop((published, participant));
    // The count includes the objects of failed attempts, in which another thread had replaced the current object first.
    assert!(drops.count() > 3 * UPDATES);
}
for_both_with_each_barrier!(no_update_is_lost);

fn an_update_that_comes_too_late_is_made_anew_or_not_at_all(mut participant: impl Participant) {
    let drops = Drops::default();
    let published = participant.publish(drops.object(0));
    let mut another = participant.another();
    let mut seen = Vec::new();
    let add_ten = |object: &Counted| {
        seen.push(object.value);
        if seen.len() == 1 {
            another.replace(&published, drops.object(1));
        }
        Some(drops.object(object.value + 10))
    };
    assert!(participant.update(&published, add_ten));
    assert_eq!((seen.as_slice(), participant.read(&published, value)), ([0, 1].as_slice(), 11));
    assert!(!participant.update(&published, |_| None));
    assert_eq!(participant.read(&published, value), 11);
    participant.flush();
    another.flush();
    // Two objects were published and replaced. One was not published, because it came too late.
    assert_eq!((drops.count(), participant.waiting() + another.waiting()), (3, 0));
}
for_both!(an_update_that_comes_too_late_is_made_anew_or_not_at_all);

/// An exchange must not mistake an object for another one at the same address, or for an equal one.
fn who_was_there_before_is_told_from_who_is_like_it(mut reading: impl Participant) {
    let drops = Drops::default();
    let published = reading.publish(drops.object(0));
    let (mut another, mut writing) = (reading.another(), reading.another());
    for _ in 0..if cfg!(miri) { 20 } else { 1_000 } {
        reading.read(&published, |current| {
            for value in [1, 0] {
                writing.replace(&published, drops.object(value));
                writing.flush();
            }
            let back = writing.exchange(&published, current, drops.object(2)).unwrap_err();
            assert_eq!((back.value, another.read(&published, value)), (2, 0));
            // This object is equal, but was never published.
            assert!(writing.exchange(&published, &drops.object(0), back).is_err());
        });
    }
    reading.read(&published, |current| {
        assert!(writing.exchange(&published, current, drops.object(3)).is_ok());
        writing.flush();
        // The reader itself has replaced this object, but can still read it.
        assert_eq!((current.value, another.read(&published, value)), (0, 3));
    });
}
for_both!(who_was_there_before_is_told_from_who_is_like_it);

fn an_object_may_be_absent(mut reading: impl Participant) {
    let drops = Drops::default();
    let published = reading.publish(None);
    let (mut another, mut writing) = (reading.another(), reading.another());
    reading.read(&published, |absent| {
        assert!(absent.is_none());
        assert!(writing.exchange(&published, absent, Some(drops.object(1))).is_ok());
        let plus_one = |object: &Option<Counted>| object.as_ref().map(|object| Some(drops.object(object.value + 1)));
        assert!(writing.update(&published, plus_one));
        assert_eq!(another.read(&published, |object| object.as_ref().map(value)), Some(2));
        writing.replace(&published, None);
        writing.flush();
        // The object is absent again, but this `None` is another one than before.
        assert!(writing.exchange(&published, absent, Some(drops.object(3))).is_err());
        assert!(another.read(&published, Option::is_none));
    });
    writing.flush();
    assert_eq!((drops.count(), writing.waiting()), (3, 0));
}
for_both!(an_object_may_be_absent);

fn who_is_of_another_is_refused(mut participant: impl Participant) {
    fn assert_refused(action: impl FnOnce()) {
        let message = panic_message(action).unwrap_or_default();
        assert!(message.contains("different domains or collectors"), "{message:?}");
    }
    let published = participant.publish(1);
    let mut stranger = participant.stranger();
    assert_refused(|| stranger.read(&published, |_| ()));
    assert_refused(|| stranger.replace(&published, 2));
    assert_refused(|| _ = stranger.update(&published, |_| None));
    participant.read(&published, |current| assert_refused(|| _ = stranger.exchange(&published, current, 2)));
}
for_both!(who_is_of_another_is_refused);

fn a_flush_frees_what_a_dropped_structure_held(mut participant: impl Participant) {
    let innermost = Arc::new(());
    let inner = participant.publish(Arc::clone(&innermost));
    let outer = participant.publish(participant.publish(inner));
    drop(outer);
    participant.flush();
    assert_eq!(Arc::strong_count(&innermost), 1);
}
for_both!(a_flush_frees_what_a_dropped_structure_held);
