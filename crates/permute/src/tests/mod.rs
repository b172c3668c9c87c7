//! The two techniques against each other and against enumeration, what is decided, and what is refused.

mod agreement;
mod decided;
mod enumerated;
mod exact;
mod refused;
