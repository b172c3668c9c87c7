//! Pieces under way: handed out by a pilot, each its own task, until all are done or one fails for good.

use std::collections::VecDeque;

use tokio::task::JoinSet;
use tokio::time::Instant;

use super::patience::Went;
use super::requests::Log;
use super::{Observer, Progress, Stop};
use crate::error::Error;
use crate::journal::Piece;
use crate::model::{Pilot, Plan, Ticket};

/// What is done with pieces.
pub(crate) trait Work {
    /// What comes of one.
    type Done: Send + 'static;
    /// Begins one.
    fn start(
        &mut self,
        piece: Piece,
    ) -> Result<impl Future<Output = Result<(Self::Done, Went), Error>> + Send + 'static, Error>;
    /// One is done.
    fn finish(&mut self, piece: Piece, done: Self::Done) -> Result<(), Error>;
}

/// What is left to move of a whole.
#[derive(Debug)]
pub(crate) struct Flow {
    pub pilot: Pilot,
    /// When the move was begun, by which all times are counted.
    pub began: Instant,
    /// Pieces that were cut by somebody who did not finish them.
    pub again: VecDeque<Piece>,
    /// The next one begins here.
    pub next: Piece,
    pub done_bytes: u64,
    pub log: Log,
    /// How many pieces were moved.
    pub blocks: u64,
    /// A limit on bandwidth lets all of it take no less.
    pub least_s: f64,
}

impl Flow {
    /// Moves what is left of `bytes`.
    pub async fn run<W: Work>(
        &mut self,
        work: &mut W,
        stop: &Stop,
        observer: &dyn Observer,
        (name, bytes): (&str, u64),
    ) -> Result<(), Error> {
        let mut tasks = JoinSet::new();
        loop {
            if stop.is_asked() {
                return Err(Error::Stopped);
            }
            while let Some((piece, ticket)) = self.take() {
                let moving = work.start(piece)?;
                tasks.spawn(async move { (piece, ticket, moving.await) });
            }
            let joined = tokio::select! {
                joined = tasks.join_next() => joined,
                () = stop.asked() => return Err(Error::Stopped),
            };
            let Some(joined) = joined else { return Ok(()) };
            let (piece, ticket, done) = joined.map_err(|error| Error::Request(error.to_string()))?;
            let (done, went) = done?;
            work.finish(piece, done)?;
            self.pilot.done(&ticket, self.now_s(), went.straight);
            self.log.add(went.phases, went.retried);
            if went.retried.slow_down > 0 {
                self.pilot.slow_down(&ticket);
            }
            (self.done_bytes, self.blocks) = (self.done_bytes + piece.bytes, self.blocks + 1);
            let (done_bytes, elapsed_s) = (self.done_bytes, self.now_s());
            let plan = self.pilot.plan().map(|plan| self.limited(plan));
            observer.progress(&Progress {
                name,
                done_bytes,
                bytes: Some(bytes),
                elapsed_s,
                plan: plan.as_ref(),
                files: None,
            });
        }
    }

    /// The plan as it was first made.
    pub fn first(&self) -> Option<Plan> {
        self.pilot.first().map(|plan| self.limited(plan))
    }

    /// Under a limit the last block's turn comes no sooner than the limit lets it: what that one takes, and to begin
    /// and commit, comes on top, and is as uncertain as all of it was.
    fn limited(&self, plan: &Plan) -> Plan {
        if self.least_s == 0.0 {
            return *plan;
        }
        let Plan { shape, link, .. } = plan;
        let last_s = link.fixed_s + link.latency_s + shape.block_bytes as f64 / link.bytes_per_s;
        let expected_s = plan.expected_s.max(self.least_s + last_s);
        let high_s = plan.high_s.max(expected_s + plan.high_s - plan.low_s);
        Plan { expected_s, low_s: plan.low_s.max(self.least_s), high_s, ..*plan }
    }

    fn take(&mut self) -> Option<(Piece, Ticket)> {
        let now_s = self.now_s();
        if let Some(piece) = self.again.front() {
            let ticket = self.pilot.take_again(piece.bytes, now_s)?;
            return self.again.pop_front().map(|piece| (piece, ticket));
        }
        let ticket = self.pilot.take(now_s)?;
        let piece = Piece { bytes: ticket.bytes, ..self.next };
        self.next = Piece { index: piece.index + 1, offset: piece.offset + piece.bytes, bytes: 0 };
        Some((piece, ticket))
    }

    fn now_s(&self) -> f64 {
        self.began.elapsed().as_secs_f64()
    }
}
