//! What must be true of every memory that a daemon sends: also run by `fuzz/`.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use ascertain_sync::barrierd::Client;
use ascertain_sync::barrierd::file::{MAGIC, VERSION, map, page};
use ascertain_sys::mapping::Shared;

use super::fake_daemon::Fake;

/// A client refuses it with a reason, or reads it: it does not fail, wait, or take a stranger's CPU for one of its own.
///
/// The memory is that of a daemon which has just begun, changed: the page and the map lack as many words at their ends
/// as the first two bytes say, and each ten bytes after those are a word's place, odd in the map, and what is there.
pub fn barrierd_file(bytes: &[u8]) {
    thread_local!(static FAKE: Fake = Fake::new());
    FAKE.with(|fake| read(fake, bytes));
}

fn read(fake: &Fake, bytes: &[u8]) {
    let (lacking, changes) = bytes.split_first_chunk().unwrap_or((&[0; 2], &[]));
    let whole = [page::bytes(fake.cpus), map::bytes(fake.cpus)];
    // Nothing at all can't be mapped.
    let words: [usize; 2] = std::array::from_fn(|i| (whole[i] / 8).saturating_sub(lacking[i].into()).max(1));
    let memory = words.map(|words| Shared::new(c"test", 8 * words).unwrap());
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
        Err(error) => assert!(!bytes.is_empty(), "as it began: {error}"),
    }
}
