//! Why nothing can notice a mutant.

/// The file, what is wrong in the mutant or how that begins, and why.
type Explained = (&'static str, &'static str, &'static str);

const X86: &str =
    "sequences are for x86, which keeps stores in order; what is left is a compiler's freedom to move them";
const STALE: &str = "it takes a failed exchange that finds an older value, as the language allows; in loom, in Miri and on \
                     x86 one finds the last";
const COMPILER: &str = "it is for the compiler, which moves no atomic access today; what the processor does needs none";
const KERNEL: &str = "the kernel's call is a full barrier, and a round's lock brings it to whoever waits; in the language \
                      only a fence says so";

pub(super) const EXPLAINED: &[Explained] = &[
    ("rseq/stacks.rs", "`self.floor.store(floor.as_ptr(), Release);`: `Release` is `Relaxed`", X86),
    ("rseq/stacks.rs", "`self.ceiling.store(ceiling.as_ptr(), Release);`: `Release` is `Relaxed`", X86),
    ("event_count/flagged.rs", "`self.wakes.fetch_add(1, Ordering::Release);`: `Release` is `Relaxed`", STALE),
    (
        "event_count/flagged.rs",
        "`let announcement = Announcement(self.wakes.load(Ordering::Acquire));`: `Acquire` is `Relaxed`",
        STALE,
    ),
    (
        "event_count/flagged.rs",
        "a sleeper does not look whether its flag is there",
        "whoever clears the flag then counts, and wakes who fell asleep before",
    ),
    (
        "event_count/two_word.rs",
        "who announces itself on a new version sleeps",
        "before it sleeps it looks again whether its announcement is there",
    ),
    ("event_count/two_word.rs", "`compiler_fence(Ordering::SeqCst);` is not there", COMPILER),
    ("barrier/membarrier.rs", "`compiler_fence(Ordering::SeqCst);` is not there", COMPILER),
    ("barrier/membarrier.rs", "`fence(Ordering::SeqCst);`", KERNEL),
    ("barrier/interrupts.rs", "`compiler_fence(Ordering::SeqCst);` is not there", COMPILER),
    (
        "barrierd/client.rs",
        "any number of CPUs is believed",
        "what comes after refuses it too: there are more, or the daemon's page is too short for so many",
    ),
    (
        "barrierd/client.rs",
        "`fence(Ordering::SeqCst);` is `AcqRel`",
        "the first one's loss is noticed by `no_timestamp_is_taken_before_what_was_written_is_seen` in 2 runs of 4, for it \
         takes a store that waits; the others are loads after loads, whose order x86 keeps, which alone has the daemon",
    ),
];
