//! How long it takes a CPU to tell another something.

mod experiment;
mod load;
mod peer;
mod ping_pong;
mod session;
mod topology;

pub use experiment::CoreLatency;
