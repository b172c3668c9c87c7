//! Times functions in batches: the clock is read once before many calls and once after them.

use std::hint::black_box;

use ascertain_sys::clock;

/// The inner loop of a variant. Calls the function the given number of times, and returns how long this took, in
/// nanoseconds. The loop reads the clock itself, so each batch costs only one indirect call.
pub type Timed<'a> = Box<dyn FnMut(u64) -> u64 + 'a>;

/// Minimum duration of a batch of the fastest variant, in nanoseconds. Reading the clock takes only a tiny share of it.
const LEAST_NS: u64 = 20_000;
/// Minimum duration of a batch of calls, in steps of the clock. An error of one step is then at most 0.1 % of the
/// duration.
const LEAST_STEPS: f64 = 1_000.0;
/// Maximum duration of a batch of calls of the slowest variant, including the set-up of its inputs, in nanoseconds.
const MOST_NS: u64 = 250_000_000;
/// Maximum number of inputs of a function that are kept in memory at the same time. A larger number would gain nothing:
/// reading the clock once per 1,024 calls already adds less than 0.1 ns to each call.
const MOST_INPUTS: u64 = 1_024;
/// Maximum time for making inputs in advance, before the calls that use them are timed, in nanoseconds. This also
/// limits the memory for inputs, because large inputs usually take long to make.
const MAKING_NS: u64 = 10_000_000;

/// Returns a closure that calls a function a given number of times, and returns the elapsed time in nanoseconds.
///
/// The function's return value goes through [`black_box`]. Dropping it is part of the measured time.
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

/// Calls a function `iterations` times, as in [`timed`], and returns the time in nanoseconds.
pub(crate) fn time_calls<T>(f: &mut impl FnMut() -> T, iterations: u64) -> u64 {
    let start_ns = clock::now_ns();
    for _ in 0..iterations {
        black_box(f());
    }
    clock::now_ns() - start_ns
}

/// Times calls of a function that needs a fresh input each time. The time for making inputs and for dropping return
/// values does not count.
///
/// The inputs are made before the timed calls: at most 1,024 at a time, and only as many as can be made in 10 ms. If
/// there are more calls, this repeats. If the function consumes its input without returning it, the time for dropping
/// the input counts.
pub(crate) fn time_calls_with_setup<I, T>(
    now_ns: &impl Fn() -> u64,
    setup: &mut impl FnMut() -> I,
    f: &mut impl FnMut(I) -> T,
    iterations: u64,
) -> u64 {
    // `drain` keeps the allocation of `inputs`, so it is freed outside the measured time, like the outputs.
    time_parts(now_ns, setup, iterations, |inputs, outputs: &mut Vec<T>| {
        outputs.extend(inputs.drain(..).map(|input| black_box(f(black_box(input)))));
    })
}

/// Times calls of a function that gets a fresh input by reference. The time for moving or dropping inputs does not
/// count.
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

/// Returns how many calls each batch makes. All compared variants get the same number, because with different batch
/// sizes even identical functions would differ.
///
/// Call this function once, before the first trial. A batch of the fastest variant then lasts at least 20 µs and 1,000
/// steps of the clock. If a single call of the fastest variant lasts that long, each batch has one call. Batches of the
/// slowest variant, including the set-up, last at most 250 ms. To keep to this limit, the fastest variant's batches may
/// become shorter than 20 µs. The speeds then differ so much that the lower precision of short batches does not matter.
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

/// Returns the number of calls per batch, as [`iterations`] does. `now_ns` reads the clock, `least_ns` is the minimum
/// duration of a batch, and `batches` are the inner loops of the variants.
fn iterations_by<'b, F>(now_ns: &impl Fn() -> u64, least_ns: u64, batches: impl IntoIterator<Item = &'b mut F>) -> u64
where
    F: FnMut(u64) -> u64 + ?Sized + 'b,
{
    let sizes = batches.into_iter().map(|batch| size_of_one(now_ns, batch, least_ns));
    let (least, most) = sizes.fold((1, u64::MAX), |(least, most), size| (size.0.max(least), size.1.min(most)));
    least.min(most)
}

/// Returns a minimum and a maximum number of calls per batch for one variant. With the minimum, a batch lasts at least
/// `least_ns`. With the maximum, it lasts at most [`MOST_NS`]; if a single call takes longer, the maximum is one call.
fn size_of_one<F: FnMut(u64) -> u64 + ?Sized>(now_ns: &impl Fn() -> u64, batch: &mut F, least_ns: u64) -> (u64, u64) {
    /// Maximum number of calls in a batch. It ends the search for the number if the function takes no measurable time.
    const END: u64 = 1 << 32;
    let mut calls = 1_u64;
    loop {
        let (elapsed_ns, lasted_ns) = least_of_some(now_ns, batch, calls);
        if elapsed_ns >= least_ns || calls >= END {
            let one_ns = lasted_ns / calls;
            return (calls, (MOST_NS.max(least_ns) / one_ns.max(1)).max(1));
        }
        // Ask for 20 % more calls than seem necessary. Short times are inaccurate, so grow at most 16-fold per step.
        let wanted = 1.2 * calls as f64 * least_ns as f64 / elapsed_ns.max(1) as f64;
        calls = (wanted.ceil() as u64).clamp(calls + 1, calls * 16);
    }
}

/// Runs a few batches, or only one if it takes long. Returns two minima in nanoseconds: the time of the calls alone,
/// and the time of the whole batch with its set-up. Interruptions only add time, so the minimum is closest to the
/// truth.
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

    /// A clock that the test moves forward.
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

    /// Returns the number of calls per batch for these variants. The clock stands still, so the only times are those
    /// that the variants return.
    fn size<'b>(variants: impl IntoIterator<Item = &'b mut Timed<'static>>) -> u64 {
        iterations_by(&|| 0, least_ns(), variants)
    }

    /// Returns a variant whose calls take a fixed time.
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
        // The first input takes 6 ms of the allowed 10 ms, so a second one is started, but no third.
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

    /// The maximum duration of a batch includes its set-up, even if the calls themselves take hardly any time.
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
