//! A counter that threads on different CPUs don't share.

use ascertain_sys::rseq::{Area, Count, Outcome, Unavailable};

use super::method::{Method, of_cpus, of_threads, own};

/// A number that any thread adds to and that is read rarely: the sum of one for each CPU.
///
/// No addition is lost or counted twice, whoever is stopped where. It wraps around at 2⁶⁴, so that adding
/// `n.wrapping_neg()` takes `n` away. [`add`](Self::add) never waits, neither for another thread nor for the
/// kernel to leave it alone, and where sequences are used it may be called in a signal handler.
///
/// ```
/// use ascertain_sync::per_cpu::Counter;
///
/// let requests = Counter::new();
/// std::thread::scope(|scope| {
///     for _ in 0..4 {
///         scope.spawn(|| (0..1_000).for_each(|_| requests.add(1)));
///     }
/// });
/// assert_eq!(requests.sum(), 4_000);
/// ```
#[derive(Debug)]
pub struct Counter {
    area: Option<Area>,
    of_cpus: Box<[Count]>,
    shards: Box<[Count]>,
}

impl Counter {
    /// Zero, with the best method here.
    #[must_use]
    pub fn new() -> Self {
        Method::first(Self::with_method)
    }

    /// Zero, with a method of the caller's choice.
    ///
    /// # Errors
    /// Why the method can't be had.
    pub fn with_method(method: Method) -> Result<Self, Unavailable> {
        let area = method.area()?;
        Ok(Self { area, of_cpus: of_cpus(area, Count::default), shards: of_threads(area, Count::default) })
    }

    /// Adds to it.
    #[inline]
    pub fn add(&self, delta: u64) {
        match self.area {
            Some(area) if area.add(&self.of_cpus, delta) == Outcome::Done => (),
            Some(_) => self.add_shared(delta),
            None => own(&self.shards).add_shared(delta),
        }
    }

    /// For a thread that was stopped in the middle, which happens once a time slice at most, or has no CPU's number:
    /// the one that all share, so that nobody tries again and again.
    #[cold]
    fn add_shared(&self, delta: u64) {
        self.shards[0].add_shared(delta);
    }

    /// Its value: what was added before, by this thread or by threads that this one has heard of since (joined,
    /// received from), is in it; what is added meanwhile may or may not be.
    #[must_use]
    pub fn sum(&self) -> u64 {
        self.of_cpus.iter().chain(&self.shards).fold(0, |sum, count| sum.wrapping_add(count.get()))
    }
}

impl Default for Counter {
    fn default() -> Self {
        Self::new()
    }
}
