//! The `main` of a user's own benches: functions measured against each other, with verdicts.
//!
//! A bench has a name, an input and a function, and is a part of a group. In each trial the functions of a group run in
//! a fresh random order, and each is compared with the first one at the same input, until it is clear which is faster.
//! A bench is a file under `benches/` with `harness = false`:
//!
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
//! Functions without parameters need neither loop nor [`at`](Group::at): `Group::new("sums").function("loop", || …)`.
//!
//! `cargo bench --bench NAME -- --help` lists its options, which mean what they mean to `ascertain compare`, but for
//! one default: `--margin 1%`. Two functions that are equal to the letter may differ by their place in the program,
//! by less than a percent and in earnest: an answer that counts wins would call one of them faster, and be right. Who
//! benches a change of the code wants to hear *same*. `--margin 0` counts wins.
//!
//! After the answers, a group is measured until the interval of each ratio and each median is at most ±1 %, or until it
//! has taken half a second for each function. `--precision` chooses another width, without that limit, and `--quick`
//! stops at the answers. `--reference NAME` compares with this function instead of the first, and `--all-pairs` compares
//! every function with every other.
//!
//! `cargo test --benches` calls each function once, checks its answer, and times nothing; so does `cargo nextest run
//! --benches`.
//!
//! # Where the input comes from
//!
//! | | the input | timed beside the function |
//! |---|---|---|
//! | [`function`](Group::function) | is the closure's own affair | dropping what it returns |
//! | [`function_with_input`](Group::function_with_input) | is borrowed, and the same in each call | dropping what it returns |
//! | [`function_with_setup`](Group::function_with_setup) | is made for each call, and moved into it | moving the input, dropping it unless it is returned |
//! | [`function_with_setup_ref`](Group::function_with_setup_ref) | is made for each call, and lent to it | nothing |
//!
//! Inputs, functions and checks run on the thread that runs the bench: they may borrow, and need not be `Send`.
//!
//! # Allocations
//!
//! With this allocator (the feature `allocations`, on by default), each function is called once more in three trials,
//! outside of the measured time, and `allocations` and `allocated_bytes` of one call are metrics like the time:
//!
//! ```
//! # #[cfg(feature = "allocations")]
//! #[global_allocator]
//! static ALLOCATOR: ascertain::bench::CountingAllocator = ascertain::bench::CountingAllocator::system();
//! # fn main() {}
//! ```
//!
//! # Functions that await
//!
//! The runtime is yours, and so is the choice of what belongs to the time: wait for the future inside of the function.
//!
//! ```
//! use std::pin::pin;
//! use std::task::{Context, Poll, Waker};
//!
//! use ascertain::bench::Group;
//!
//! /// The least that awaits. With a runtime, take its own: `runtime.block_on(future)`.
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
//! `--save-baseline main` keeps a run of each group under a name, and `--baseline main` lays a later one beside it:
//! medians with their intervals, what differs in machine and options, and no verdict. The runs are not paired: what the
//! machine did on the one day and not on the other is in the difference, and no test can take it out. To know whether a
//! change made a function faster, put both versions into one bench, in which they are paired:
//!
//! ```toml
//! [dev-dependencies]
//! before = { package = "mine", git = "file:///home/me/mine", tag = "v1.0" }
//! ```
//!
//! Baselines are runs like any other, in the same folder: `ascertain report sums@main`, `ascertain history compare
//! sums@main latest`. Projects whose groups have the same names keep theirs apart with `--evidence DIR`. Both options
//! need the feature `recorded` of this crate.
//!
//! # What a criterion user changes
//!
//! | criterion | divan | here |
//! |---|---|---|
//! | `criterion_group!`, `criterion_main!` | `divan::main()` | `fn main() -> ExitCode { run([group]) }` |
//! | `c.benchmark_group("sums")` | `#[divan::bench_group(name = "sums")]` | `Group::new("sums")`, whose first function is the reference |
//! | `bench_function("f", \|b\| b.iter(f))` | `#[divan::bench]` | `.function("f", f)` |
//! | `bench_with_input(BenchmarkId::new("f", n), &data, \|b, data\| b.iter(\|\| f(data)))` | `#[divan::bench(args = […])]` | `.at("n", n).function_with_input("f", &data, f)` |
//! | `iter_batched(setup, f, size)` | `with_inputs(setup).bench_values(f)` | `.function_with_setup("f", setup, f)` |
//! | `iter_batched_ref(setup, f, size)` | `with_inputs(setup).bench_refs(f)` | `.function_with_setup_ref("f", setup, f)` |
//! | `iter_with_large_drop(f)` | what is returned is never in the time | `.function_with_setup("f", \|\| (), \|()\| f())` |
//! | `BatchSize` | | at most 1,024 inputs are held at once, and no more than are made in 10 ms |
//! | `to_async(runtime).iter(f)` | | `.function("f", \|\| runtime.block_on(f()))` |
//! | `throughput(Throughput::Bytes(n))` | `counter(BytesCount::new(n))` | `.throughput(Throughput::Bytes(n))`, for all functions at an input |
//! | | | `.verify(\|\| …)`: a wrong answer is an error, never a time |
//! | `measurement_time`, `sample_size` | `max_time`, `sample_count` | `--max-time`, `--max-trials`; it ends when all is decided and intervals are narrow |
//! | | `AllocProfiler` | [`CountingAllocator`](#allocations) |
//! | `significance_level`, `noise_threshold` | | `--error`, `--margin` |
//! | `cargo bench -- FILTER`, a regular expression | the same | the same, or a part of the name as it is; `--exact`, `--skip`, `--list`, `--test` |
//! | `--save-baseline`, `--baseline`: a change, with its p-value | | the same options: both medians, and no verdict (above) |
//! | `target/criterion/report` | | `ascertain report latest` |
//! | `iter_custom`, `Measurement` | | [`Experiment`](crate::engine::experiment::Experiment), of one's own |
#![allow(clippy::print_stdout, clippy::print_stderr)]

mod baseline;
mod main;
mod options;

pub use ascertain_engine::black_box;
pub use ascertain_engine::function::{Group, Throughput};
#[cfg(feature = "allocations")]
pub use ascertain_sys::allocations::CountingAllocator;

pub use self::main::{Pairs, plan, run};
