//! The planner of a transfer. It chooses the size of the next part, and learns from each part that was transferred.

mod remaining;

use super::fit::{CROWDED, fit, median};
use super::probe::{PROBED, Probe, ProbeStep};
use super::{
    AS_GOOD, Constraints, FAST_BYTES_PER_S, Forecast, LEAST_BYTES, NEAR_S, Observation, Shape, TransferPlan, is_near,
};

/// The shape of the transfer (part size, parts in flight) is changed only if the new shape reduces the remaining time
/// to less than this share. For a low-latency store, [`AS_GOOD`] applies instead.
const WORTH_IT: f64 = 0.9;
/// Number of measurements that are kept: the first measurements, when few parts were in flight, and the latest.
const KEPT: usize = 512;
/// Initial number of connections to a low-latency store that does not accept small parts, or that sends the first part
/// at more than [`FAST_BYTES_PER_S`].
const FEW: usize = 4;
/// Initial number of connections for the files of a folder.
const FEW_FILES: usize = 8;
/// Time in seconds after which a small initial number of connections grows by the factor [`RAMP`]. For large parts, the
/// time is longer.
pub(crate) const RAMP_S: f64 = 0.02;
/// Factor by which a small initial number of connections grows. The first parts have shown by then that a connection is
/// many times slower than [`FAST_BYTES_PER_S`], so many connections will be needed.
const RAMP: usize = 4;
/// A request is late if it has taken this multiple of the median duration of requests of similar size.
const LATE: f64 = 1.5;
/// Smallest number of complete requests with which a late request is compared.
const COMPARED: usize = 3;
/// Largest share of all bytes that is requested a second time because the first request is late.
const EXTRA: f64 = 0.05;
/// Shortest remaining time in seconds for which more connections are tried if the machines on both sides seem to limit
/// the rate. New connections cost both machines time and memory, so they pay off only in a longer transfer.
const GROW_S: f64 = 0.5;
/// Number of requests after which the first plan for the files of a folder is made.
const FIRST_FILES: usize = 8;
/// Size in bytes up to which a file is not split while at least as many files as connections are left. A larger part
/// would cost more to repeat, and delay the end of the command.
pub(crate) const WHOLE_BYTES: u64 = 8 << 20;
/// Largest size in bytes of the first parts, if no probe measures the link first. These parts show whether larger parts
/// are better.
const FIRST_BYTES: u64 = 1 << 20;
/// Size in bytes of the first [`NEAR_BLOCKS`] parts for a low-latency store. There are several, because one may be
/// late. They are sent over a single connection: a second connection would not help if one connection already keeps the
/// machines on both sides busy.
const NEAR_BYTES: u64 = 256 << 10;
const NEAR_BLOCKS: usize = 3;
/// Size in bytes of the [`LARGER_BLOCKS`] parts that follow the [`NEAR_BLOCKS`] smaller ones. The durations of both
/// sizes show how much of a request's time does not depend on its size.
const LARGER_BYTES: u64 = 1 << 20;
const LARGER_BLOCKS: usize = 3;
/// Largest size in bytes of the [`FEW`] parts that follow the first part, if that part came at more than
/// [`FAST_BYTES_PER_S`]. The transfer of the bytes then takes most of each part's time.
const FAST_PART_BYTES: u64 = 4 << 20;
/// Limit in seconds on the median duration of the first [`NEAR_BLOCKS`] parts. If they take no longer, larger parts
/// follow before the first plan.
const SHORT_S: f64 = 0.02;
/// Minimum number of parts in the first 3 % of a file. For a low-latency store, the plan is based on these parts.
/// There may be fewer if the parts would be smaller than [`LARGER_BYTES`], or than the store accepts.
const PLANNED_PARTS: u64 = 8;
/// Share of the bytes that must be transferred before the first forecast.
const ENOUGH_SHARE: f64 = 0.1;
/// The forecast is renewed when the number of complete parts has grown by this factor.
const RENEWED: f64 = 1.02;
/// A part that the planner has handed out. The caller passes it to [`Planner::complete`] when the part is transferred.
#[derive(Debug)]
pub struct Ticket {
    /// Size of the part in bytes.
    pub bytes: u64,
    is_one_of_few: bool,
    began_s: f64,
    began_area: f64,
}

/// Chooses the size of each part of a file, or of the files of a command: first small parts that measure the link, then
/// parts of the planned size. Corrects the plan during the transfer.
#[derive(Debug)]
pub struct Planner {
    /// The constraints on the parts. Refusals reduce the maximum number of parts in flight for some time.
    constraints: Constraints,
    /// The maximum number of parts in flight without refusals.
    most_concurrency: usize,
    /// Number of parts transferred since the latest refusal, or since the latest increase of the maximum.
    unrefused: usize,
    /// Total size of all files in bytes.
    bytes: u64,
    /// Number of bytes that were not handed out yet.
    left: u64,
    /// Number of all files.
    files: usize,
    /// Number of files whose last part was not handed out yet.
    files_left: usize,
    /// `true` if there was more than one file at the start.
    is_folder: bool,
    /// `true` while further files are being listed.
    is_listing: bool,
    back_bytes: u64,
    /// Number of bytes that were requested a second time because the first request was late.
    extra_bytes: u64,
    /// Start of the first part, in seconds since the start of the transfer.
    began_s: f64,
    blocks: usize,
    probe: Probe,
    /// Number of parts that must be transferred before the first plan is made, if no probe measures the link first.
    first_round: usize,
    shape: Shape,
    seen: Vec<Observation>,
    /// Number of parts that were complete when the link was last estimated.
    fitted: usize,
    latency_s: Option<f64>,
    fixed_s: f64,
    /// The size in bytes and the start in seconds of each part in flight.
    under_way: Vec<(u64, f64)>,
    most_under_way: usize,
    /// Time of the latest call of [`Self::ramp_up`] that raised the number of connections, in seconds.
    ramped_s: f64,
    /// Integral of the number of parts in flight over the time until `at_s`. It gives the average number over any
    /// period.
    area: f64,
    at_s: f64,
    /// Time of the store's latest answer that it is too busy, in seconds since the start of the transfer.
    slowed_s: f64,
    count: usize,
    first: Option<TransferPlan>,
    plan: Option<TransferPlan>,
    first_forecast: Option<Forecast>,
    forecast: Option<Forecast>,
    /// Number of parts that were complete when the latest forecast was made.
    parts_at_forecast: usize,
}

impl Planner {
    /// Creates a planner for a file of `bytes` bytes. `latency_s` is the duration in seconds of a request that
    /// transfers no part, if known.
    #[must_use]
    pub fn new(bytes: u64, constraints: Constraints, latency_s: Option<f64>) -> Self {
        // For a low-latency store, a probe would take longer than measurements during the transfer.
        let probe = if is_near(latency_s) { Probe::default() } else { Probe::new(bytes, &constraints) };
        let first = first_round(bytes, &constraints, latency_s);
        Self::with_first_round(bytes, 1, constraints, latency_s, probe, first)
    }

    /// Creates a planner for `files` files, which have `bytes` bytes together. Their own parts measure the link, so
    /// there is no probe. The latency is learned from the first requests.
    #[must_use]
    pub fn for_files(bytes: u64, files: usize, constraints: Constraints) -> Self {
        if files <= 1 {
            return Self::new(bytes, constraints, None);
        }
        Self::for_folder(bytes, files, constraints)
    }

    /// Creates a planner for `files` files, which have `bytes` bytes together, while further files are being listed.
    /// [`Self::add`] adds these files, and [`Self::end_list`] ends the list.
    #[must_use]
    pub(crate) fn while_listing(bytes: u64, files: usize, constraints: Constraints) -> Self {
        Self { is_folder: true, is_listing: true, ..Self::for_folder(bytes, files, constraints) }
    }

    fn for_folder(bytes: u64, files: usize, constraints: Constraints) -> Self {
        let shape = constraints.fitting(WHOLE_BYTES, FEW_FILES);
        Self::with_first_round(bytes, files, constraints, None, Probe::default(), (shape, FIRST_FILES))
    }

    fn with_first_round(
        bytes: u64,
        files: usize,
        constraints: Constraints,
        latency_s: Option<f64>,
        probe: Probe,
        (shape, first_round): (Shape, usize),
    ) -> Self {
        Self {
            constraints,
            most_concurrency: constraints.max_concurrency,
            unrefused: 0,
            bytes,
            left: bytes,
            files,
            files_left: files,
            is_folder: files > 1,
            is_listing: false,
            back_bytes: 0,
            extra_bytes: 0,
            began_s: 0.0,
            first_round,
            blocks: 0,
            probe,
            shape,
            seen: Vec::new(),
            fitted: 0,
            latency_s,
            fixed_s: 0.0,
            under_way: Vec::new(),
            most_under_way: 0,
            ramped_s: f64::NEG_INFINITY,
            area: 0.0,
            at_s: 0.0,
            slowed_s: f64::NEG_INFINITY,
            count: 0,
            first: None,
            plan: None,
            first_forecast: None,
            forecast: None,
            parts_at_forecast: 0,
        }
    }

    /// Sets the time in seconds to start and to commit the upload. Each of these two steps is assumed to take half of
    /// this time.
    pub fn set_fixed_s(&mut self, seconds: f64) {
        self.fixed_s = seconds;
    }

    /// Returns the next part of a single file to transfer at the time `now_s`. `None` if all parts were handed out, or
    /// if enough parts are in flight.
    pub fn next_part(&mut self, now_s: f64) -> Option<Ticket> {
        if self.left == 0 {
            return None;
        }
        let parts_left = self.constraints.limits.max_parts.saturating_sub(self.blocks);
        self.next_part_of(self.left, self.constraints.limits.least_part_bytes(self.left, parts_left), now_s)
    }

    /// Returns the next part of a file that has `file_bytes` bytes left. The part has at least `least_bytes` bytes,
    /// unless it is the file's last part. `None` if enough parts are in flight at the time `now_s`.
    pub fn next_part_of(&mut self, file_bytes: u64, least_bytes: u64, now_s: f64) -> Option<Ticket> {
        if self.under_way.len() >= self.constraints.max_concurrency {
            return None;
        }
        let mut next = ProbeStep::Forecast;
        if self.plan.is_none() && !self.probe.is_none() {
            next = self.probe.next(self.under_way.len(), self.count, &self.seen, self.latency_s);
            if next == ProbeStep::Forecast {
                self.replan(now_s);
            }
        }
        let (part_bytes, is_one_of_few) = match next {
            ProbeStep::Part { bytes, is_one_of_few } => (bytes, is_one_of_few),
            ProbeStep::Wait => return None,
            ProbeStep::Forecast if self.under_way.len() >= self.shape.concurrency && !self.ramp_up(now_s) => {
                return None;
            }
            ProbeStep::Forecast if self.sends_whole() => {
                let Constraints { limits, memory_bytes, .. } = self.constraints;
                let whole_bytes = WHOLE_BYTES.min(limits.max_part_bytes).min(memory_bytes);
                (self.shape.part_bytes.max(whole_bytes), false)
            }
            ProbeStep::Forecast => (self.shape.part_bytes, false),
        };
        let bytes = part_bytes.max(least_bytes).min(file_bytes);
        (self.left, self.blocks) = (self.left.saturating_sub(bytes), self.blocks + 1);
        self.files_left = self.files_left.saturating_sub(usize::from(bytes == file_bytes));
        Some(self.hand_out(bytes, is_one_of_few, now_s))
    }

    /// Multiplies the number of connections by [`RAMP`] if the transfer began with few of them and the first parts are
    /// slow. Parts are slow if they take longer than [`RAMP_S`] and longer than a fast connection needs for such a
    /// part. Parts may be slow even if the latency of the store is low. Returns whether another part may start now.
    fn ramp_up(&mut self, now_s: f64) -> bool {
        let began_small = self.is_near() || self.is_folder;
        let enough_s = RAMP_S.max(self.shape.part_bytes as f64 / FAST_BYTES_PER_S);
        // Small parts that take long show that a single connection is slow.
        let is_unknown = self.plan.is_none() && (self.count == 0 || self.shape.part_bytes <= NEAR_BYTES);
        if !began_small || !is_unknown || now_s - self.ramped_s.max(self.began_s) < enough_s {
            return false;
        }
        self.shape = self.constraints.fitting(self.shape.part_bytes, RAMP * self.shape.concurrency);
        self.ramped_s = now_s;
        self.under_way.len() < self.shape.concurrency
    }

    /// Permits a second request for the part of `ticket` if the first request is late at the time `now_s`. Unless all
    /// other parts wait for this one (`is_blocking`), every other part must have been handed out, and there must be an
    /// unused connection. The second requests together carry at most [`EXTRA`] of all bytes, but always at least one
    /// part.
    pub(crate) fn repeat_late(&mut self, ticket: &Ticket, now_s: f64, is_blocking: bool) -> Option<Ticket> {
        let is_in_budget =
            self.extra_bytes == 0 || (self.extra_bytes + ticket.bytes) as f64 <= EXTRA * self.bytes as f64;
        let is_at_end = is_blocking || self.is_handed_out() && self.under_way.len() < self.constraints.max_concurrency;
        let is_late = || self.usual_s(ticket.bytes).is_some_and(|usual_s| now_s - ticket.began_s >= LATE * usual_s);
        if !is_in_budget || !is_at_end || !is_late() {
            return None;
        }
        self.extra_bytes += ticket.bytes;
        Some(self.hand_out(ticket.bytes, false, now_s))
    }

    /// Returns the median duration in seconds of the requests for about `bytes` bytes. `None` if there were too few
    /// such requests.
    fn usual_s(&self, bytes: u64) -> Option<f64> {
        let alike = |one: &&Observation| one.bytes / 2 <= bytes && bytes / 2 <= one.bytes;
        let times: Vec<f64> = self.seen.iter().filter(alike).map(|one| one.seconds).collect();
        if times.len() >= COMPARED { median(times) } else { None }
    }

    /// Returns whether files of up to [`WHOLE_BYTES`] are not split. While there are at least as many files as
    /// connections, splitting a file would only cost requests. Until all files are listed, their number is unknown.
    #[must_use]
    pub(crate) fn sends_whole(&self) -> bool {
        self.is_folder && (self.is_listing || self.files_left >= self.shape.concurrency)
    }

    /// Removes `bytes` bytes and `files` files that were not handed out, and need not be transferred.
    pub(crate) fn leave_out(&mut self, bytes: u64, files: usize) {
        (self.bytes, self.left) = (self.bytes.saturating_sub(bytes), self.left.saturating_sub(bytes));
        (self.files, self.files_left) = (self.files.saturating_sub(files), self.files_left.saturating_sub(files));
    }

    /// Adds `bytes` bytes and `files` files that are transferred in addition. Examples are an object that is read back,
    /// and files that were listed later.
    pub(crate) fn add(&mut self, bytes: u64, files: usize) {
        (self.bytes, self.left) = (self.bytes + bytes, self.left + bytes);
        (self.files, self.files_left) = (self.files + files, self.files_left + files);
    }

    /// Records that all files have been listed.
    pub(crate) fn end_list(&mut self) {
        self.is_listing = false;
    }

    /// Hands out again a part of `bytes` bytes that an earlier attempt did not complete. Returns `None` if enough parts
    /// are in flight at `now_s`.
    pub fn repeat_part(&mut self, bytes: u64, now_s: f64) -> Option<Ticket> {
        if self.under_way.len() >= self.shape.concurrency {
            return None;
        }
        self.blocks += 1;
        Some(self.hand_out(bytes, false, now_s))
    }

    fn hand_out(&mut self, bytes: u64, is_one_of_few: bool, now_s: f64) -> Ticket {
        if self.most_under_way == 0 {
            self.began_s = now_s;
        }
        self.pass(now_s);
        self.under_way.push((bytes, now_s));
        self.most_under_way = self.most_under_way.max(self.under_way.len());
        Ticket { bytes, is_one_of_few, began_s: now_s, began_area: self.area }
    }

    /// Records that a part was not transferred, because its transfer failed or was cancelled.
    pub(crate) fn give_up(&mut self, ticket: &Ticket, now_s: f64) {
        self.pass(now_s);
        self.remove_under_way(ticket);
    }

    fn remove_under_way(&mut self, ticket: &Ticket) {
        let is_this = |one: &(u64, f64)| *one == (ticket.bytes, ticket.began_s);
        self.under_way.iter().position(is_this).map(|index| self.under_way.swap_remove(index));
    }

    /// Records that a part was transferred, and renews the forecast. `first_try` is `None` if the part's first attempt
    /// failed; the duration of the part is then ignored. Otherwise, the inner value is the time in seconds to open a
    /// new connection for the part, or `None` if the part used an open connection.
    pub fn complete(&mut self, ticket: &Ticket, now_s: f64, first_try: Option<Option<f64>>) {
        self.pass(now_s);
        self.remove_under_way(ticket);
        (self.count, self.back_bytes) = (self.count + 1, self.back_bytes + ticket.bytes);
        self.unrefused += 1;
        let most = &mut self.constraints.max_concurrency;
        if *most < self.most_concurrency && self.unrefused >= *most {
            (*most, self.unrefused) = (*most + 1, 0);
        }
        if ticket.is_one_of_few {
            self.probe.is_back();
        }
        if let Some(connecting_s) = first_try {
            self.learn(ticket, now_s, connecting_s);
        }
        let is_share = self.back_bytes as f64 >= self.bytes as f64 * ENOUGH_SHARE && !self.is_listing;
        let is_enough = is_share && self.count >= COMPARED;
        let is_due = is_enough && self.count as f64 >= self.parts_at_forecast as f64 * RENEWED;
        if let Some(plan) = self.plan.filter(|_| is_due) {
            self.parts_at_forecast = self.count;
            self.forecast = self.predict(&plan, now_s).or(self.forecast);
            self.first_forecast = self.first_forecast.or(self.forecast);
        }
    }

    /// Records how long a part took, and corrects the plan.
    fn learn(&mut self, ticket: &Ticket, now_s: f64, connecting_s: Option<f64>) {
        let all_s = now_s - ticket.began_s;
        let in_flight = match all_s {
            _ if ticket.is_one_of_few => self.probe.few() as f64,
            0.0.. if all_s > 0.0 => (self.area - ticket.began_area) / all_s,
            _ => 1.0,
        };
        let seconds = (all_s - connecting_s.unwrap_or(0.0)).max(1e-9);
        let is_fresh = connecting_s.is_some();
        if self.is_folder && self.plan.is_none() {
            self.learn_latency(seconds, connecting_s);
        }
        self.seen.push(Observation { bytes: ticket.bytes, seconds, ended_s: now_s, in_flight, is_fresh });
        if self.seen.len() > KEPT {
            self.seen.drain(KEPT / 2..KEPT * 3 / 4);
        }
        if self.plan.is_none() && self.count == 1 && self.is_first_fast(seconds) {
            let part_bytes = (self.bytes / (4 * FEW as u64)).clamp(NEAR_BYTES, FAST_PART_BYTES);
            self.shape = self.constraints.fitting(part_bytes, FEW);
            self.first_round = 1 + FEW;
        }
        if self.plan.is_none() && self.count == self.first_round && self.is_larger_worth_it() {
            self.shape = self.constraints.fitting(LARGER_BYTES, 1);
            self.first_round += LARGER_BLOCKS;
        }
        let enough = match self.plan {
            Some(_) if self.first.is_none() && self.is_probed() => 0,
            Some(_) => self.fitted + self.shape.concurrency.max(8),
            None if self.probe.is_none() => self.first_round,
            None => usize::MAX,
        };
        if self.count >= enough {
            self.replan(now_s);
        }
    }

    /// Learns the latency from one of the first requests for the files of a folder. The lowest measured latency counts,
    /// because an answer may be late only because a machine is busy. If the store is not low-latency, all connections
    /// are used from now on. They should start early, because opening them takes time and their first parts are slow.
    fn learn_latency(&mut self, seconds: f64, connecting_s: Option<f64>) {
        let latency_s =
            [Some(seconds), connecting_s, self.latency_s].into_iter().flatten().fold(f64::INFINITY, f64::min);
        self.latency_s = Some(latency_s);
        let is_clear = super::latency_s(latency_s, Some(0.0)) > NEAR_S || self.count >= FIRST_FILES;
        if is_clear && !self.is_near() {
            self.shape = self.constraints.fitting(WHOLE_BYTES, self.constraints.max_concurrency);
        }
    }

    /// Reduces the number of parts in flight, because the store refused the part of `ticket` with status 429 or 503, or
    /// because the part made no progress. If many parts that were in flight together are refused, the number is reduced
    /// only once. It grows again by one with each round of parts without a refusal.
    pub fn slow_down(&mut self, ticket: &Ticket) {
        self.unrefused = 0;
        if ticket.began_s < self.slowed_s {
            return;
        }
        self.slowed_s = self.at_s;
        // If the command has just started, fewer parts may be in flight than planned.
        let in_flight = (self.under_way.len() + 1).max(self.shape.concurrency);
        self.constraints.max_concurrency = (in_flight * 3 / 4).clamp(1, self.constraints.max_concurrency);
        self.shape.concurrency = self.shape.concurrency.min(self.constraints.max_concurrency);
    }

    /// Returns the first plan, with the first forecast. For a low-latency store, the first plan is based on very few
    /// bytes. The plan after 3 % of the file therefore replaces it.
    #[must_use]
    pub fn first_plan(&self) -> Option<TransferPlan> {
        self.first.or(self.plan).map(|plan| TransferPlan { forecast: self.first_forecast, ..plan })
    }

    fn is_near(&self) -> bool {
        is_near(self.latency_s)
    }

    fn is_probed(&self) -> bool {
        !self.is_near() || self.back_bytes as f64 >= self.bytes as f64 * PROBED
    }

    /// Returns whether some larger parts should follow the first small parts, before the first plan. They should if the
    /// small parts took little time and the file is large.
    fn is_larger_worth_it(&self) -> bool {
        let bytes = NEAR_BLOCKS as u64 * NEAR_BYTES + LARGER_BLOCKS as u64 * LARGER_BYTES;
        let is_first = self.is_near() && self.shape == Shape { part_bytes: NEAR_BYTES, concurrency: 1 };
        let small_s = median(self.seen.iter().map(|one| one.seconds).collect());
        is_first && bytes as f64 <= self.bytes as f64 * PROBED && small_s.is_some_and(|seconds| seconds <= SHORT_S)
    }

    /// Returns whether the first small part, which took `seconds`, came so fast that larger parts over a few
    /// connections should follow.
    fn is_first_fast(&self, seconds: f64) -> bool {
        let is_first = self.is_near() && self.shape == Shape { part_bytes: NEAR_BYTES, concurrency: 1 };
        is_first && seconds <= self.latency_s.unwrap_or(0.0) + NEAR_BYTES as f64 / FAST_BYTES_PER_S
    }

    /// Returns the latest plan, with the latest forecast.
    #[must_use]
    pub fn plan(&self) -> Option<TransferPlan> {
        self.plan.map(|plan| TransferPlan { forecast: self.forecast, ..plan })
    }

    /// Returns the number of bytes of the file that have not been handed out yet.
    #[must_use]
    pub fn left(&self) -> u64 {
        self.left
    }

    /// Returns whether all parts have been handed out, and none is in flight.
    pub(crate) fn is_at_end(&self) -> bool {
        self.is_handed_out() && self.under_way.is_empty()
    }

    fn is_handed_out(&self) -> bool {
        self.left == 0 && !self.is_listing
    }

    fn pass(&mut self, now_s: f64) {
        self.area += self.under_way.len() as f64 * (now_s - self.at_s).max(0.0);
        self.at_s = self.at_s.max(now_s);
    }

    /// Renews the plan. While files are being listed, as many are expected to follow as are known so far.
    fn replan(&mut self, now_s: f64) {
        let (left, files_left) = (self.left, self.files_left);
        if self.is_listing {
            (self.left, self.files_left) = (self.bytes, self.files);
        }
        self.replan_rest(now_s);
        (self.left, self.files_left) = (left, files_left);
    }

    fn replan_rest(&mut self, now_s: f64) {
        let is_moving = self.plan.is_some();
        let seen = if is_moving { self.seen.clone() } else { self.seen_or_late(now_s) };
        let Some(mut fitted) = fit(&seen, self.latency_s, self.fixed_s, is_moving) else { return };
        let link = &mut fitted.link;
        // If the latest plan has just enough connections to reach the ceiling, they do not slow each other down. The
        // measurements then no longer show the ceiling, so the known one is kept.
        let met_bytes_per_s = self.plan.and_then(|plan| plan.link.ceiling_bytes_per_s);
        if let (None, Some(met)) = (link.ceiling_bytes_per_s, met_bytes_per_s)
            && fitted.now_bytes_per_s < met * CROWDED
        {
            link.ceiling_bytes_per_s = Some(fitted.now_bytes_per_s.max(met));
        }
        // The model is trusted only for up to 4 times as many connections as were tried. At a low latency, the limit is
        // 2 times as many, because the machines on both sides may already be as fast as they can. At a high rate, the
        // rest of a short transfer would take longer with new connections.
        let may_be_all = self.is_near() && fitted.seen_bytes_per_s >= FAST_BYTES_PER_S;
        let rest_s = self.ahead_s(self.shape, link, now_s) - now_s;
        let more = match may_be_all {
            true if rest_s < GROW_S => 1,
            _ if self.is_near() => 2,
            _ => 4,
        };
        let so_many = match self.is_near() {
            // Only complete parts count here. Parts that have just started do not show yet whether their connections
            // are useful.
            true => seen.iter().map(|one| one.in_flight).fold(1.0, f64::max).round() as usize,
            false => self.most_under_way,
        };
        let most = (more * so_many).max(self.shape.concurrency).min(self.constraints.max_concurrency);
        let mut tried = Constraints { max_concurrency: most, ..self.constraints };
        if !self.is_probed() {
            // The size of parts is limited, so that enough of them are complete after 3 % of the file. The plan that is
            // made at that time counts as the first one.
            let most = ((self.bytes as f64 * PROBED) as u64 / PLANNED_PARTS).max(LARGER_BYTES);
            tried.limits.max_part_bytes = tried.limits.max_part_bytes.min(most.max(tried.limits.min_part_bytes));
        }
        let chosen = link.choose_for(self.left.max(1), self.files_left, &tried, may_be_all);
        let left_s = |shape| self.ahead_s(shape, link, now_s) - now_s;
        if !is_moving && !self.probe.is_none() {
            self.shape = chosen;
        } else if self.left > 0 {
            // At a high latency, the number of connections is never reduced, because an apparent ceiling may be a
            // connection that has become slower. At a low latency, each connection costs both ends time, so the
            // smallest good number is chosen.
            let least = if self.is_near() { 1 } else { self.shape.concurrency };
            let chosen = self.constraints.fitting(chosen.part_bytes, chosen.concurrency.max(least));
            // At a low latency, parts of a new size need new memory. Allocating it costs more time than the few percent
            // that a similar size would save.
            let same = self.constraints.fitting(self.shape.part_bytes, chosen.concurrency);
            let is_alike = chosen.part_bytes.max(same.part_bytes) / 2 < chosen.part_bytes.min(same.part_bytes);
            let is_as_good = self.is_near() && is_alike && left_s(same) <= AS_GOOD * left_s(chosen);
            let chosen = if is_as_good { same } else { chosen };
            let enough = if self.is_near() { AS_GOOD } else { WORTH_IT };
            if left_s(chosen) < enough * left_s(self.shape) {
                self.shape = chosen;
            }
        }
        // The first correction of the plan comes early: about half as many new parts are enough as for later
        // corrections.
        self.fitted = if is_moving { self.count } else { self.count.saturating_sub(self.shape.concurrency / 2) };
        let plan = TransferPlan { shape: self.shape, forecast: None, link: fitted.link };
        self.plan = Some(plan);
        if self.is_probed() {
            self.first.get_or_insert(plan);
        }
    }
}

/// Returns the shape (part size and number of parts in flight) of the first parts. Also returns how many parts must be
/// transferred before the first plan, if no probe measures the link first.
///
/// For a store that is not low-latency, the first parts go over all connections. If the file is small, each connection
/// then carries one part, so a single round is enough. If only a few connections were used until the first measurement,
/// the other connections would be opened later. That would cost more round trips, and a second round of parts.
///
/// For a low-latency store, a few small parts go over one connection, and the plan is corrected a moment later. If the
/// store does not accept small parts, a single slow connection would take too long. The first parts then go over a few
/// connections.
fn first_round(bytes: u64, constraints: &Constraints, latency_s: Option<f64>) -> (Shape, usize) {
    let (most, is_near) = (constraints.max_concurrency, is_near(latency_s));
    if is_near && constraints.limits.min_part_bytes <= NEAR_BYTES {
        return (
            constraints
                .fitting(constraints.limits.least_part_bytes(bytes, constraints.limits.max_parts).max(NEAR_BYTES), 1),
            NEAR_BLOCKS,
        );
    }
    let concurrency = if is_near { FEW.min(most) } else { most };
    let rounds = bytes.div_ceil(FIRST_BYTES * most as u64).max(1);
    let even = if is_near { 0 } else { bytes.div_ceil(rounds * most as u64) };
    let least = constraints.limits.least_part_bytes(bytes, constraints.limits.max_parts).max(LEAST_BYTES);
    let shape = constraints.fitting(least.max(even), concurrency);
    let blocks = bytes.div_ceil(shape.part_bytes) as usize;
    let round = shape.concurrency.min(blocks);
    // The fastest parts are complete first, so most of a round gives a better estimate than its beginning. If there is
    // only one round, its beginning must be enough.
    let enough = if blocks > round { (round * 3 / 4).max(2) } else { round.div_ceil(4) };
    (shape, enough)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Limits;

    #[test]
    fn a_burst_of_refusals_counts_once() {
        let limits = Limits { min_part_bytes: 1, max_part_bytes: 1 << 40, max_parts: 10_000, max_put_bytes: 1 << 40 };
        let constraints = Constraints {
            limits,
            memory_bytes: 1 << 30,
            min_concurrency: 1,
            max_concurrency: 64,
            limit_bytes_per_s: None,
        };
        let mut planner = Planner::new(1 << 40, constraints, Some(0.1));
        planner.probe = Probe::default();
        let burst = |planner: &mut Planner, now_s: f64| {
            let tickets: Vec<Ticket> = std::iter::from_fn(|| planner.next_part(now_s)).collect();
            for ticket in &tickets {
                planner.complete(ticket, now_s + 0.5, None);
                planner.slow_down(ticket);
            }
            tickets.len()
        };
        assert_eq!([burst(&mut planner, 0.0), burst(&mut planner, 1.0), burst(&mut planner, 2.0)], [64, 48, 36]);
    }

    /// At the start of a folder, the store refuses the first of a few requests. This must not slow down the rest.
    #[test]
    fn a_refusal_does_not_slow_down_the_rest() {
        let limits = Limits { min_part_bytes: 1, max_part_bytes: 1 << 40, max_parts: 10_000, max_put_bytes: 1 << 40 };
        let constraints = Constraints {
            limits,
            memory_bytes: 1 << 30,
            min_concurrency: 1,
            max_concurrency: 8,
            limit_bytes_per_s: None,
        };
        let mut planner = Planner::for_files(1 << 40, 1 << 20, constraints);
        let refused = planner.next_part_of(1000, 1000, 0.0).unwrap();
        planner.complete(&refused, 0.5, None);
        planner.slow_down(&refused);
        assert_eq!(planner.constraints.max_concurrency, 6);
        let mut most = Vec::new();
        for step in 1..=60 {
            let ticket = planner.next_part_of(1000, 1000, f64::from(step)).unwrap();
            planner.complete(&ticket, f64::from(step) + 0.5, Some(None));
            most.push(planner.constraints.max_concurrency);
        }
        assert!(most.is_sorted() && most[..5] == [6; 5] && most[5] == 7 && most.ends_with(&[8, 8]), "{most:?}");
    }
}
