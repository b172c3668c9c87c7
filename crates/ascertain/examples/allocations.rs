//! Measures the allocations and the running times of functions: `cargo run --release --example allocations -- --bench`.

use std::process::ExitCode;

use ascertain::bench::{CountingAllocator, Group, run};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator::system();

fn main() -> ExitCode {
    let words = ["one", "two", "three", "four"];
    let group = Group::new("joined")
        .function_with_input("concat", &words, |words| words.concat())
        .function_with_input("each word", &words, |words| words.iter().map(|word| word.to_string()).collect::<Vec<_>>())
        .function_with_setup_ref(
            "into a buffer",
            || String::with_capacity(64),
            |buffer| {
                words.iter().for_each(|word| buffer.push_str(word));
                buffer.len()
            },
        )
        .function_with_setup("moved", || String::from("onetwothreefour"), |text| text);
    run([group])
}
