//! Tests that compare the two techniques with each other and with enumeration, and tests of the decisions and the
//! errors.

mod agreement;
mod decided;
mod enumerated;
mod exact;
mod refused;
