//! Tests of the crate from outside: the calculus, the operators, the memory, and the messages.

mod calculus;
mod examples;
mod memory;
mod messages;
mod operators;
mod parser;
mod tables;

#[global_allocator]
static ALLOCATOR: ascertain_sys::allocations::CountingAllocator =
    ascertain_sys::allocations::CountingAllocator::system();
