//! What experiments share.

use ascertain_engine::experiment::{Accepts, Factor, Level};

/// A factor, with words and a level of any kind.
pub fn factor(name: &str, about: &str, default: impl Into<Level>, accepts: Accepts) -> Factor {
    Factor { name: name.into(), about: about.into(), default: default.into(), accepts }
}
