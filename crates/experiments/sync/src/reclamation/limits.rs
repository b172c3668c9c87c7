//! The limits: reads that make only the memory accesses without which a method cannot work. No other thread looks at
//! what they store, so they protect nothing.

use std::cell::Cell;
use std::ptr::from_ref;
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

/// The memory that a pin uses. Each part has its own cache lines, as in a collector.
#[derive(Default)]
struct Pin {
    word: CacheLine<AtomicU64>,
    epoch: CacheLine<AtomicU64>,
    /// The number of nested pins, which is always 0 here.
    nested: CacheLine<AtomicUsize>,
}

#[derive(Default)]
#[repr(align(128))]
struct CacheLine<T>(T);

impl Pin {
    /// Pins, reads an object, and ends the pin. `light` is the barrier between the store of the pin and the read.
    #[inline(always)]
    fn read(&self, owned: &mut OwnedObject, owner: usize, light: impl FnOnce()) -> usize {
        let word = &self.word.0;
        // Pins may be nested, so each one checks whether it is the first one, and each end whether it is the last one.
        if word.load(Ordering::Relaxed) != UNPINNED {
            return FAILED;
        }
        word.store(self.epoch.0.load(Ordering::Acquire) | PINNED, Ordering::Release);
        light();
        if owned.owner != owner {
            return FAILED;
        }
        let next = owned.object.get().next;
        if self.nested.0.load(Ordering::Relaxed) != 0 {
            return FAILED;
        }
        word.store(UNPINNED, Ordering::Release);
        next
    }
}

/// Reads like [`bare`], and also makes the loads and stores of a pin by a handle.
pub fn epoch(ring: &[usize]) -> impl Readers + use<> {
    let (pin, owner) = (Pin::default(), owner());
    let read = move |owned: &mut OwnedObject| pin.read(owned, owner, || compiler_fence(Ordering::SeqCst));
    Read::new(owned(ring, owner), read)
}

/// The pin of all threads, because a limit has no other threads.
static PIN: Pin = Pin {
    word: CacheLine(AtomicU64::new(UNPINNED)),
    epoch: CacheLine(AtomicU64::new(0)),
    nested: CacheLine(AtomicUsize::new(0)),
};
/// `true` if each pin needs a fence. It is always `false`, but the compiler does not know that.
static NEEDS_FENCE: AtomicBool = AtomicBool::new(false);

thread_local! {
    static OWN_PIN: Cell<Option<&'static Pin>> = const { Cell::new(None) };
}

#[cold]
fn first_pin() -> &'static Pin {
    OWN_PIN.set(Some(black_box(&PIN)));
    &PIN
}

/// Reads like [`epoch`], by a pin that a thread-local variable leads to. It also checks whether a fence is needed.
pub fn pin(ring: &[usize]) -> impl Readers + use<> {
    let owner = owner();
    let read = move |owned: &mut OwnedObject| {
        let light = || match NEEDS_FENCE.load(Ordering::Relaxed) {
            true => fence(Ordering::SeqCst),
            false => compiler_fence(Ordering::SeqCst),
        };
        OWN_PIN.get().unwrap_or_else(first_pin).read(owned, owner, light)
    };
    Read::new(owned(ring, owner), read)
}
