//! Finds the largest body that arrives in a server's first flight: predicts its size from a smaller answer, and then
//! tests the prediction.
//!
//! A server may send only a limited number of segments before the first acknowledgement: its initial window. The rest
//! of the answer needs another round trip. The cliff is the size of the largest body that arrives without this other
//! round trip.
//!
//! The cliff follows from the window, the payload of a segment, and two properties of an answer. One property is the
//! number of bytes that share segments with the body: the head, and the framing of TLS and HTTP/2. The other is the
//! number of segments that contain nothing of the body: session tickets, settings, or a head that was written
//! separately. The search measures both numbers with one answer that certainly fits into the window.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The initial window that a server is expected to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Number of segments that may be sent before the first acknowledgement. A segment that is only partly full also
    /// counts.
    pub segments: u64,
    /// Payload of a full segment in bytes: the MSS without the options that each segment has.
    pub segment_bytes: u64,
}

/// The answer to a request for a body of a given size, as the caller of the search has observed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub body_bytes: u64,
    /// Number of bytes in the segments of the body that do not belong to the body. They are the head, and the bytes
    /// that TLS and HTTP/2 add.
    pub shared_bytes: u64,
    /// Number of segments that the server sent after the request.
    pub segments: u64,
    /// `true` if the whole answer arrived in the first flight, without another round trip. An answer may be slow by
    /// chance, but never fast by chance.
    pub is_fast: bool,
}

/// The cliff, the size of the largest body that arrives in the first flight, and how it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cliff {
    pub body_bytes: u64,
    /// The size of the cliff that the search predicted from the first answer.
    pub predicted_bytes: u64,
    /// Number of requests that the search needed, including the first one.
    pub requests: u64,
}

/// The search for the cliff of a server: the size of the largest body that arrives without another round trip. The
/// search sends nothing itself: [`next`](Self::next) returns the size to request, and the caller passes the answer to
/// [`observe`](Self::observe).
#[derive(Clone, Debug)]
pub struct Search {
    window: Window,
    rng: Xoshiro256PlusPlus,
    /// The body sizes that are still to be requested. The last one is requested next.
    queue: Vec<u64>,
    /// The first answer that arrived completely in the first flight.
    first: Option<Answer>,
    predicted_bytes: u64,
    /// The sizes that were predicted so far as the largest body that needs one round trip. They are kept so that no
    /// prediction is tested twice.
    expected: Vec<u64>,
    /// A better prediction of the cliff, the largest body that needs one round trip. It uses the head and the framing
    /// of the latest answer, whose size is nearer to the cliff than the size of the first answer. `None` if this
    /// prediction is not new.
    corrected: Option<u64>,
    fast_bytes: Option<u64>,
    /// The body sizes above the largest fast size that were slow: they needed another round trip. A size that was slow
    /// twice is listed twice.
    slow_bytes: Vec<u64>,
    requests: u64,
}

/// Size in bytes of the largest body that the search requests. In practice, no first flight is larger.
pub const MOST_BYTES: u64 = 1 << 24;

/// Number of times that the search corrects its prediction by one segment. After that, the search tries the middle
/// between the largest fast and the smallest slow size.
const SEGMENTS_LOOKED: usize = 2;

/// Returns the body size for the first request. A body of this size certainly fits into the window. The size usually
/// has as many digits as the size of the largest body that fits. The head contains the size as a decimal number, so the
/// heads of both answers are usually equally long.
fn sample_bytes(window: Window) -> u64 {
    let most = window.segments * window.segment_bytes * 7 / 10;
    10_u64.pow(most.max(1).ilog10())
}

impl Search {
    /// Starts a search for a server that is assumed to have this window.
    pub fn new(window: Window, seed: u64) -> Self {
        Self {
            window,
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            queue: vec![sample_bytes(window)],
            first: None,
            predicted_bytes: 0,
            expected: Vec::new(),
            corrected: None,
            fast_bytes: None,
            slow_bytes: Vec::new(),
            requests: 0,
        }
    }

    /// Returns the next body size to request; `None` when the search has ended.
    pub fn next(&self) -> Option<u64> {
        self.queue.last().copied()
    }

    /// Records the answer to a request for the body size that [`next`](Self::next) returned.
    pub fn observe(&mut self, answer: Answer) {
        self.requests += 1;
        self.queue.pop();
        let body = answer.body_bytes;
        match answer.is_fast {
            true => self.fast_bytes = self.fast_bytes.max(Some(body)),
            false => self.slow_bytes.push(body),
        }
        self.slow_bytes.retain(|&slow| Some(slow) > self.fast_bytes);
        match self.first {
            // If even a body of one byte is slow, nothing can be predicted. Up to four slow answers may be chance.
            None if !answer.is_fast => self.queue.extend((self.requests < 4).then_some(1)),
            None => {
                self.first = Some(answer);
                self.predicted_bytes = self.expected_of(answer, 0);
                self.expect(self.predicted_bytes);
            }
            // A larger body may need more framing, so the prediction is corrected.
            Some(first) => {
                let grown = answer.shared_bytes.saturating_sub(first.shared_bytes);
                self.corrected = Some(self.expected_of(first, grown)).filter(|bytes| !self.expected.contains(bytes));
            }
        }
        if self.queue.is_empty() {
            self.go_on();
        }
    }

    /// Returns the cliff, the largest body that needs one round trip; `None` if the search has not found it.
    pub fn cliff(&self) -> Option<Cliff> {
        let body_bytes = self.fast_bytes.filter(|_| self.queue.is_empty())?;
        let is_slow = self.slow_bytes.contains(&(body_bytes + 1));
        is_slow.then_some(Cliff { body_bytes, predicted_bytes: self.predicted_bytes, requests: self.requests })
    }

    /// Returns the expected size of the largest body that fits into the window. Compared with the first answer, assumes
    /// the same number of segments without bytes of the body. Also assumes that the number of other bytes that share
    /// segments with the body is higher by `grown`.
    fn expected_of(&self, first: Answer, grown: u64) -> u64 {
        let of_body = (first.body_bytes + first.shared_bytes).div_ceil(self.window.segment_bytes);
        let segments = (self.window.segments + of_body).saturating_sub(first.segments);
        (segments * self.window.segment_bytes).saturating_sub(first.shared_bytes + grown)
    }

    /// Queues three body sizes in random order: `bytes - 1`, `bytes` and `bytes + 1`. The cliff is expected at `bytes`.
    /// Leaves out a size whose result is already known.
    fn expect(&mut self, bytes: u64) {
        self.expected.push(bytes);
        let around = bytes.saturating_sub(1).max(1)..=bytes.saturating_add(1);
        let is_open = |body: &u64| Some(*body) > self.fast_bytes && !self.slow_bytes.contains(body);
        self.queue.extend(around.filter(is_open));
        self.queue.shuffle(&mut self.rng);
    }

    /// Repeats a body size or tries others. The search ends when two sizes differ by one byte, the smaller one
    /// was fast, and the larger one was slow in two requests.
    fn go_on(&mut self) {
        let Some(fast) = self.fast_bytes else { return };
        let slow = self.slow_bytes.iter().copied().min();
        let corrected = self.corrected.take().filter(|&bytes| bytes > fast && slow.is_none_or(|slow| bytes < slow));
        match self.slow_bytes.iter().filter(|&&body| body == fast + 1).count() {
            // A single slow answer may be due to chance.
            1 => self.queue.push(fast + 1),
            0 => match (corrected, slow) {
                (Some(corrected), _) => self.expect(corrected),
                (None, slow) => self.look(fast, slow),
            },
            _ => {}
        }
    }

    /// Queues a larger or smaller body size: first one segment away, which is a common difference between windows, and
    /// then in the middle between `fast` and `slow`.
    fn look(&mut self, fast: u64, slow: Option<u64>) {
        let expected = self.expected.last().copied().filter(|_| self.expected.len() <= SEGMENTS_LOOKED);
        let segment_bytes = self.window.segment_bytes;
        let next = expected.and_then(|bytes| match bytes <= fast {
            true => Some(bytes + segment_bytes),
            false => bytes.checked_sub(segment_bytes),
        });
        match (next.filter(|&bytes| bytes > fast && slow.is_none_or(|slow| bytes < slow)), slow) {
            (Some(bytes), _) => self.expect(bytes),
            (None, Some(slow)) => self.queue.push(fast + (slow - fast) / 2),
            (None, None) => self.queue.extend(Some(2 * fast).filter(|&body| body <= MOST_BYTES)),
        }
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;

    /// A simulated server that follows the model, segment by segment.
    #[derive(Clone, Debug)]
    struct Server {
        window: Window,
        /// Number of segments that the server sends before the head, such as session tickets.
        before: u64,
        head_bytes: u64,
        head_is_apart: bool,
        /// Size of the body's chunks. Each has a framing of `framing_bytes`.
        chunk_bytes: u64,
        framing_bytes: u64,
        /// Number of bytes in the window that the search cannot observe.
        hidden_bytes: u64,
    }

    impl Server {
        fn answer(&self, body_bytes: u64) -> Answer {
            let framing = body_bytes.div_ceil(self.chunk_bytes) * self.framing_bytes;
            let shared_bytes = framing + if self.head_is_apart { 0 } else { self.head_bytes };
            let apart = self.before + u64::from(self.head_is_apart);
            let segments = apart + (body_bytes + shared_bytes).div_ceil(self.window.segment_bytes);
            let most = (self.window.segments - apart) * self.window.segment_bytes - self.hidden_bytes;
            Answer { body_bytes, shared_bytes, segments, is_fast: body_bytes + shared_bytes <= most }
        }

        /// Returns the cliff, found by trying each size.
        fn cliff(&self) -> u64 {
            (1..).take_while(|&body| self.answer(body).is_fast).last().unwrap()
        }
    }

    const PLAIN: Server = Server {
        window: Window { segments: 10, segment_bytes: 1448 },
        before: 0,
        head_bytes: 242,
        head_is_apart: false,
        chunk_bytes: 1 << 30,
        framing_bytes: 0,
        hidden_bytes: 0,
    };

    fn find(server: &Server, seed: u64) -> Cliff {
        let mut search = Search::new(server.window, seed);
        while let Some(body) = search.next() {
            search.observe(server.answer(body));
        }
        search.cliff().unwrap()
    }

    /// Tests the prediction with values that were observed with nginx, over a link with a round trip of 20 ms.
    #[test]
    fn known_servers_are_predicted_to_the_byte() {
        let tls = Server { before: 2, chunk_bytes: 16_384, framing_bytes: 22, ..PLAIN };
        for (server, bytes) in [
            (PLAIN, 14_238),
            (Server { head_is_apart: true, ..PLAIN }, 13_032),
            (Server { window: Window { segments: 20, ..PLAIN.window }, ..PLAIN }, 28_718),
            (tls, 11_320),
        ] {
            let cliff = find(&server, 7);
            assert_eq!((cliff.body_bytes, cliff.predicted_bytes, cliff.requests), (bytes, bytes, 5), "{server:?}");
        }
    }

    /// The window may differ from the expected one by a segment. For example, bbr lets the window grow during the TLS
    /// handshake.
    #[test]
    fn a_window_of_a_segment_more_or_less_costs_three_requests() {
        for segments in [9, 11] {
            let server = Server { window: Window { segments, ..PLAIN.window }, ..PLAIN };
            let mut search = Search::new(PLAIN.window, 5);
            while let Some(body) = search.next() {
                search.observe(server.answer(body));
            }
            let cliff = Cliff { body_bytes: server.cliff(), predicted_bytes: 14_238, requests: 8 };
            assert_eq!(search.cliff(), Some(cliff), "{segments}");
        }
    }

    #[test]
    fn a_cliff_is_found_wherever_it_is() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        for seed in 0..300 {
            let server = Server {
                window: Window { segments: rng.random_range(4..=40), segment_bytes: rng.random_range(500..=8960) },
                before: rng.random_range(0..=2),
                head_bytes: rng.random_range(20..=400),
                head_is_apart: rng.random(),
                chunk_bytes: rng.random_range(1_000..=20_000),
                framing_bytes: rng.random_range(0..=40),
                hidden_bytes: rng.random_range(0..=400) * rng.random_range(0..=1),
            };
            let (cliff, truth) = (find(&server, seed), server.cliff());
            assert_eq!(cliff.body_bytes, truth, "{server:?}");
            assert!(cliff.requests <= if cliff.predicted_bytes == truth { 6 } else { 50 }, "{cliff:?} of {server:?}");
        }
    }

    /// One answer in twenty is late for another reason, and therefore seems to need another round trip.
    #[test]
    fn late_answers_cost_requests_and_no_bytes() {
        let mut wrong = 0;
        for seed in 0..200 {
            let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut search = Search::new(PLAIN.window, seed);
            while let Some(body) = search.next() {
                let answer = PLAIN.answer(body);
                let is_late = rng.random_bool(0.05);
                search.observe(Answer { is_fast: answer.is_fast && !is_late, ..answer });
            }
            let cliff = search.cliff();
            assert!(cliff.is_none_or(|cliff| cliff.requests <= 50), "{cliff:?}");
            wrong += u32::from(cliff.is_none_or(|cliff| cliff.body_bytes != 14_238));
        }
        // For each size, two late answers at the cliff have a probability of 1 in 400.
        assert!(wrong <= 4, "{wrong}");
    }

    #[test]
    fn what_has_no_cliff_is_left_alone() {
        for (is_fast, most) in [(false, 4), (true, 30)] {
            let mut search = Search::new(PLAIN.window, 3);
            let mut asked = 0;
            while let Some(body) = search.next() {
                search.observe(Answer { is_fast, ..PLAIN.answer(body) });
                asked += 1;
            }
            assert!(search.cliff().is_none() && asked <= most, "{asked}");
        }
    }
}
