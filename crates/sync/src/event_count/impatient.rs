//! A faulty event count for control tests: even the first sleep of a waiter has no time limit.

use std::time::Duration;

use super::contract::{EventCount, Version, sealed};
use super::sleep::{Announcement, Sleepers, wait};
use super::{OneWord, TwoWord};
use crate::primitives::Instant;

/// A faulty single-producer event count, as a control. Its sleepers assume that the next publication sees their
/// announcement, although a publication may overlook the announcement.
#[derive(Debug, Default)]
pub struct Impatient<E>(E);

impl<E: EventCount> sealed::Sealed for Impatient<E> {}

macro_rules! impatient {
    ($($patient:ty)*) => { $(
        impl EventCount for Impatient<$patient> {
            fn starting_at(version: Version) -> Self {
                Self(<$patient>::starting_at(version))
            }

            fn snapshot(&self) -> Version {
                self.0.snapshot()
            }

            fn publish(&self) {
                self.0.publish();
            }

            fn publish_many(&self, count: u32) {
                self.0.publish_many(count);
            }

            fn wait(&self, seen: Version, deadline: Option<Instant>) -> Option<Version> {
                wait(self, seen, deadline)
            }
        }

        impl Sleepers for Impatient<$patient> {
            const IS_PROMPT: bool = true;

            fn version(&self) -> Version {
                self.0.version()
            }

            fn announce(&self, seen: Version) -> Option<Announcement> {
                self.0.announce(seen)
            }

            fn is_announced(&self, seen: Version, announcement: Announcement) -> bool {
                self.0.is_announced(seen, announcement)
            }

            fn sleep(&self, announcement: Announcement, timeout: Option<Duration>) {
                self.0.sleep(announcement, timeout);
            }
        }
    )* };
}

impatient!(OneWord TwoWord);
