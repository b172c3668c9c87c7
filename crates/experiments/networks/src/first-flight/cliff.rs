//! The largest body that arrives with a server's first flight: predicted from what one smaller answer shows, and found.
//!
//! A server may send so many segments before anything is acknowledged: its first window. What does not fit waits for a
//! round trip, which is the cliff. Where it is follows from the window, the payload of a segment, what shares segments
//! with the body (the head, the framing of TLS and HTTP/2), and which segments hold something else (session tickets,
//! settings, a head that was written by itself). One answer that is surely fast shows all of these.

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_xoshiro::Xoshiro256PlusPlus;

/// What a server may send at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// So many segments, full or not.
    pub segments: u64,
    /// The payload of a full one: the MSS without the options that each segment has.
    pub segment_bytes: u64,
}

/// What was seen of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    pub body_bytes: u64,
    /// What shares segments with the body.
    pub shared_bytes: u64,
    /// What the server sent after the request, in segments.
    pub segments: u64,
    /// Whether it was whole without another round trip. A page can be late by chance, but never early.
    pub is_fast: bool,
}

/// The largest body that is fast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cliff {
    pub body_bytes: u64,
    /// What the first answer said that it would be.
    pub predicted_bytes: u64,
    /// How many answers it took, the first one included.
    pub requests: u64,
}

/// The search for the cliff of a server that answers with bodies of any size. It asks for nothing itself: it says what
/// to [ask](Self::next) for, and takes what [came](Self::observe) of it.
#[derive(Clone, Debug)]
pub struct Search {
    window: Window,
    rng: Xoshiro256PlusPlus,
    /// To be asked for, the next one last.
    queue: Vec<u64>,
    /// What the first answer had beside its body.
    first: Option<Answer>,
    predicted_bytes: u64,
    /// What was expected so far, so that nothing is expected twice.
    expected: Vec<u64>,
    /// What the latest answer near the cliff makes of it.
    corrected: Option<u64>,
    fast_bytes: Option<u64>,
    /// All that were slow, larger ones than any that was fast: twice where they were asked for again.
    slow_bytes: Vec<u64>,
    requests: u64,
}

/// A server whose first flight is larger has no cliff that anybody would look for.
pub const MOST_BYTES: u64 = 1 << 24;

/// How often a segment more or less is looked at, before it is halves.
const SEGMENTS_LOOKED: usize = 2;

/// What is asked for at first: well within the window, and most often with as many digits as the cliff, for these are
/// part of the head.
fn sample_bytes(window: Window) -> u64 {
    let most = window.segments * window.segment_bytes * 7 / 10;
    10_u64.pow(most.max(1).ilog10())
}

impl Search {
    /// Nothing is known yet but the window that the server should have.
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

    /// The body to ask for next; none when the search has ended.
    pub fn next(&self) -> Option<u64> {
        self.queue.last().copied()
    }

    /// The answer to what was to be asked for.
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
            // Where not even a byte is fast, nothing can be said of the server; once may be chance.
            None if !answer.is_fast => self.queue.extend((self.requests < 4).then_some(1)),
            None => {
                self.first = Some(answer);
                self.predicted_bytes = self.expected_of(answer, 0);
                self.expect(self.predicted_bytes);
            }
            // Framing may grow with the body.
            Some(first) => {
                let grown = answer.shared_bytes.saturating_sub(first.shared_bytes);
                self.corrected = Some(self.expected_of(first, grown)).filter(|bytes| !self.expected.contains(bytes));
            }
        }
        if self.queue.is_empty() {
            self.go_on();
        }
    }

    /// The cliff, when it was found.
    pub fn cliff(&self) -> Option<Cliff> {
        let body_bytes = self.fast_bytes.filter(|_| self.queue.is_empty())?;
        let is_slow = self.slow_bytes.contains(&(body_bytes + 1));
        is_slow.then_some(Cliff { body_bytes, predicted_bytes: self.predicted_bytes, requests: self.requests })
    }

    /// The room for a body in the window, beside what the first answer had in segments of its own, and what shared
    /// segments with its body, which has `grown` by now.
    fn expected_of(&self, first: Answer, grown: u64) -> u64 {
        let of_body = (first.body_bytes + first.shared_bytes).div_ceil(self.window.segment_bytes);
        let segments = (self.window.segments + of_body).saturating_sub(first.segments);
        (segments * self.window.segment_bytes).saturating_sub(first.shared_bytes + grown)
    }

    /// Asks for what lies around an expected cliff, in random order.
    fn expect(&mut self, bytes: u64) {
        self.expected.push(bytes);
        let around = bytes.saturating_sub(1).max(1)..=bytes.saturating_add(1);
        let is_open = |body: &u64| Some(*body) > self.fast_bytes && !self.slow_bytes.contains(body);
        self.queue.extend(around.filter(is_open));
        self.queue.shuffle(&mut self.rng);
    }

    /// Asks once more, or elsewhere, until the cliff lies between two neighbours.
    fn go_on(&mut self) {
        let Some(fast) = self.fast_bytes else { return };
        let slow = self.slow_bytes.iter().copied().min();
        let corrected = self.corrected.take().filter(|&bytes| bytes > fast && slow.is_none_or(|slow| bytes < slow));
        match self.slow_bytes.iter().filter(|&&body| body == fast + 1).count() {
            // Being slow once may be chance.
            1 => self.queue.push(fast + 1),
            0 => match (corrected, slow) {
                (Some(corrected), _) => self.expect(corrected),
                (None, slow) => self.look(fast, slow),
            },
            _ => {}
        }
    }

    /// Looks further up or down: a segment at first, which is what windows differ by, and then by halves.
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

    /// A server by the book: what it sends, segment by segment.
    #[derive(Clone, Debug)]
    struct Server {
        window: Window,
        /// Segments before the answer.
        before: u64,
        head_bytes: u64,
        head_is_apart: bool,
        /// Each so many bytes of the body have so much framing.
        chunk_bytes: u64,
        framing_bytes: u64,
        /// What nobody knows of it.
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

        /// By asking for each.
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

    /// What was seen of nginx at 20 ms.
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

    /// As with bbr, of which the window has grown while keys were agreed upon.
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

    /// One in twenty is late for another reason, which makes it look slow.
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
        // Slow twice by chance where it matters: 1 in 400 each time.
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
