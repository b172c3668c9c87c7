//! Names: messages that are signed, a zone that is simulated with the truth about it, and a prober that asks servers
//! many times a second.
//!
//! [`Simulation`] is pure code on whatever clock its caller has; [`Zone`] is what one server knows; [`Served`] puts a
//! simulation behind sockets. [`Probing`] decides what is asked when and keeps what was answered, also without a clock;
//! [`probe`] does it by sockets. [`load`] asks one server a [`Mix`] of questions at a rate. No question is ever
//! repeated: what is lost is counted. What a datagram has no room for is asked for anew, by a connection.

mod exchange;
mod key;
mod load;
mod message;
mod probe;
mod probing;
mod served;
mod simulation;
mod zone;

pub use exchange::{Change, Request, ask_by_tcp, exchange, update};
pub use hickory_proto::op::ResponseCode;
pub use hickory_proto::rr::{Name, RData, RecordType};
pub use key::Key;
pub use load::{Mix, Pace, Posed, Posing, Reply, Way, load};
pub use message::{Answer, Question};
pub use probe::probe;
pub use probing::{Answered, Asked, Probing, Rhythm, Says, Standing};
pub use served::Served;
pub use simulation::{Balance, Had, Plan, Simulation, To};
pub use zone::Zone;
