//! Tests that the peak memory of a command does not include the process that starts the command, however large that
//! process is.

use std::hint::black_box;

use ascertain_sys::process::{Command, Exit, Prepared, memory_floor_bytes};
use ascertain_sys::testing::alone;

const MIB: u64 = 1 << 20;

fn memory_peak_bytes(command: &Command) -> u64 {
    let usage = Prepared::new(command).unwrap().run(None).unwrap();
    assert_eq!(usage.exit, Exit::Code(0));
    usage.memory_peak_bytes
}

/// Runs alone in its process, because this test fills the memory of the process.
#[test]
fn a_large_parent_does_not_count() {
    alone(|| {
        if !crate::common::has_launcher() {
            return;
        }
        let buffer = Command::new("dd", &["if=/dev/zero", "of=/dev/null", "bs=50M", "count=1"]);
        let small = Command::new("true", &[]);
        let before_bytes = memory_peak_bytes(&small);
        assert!(before_bytes < 8 * MIB, "{before_bytes}");

        let early = Prepared::new(&small).unwrap();
        let large = black_box(vec![1_u8; 200 * MIB as usize]);
        let many: Vec<Vec<u8>> = (0..2_000).map(|_| black_box(vec![1_u8; 4_000])).collect();

        let early_bytes = early.run(None).unwrap().memory_peak_bytes;
        assert!(early_bytes < 8 * MIB, "{early_bytes}");
        let late_bytes = memory_peak_bytes(&small);
        assert!(late_bytes < 8 * MIB, "{late_bytes}");
        assert!(memory_floor_bytes() < 2 * MIB, "{}", memory_floor_bytes());

        // Prepares the command on another thread too, whose stack and thread-local memory are elsewhere.
        let from_thread = std::thread::spawn(move || memory_peak_bytes(&small)).join().unwrap();
        assert!(from_thread < 8 * MIB, "{from_thread}");

        // The kernel counts separately for each CPU. With hundreds of CPUs the sum may be wrong by some MiB.
        let buffer_bytes = memory_peak_bytes(&buffer);
        assert!((40 * MIB..80 * MIB).contains(&buffer_bytes), "{buffer_bytes}");
        assert!(large.iter().step_by(4096).chain(many.iter().flatten()).all(|&byte| byte == 1));
    });
}
