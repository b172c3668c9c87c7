//! Sets of a lane's slots.

/// The most arms that a lane, and so a trial, may hold.
pub(crate) const MAX_ARMS: usize = 16;

/// A set of slots, each below [`MAX_ARMS`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Slots(u16);

impl Slots {
    pub fn with(self, slot: usize) -> Slots {
        Slots(self.0 | 1 << slot)
    }

    pub fn without(self, slot: usize) -> Slots {
        Slots(self.0 & !(1 << slot))
    }

    pub fn union(self, other: Slots) -> Slots {
        Slots(self.0 | other.0)
    }

    pub fn contains(self, other: Slots) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The slots, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..MAX_ARMS).filter(move |&slot| self.0 >> slot & 1 == 1)
    }
}

impl FromIterator<usize> for Slots {
    fn from_iter<I: IntoIterator<Item = usize>>(slots: I) -> Slots {
        slots.into_iter().fold(Slots::default(), Slots::with)
    }
}
