//! A check that a client accepts or refuses any memory that a daemon may send. A fuzzer in `fuzz/` runs the same check.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use ascertain_sync::barrierd::Client;
use ascertain_sync::barrierd::file::{MAGIC, VERSION, map, page};
use ascertain_sys::mapping::SharedMemory;

use super::fake_daemon::Fake;

/// Checks that a client either refuses the memory with a reason, or reads it. The client must not panic or wait. A
/// timestamp must never count as passed on a CPU whose number is out of range.
///
/// The memory is that of a daemon that has just started, with changes. It has two parts, the page and the map. The
/// first byte of the input is the number of words that are missing at the end of the page. The second byte is this
/// number for the map. Each further group of ten bytes describes one change: two bytes for the place of a word, and
/// eight for its new value. The place is twice the index of the word; for a word of the map, it is one more.
pub fn barrierd_file(bytes: &[u8]) {
    thread_local!(static FAKE: Fake = Fake::new());
    FAKE.with(|fake| read(fake, bytes));
}

fn read(fake: &Fake, bytes: &[u8]) {
    let (lacking, changes) = bytes.split_first_chunk().unwrap_or((&[0; 2], &[]));
    let whole = [page::bytes(fake.cpus), map::bytes(fake.cpus)];
    // Memory of size zero cannot be mapped.
    let words: [usize; 2] = std::array::from_fn(|i| (whole[i] / 8).saturating_sub(lacking[i].into()).max(1));
    let memory = words.map(|words| SharedMemory::new(c"test", 8 * words).unwrap());
    let store = |which: usize, index: usize, value: u64| {
        if index < words[which] {
            memory[which].word(8 * index).store(value, Relaxed);
        }
    };
    store(0, page::MAGIC / 8, MAGIC);
    store(0, page::VERSION / 8, u64::from(VERSION) | u64::from(fake.cpus) << 32);
    for change in changes.as_chunks::<10>().0 {
        let [low, high, value @ ..] = *change;
        let place = usize::from(u16::from_le_bytes([low, high]));
        store(place % 2, place / 2, u64::from_ne_bytes(value));
    }
    let [page, map] = &memory;
    let any = fake.listener.as_fd();
    match fake.sent(&[map.as_fd(), page.as_fd(), any, any], Client::open).0 {
        Ok(client) => {
            let (cpus, status) = (client.cpus(), client.status());
            assert!(cpus >= fake.cpus && status.cpus.len() == cpus as usize, "{status:?}");
            let timestamp = client.timestamp();
            assert!(!client.has_passed(timestamp, Some(&[cpus])) && client.has_passed(timestamp, Some(&[])));
            let _ = (client.has_passed_by_clock(u64::MAX), client.wait(timestamp, None, Instant::now()));
        }
        Err(error) => assert!(!bytes.is_empty(), "unchanged memory was refused: {error}"),
    }
}
