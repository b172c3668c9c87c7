//! Which step comes next: depth first through all that could make a difference.

use super::explorer::Over;
use super::machine::{Op, State, ThreadId, Word};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transition {
    /// The thread does what it is about to do.
    Step(ThreadId),
    /// The oldest store of the thread's buffer reaches memory.
    Flush(ThreadId),
}

/// A state in which more than one transition was possible, perhaps.
struct Branch {
    options: Vec<Transition>,
    taken: usize,
}

/// The path from the start, kept from one execution to the next.
#[derive(Default)]
pub(super) struct Schedule {
    path: Vec<Branch>,
    depth: usize,
    /// What need not be done from here: it was explored before, and nothing since had to do with it.
    asleep: Vec<Transition>,
    last: ThreadId,
}

impl Schedule {
    /// The path to the next execution; none after the last.
    pub(super) fn next(mut self) -> Option<Self> {
        while let Some(mut branch) = self.path.pop() {
            branch.taken += 1;
            if branch.taken < branch.options.len() {
                self.path.push(branch);
                return Some(Self { path: self.path, ..Self::default() });
            }
        }
        None
    }
}

impl State {
    fn possible(&self) -> Vec<Transition> {
        let threads = self.threads.len();
        // The thread that ran last comes first: passing the turn is what takes time.
        let order = (0..threads).map(|nth| (self.schedule.last + nth) % threads);
        let steps = order.filter(|&thread| self.can_step(&self.threads[thread])).map(Transition::Step);
        let flushes = (0..threads).filter(|&thread| !self.threads[thread].buffer.is_empty()).map(Transition::Flush);
        steps.chain(flushes).collect()
    }

    /// The next transition, or how the execution ends.
    pub(super) fn choose(&mut self) -> Result<Transition, Over> {
        let possible = self.possible();
        if possible.is_empty() {
            return Err(Over::Failed(self.deadlock()));
        }
        let Schedule { path, depth, asleep, .. } = &mut self.schedule;
        if *depth == path.len() {
            let options: Vec<_> = possible.iter().filter(|option| !asleep.contains(option)).copied().collect();
            if options.is_empty() {
                return Err(Over::Redundant);
            }
            path.push(Branch { options, taken: 0 });
        }
        let branch = &path[*depth];
        *depth += 1;
        let chosen = branch.options[branch.taken];
        if !possible.contains(&chosen) {
            return Err(Over::Failed("the program is not the same whenever it is run".into()));
        }
        asleep.extend_from_slice(&branch.options[..branch.taken]);
        let mut asleep = std::mem::take(asleep);
        asleep.retain(|&other| !self.depend(other, chosen));
        self.schedule.asleep = asleep;
        if let Transition::Step(thread) = chosen {
            self.schedule.last = thread;
        }
        Ok(chosen)
    }

    fn deadlock(&self) -> String {
        let waits = self.threads.iter().enumerate().filter(|(_, thread)| !thread.is_finished);
        let what = waits.map(|(id, thread)| match thread.next {
            Some(Op::Awake(_)) => format!("thread {id} sleeps"),
            Some(Op::Spin) => format!("thread {id} spins"),
            Some(Op::Join(other)) => format!("thread {id} joins thread {other}"),
            other => format!("thread {id}: {other:?}"),
        });
        format!("all wait for one another: {}", what.collect::<Vec<_>>().join(", "))
    }

    /// Whether the order of the two could make a difference.
    fn depend(&self, a: Transition, b: Transition) -> bool {
        use Transition::{Flush, Step};
        match (a, b) {
            (Step(x), Step(y)) | (Flush(x), Flush(y)) if x == y => true,
            (Step(x), Flush(y)) | (Flush(y), Step(x)) if x == y => self.drains_or_reads_oldest(x),
            _ => {
                let (a, b) = (self.footprint(a), self.footprint(b));
                a.is_global || b.is_global || self.disturbs(&a, &b) || self.disturbs(&b, &a)
            }
        }
    }

    /// Whether what `thread` is about to do has to do with the oldest store of its own buffer.
    fn drains_or_reads_oldest(&self, thread: ThreadId) -> bool {
        let oldest = self.threads[thread].buffer.front().map(|store| store.word);
        match self.threads[thread].next {
            Some(Op::Load(word) | Op::Add(word)) => oldest == Some(word),
            Some(Op::Start | Op::Store(_) | Op::Clock | Op::Join(_)) | None => false,
            Some(_) => true,
        }
    }

    fn disturbs(&self, writer: &Footprint, reader: &Footprint) -> bool {
        writer.writes.iter().any(|word| reader.reads_all || reader.reads == Some(*word) || reader.writes.contains(word))
    }

    fn footprint(&self, transition: Transition) -> Footprint {
        let thread = match transition {
            Transition::Step(thread) | Transition::Flush(thread) => &self.threads[thread],
        };
        let mut footprint = Footprint::default();
        if let Transition::Flush(_) = transition {
            footprint.writes.extend(thread.buffer.front().map(|store| store.word));
            return footprint;
        }
        let buffered = thread.buffer.iter().map(|store| store.word);
        match thread.next {
            None | Some(Op::Start | Op::Store(_) | Op::Clock | Op::Join(_)) => {}
            Some(Op::Load(word) | Op::Add(word)) => {
                footprint.reads = (!buffered.into_iter().any(|other| other == word)).then_some(word);
            }
            // Sleeping and waking change who is in the word's queue.
            Some(Op::Update(word) | Op::Sleep(word) | Op::Wake(word) | Op::Free(word)) => {
                footprint.writes.extend(buffered);
                footprint.writes.push(word);
            }
            Some(Op::Fence | Op::Exit) => footprint.writes.extend(buffered),
            Some(Op::Spin) => footprint.reads_all = true,
            Some(Op::Awake(_)) => footprint.is_global = thread.asleep_on.is_some(),
            Some(Op::Heavy) => footprint.is_global = true,
        }
        footprint
    }
}

/// What a transition has to do with.
#[derive(Default)]
struct Footprint {
    reads: Option<Word>,
    reads_all: bool,
    writes: Vec<Word>,
    is_global: bool,
}
