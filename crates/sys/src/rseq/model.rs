//! A model that executes the sequences instruction by instruction, from the same text as the assembly in
//! [`sequences`](super::sequences). It explores every interleaving of two threads on one CPU and a third thread on
//! another CPU. The kernel may stop a thread at any moment. Each control test omits or moves one step, and the model
//! must then find a wrong state.
//!
//! If the kernel stops a thread in the middle of a sequence, the thread starts the sequence again. Stores are visible
//! at once: the two threads share a CPU, and between CPUs the sequences rely on the kernel's fence.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::hash::Hash;

use super::sequences::{ACQUIRE, POP, PUSH, STORE};

/// The actions of the kernel that the model can perform. Each control test leaves one of them out.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Kernel {
    aborts: bool,
    fences: bool,
}

const REAL: Kernel = Kernel { aborts: true, fences: true };
const WITHOUT_ABORTS: Kernel = Kernel { aborts: false, fences: true };
const WITHOUT_FENCE: Kernel = Kernel { aborts: true, fences: false };

/// The memory on which sequences operate, in words of 8 bytes. The first three words are `top`, `ceiling` and `floor`
/// of a stack, or the generation and a word. The slots follow them.
type Memory = [u8; 6];

const TOP: usize = 0;
const CEILING: usize = 1;
const FLOOR: usize = 2;
const GENERATION: usize = 0;
const WORD: usize = 1;
/// The address at which the slots begin. They end at [`END`].
const FIRST: u8 = 3 * 8;
const END: u8 = 6 * 8;

/// The names of the registers that sequences use for intermediate values.
const REGISTERS: [&str; 6] = ["cpu", "limit", "slot", "item", "at", "owner"];
const ITEM: usize = 3;
const OWNER: usize = 5;

/// Returns the value of a named operand that is fixed before a sequence begins: a constant, or an address in the data
/// of CPU 0, which begins at 0.
fn given(name: &str) -> usize {
    match name {
        "end" => 1,
        "shift" => 7,
        "slot_bytes" => 8,
        "top" => 8 * TOP,
        "ceiling" => 8 * CEILING,
        "floor" => 8 * FLOOR,
        "generation" => 8 * GENERATION,
        "word" => 8 * WORD,
        "value" => 1,
        "stacks" | "owned" | "wanted" => 0,
        _ => panic!("{name}: the model has no such operand"),
    }
}

/// The progress of one thread: its current sequence, the instruction in it, and its registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Thread {
    sequence: usize,
    instruction: usize,
    registers: [u8; 6],
    compared: Ordering,
}

/// The effect of one instruction on the thread that executes it.
enum Step {
    On,
    Refused,
    Done,
    /// The instruction accessed memory that does not exist.
    Fault,
}

impl Thread {
    const NEW: Self = Self { sequence: 0, instruction: 0, registers: [0; 6], compared: Ordering::Equal };

    /// Returns the thread at the beginning of its next sequence, with `value` in the register of this index.
    fn next(self, register: usize, value: u8) -> Self {
        let mut next = Self { sequence: self.sequence + 1, ..Self::NEW };
        next.registers[register] = value;
        next
    }

    /// Returns the value of an operand: of a register if it names one, otherwise of a constant or an address.
    fn value(&self, name: &str) -> usize {
        let name = name.trim_matches(['{', '}']).trim_end_matches(":e");
        let register = REGISTERS.iter().position(|register| *register == name);
        register.map_or_else(|| given(name), |register| self.registers[register].into())
    }

    /// Returns the index of the word that an operand refers to in memory; `None` if the operand is not in memory. The
    /// index may be out of range.
    fn place(&self, operand: &str) -> Option<usize> {
        let sum = operand.strip_prefix("qword ptr [")?.strip_suffix(']')?;
        let mut address = 0_usize;
        for (index, word) in sum.split(' ').enumerate().filter(|(index, _)| index % 2 == 0) {
            let is_less = index > 0 && sum.split(' ').nth(index - 1) == Some("-");
            let value = self.value(word);
            address = if is_less { address.wrapping_sub(value) } else { address.wrapping_add(value) };
        }
        Some(address / 8)
    }

    /// Executes one instruction.
    fn step(&mut self, text: &[&str], memory: &mut Memory) -> Step {
        let (operation, operands) = text[self.instruction].split_once(' ').expect("an operation and its operands");
        let operands: Vec<&str> = operands.split(", ").collect();
        self.instruction += 1;
        let is_jump = match operation {
            "jae" => self.compared.is_ge(),
            "jbe" => self.compared.is_le(),
            "jne" => self.compared.is_ne(),
            _ => false,
        };
        if operation.starts_with('j') {
            return if is_jump { Step::Refused } else { Step::On };
        }
        let read = |operand: &str| match self.place(operand) {
            Some(word) => memory.get(word).map(|value| usize::from(*value)),
            // A sequence reads the number of its CPU through `fs`; here it is 0.
            None if operand.contains("fs:") => Some(0),
            None => Some(self.value(operand)),
        };
        let Some(values) = operands.iter().map(|operand| read(operand)).collect::<Option<Vec<_>>>() else {
            return Step::Fault;
        };
        let result = match (operation, &values[..]) {
            ("mov", [_, from]) => *from,
            ("add", [to, from]) => to.wrapping_add(*from),
            ("sub", [to, from]) => to.wrapping_sub(*from),
            ("shl", [to, from]) => to << from,
            ("inc", [to]) => to + 1,
            ("cmp", [left, right]) => {
                self.compared = left.cmp(right);
                return Step::On;
            }
            _ => panic!("{operation}: the model does not support this instruction"),
        } as u8;
        match self.place(operands[0]) {
            Some(word) => memory[word] = result,
            None => {
                let name = operands[0].trim_matches(['{', '}']).trim_end_matches(":e");
                let register = REGISTERS.iter().position(|register| *register == name);
                self.registers[register.expect("a register of the sequence")] = result;
            }
        }
        if self.instruction == text.len() { Step::Done } else { Step::On }
    }
}

/// The state of all threads: the two threads of CPU 0, and the index of the one that runs. `there` describes the thread
/// of CPU 1 by its progress and the item that it holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Threads {
    here: [Thread; 2],
    running: usize,
    there: (u8, u8),
}

impl Threads {
    const NEW: Self = Self { here: [Thread::NEW; 2], running: 0, there: (0, 0) };

    /// Makes the kernel switch CPU 0 to the other thread.
    fn switch(&mut self, kernel: Kernel) {
        if kernel.aborts {
            self.here[self.running].instruction = 0;
        }
        self.running = 1 - self.running;
    }

    /// Makes the kernel interrupt CPU 0. The thread that runs on it restarts its sequence.
    fn fence(&mut self, kernel: Kernel) {
        if kernel.fences {
            self.here[self.running].instruction = 0;
        }
    }
}

/// A state of the machine. The method `here` executes one step of the thread that runs on CPU 0, and the method `there`
/// one step of the thread on CPU 1. Each returns the next state, or `None` if its thread has ended.
trait State: Copy + Eq + Hash {
    fn threads(&mut self) -> &mut Threads;
    fn here(self, texts: &[Vec<&str>; 2]) -> Option<Self>;
    fn there(self, kernel: Kernel) -> Option<Self>;
    fn is_right(&self, is_over: bool) -> bool;
}

/// Visits every state that can be reached from `start`. Returns the number of states, or `None` if one of them is
/// wrong.
fn explore<S: State>(start: S, texts: &[Vec<&str>; 2], kernel: Kernel) -> Option<usize> {
    let (mut seen, mut open) = (HashSet::from([start]), vec![start]);
    while let Some(state) = open.pop() {
        let mut switched = state;
        switched.threads().switch(kernel);
        let next = [state.here(texts), state.there(kernel)];
        let is_over = next.iter().all(Option::is_none) && switched.here(texts).is_none();
        if !state.is_right(is_over) {
            return None;
        }
        open.extend(next.into_iter().flatten().chain([switched]).filter(|state| seen.insert(*state)));
    }
    Some(seen.len())
}

/// A stack with the items 1 and 2. Each thread of CPU 0 pops and pushes. The other CPU stops the stack, takes all
/// items, and admits sequences again.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Stealing {
    threads: Threads,
    memory: Memory,
    /// For each item, the number of times that it is on the list that all CPUs share.
    shared: [u8; 3],
    is_wrong: bool,
}

impl Stealing {
    const START: Self =
        Self { threads: Threads::NEW, memory: [FIRST + 16, END, FIRST, 1, 2, 0], shared: [0; 3], is_wrong: false };
}

impl State for Stealing {
    fn threads(&mut self) -> &mut Threads {
        &mut self.threads
    }

    fn here(mut self, texts: &[Vec<&str>; 2]) -> Option<Self> {
        let mut thread = self.threads.here[self.threads.running];
        let is_pop = thread.sequence == 0;
        match thread.step(texts.get(thread.sequence)?, &mut self.memory) {
            Step::On => {}
            Step::Done if is_pop => thread = thread.next(ITEM, thread.registers[ITEM]),
            Step::Done => thread = Thread { sequence: 2, ..Thread::NEW },
            Step::Refused => {
                if let Some(count) = self.shared.get_mut(usize::from(thread.registers[ITEM])).filter(|_| !is_pop) {
                    *count += 1;
                }
                thread = Thread { sequence: 2, ..Thread::NEW };
            }
            Step::Fault => self.is_wrong = true,
        }
        self.threads.here[self.threads.running] = thread;
        Some(self)
    }

    fn there(mut self, kernel: Kernel) -> Option<Self> {
        let (step, held) = self.threads.there;
        self.threads.there = (step + 1, held);
        match step {
            0 => self.memory[FLOOR] = END,
            1 => self.memory[CEILING] = FIRST,
            2 => self.threads.fence(kernel),
            3 if self.memory[TOP] <= FIRST => self.threads.there.0 = 5,
            3 => match self.memory.get(usize::from(self.memory[TOP]) / 8 - 1) {
                Some(item) => self.threads.there.1 = *item,
                None => self.is_wrong = true,
            },
            4 => {
                self.memory[TOP] -= 8;
                self.shared[usize::from(held)] += 1;
                self.threads.there = (3, 0);
            }
            5 => self.memory[FLOOR] = FIRST,
            6 => self.memory[CEILING] = END,
            _ => return None,
        }
        Some(self)
    }

    /// Returns whether no access was outside of the stack. If `is_over` is true, each item must also be in exactly one
    /// place: on the stack or on the shared list.
    fn is_right(&self, is_over: bool) -> bool {
        let Some(stack) = self.memory.get(3..usize::from(self.memory[TOP]) / 8) else { return false };
        let count = |item: u8| {
            stack.iter().filter(|other| **other == item).count() + usize::from(self.shared[usize::from(item)])
        };
        !self.is_wrong && (!is_over || [1, 2].into_iter().all(|item| count(item) == 1))
    }
}

/// Returns the text of a push or pop that is wrong on purpose, for a control test. It reads the top of the stack before
/// the limit. A correct push or pop reads the limit first.
fn top_first(text: &'static str) -> Vec<&'static str> {
    let mut text: Vec<&str> = text.lines().collect();
    let limit = text.iter().position(|line| line.starts_with("mov {limit}")).expect("the sequence reads a limit");
    text.swap(limit, limit + 1);
    text
}

#[test]
fn no_item_is_lost_or_doubled_whoever_is_stopped_where() {
    let texts = [POP, PUSH].map(|text| text.lines().collect());
    let states = explore(Stealing::START, &texts, REAL).expect("each item is in exactly one place");
    assert!(states > 1_000, "{states}");
    assert_eq!(explore(Stealing::START, &texts, WITHOUT_ABORTS), None);
    assert_eq!(explore(Stealing::START, &texts, WITHOUT_FENCE), None);
    let [pop, push] = texts;
    assert_eq!(explore(Stealing::START, &[top_first(POP), push], REAL), None);
    assert_eq!(explore(Stealing::START, &[pop, top_first(PUSH)], REAL), None);
}

/// Words with an owner. Each thread of CPU 0 acquires them and stores once; the other CPU revokes them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Revoking {
    threads: Threads,
    memory: Memory,
    /// The thread of CPU 0 that acquired the words last.
    latest: Option<usize>,
    /// The thread that was the latest acquirer when the revocation began.
    revoked: Option<usize>,
    is_wrong: bool,
}

impl State for Revoking {
    fn threads(&mut self) -> &mut Threads {
        &mut self.threads
    }

    fn here(mut self, texts: &[Vec<&str>; 2]) -> Option<Self> {
        let running = self.threads.running;
        let mut thread = self.threads.here[running];
        let is_acquiring = thread.sequence == 0;
        match thread.step(texts.get(thread.sequence)?, &mut self.memory) {
            Step::On => {}
            Step::Done if is_acquiring => {
                self.latest = Some(running);
                thread = thread.next(OWNER, thread.registers[OWNER]);
            }
            Step::Done => {
                // Only the latest acquirer may commit. If a revocation takes the words from this thread, the thread
                // must commit before the revocation is complete.
                let is_revoked = self.revoked == Some(running) && self.threads.there.0 == 2;
                self.is_wrong |= self.latest != Some(running) || is_revoked;
                thread = Thread { sequence: 2, ..Thread::NEW };
            }
            Step::Refused => thread = Thread { sequence: 2, ..Thread::NEW },
            Step::Fault => self.is_wrong = true,
        }
        self.threads.here[running] = thread;
        Some(self)
    }

    fn there(mut self, kernel: Kernel) -> Option<Self> {
        match self.threads.there.0 {
            0 => {
                self.memory[GENERATION] += 1;
                self.revoked = self.latest;
            }
            1 => self.threads.fence(kernel),
            _ => return None,
        }
        self.threads.there.0 += 1;
        Some(self)
    }

    fn is_right(&self, _: bool) -> bool {
        !self.is_wrong
    }
}

#[test]
fn nothing_is_stored_by_who_lost_the_lock() {
    let texts = [ACQUIRE, STORE].map(|text| text.lines().collect());
    let start = Revoking { threads: Threads::NEW, memory: [0; 6], latest: None, revoked: None, is_wrong: false };
    let states = explore(start, &texts, REAL).expect("only the latest acquirer stores, and not after its revocation");
    assert!(states > 100, "{states}");
    assert_eq!(explore(start, &texts, WITHOUT_ABORTS), None);
    assert_eq!(explore(start, &texts, WITHOUT_FENCE), None);
}
