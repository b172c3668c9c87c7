//! Timing functions in batches: one reading of the clock before many calls and one after.

use std::hint::black_box;

use ascertain_sys::clock;

/// A variant's inner loop: calls the function so many times and returns how long that took, in
/// nanoseconds. The clock is read inside, so that a batch costs one indirect call.
pub type Timed<'a> = Box<dyn FnMut(u64) -> u64 + 'a>;

/// A batch of the fastest variant lasts at least this long …
const LEAST_NS: u64 = 20_000;
/// … and this many steps of the clock, which makes the clock's error 0.1 %.
const LEAST_STEPS: f64 = 1_000.0;
/// A batch of the slowest variant, with its set-up, lasts at most this long.
const MOST_NS: u64 = 250_000_000;
/// Inputs that are held at once: memory has an end, and reading the clock once for so many calls
/// still costs less than a tenth of a nanosecond a call.
const MOST_INPUTS: u64 = 1_024;
/// Large inputs mostly take long to make: no more are held than are made in that time.
const MAKING_NS: u64 = 10_000_000;

/// Times calls of a function.
///
/// What it returns goes through [`black_box`], and is dropped within the time.
///
/// ```
/// let mut calls = 0;
/// let mut timed = ascertain_engine::batch::timed(|| calls += 1);
/// let elapsed_ns = timed(10);
/// drop(timed);
/// assert_eq!(calls, 10);
/// # let _ = elapsed_ns;
/// ```
pub fn timed<'a, T>(mut f: impl FnMut() -> T + 'a) -> Timed<'a> {
    Box::new(move |iterations| time_calls(&mut f, iterations))
}

/// See [`timed`].
pub(crate) fn time_calls<T>(f: &mut impl FnMut() -> T, iterations: u64) -> u64 {
    let start_ns = clock::now_ns();
    for _ in 0..iterations {
        black_box(f());
    }
    clock::now_ns() - start_ns
}

/// Times calls of a function that needs a fresh input each time, and neither the making of inputs nor the dropping of
/// what it returns.
///
/// The inputs of a batch are made beforehand, at most 1,024 at once and no more than are made in 10 ms; a larger batch
/// is timed in parts. An input that the function consumes is dropped within the time, unless it is returned.
pub(crate) fn time_calls_with_setup<I, T>(
    now_ns: &impl Fn() -> u64,
    setup: &mut impl FnMut() -> I,
    f: &mut impl FnMut(I) -> T,
    iterations: u64,
) -> u64 {
    // Draining leaves the inputs' memory to be freed after the time, with the outputs.
    time_parts(now_ns, setup, iterations, |inputs, outputs: &mut Vec<T>| {
        outputs.extend(inputs.drain(..).map(|input| black_box(f(black_box(input)))));
    })
}

/// The same of a function that gets its input by reference: neither moving inputs nor dropping them is timed.
pub(crate) fn time_calls_with_setup_ref<I, T>(
    now_ns: &impl Fn() -> u64,
    setup: &mut impl FnMut() -> I,
    f: &mut impl FnMut(&mut I) -> T,
    iterations: u64,
) -> u64 {
    time_parts(now_ns, setup, iterations, |inputs, outputs: &mut Vec<T>| {
        outputs.extend(inputs.iter_mut().map(|input| black_box(f(black_box(input)))));
    })
}

fn time_parts<I, T>(
    now_ns: &impl Fn() -> u64,
    setup: &mut impl FnMut() -> I,
    iterations: u64,
    mut call_all: impl FnMut(&mut Vec<I>, &mut Vec<T>),
) -> u64 {
    let mut elapsed_ns = 0;
    let mut left = iterations;
    while left > 0 {
        let making_ends_ns = now_ns() + MAKING_NS;
        let mut inputs = vec![setup()];
        while (inputs.len() as u64) < left.min(MOST_INPUTS) && now_ns() < making_ends_ns {
            inputs.push(setup());
        }
        left -= inputs.len() as u64;
        let mut outputs: Vec<T> = Vec::with_capacity(inputs.len());
        let start_ns = now_ns();
        call_all(&mut inputs, &mut outputs);
        elapsed_ns += now_ns() - start_ns;
    }
    elapsed_ns
}

/// How many calls make a batch: one number for all variants that are compared, because sizes that
/// are found for each alone would make identical functions differ.
///
/// Call it once, before the first trial. A batch of the fastest variant then lasts at least 20 µs
/// and 1,000 steps of the clock. A variant that lasts that long by itself is called once a batch.
/// Where that would make a batch of the slowest, set-up included, longer than 250 ms, the batch is
/// made shorter: variants so far apart can be told apart by a coarser clock.
///
/// ```
/// use ascertain_engine::batch::{Timed, iterations};
/// // A function that always takes 5 ns, and one that takes 20.
/// let mut variants: [Timed; 2] = [Box::new(|calls| calls * 5), Box::new(|calls| calls * 20)];
/// let iterations = iterations(&mut variants);
/// assert!(iterations * 5 >= 20_000);
/// ```
pub fn iterations<'b, F>(batches: impl IntoIterator<Item = &'b mut F>) -> u64
where
    F: FnMut(u64) -> u64 + ?Sized + 'b,
{
    let least_ns = LEAST_NS.max((LEAST_STEPS * clock::step_ns()).ceil() as u64);
    iterations_by(&clock::now_ns, least_ns, batches)
}

/// Like [`iterations`], by the clock `now_ns`, for batches that last at least `least_ns`.
fn iterations_by<'b, F>(now_ns: &impl Fn() -> u64, least_ns: u64, batches: impl IntoIterator<Item = &'b mut F>) -> u64
where
    F: FnMut(u64) -> u64 + ?Sized + 'b,
{
    let (mut least, mut most) = (1, u64::MAX);
    for batch in batches {
        let size = size_of_one(now_ns, batch, least_ns);
        least = least.max(size.least);
        most = most.min(size.most);
    }
    least.min(most)
}

/// Which numbers of calls suit one variant.
struct Size {
    least: u64,
    most: u64,
}

fn size_of_one<F: FnMut(u64) -> u64 + ?Sized>(now_ns: &impl Fn() -> u64, batch: &mut F, least_ns: u64) -> Size {
    /// For a function that takes no time at all.
    const END: u64 = 1 << 32;
    let mut calls = 1_u64;
    loop {
        let (elapsed_ns, lasted_ns) = least_of_some(now_ns, batch, calls);
        if elapsed_ns >= least_ns || calls >= END {
            let one_ns = lasted_ns / calls;
            return Size { least: calls, most: (MOST_NS.max(least_ns) / one_ns.max(1)).max(1) };
        }
        // A fifth more than it seems to need. Short times are known badly: go on in small strides.
        let wanted = 1.2 * calls as f64 * least_ns as f64 / elapsed_ns.max(1) as f64;
        calls = (wanted.ceil() as u64).clamp(calls + 1, calls * 16);
    }
}

/// The least of a few batches, since interruptions only ever add: the time within, and the time that
/// the whole call took. One batch will do when it is a long one.
fn least_of_some<F: FnMut(u64) -> u64 + ?Sized>(now_ns: &impl Fn() -> u64, batch: &mut F, calls: u64) -> (u64, u64) {
    const BATCHES: usize = 5;
    const LONG_NS: u64 = 50_000_000;
    let (mut elapsed_ns, mut lasted_ns) = (u64::MAX, u64::MAX);
    for _ in 0..BATCHES {
        let start_ns = now_ns();
        let within_ns = batch(calls);
        let whole_ns = (now_ns() - start_ns).max(within_ns);
        elapsed_ns = elapsed_ns.min(within_ns);
        lasted_ns = lasted_ns.min(whole_ns);
        if whole_ns > LONG_NS {
            break;
        }
    }
    (elapsed_ns, lasted_ns)
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::*;

    /// A clock that a test moves.
    #[derive(Default)]
    struct Scripted(Cell<u64>);

    impl Scripted {
        fn now_ns(&self) -> impl Fn() -> u64 {
            || self.0.get()
        }

        fn pass_ms(&self, ms: u64) {
            self.0.update(|now_ns| now_ns + ms * 1_000_000);
        }
    }

    /// The number of calls in a batch, by a clock that stands still: only the variants report times.
    fn size<'b>(variants: impl IntoIterator<Item = &'b mut Timed<'static>>) -> u64 {
        iterations_by(&|| 0, least_ns(), variants)
    }

    /// A variant whose calls take a fixed time, by a clock of its own.
    fn fake(call_ns: f64) -> Timed<'static> {
        Box::new(move |iterations| (iterations as f64 * call_ns) as u64)
    }

    fn least_ns() -> u64 {
        LEAST_NS.max((LEAST_STEPS * clock::step_ns()).ceil() as u64)
    }

    #[test]
    fn the_fastest_variant_sets_the_size_for_all() {
        let alone = size([&mut fake(0.3)]);
        let together = size([&mut fake(7.0), &mut fake(0.3), &mut fake(150.0)]);
        assert_eq!(together, alone);
        let lasts_ns = alone as f64 * 0.3;
        assert!(lasts_ns >= least_ns() as f64 && lasts_ns < 1.5 * least_ns() as f64, "{lasts_ns}");
    }

    #[test]
    fn a_slow_function_is_called_once_a_batch() {
        assert_eq!(size([&mut fake(1e9)]), 1);
        assert_eq!(size([&mut fake(least_ns() as f64)]), 1);
    }

    #[test]
    fn a_batch_of_the_slowest_has_an_end() {
        let calls = size([&mut fake(1.0), &mut fake(1e6)]);
        assert!(calls <= MOST_NS.max(least_ns()) / 1_000_000, "{calls}");
        assert_eq!(size([&mut fake(1.0), &mut fake(1e12)]), 1);
    }

    #[test]
    fn a_function_that_takes_no_time_does_not_hang() {
        assert!(size([&mut fake(0.0)]) > 1);
        assert_eq!(size(&mut Vec::<Timed>::new()), 1);
    }

    #[test]
    fn a_long_batch_is_not_repeated_to_find_the_size() {
        let calls = Cell::new(0);
        let mut slow = |iterations: u64| {
            calls.set(calls.get() + 1);
            iterations * 10_000_000_000
        };
        iterations_by(&|| 0, least_ns(), [&mut slow]);
        assert_eq!(calls.get(), 1);
    }

    #[test]
    fn a_real_function_is_called_as_often_as_asked() {
        let calls = Cell::new(0);
        let mut count = timed(|| calls.set(calls.get() + 1));
        count(0);
        count(17);
        assert_eq!(calls.get(), 17);
    }

    #[test]
    fn inputs_come_before_the_first_call_and_outputs_go_after_the_last() {
        struct Output<'a>(&'a RefCell<String>);
        impl Drop for Output<'_> {
            fn drop(&mut self) {
                self.0.borrow_mut().push('d');
            }
        }
        let log = RefCell::new(String::new());
        let mut f = |()| {
            log.borrow_mut().push('f');
            Output(&log)
        };
        time_calls_with_setup(&|| 0, &mut || log.borrow_mut().push('s'), &mut f, 3);
        assert_eq!(*log.borrow(), "sssfffddd");
    }

    #[test]
    fn inputs_by_reference_stay_where_they_are_until_the_last_call() {
        struct Input<'a>(&'a RefCell<String>);
        impl Drop for Input<'_> {
            fn drop(&mut self) {
                self.0.borrow_mut().push('d');
            }
        }
        let log = RefCell::new(String::new());
        let mut setup = || {
            log.borrow_mut().push('s');
            Input(&log)
        };
        let mut places = Vec::new();
        let mut f = |input: &mut Input| {
            log.borrow_mut().push('f');
            places.push(std::ptr::from_mut(input).addr());
        };
        time_calls_with_setup_ref(&|| 0, &mut setup, &mut f, 3);
        assert_eq!(*log.borrow(), "sssfffddd");
        assert!(places.is_sorted_by(|a, b| b - a == size_of::<Input>()), "one after the other, never moved");
    }

    #[test]
    fn inputs_held_at_once_are_bounded() {
        let held = |calls: u64, setup_ms: u64| {
            let (clock, made, used, held) = (Scripted::default(), Cell::new(0_u64), Cell::new(0_u64), Cell::new(0_u64));
            let mut setup = || {
                clock.pass_ms(setup_ms);
                made.set(made.get() + 1);
                held.set(held.get().max(made.get() - used.get()));
            };
            time_calls_with_setup(&clock.now_ns(), &mut setup, &mut |()| used.set(used.get() + 1), calls);
            assert_eq!((made.get(), used.get()), (calls, calls));
            held.get()
        };
        assert_eq!(held(3 * MOST_INPUTS + 5, 0), MOST_INPUTS);
        // The second input is the last one whose making starts within 10 ms.
        assert_eq!(held(5, 6), 2);
        assert_eq!(held(2, 20), 1);
    }

    /// Setting up an input takes 20 ms, a call 3 ms, and dropping its output 50 ms.
    #[test]
    fn only_calls_are_timed() {
        struct Slow<'a>(&'a Scripted);
        impl Drop for Slow<'_> {
            fn drop(&mut self) {
                self.0.pass_ms(50);
            }
        }
        for calls in [1, 2, 7] {
            let clock = Scripted::default();
            let mut call = |()| {
                clock.pass_ms(3);
                Slow(&clock)
            };
            let elapsed_ns = time_calls_with_setup(&clock.now_ns(), &mut || clock.pass_ms(20), &mut call, calls);
            assert_eq!(elapsed_ns, calls * 3_000_000);
            assert_eq!(clock.0.get(), calls * 73_000_000);
            let mut call_by_reference = |_: &mut ()| {
                clock.pass_ms(3);
                Slow(&clock)
            };
            let setup = &mut || clock.pass_ms(20);
            let elapsed_ns = time_calls_with_setup_ref(&clock.now_ns(), setup, &mut call_by_reference, calls);
            assert_eq!(elapsed_ns, calls * 3_000_000);
        }
    }

    /// The length of a batch includes its set-up, however little time its calls took.
    #[test]
    fn set_up_counts_towards_the_longest_batch() {
        let clock = Scripted::default();
        let mut variant = |calls: u64| {
            clock.pass_ms(calls);
            calls
        };
        assert_eq!(iterations_by(&clock.now_ns(), 1_000, [&mut variant]), MOST_NS / 1_000_000);
    }
}
