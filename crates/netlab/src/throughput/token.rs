//! The token that a client must send to be measured.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

/// Minimum length of a token, in characters. A shorter token could be guessed.
const FEWEST: usize = 8;
/// Maximum length of a token, in characters.
const MOST: usize = 64;

/// The token that a client must send to be measured: 8 to 64 printable ASCII characters without spaces.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Creates a token from random numbers of the kernel.
    ///
    /// # Errors
    /// Returns the kernel's error if `/dev/urandom` could not be read.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// Returns the token as text. Anyone who has it can start a measurement.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether `text` is this token. The time of the comparison does not depend on the position of the first
    /// difference, so an attacker can't guess the token character by character.
    pub(super) fn is(&self, text: &str) -> bool {
        let differing = self.0.bytes().zip(text.bytes()).fold(0, |differing, (one, other)| differing | (one ^ other));
        self.0.len() == text.len() && differing == 0
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_one = (FEWEST..=MOST).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        // The message does not contain the token, because errors are often logged.
        let why = format!("invalid token: expected {FEWEST} to {MOST} ASCII characters without spaces");
        is_one.then(|| Self(text.into())).ok_or(why)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_token_is_not_this_one() {
        let token: Token = "a-token-of-mine".parse().unwrap();
        assert!(token.is("a-token-of-mine"));
        for other in ["a-token-of-mind", "a-token-of-min", "a-token-of-mine-too", "another-token", ""] {
            assert!(!token.is(other), "{other}");
        }
    }
}
