//! The BPF programs by which the kernel records interrupts and idle CPUs, with a description in plain Rust.

use std::os::fd::BorrowedFd;

use ascertain_sys::bpf::Register::{R0, R1, R6, R7, R8};
use ascertain_sys::bpf::{Helper, Instruction};

use super::file::map;

/// Returns the BPF program that the kernel runs at each interrupt. It advances the virtual time by one, and records the
/// virtual time, the clock and one more interrupt for the CPU.
///
/// In plain Rust:
///
/// ```text
/// if cpu < cpus {
///     virtual_time.fetch_add(1);
///     line[cpu].seen = virtual_time.load();
///     line[cpu].clock_ns = clock_ns();
///     line[cpu].generation += 1;
/// }
/// ```
///
/// While this program runs, the CPU runs no program of a user, and at some moment of the run the virtual time is
/// `seen`. The virtual time never decreases. A client that has read a smaller virtual time than `seen` therefore read
/// it before that moment. So clients can compare the two numbers and need no clock. The program uses no argument of the
/// event, because the daemon also runs the program without an event.
pub fn interrupt(map: BorrowedFd<'_>, cpus: u32) -> Vec<Instruction> {
    const NOTE: [Instruction; 10] = [
        Instruction::set(R1, 1),
        Instruction::atomic_add(R7, map::VIRTUAL_TIME as i16, R1),
        Instruction::load(R1, R7, map::VIRTUAL_TIME as i16),
        Instruction::add(R7, R6),
        Instruction::store(R7, own(map::SEEN), R1),
        Instruction::call(Helper::Nanoseconds),
        Instruction::store(R7, own(map::CLOCK_NS), R0),
        Instruction::load(R1, R7, own(map::GENERATION)),
        Instruction::add_immediate(R1, 1),
        Instruction::store(R7, own(map::GENERATION), R1),
    ];
    at_line(map, cpus, &NOTE)
}

/// Returns the BPF program that the kernel runs when a CPU enters an idle state, or leaves it (state -1). In plain
/// Rust:
///
/// ```text
/// if cpu < cpus {
///     line[cpu].seen = virtual_time.load();
///     line[cpu].is_idle = u64::from(state != -1);
/// }
/// ```
///
/// Before a CPU becomes idle, and after it is idle, it goes through the scheduler, which is a full barrier. So if a
/// client sees that `is_idle` of a CPU is 1, it also sees everything that the CPU did for users.
pub fn idle(map: BorrowedFd<'_>, cpus: u32) -> Vec<Instruction> {
    const NOTE: [Instruction; 7] = [
        Instruction::load(R1, R7, map::VIRTUAL_TIME as i16),
        Instruction::add(R7, R6),
        Instruction::store(R7, own(map::SEEN), R1),
        Instruction::set(R1, 0),
        Instruction::jump_if_equal_32(R8, -1, 1),
        Instruction::set(R1, 1),
        Instruction::store(R7, own(map::IS_IDLE), R1),
    ];
    const STATE: Instruction = Instruction::load(R8, R1, 0);
    [&[STATE][..], &at_line(map, cpus, &NOTE)].concat()
}

/// Returns the offset of `field` for the load and store instructions of a program. The program adds this offset to the
/// address of the map plus 64 times the number of the CPU.
const fn own(field: usize) -> i16 {
    (map::line(0) + field) as i16
}

/// Returns a program that finds out the number of its CPU and then runs the instructions `note`. At the start of
/// `note`, R6 contains the number of the CPU times 64, and R7 contains the address of the map. If the number is `cpus`
/// or more, the program skips `note`.
fn at_line(map: BorrowedFd<'_>, cpus: u32, note: &[Instruction]) -> Vec<Instruction> {
    let address = Instruction::load_address(R7, map);
    let skipped = (1 + address.len() + note.len()) as i16;
    let start = [
        Instruction::call(Helper::Cpu),
        Instruction::copy(R6, R0),
        Instruction::jump_if_at_least(R6, cpus.cast_signed(), skipped),
        Instruction::shift_left(R6, map::LINE_BYTES.trailing_zeros().cast_signed()),
    ];
    [&start[..], &address, note, &[Instruction::set(R0, 0), Instruction::exit()]].concat()
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use ascertain_sys::bpf::code;
    use proptest::prelude::*;

    use super::*;

    /// The memory that a program in the kernel can access.
    #[derive(Clone, Debug, PartialEq)]
    struct Machine {
        map: Vec<u64>,
        cpu: u64,
        clock_ns: u64,
        state: u32,
    }

    const MAP: u64 = 0x1000_0000;
    const ARGUMENTS: u64 = 0x2000_0000;

    impl Machine {
        fn word(&mut self, address: u64) -> &mut u64 {
            assert_eq!(address % 8, 0);
            &mut self.map[usize::try_from((address - MAP) / 8).unwrap()]
        }

        /// Runs a program as the kernel would.
        fn run(&mut self, program: &[Instruction]) {
            let mut registers = [0xdead_beef_u64; 11];
            registers[1] = ARGUMENTS;
            let mut at = 0;
            loop {
                let Instruction { code, registers: named, offset, immediate } = program[at];
                let (to, from) = ((named & 15) as usize, (named >> 4) as usize);
                let (source, number) = (registers[from], i64::from(immediate).cast_unsigned());
                let target = registers[to];
                at += 1;
                let place = |base: u64| base.wrapping_add_signed(offset.into());
                match code {
                    code::MOVE => registers[to] = source,
                    code::SET => registers[to] = number,
                    code::ADD => registers[to] = target.wrapping_add(source),
                    code::ADD_IMMEDIATE => registers[to] = target.wrapping_add(number),
                    code::SHIFT_LEFT => registers[to] = target << immediate,
                    code::LOAD if place(source) == ARGUMENTS => registers[to] = self.state.into(),
                    code::LOAD => registers[to] = *self.word(place(source)),
                    code::STORE => *self.word(place(target)) = source,
                    code::ATOMIC_ADD => {
                        let word = self.word(place(target));
                        *word = word.wrapping_add(source);
                    }
                    code::LOAD_ADDRESS => {
                        registers[to] = MAP;
                        at += 1;
                    }
                    code::JUMP_IF_AT_LEAST if target >= number => at += offset as usize,
                    code::JUMP_IF_EQUAL_32 if target as u32 == immediate.cast_unsigned() => at += offset as usize,
                    code::JUMP_IF_AT_LEAST | code::JUMP_IF_EQUAL_32 => {}
                    code::CALL => {
                        registers[0] = if immediate == Helper::Cpu as i32 { self.cpu } else { self.clock_ns };
                        registers[1..6].fill(0xdead_beef);
                    }
                    code::EXIT => return assert_eq!(registers[0], 0),
                    _ => panic!("{code:#x}"),
                }
            }
        }

        /// Does what the documentation of [`interrupt`] describes.
        fn note_interrupt(&mut self, cpus: u32) {
            if self.cpu < cpus.into() {
                self.map[map::VIRTUAL_TIME / 8] = self.map[map::VIRTUAL_TIME / 8].wrapping_add(1);
                let (line, virtual_time) = (map::line(self.cpu as u32), self.map[map::VIRTUAL_TIME / 8]);
                self.map[(line + map::SEEN) / 8] = virtual_time;
                self.map[(line + map::CLOCK_NS) / 8] = self.clock_ns;
                self.map[(line + map::GENERATION) / 8] = self.map[(line + map::GENERATION) / 8].wrapping_add(1);
            }
        }

        /// Does what the documentation of [`idle`] describes.
        fn note_idleness(&mut self, cpus: u32) {
            if self.cpu < cpus.into() {
                let line = map::line(self.cpu as u32);
                self.map[(line + map::SEEN) / 8] = self.map[map::VIRTUAL_TIME / 8];
                self.map[(line + map::IS_IDLE) / 8] = u64::from(self.state != u32::MAX);
            }
        }
    }

    proptest! {
        #[test]
        fn the_programs_are_what_they_are_in_plain_rust(
            words in prop::collection::vec(prop_oneof![any::<u64>(), Just(u64::MAX)], map::bytes(5) / 8),
            cpu in 0_u64..8,
            clock_ns: u64,
            state in prop_oneof![Just(u32::MAX), 0_u32..10],
        ) {
            let anything = std::io::stdin();
            let before = Machine { map: words, cpu, clock_ns, state };
            let (mut ran, mut meant) = (before.clone(), before.clone());
            ran.run(&interrupt(anything.as_fd(), 5));
            meant.note_interrupt(5);
            prop_assert_eq!(ran, meant);
            let (mut ran, mut meant) = (before.clone(), before);
            ran.run(&idle(anything.as_fd(), 5));
            meant.note_idleness(5);
            prop_assert_eq!(ran, meant);
        }
    }
}
