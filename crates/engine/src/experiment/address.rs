//! Addresses in a factor's levels. Levels are recorded and printed, so they must never contain a secret.

use std::env;
use std::fmt;

use super::Level;

/// A network address in the level of a factor. `Address` has two parts: the text of the level, which is recorded and
/// printed, and the address for which this text stands.
///
/// An address that contains a secret belongs in an environment variable. The level is then the name of the variable
/// with a leading `$`, and only this name is recorded and printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    written: String,
    /// The address itself, which may contain a secret: print [`Address`] instead.
    pub secret: String,
}

/// The error for a level that refers to an environment variable, if that variable is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not set; set it to the address")]
pub struct Unset {
    /// Name of the environment variable.
    pub name: String,
}

impl Address {
    /// Returns the address in a level. If the level names an environment variable, returns the address in this
    /// variable.
    ///
    /// # Errors
    /// [`Unset`], if that variable is not set.
    pub fn from_level(level: &Level) -> Result<Self, Unset> {
        let written = level.to_string();
        let secret = match variable(&written) {
            None => written.clone(),
            Some(name) => env::var(name).map_err(|_| Unset { name: name.into() })?,
        };
        Ok(Self { written, secret })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.written)
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({:?})", self.written)
    }
}

/// Returns the name of the environment variable in a text such as `$NAME`; `None` for any other text.
pub(super) fn variable(text: &str) -> Option<&str> {
    let name = text.strip_prefix('$')?;
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (!name.is_empty() && !name.as_bytes()[0].is_ascii_digit() && name.bytes().all(is_part)).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_stands_for_its_value_and_nothing_prints_that() {
        let plain = Address::from_level(&"https://example.com/a".into()).unwrap();
        assert_eq!(plain.secret, "https://example.com/a");
        // Cargo sets this variable for every test.
        let named = Address::from_level(&"$CARGO_PKG_NAME".into()).unwrap();
        assert_eq!(named.secret, "ascertain-engine");
        assert_eq!(format!("{named} {named:?}"), "$CARGO_PKG_NAME Address(\"$CARGO_PKG_NAME\")");
        let unset = Address::from_level(&"$ASCERTAIN_NEVER_SET".into()).unwrap_err();
        assert_eq!(unset.name, "ASCERTAIN_NEVER_SET");
        for text in ["$", "$1", "$a-b", "a$b", ""] {
            assert_eq!(variable(text), None, "{text}");
        }
    }
}
