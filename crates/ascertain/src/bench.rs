//! The `main` function of your own benches, which compare functions and give verdicts.
//!
//! A bench consists of groups of functions. In each trial, the functions of a group run in random order. Each function
//! is compared with the first one at the same input, until it is clear which of the two is faster. A bench is a file in
//! `benches/`, declared with `harness = false`:
//! ```no_run
//! use std::process::ExitCode;
//!
//! use ascertain::bench::{Group, Throughput, run};
//!
//! fn main() -> ExitCode {
//!     let inputs = [100, 10_000].map(|elements| (elements, vec![1.5; elements]));
//!     let mut group = Group::new("sums");
//!     for (elements, data) in &inputs {
//!         group = group
//!             .at("elements", elements)
//!             .throughput(Throughput::Elements(*elements as u64))
//!             .function_with_input("loop", data, |data| data.iter().sum::<f64>())
//!             .function_with_input("chunks", data, |data| data.chunks(8).map(|c| c.iter().sum::<f64>()).sum::<f64>());
//!     }
//!     run([group])
//! }
//! ```
//!
//! Functions without parameters need neither a loop nor [`at`](Group::at): `Group::new("sums").function("loop", || …)`.
//!
//! `cargo bench --bench NAME -- --help` lists the options. They mean the same as those of `ascertain compare`, but the
//! default margin is `--margin 1%`. Even two identical functions may differ by up to a percent, because they are at
//! different addresses in the program. Without a margin, the answer for two such functions would be that one is faster.
//! This is correct but not useful: if a change of the code has no effect, you want to read *same*. With `--margin 0`,
//! the function that wins more pairs is the faster one, however small the difference is.
//!
//! After the answers, a group is measured until the interval of each ratio and each median is at most ±1 %. The time
//! limit is half a second for each function, including the time until the answers are known. `--precision` sets another
//! width and removes the time limit. `--quick` stops as soon as there are answers. `--reference NAME` makes the
//! function with this name the reference, instead of the first one, and `--all-pairs` compares all functions with each
//! other.
//!
//! `cargo test --benches` and `cargo nextest run --benches` call each function once and check its answer, without
//! measuring its time.
//!
//! # Inputs
//!
//! | | the input | also measured, in addition to the function |
//! |---|---|---|
//! | [`function`](Group::function) | is left to the closure | dropping the returned value |
//! | [`function_with_input`](Group::function_with_input) | is borrowed, and the same in each call | dropping the returned value |
//! | [`function_with_setup`](Group::function_with_setup) | is created for each call, and moved into it | moving the input, and dropping it unless it is returned |
//! | [`function_with_setup_ref`](Group::function_with_setup_ref) | is created for each call, and borrowed mutably | nothing |
//!
//! Inputs, functions and checks run on the thread that runs the bench, so they may borrow, and need not be `Send`.
//!
//! # Allocations
//!
//! If your bench has the allocator below, each function also has the metrics `allocations` and `allocated_bytes`, for
//! one call. To count them, three of the trials call each function one additional time, outside of the measured time.
//! This needs the feature `allocations`, which is on by default.
//!
//! ```
//! # #[cfg(feature = "allocations")]
//! #[global_allocator]
//! static ALLOCATOR: ascertain::bench::CountingAllocator = ascertain::bench::CountingAllocator::system();
//! # fn main() {}
//! ```
//!
//! # Async functions
//!
//! You choose the runtime, and which part of the work is measured: call the runtime inside of the function.
//!
//! ```
//! use std::pin::pin;
//! use std::task::{Context, Poll, Waker};
//!
//! use ascertain::bench::Group;
//!
//! /// A minimal executor. If you have a runtime, use its own: `runtime.block_on(future)`.
//! fn block_on<T>(future: impl Future<Output = T>) -> T {
//!     let mut future = pin!(future);
//!     let mut context = Context::from_waker(Waker::noop());
//!     loop {
//!         if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
//!             return value;
//!         }
//!     }
//! }
//!
//! async fn answer() -> u32 {
//!     42
//! }
//!
//! let group = Group::new("answers").function("awaited", || block_on(answer())).verify(|| block_on(answer()) == 42);
//! assert!(group.call_each_once().all(|(_, is_right)| is_right));
//! ```
//!
//! # Before and after
//!
//! `--save-baseline main` keeps a run of each group under a name, and `--baseline main` compares a later run with it.
//! The comparison shows medians with their intervals, and differences in machine and options, but no verdict. The two
//! runs are not paired, so the difference also contains the changes of the machine between them, and no test can remove
//! these. To find out whether a change made a function faster, put both versions into one bench, where they are paired:
//!
//! ```toml
//! [dev-dependencies]
//! before = { package = "mine", git = "file:///home/me/mine", tag = "v1.0" }
//! ```
//!
//! Baselines are recorded runs in the same folder as all others: `ascertain report sums@main`, `ascertain history
//! compare sums@main latest`. If projects have groups with the same name, use `--evidence DIR` to keep them apart.
//! `--save-baseline` and `--baseline` need the feature `recorded` of this crate.
//!
//! # Coming from criterion or divan
//!
//! | criterion | divan | here |
//! |---|---|---|
//! | `criterion_group!`, `criterion_main!` | `divan::main()` | `fn main() -> ExitCode { run([group]) }` |
//! | `c.benchmark_group("sums")` | `#[divan::bench_group(name = "sums")]` | `Group::new("sums")`, whose first function is the reference |
//! | `bench_function("f", \|b\| b.iter(f))` | `#[divan::bench]` | `.function("f", f)` |
//! | `bench_with_input(BenchmarkId::new("f", n), &data, \|b, data\| b.iter(\|\| f(data)))` | `#[divan::bench(args = […])]` | `.at("n", n).function_with_input("f", &data, f)` |
//! | `iter_batched(setup, f, size)` | `with_inputs(setup).bench_values(f)` | `.function_with_setup("f", setup, f)` |
//! | `iter_batched_ref(setup, f, size)` | `with_inputs(setup).bench_refs(f)` | `.function_with_setup_ref("f", setup, f)` |
//! | `iter_with_large_drop(f)` | dropping the returned value is never measured | `.function_with_setup("f", \|\| (), \|()\| f())` |
//! | `BatchSize` | | up to 1,024 inputs are created in advance, but for no longer than 10 ms |
//! | `to_async(runtime).iter(f)` | | `.function("f", \|\| runtime.block_on(f()))` |
//! | `throughput(Throughput::Bytes(n))` | `counter(BytesCount::new(n))` | `.throughput(Throughput::Bytes(n))`, for all functions at an input |
//! | | | `.verify(\|\| …)`: a wrong answer is an error, never a time |
//! | `measurement_time`, `sample_size` | `max_time`, `sample_count` | `--max-time`, `--max-trials`; the run ends when all answers are decided and the intervals are narrow |
//! | | `AllocProfiler` | [`CountingAllocator`](#allocations) |
//! | `significance_level`, `noise_threshold` | | `--error`, `--margin` |
//! | `cargo bench -- FILTER`, a regular expression | the same | the same, or a part of the name as plain text; `--exact`, `--skip`, `--list`, `--test` |
//! | `--save-baseline`, `--baseline`: a change, with its p-value | | the same options: both medians, without a verdict (see above) |
//! | `target/criterion/report` | | `ascertain report latest` |
//! | `iter_custom`, `Measurement` | | your own [`Experiment`](crate::engine::experiment::Experiment) |
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod baseline;
mod main;
mod options;

pub use ascertain_engine::black_box;
pub use ascertain_engine::function::{Group, Throughput};
#[cfg(feature = "allocations")]
pub use ascertain_sys::allocations::CountingAllocator;

pub use self::main::{Pairs, plan, run};
