//! A `[[claim]]`'s values by key, checked against the table of keys.

use std::time::Duration;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Notes, unknown};
use super::keys::{KEYS, nanoseconds, number, whole_number};

/// One `key = value`. Offsets are in bytes of the file.
#[derive(Clone, Copy)]
pub(super) struct Entry<'t> {
    pub(super) key: &'t str,
    pub(super) key_at: usize,
    pub(super) value: &'t DeValue<'t>,
    pub(super) at: usize,
}

/// A table's entries in the order of the file.
pub(super) fn entries<'t>(table: &'t DeTable<'t>) -> Vec<Entry<'t>> {
    let entry = |(key, value): (&'t Spanned<_>, &'t Spanned<DeValue<'t>>)| {
        let name: &'t std::borrow::Cow<'t, str> = key.get_ref();
        Entry { key: name, key_at: key.span().start, value: value.get_ref(), at: value.span().start }
    };
    let mut entries: Vec<Entry<'t>> = table.iter().map(entry).collect();
    entries.sort_by_key(|entry| entry.key_at);
    entries
}

/// The values of one `[[claim]]`.
pub(super) struct Fields<'t> {
    /// Where its header stands: the place of what is missing.
    pub(super) at: usize,
    all: Vec<Entry<'t>>,
    sound: Vec<Entry<'t>>,
}

impl<'t> Fields<'t> {
    /// Reads a claim's table; notes unknown keys and values of the wrong form.
    pub(super) fn read(table: &'t DeTable<'t>, at: usize, notes: &mut Notes<'_>) -> Self {
        let all = entries(table);
        let is_sound = |entry: &Entry<'t>| {
            let Some(key) = KEYS.iter().find(|key| key.name == entry.key) else {
                notes.add(entry.key_at, unknown("key", entry.key, KEYS.iter().map(|key| key.name)));
                return false;
            };
            let fault = key.form.fault(key.name, entry.value);
            let is_sound = fault.is_none();
            fault.into_iter().for_each(|fault| notes.add(entry.at, fault));
            is_sound
        };
        let sound = all.iter().copied().filter(is_sound).collect();
        Fields { at, all, sound }
    }

    /// Every entry, in the order of the file.
    pub(super) fn all(&self) -> &[Entry<'t>] {
        &self.all
    }

    /// Whether the key is there, be its value right or wrong.
    pub(super) fn has(&self, key: &str) -> bool {
        self.all.iter().any(|entry| entry.key == key)
    }

    /// The entry, when it is there and of the right form.
    pub(super) fn get(&self, key: &str) -> Option<Entry<'t>> {
        self.sound.iter().copied().find(|entry| entry.key == key)
    }

    /// The string of a key.
    pub(super) fn text(&self, key: &str) -> Option<&'t str> {
        self.get(key)?.value.as_str()
    }

    /// The string of a key to keep; empty when there is none.
    pub(super) fn owned_text(&self, key: &str) -> String {
        self.text(key).unwrap_or_default().to_string()
    }

    /// Whether a flag is set.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.get(key).and_then(|entry| entry.value.as_bool()).unwrap_or(false)
    }

    /// The number of a key.
    pub(super) fn number(&self, key: &str) -> Option<f64> {
        number(self.get(key)?.value)
    }

    /// The whole number of a key.
    pub(super) fn count(&self, key: &str) -> Option<u64> {
        whole_number(self.get(key)?.value)
    }

    /// The duration of a key.
    pub(super) fn duration(&self, key: &str) -> Option<Duration> {
        nanoseconds(self.text(key)?).map(Duration::from_nanos)
    }
}
