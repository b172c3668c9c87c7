//! What a client must know to be measured.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::str::FromStr;

/// As it is sent: zeros fill it up.
pub(super) const TOKEN_BYTES: usize = 64;
/// Fewer could be guessed by trying.
const FEWEST: usize = 8;

/// What a client must know to be measured.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// A new one, from the system's chance.
    ///
    /// # Errors
    /// As the system says, where it has none.
    pub fn new() -> io::Result<Self> {
        let mut bytes = [0; 16];
        File::open("/dev/urandom")?.read_exact(&mut bytes)?;
        Ok(Self(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
    }

    /// The token itself: whoever sees it may be measured.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn bytes(&self) -> [u8; TOKEN_BYTES] {
        let mut bytes = [0; TOKEN_BYTES];
        bytes[..self.0.len()].copy_from_slice(self.0.as_bytes());
        bytes
    }

    /// Whether it is this one; how long that takes says nothing of how much of it was right.
    pub(super) fn is(&self, said: &[u8; TOKEN_BYTES]) -> bool {
        self.bytes().iter().zip(said).fold(0, |differing, (one, other)| differing | (one ^ other)) == 0
    }
}

impl FromStr for Token {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_one = (FEWEST..=TOKEN_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
        // The token is not repeated: what goes wrong is often written down.
        let why = format!("a token has {FEWEST} to {TOKEN_BYTES} characters of ASCII, without spaces");
        is_one.then(|| Self(text.into())).ok_or(why)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}
