//! A counter that keeps a separate count for each CPU.

use ascertain_sys::rseq::{Area, Count, Outcome, Unavailable};

use super::method::{Method, of_cpus, of_threads, own};

/// A counter for frequent additions by any thread and rare reads. It keeps a separate count for each CPU, and its value
/// is the sum of these counts.
///
/// No addition is lost or counted twice, even if the kernel stops a thread in the middle of an addition. The value
/// wraps around at 2⁶⁴, so adding `n.wrapping_neg()` subtracts `n`. [`add`](Self::add) never waits for another thread,
/// and never repeats a restartable sequence that the kernel has stopped. With [`Method::Restartable`], `add` may be
/// called in a signal handler.
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
    /// Creates a counter with the value zero. It uses the best [`Method`] that is available on this machine.
    #[must_use]
    pub fn new() -> Self {
        Method::first(Self::with_method)
    }

    /// Creates a counter with the value zero, which uses the given `method` to keep the counts of the CPUs apart.
    ///
    /// # Errors
    /// Returns the reason why the method is not available.
    pub fn with_method(method: Method) -> Result<Self, Unavailable> {
        let area = method.area()?;
        Ok(Self { area, of_cpus: of_cpus(area, Count::default), shards: of_threads(area, Count::default) })
    }

    /// Adds `delta` to the counter.
    #[inline]
    pub fn add(&self, delta: u64) {
        match self.area {
            Some(area) if area.add(&self.of_cpus, delta) == Outcome::Done(()) => (),
            Some(_) => self.add_shared(delta),
            None => own(&self.shards).add_shared(delta),
        }
    }

    /// Adds to a count that all threads share, so that no thread has to try repeatedly. A thread without a CPU number
    /// always uses this count. Other threads use it after the kernel has stopped them in the middle of their
    /// restartable sequence, which happens at most once per time slice.
    #[cold]
    fn add_shared(&self, delta: u64) {
        self.shards[0].add_shared(delta);
    }

    /// Returns the sum of the counts of all CPUs. It includes everything that this thread added before, and what other
    /// threads added before this thread synchronized with them (by a join or a message). Concurrent additions may be
    /// included or missing.
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
