//! Addresses that levels name. Levels are written down and printed, so a secret never stands in one.

use std::env;
use std::fmt;

use super::Level;

/// A place on the network: the text as written, and the address that it stands for.
///
/// An address that contains a secret is put into an environment variable, and its level is the variable's name with `$`
/// before it. Only the name is recorded and printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Address {
    written: String,
    /// The address itself, which may contain a secret: print [`Address`] instead.
    pub secret: String,
}

/// The environment variable that a level names is not set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the environment variable {name} is not set; set it to the address")]
pub struct Unset {
    /// The variable's name.
    pub name: String,
}

impl Address {
    /// Reads the address that a level names.
    ///
    /// # Errors
    /// [`Unset`], if the level names a variable that is not set.
    pub fn of(level: &Level) -> Result<Self, Unset> {
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

/// The environment variable that a text names: `$NAME`.
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
        let plain = Address::of(&"https://example.com/a".into()).unwrap();
        assert_eq!(plain.secret, "https://example.com/a");
        // Cargo sets this one for every test.
        let named = Address::of(&"$CARGO_PKG_NAME".into()).unwrap();
        assert_eq!(named.secret, "ascertain-engine");
        assert_eq!(format!("{named} {named:?}"), "$CARGO_PKG_NAME Address(\"$CARGO_PKG_NAME\")");
        let unset = Address::of(&"$ASCERTAIN_NEVER_SET".into()).unwrap_err();
        assert_eq!(unset.name, "ASCERTAIN_NEVER_SET");
        for text in ["$", "$1", "$a-b", "a$b", ""] {
            assert_eq!(variable(text), None, "{text}");
        }
    }
}
