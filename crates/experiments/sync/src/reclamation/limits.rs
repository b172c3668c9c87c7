//! The limits: reads that make only the memory accesses without which a method cannot work. No other thread looks at
//! what they store, so they protect nothing.

use std::cell::Cell;
use std::ptr::from_ref;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering, compiler_fence, fence};

use ascertain_engine::black_box;
use ascertain_sync::barrier::Fences;
use ascertain_sync::hazard::{Domain, Published};

use super::contestants::{Object, ObjectCounter, Read, Readers};

/// An invalid index, which a read returns if its check fails. The checks of a limit never fail.
const FAILED: usize = usize::MAX;
/// The word of a pin that does not exist.
const UNPINNED: u64 = 0;
/// The bit that a pin adds to the number of its epoch.
const PINNED: u64 = 1;

/// Makes objects that no thread replaces.
fn published(ring: &[usize]) -> impl Iterator<Item = Published<Object, Fences>> {
    let (domain, counter) = (Domain::new(Fences), ObjectCounter::default());
    ring.iter().map(move |&next| Published::new(counter.object(next), &domain))
}

/// An object, and the number of its owner: a domain of hazard pointers or a collector of epochs.
struct OwnedObject {
    object: Published<Object, Fences>,
    /// The address of the object. A limit cannot load the pointer in `object` a second time, so it loads this.
    address: AtomicUsize,
    owner: usize,
}

fn owned(ring: &[usize], owner: usize) -> impl Iterator<Item = OwnedObject> {
    published(ring).map(move |mut object| {
        let address = AtomicUsize::new(from_ref(object.get()).addr());
        OwnedObject { object, address, owner }
    })
}

/// Returns the number of an owner, which the compiler does not know.
fn owner() -> usize {
    black_box(1)
}

/// Reads with two loads, of the pointer and of the object. The other methods are compared with this.
pub fn bare(ring: &[usize]) -> impl Readers + use<> {
    Read::new(published(ring), |object| object.get().next)
}

/// Reads like [`bare`], and also makes the stores and the second load of a hazard pointer. The fence is omitted, and so
/// is the check that the object belongs to the right domain. If the second load differs, the read fails and is not
/// repeated.
pub fn announced(ring: &[usize]) -> impl Readers + use<> {
    let announced = AtomicUsize::new(0);
    Read::new(owned(ring, owner()), move |owned: &mut OwnedObject| announce(owned, &announced))
}

/// Reads like [`announced`], and also checks the owner, as each read without `unsafe` must.
pub fn hazard(ring: &[usize]) -> impl Readers + use<> {
    let (announced, owner) = (AtomicUsize::new(0), owner());
    let read = move |owned: &mut OwnedObject| {
        if owned.owner == owner { announce(owned, &announced) } else { FAILED }
    };
    Read::new(owned(ring, owner), read)
}

#[inline(always)]
fn announce(OwnedObject { object, address: second_look, .. }: &mut OwnedObject, announced: &AtomicUsize) -> usize {
    let object = object.get();
    let address = from_ref(object).addr();
    announced.store(address, Ordering::Relaxed);
    compiler_fence(Ordering::SeqCst);
    if second_look.load(Ordering::Acquire) != address {
        return FAILED;
    }
    let next = object.next;
    announced.store(0, Ordering::Release);
    next
}

/// The data that all pins share.
#[derive(Default)]
struct Collector {
    epoch: AtomicU64,
    /// `true` if each pin needs a fence. It is always `false`, but the compiler does not know that.
    needs_fence: AtomicBool,
}

/// A participant of a collector. Its word is in a place of its own, which the collector could read.
#[derive(Default)]
struct Pin {
    word: Box<CacheLine<AtomicU64>>,
    collector: Box<CacheLine<Collector>>,
    /// The number of nested pins, which is always 0 here.
    nested: AtomicUsize,
}

/// A value with its own cache lines.
#[derive(Default)]
#[repr(align(128))]
struct CacheLine<T>(T);

impl Pin {
    /// Returns the number of the owner of the objects that this pin protects.
    fn owner(&self) -> usize {
        from_ref(&*self.collector).addr()
    }

    /// Pins, reads an object, and ends the pin. `light` is the barrier between the store of the pin and the read.
    #[inline(always)]
    fn read(&self, owned: &mut OwnedObject, light: impl FnOnce(&Collector)) -> usize {
        let (word, collector) = (&self.word.0, &*self.collector);
        // Pins may be nested, so each one checks whether it is the first one, and each end whether it is the last one.
        if word.load(Ordering::Relaxed) != UNPINNED {
            return FAILED;
        }
        word.store(collector.0.epoch.load(Ordering::Acquire) | PINNED, Ordering::Release);
        light(&collector.0);
        if owned.owner != from_ref(collector).addr() {
            return FAILED;
        }
        let next = owned.object.get().next;
        if self.nested.load(Ordering::Relaxed) != 0 {
            return FAILED;
        }
        word.store(UNPINNED, Ordering::Release);
        next
    }
}

/// Reads like [`bare`], and also makes the loads and stores of a pin by a handle.
pub fn epoch(ring: &[usize]) -> impl Readers + use<> {
    let pin = Pin::default();
    let objects = owned(ring, pin.owner());
    Read::new(objects, move |owned: &mut OwnedObject| pin.read(owned, |_| compiler_fence(Ordering::SeqCst)))
}

/// The pin of all threads, because a limit has no other threads.
static PIN: LazyLock<Pin> = LazyLock::new(Pin::default);

thread_local! {
    static OWN_PIN: Cell<Option<&'static Pin>> = const { Cell::new(None) };
}

#[cold]
fn first_pin() -> &'static Pin {
    let pin: &'static Pin = &PIN;
    OWN_PIN.set(Some(pin));
    pin
}

/// Reads like [`epoch`], by a pin that a thread-local variable leads to. It also checks whether a fence is needed.
pub fn pin(ring: &[usize]) -> impl Readers + use<> {
    let light = |collector: &Collector| match collector.needs_fence.load(Ordering::Relaxed) {
        true => fence(Ordering::SeqCst),
        false => compiler_fence(Ordering::SeqCst),
    };
    let read = move |owned: &mut OwnedObject| OWN_PIN.get().unwrap_or_else(first_pin).read(owned, light);
    Read::new(owned(ring, PIN.owner()), read)
}
