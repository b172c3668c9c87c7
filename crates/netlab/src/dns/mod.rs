//! DNS: signed messages, a simulated zone that records when each replica was updated, and a prober that queries servers
//! many times per second.
//!
//! - [`Zone`] is the content of a zone at one server.
//! - [`Simulation`] simulates the servers of a zone on its caller's clock, without input or output. [`ZoneServer`]
//!   serves a simulation over sockets.
//! - [`Prober`] decides when each query is sent, and keeps the answers. It also uses its caller's clock. [`probe`]
//!   runs a prober over sockets.
//! - [`load`] sends queries of a [`QueryMix`] to one server at a rate.
//!
//! A lost query is counted and not sent again. If an answer to a prober's query does not fit into a datagram, the
//! prober sends the query once more over TCP.

mod load;
mod message;
mod probe;
mod prober;
mod simulation;
mod update;
mod zone;
mod zone_server;

pub use hickory_proto::op::ResponseCode;
pub use hickory_proto::rr::{Name, RData, RecordType};
pub use load::{LoadQuery, LoadReply, LoadResult, LoadTransport, QueryMix, QueryRate, load};
pub use message::{Answer, Question};
pub use probe::probe;
pub use prober::{AnswerState, Probe, ProbeAnswer, ProbeLog, Prober, Rhythm, ServerState};
pub use simulation::{Balance, Recipient, ReplicaUpdate, Simulation, SimulationSpec};
pub use update::{Change, Key, UpdateRequest, exchange, query_by_tcp, update};
pub use zone::Zone;
pub use zone_server::ZoneServer;
