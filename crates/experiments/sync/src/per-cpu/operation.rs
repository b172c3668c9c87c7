//! The operations that the experiment repeats.

use std::cell::Cell;
use std::hint::black_box;
use std::mem::MaybeUninit;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst, compiler_fence};
use std::sync::{Mutex, PoisonError};

use ascertain_engine::experiment::{Unavailable, compiled_function};
use ascertain_sync::per_cpu::{Counter, FreeList, Lock, Method};
use ascertain_sys::compiled::{Function, Language, Source};

/// A value on its own cache lines.
#[derive(Default)]
#[repr(align(128))]
pub struct CacheLine<T>(T);

type Item = MaybeUninit<[u64; 8]>;

/// The operation of one variant, which any number of threads may run.
pub enum Operation {
    Counter(Counter),
    ThreadLocal,
    Plain,
    Atomic,
    AtomicShared(CacheLine<AtomicU64>),
    FreeList(FreeList<Item>),
    Box,
    /// Runs a compiled C function: `malloc` and `free`, pops and pushes on a stack that belongs to the thread, or the
    /// memory accesses of restartable sequences.
    Compiled(Function<u64, u64>),
    Lock(Lock),
    Mutex,
}

thread_local! {
    static OWN: Cell<u64> = const { Cell::new(0) };
}

/// Adds `one` to a number in the thread's memory. The compiler must not keep the number in a register between two
/// additions.
#[inline(always)]
fn add_own(own: &Cell<u64>, one: u64) {
    own.set(own.get() + one);
    compiler_fence(SeqCst);
}

/// Returns the operation of the variant with this name.
pub fn operation(variant: &str) -> Result<Operation, Unavailable> {
    let counter = |method| Counter::with_method(method).map(Operation::Counter).map_err(Unavailable::other);
    // The capacity is more than a thread holds at once, so the stacks never overflow.
    let free_list = |method| FreeList::with_method(64, method).map(Operation::FreeList).map_err(Unavailable::other);
    match variant {
        "counter" => counter(Method::Restartable),
        "counter-sharded" => counter(Method::Sharded),
        "thread-local" => Ok(Operation::ThreadLocal),
        "plain" => Ok(Operation::Plain),
        "atomic" => Ok(Operation::Atomic),
        "atomic-shared" => Ok(Operation::AtomicShared(CacheLine::default())),
        "free-list" => free_list(Method::Restartable),
        "free-list-sharded" => free_list(Method::Sharded),
        "box" => Ok(Operation::Box),
        "malloc" | "stack" => {
            let source = Source::new(Language::C, IN_C).options(&["-O2"]);
            compiled_function(&source, variant, "a C compiler").map(Operation::Compiled)
        }
        "limit-counter" | "limit-free-list" => {
            // The limits need what the sequences need.
            counter(Method::Restartable)?;
            let source = Source::new(Language::C, SEQUENCES_IN_C).options(&["-O2"]);
            let function = variant.strip_prefix("limit-").unwrap_or(variant).replace('-', "_");
            compiled_function(&source, &function, "a C compiler").map(Operation::Compiled)
        }
        "lock" => Lock::with_method(Method::Restartable).map(Operation::Lock).map_err(Unavailable::other),
        "mutex" => Ok(Operation::Mutex),
        _ => Err(Unavailable::Variant),
    }
}

impl Operation {
    /// Runs the operation the given number of times on the calling thread. Returns how many operations the thread
    /// counted itself. This is 0 if they are counted in shared data, or not at all.
    pub fn run(&self, operations: u64) -> u64 {
        let one = black_box(1_u64);
        let repeat = 0..operations;
        match self {
            Operation::Counter(counter) => repeat.for_each(|_| counter.add(one)),
            Operation::ThreadLocal => {
                repeat.for_each(|_| OWN.with(|own| add_own(own, one)));
                return OWN.take();
            }
            Operation::Plain => {
                let own = Cell::new(0);
                let found = black_box(&own);
                repeat.for_each(|_| add_own(found, one));
                return own.get();
            }
            Operation::Atomic => {
                let own = CacheLine(AtomicU64::new(0));
                repeat.for_each(|_| _ = own.0.fetch_add(one, Relaxed));
                return own.0.load(Relaxed);
            }
            Operation::AtomicShared(shared) => repeat.for_each(|_| _ = shared.0.fetch_add(one, Relaxed)),
            Operation::FreeList(list) => repeat.for_each(|_| {
                let item = list.pop().unwrap_or_else(|| Box::new(Item::uninit()));
                list.push(item);
            }),
            Operation::Box => repeat.for_each(|_| drop(black_box(Box::new(Item::uninit())))),
            Operation::Compiled(repeated) => {
                return u64::try_from(repeated.call(&[operations], &mut [])).unwrap_or(0);
            }
            Operation::Lock(lock) => repeat.for_each(|_| while commit(lock, one).is_none() {}),
            Operation::Mutex => {
                let own = CacheLine(Mutex::new([Cell::new(0_u64), Cell::new(0)]));
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

    /// Returns how many operations were counted in data that the threads share. Returns `None` if nothing counts the
    /// operations.
    pub fn counted(&self) -> Option<u64> {
        match self {
            Operation::Counter(counter) => Some(counter.sum()),
            Operation::AtomicShared(shared) => Some(shared.0.load(Relaxed)),
            Operation::Lock(lock) => Some(lock.words().map(|words| words[0]).sum()),
            Operation::ThreadLocal
            | Operation::Plain
            | Operation::Atomic
            | Operation::Mutex
            | Operation::Compiled(_) => Some(0),
            Operation::FreeList(_) | Operation::Box => None,
        }
    }
}

/// Stores to word 1 of the data under the lock, then adds to word 0. Returns `None` if the thread lost the lock before
/// both stores were made.
fn commit(lock: &Lock, one: u64) -> Option<()> {
    let mut held = lock.acquire();
    held.store(1, one).ok()?;
    held.store(0, held.load(0) + one).ok()
}

/// C functions that repeat an operation and return the number of repetitions. The compiler knows `malloc` and `free`,
/// and could remove both calls, so an empty assembly statement between them hides the pointer. The function `stack`
/// pops a pointer from its own stack and pushes it again. Assembly statements force the compiler to keep this stack in
/// memory.
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

/// The memory accesses and checks of restartable sequences, in the order of the sequences of `per_cpu`. The pointer that
/// they store is null, so the kernel never restarts them. Their data belongs to the thread.
const SEQUENCES_IN_C: &str = r#"
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

extern const ptrdiff_t __rseq_offset;

struct area { uint32_t cpu_id_start, cpu_id; uint64_t rseq_cs; };
struct of_cpu { uint64_t count, *top, *floor, *ceiling, items[12]; };

static volatile struct area *own_area(void) {
    return (volatile struct area *)((char *)__builtin_thread_pointer() + __rseq_offset);
}

static struct of_cpu *all_cpus(long *cpus) {
    static long known;
    if (!known) known = sysconf(_SC_NPROCESSORS_CONF);
    *cpus = known;
    struct of_cpu *all = aligned_alloc(128, known * sizeof *all);
    for (long cpu = 0; all && cpu < known; cpu++) {
        uint64_t *items = all[cpu].items;
        all[cpu] = (struct of_cpu){0, items + 6, items, items + 12, {0}};
    }
    __asm__ volatile("" : "+r"(all) : : "memory");
    return all;
}

ASCERTAIN(counter, uint64_t, uint64_t) {
    const uint64_t times = in_count ? in[0] : 0;
    long cpus;
    struct of_cpu *all = all_cpus(&cpus);
    if (!all) return 0;
    volatile struct area *area = own_area();
    uint64_t one = 1, sum = 0;
    const uint32_t end = cpus;
    __asm__ volatile("" : "+r"(one));
    for (uint64_t i = 0; i < times; i++) {
        area->rseq_cs = 0;
        const uint32_t cpu = area->cpu_id;
        if (__builtin_expect(cpu >= end, 0)) break;
        all[cpu].count += one;
        __asm__ volatile("" : : : "memory");
    }
    for (long cpu = 0; cpu < cpus; cpu++) sum += all[cpu].count;
    free(all);
    return sum;
}

ASCERTAIN(free_list, uint64_t, uint64_t) {
    const uint64_t times = in_count ? in[0] : 0;
    long cpus;
    struct of_cpu *all = all_cpus(&cpus);
    if (!all) return 0;
    volatile struct area *area = own_area();
    const uint32_t end = cpus;
    uint64_t done = 0;
    for (; done < times; done++) {
        area->rseq_cs = 0;
        const uint32_t from = area->cpu_id;
        if (__builtin_expect(from >= end, 0)) break;
        uint64_t *limit = all[from].floor, *top = all[from].top;
        if (__builtin_expect(top <= limit, 0)) break;
        uint64_t item = top[-1];
        all[from].top = top - 1;
        __asm__ volatile("" : "+r"(item) : : "memory");
        area->rseq_cs = 0;
        uint32_t to = area->cpu_id;
        // If the kernel has moved the thread, the item goes back to where it was.
        if (__builtin_expect(to != from, 0)) to = from;
        limit = all[to].ceiling, top = all[to].top;
        if (__builtin_expect(top >= limit, 0)) break;
        *top = item;
        all[to].top = top + 1;
        __asm__ volatile("" : : : "memory");
    }
    free(all);
    return done;
}
"#;
