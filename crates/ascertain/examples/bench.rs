//! More features of benches: checked answers, async functions, values that stay on their thread, and groups without
//! inputs. `cargo run --release --example bench -- --bench` measures like `cargo bench`.

use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::process::ExitCode;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use ascertain::bench::{Group, Throughput, run};

/// A minimal executor. If you use a runtime, call its `block_on` instead: `runtime.block_on(future)`.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
    }
}

fn main() -> ExitCode {
    let inputs = [10, 1_000].map(|numbers| (numbers, (0..numbers).collect::<Vec<u64>>()));
    let mut last = Group::new("last");
    for (numbers, sorted) in &inputs {
        last = last
            .at("numbers", numbers)
            .throughput(Throughput::Elements(*numbers))
            .function_with_input("maximum", sorted, |sorted| sorted.iter().max())
            .verify(|| sorted.iter().max() == sorted.last())
            .function_with_setup_ref(
                "sorted",
                || sorted.clone(),
                |sorted| {
                    sorted.sort_unstable();
                    sorted.pop()
                },
            )
            .function_with_setup("consumed", || sorted.clone(), |sorted| sorted.into_iter().max());
    }
    let calls = Rc::new(Cell::new(0_u64));
    let awaiting = Group::new("calls")
        .function("direct", || calls.replace(calls.get() + 1))
        .function("awaited", || block_on(async { calls.replace(calls.get() + 1) }));
    run([last, awaiting])
}
