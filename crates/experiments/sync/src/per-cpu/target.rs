//! What is done again and again.

use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};
use std::sync::{Mutex, PoisonError};

use ascertain_engine::experiment::{Unavailable, compiled_function};
use ascertain_sync::per_cpu::{Counter, FreeList, Lock, Method};
use ascertain_sys::compiled::{Function, Language, Source};

/// On cache lines of its own.
#[derive(Default)]
#[repr(align(128))]
pub struct Padded<T>(T);

type Item = MaybeUninit<[u64; 8]>;

/// One variant, to be run by any number of threads.
pub enum Target {
    Counter(Counter),
    ThreadLocal,
    Plain,
    Atomic,
    AtomicShared(Padded<AtomicU64>),
    FreeList(FreeList<Item>),
    Box,
    /// In C: malloc and free, or a stack of the thread's own.
    Compiled(Function<u64, u64>),
    Lock(Lock),
    Mutex,
}

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Adds to a thread's number in memory: the compiler may not keep it in a register from one addition to the next.
#[inline(always)]
fn add_own(own: &Cell<u64>, one: u64) {
    own.set(own.get() + one);
    compiler_fence(SeqCst);
}

/// The variant of this name.
pub fn target(variant: &str) -> Result<Target, Unavailable> {
    let counter = |method| Counter::with_method(method).map(Target::Counter).map_err(Unavailable::other);
    // More than a thread holds at once; the stacks never run over.
    let free_list = |method| FreeList::with_method(64, method).map(Target::FreeList).map_err(Unavailable::other);
    match variant {
        "counter" => counter(Method::Restartable),
        "counter-sharded" => counter(Method::Sharded),
        "thread-local" => Ok(Target::ThreadLocal),
        "plain" => Ok(Target::Plain),
        "atomic" => Ok(Target::Atomic),
        "atomic-shared" => Ok(Target::AtomicShared(Padded::default())),
        "free-list" => free_list(Method::Restartable),
        "free-list-sharded" => free_list(Method::Sharded),
        "box" => Ok(Target::Box),
        "malloc" | "stack" => {
            let source = Source::new(Language::C, IN_C).options(&["-O2"]);
            compiled_function(&source, variant, "a C compiler").map(Target::Compiled)
        }
        "lock" => Lock::with_method(Method::Restartable).map(Target::Lock).map_err(Unavailable::other),
        "mutex" => Ok(Target::Mutex),
        _ => Err(Unavailable::Variant),
    }
}

impl Target {
    /// Does it so many times on the calling thread; how many were counted in a place of the thread's own, if that is
    /// where they are.
    pub fn run(&self, operations: u64) -> u64 {
        let one = black_box(1_u64);
        let repeat = 0..operations;
        match self {
            Target::Counter(counter) => repeat.for_each(|_| counter.add(one)),
            Target::ThreadLocal => {
                repeat.for_each(|_| OWN.with(|own| add_own(own, one)));
                return OWN.take();
            }
            Target::Plain => {
                let own = Cell::new(0);
                let found = black_box(&own);
                repeat.for_each(|_| add_own(found, one));
                return own.get();
            }
            Target::Atomic => {
                let own = Padded(AtomicU64::new(0));
                repeat.for_each(|_| _ = own.0.fetch_add(one, Relaxed));
                return own.0.load(Relaxed);
            }
            Target::AtomicShared(shared) => repeat.for_each(|_| _ = shared.0.fetch_add(one, Relaxed)),
            Target::FreeList(list) => repeat.for_each(|_| {
                let item = list.pop().unwrap_or_else(|| Box::new(Item::uninit()));
                list.push(item);
            }),
            Target::Box => repeat.for_each(|_| drop(black_box(Box::new(Item::uninit())))),
            Target::Compiled(repeated) => {
                return u64::try_from(repeated.call(&[operations], &mut [])).unwrap_or(0);
            }
            Target::Lock(lock) => repeat.for_each(|_| while commit(lock, one).is_none() {}),
            Target::Mutex => {
                let own = Padded(Mutex::new([Cell::new(0_u64), Cell::new(0)]));
                repeat.for_each(|_| {
                    let words = own.0.lock().unwrap_or_else(PoisonError::into_inner);
                    words[1].set(one);
                    words[0].set(words[0].get() + one);
                });
                return own.0.lock().unwrap_or_else(PoisonError::into_inner)[0].get();
            }
        }
        0
    }

    /// How many were counted where all threads see them; none where nothing is counted.
    pub fn counted(&self) -> Option<u64> {
        match self {
            Target::Counter(counter) => Some(counter.sum()),
            Target::AtomicShared(shared) => Some(shared.0.load(Relaxed)),
            Target::Lock(lock) => Some(lock.words().map(|words| words[0]).sum()),
            Target::ThreadLocal | Target::Plain | Target::Atomic | Target::Mutex | Target::Compiled(_) => Some(0),
            Target::FreeList(_) | Target::Box => None,
        }
    }
}

/// Prepares in one word and commits in another.
fn commit(lock: &Lock, one: u64) -> Option<()> {
    let mut held = lock.acquire();
    held.store(1, one).ok()?;
    held.store(0, held.load(0) + one).ok()
}

/// Loops that return how often they went round. The compiler knows what malloc and free do: what it can't see happens
/// to the pointer in between. Nor can it see who looks at the stack, which therefore is in memory between two steps.
const IN_C: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

ASCERTAIN(malloc, uint64_t, uint64_t) {
    const uint64_t times = in_count ? in[0] : 0;
    for (uint64_t i = 0; i < times; i++) {
        void *memory = malloc(64);
        __asm__ volatile("" : "+r"(memory));
        free(memory);
    }
    return times;
}

ASCERTAIN(stack, uint64_t, uint64_t) {
    const uint64_t times = in_count ? in[0] : 0;
    uint64_t memory[8];
    struct { size_t length; void *items[64]; } own = {1, {memory}}, *found = &own;
    __asm__ volatile("" : "+r"(found) : : "memory");
    for (uint64_t i = 0; i < times; i++) {
        void *item = found->items[--found->length];
        __asm__ volatile("" : "+r"(item) : : "memory");
        found->items[found->length++] = item;
        __asm__ volatile("" : : : "memory");
    }
    return own.length == 1 && own.items[0] == memory ? times : 0;
}
"#;
