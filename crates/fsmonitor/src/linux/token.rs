//! Tokens: the text that git keeps in its index and sends with the next question.

use std::fmt;

const PREFIX: &str = "ascertain-fsmonitor:";

/// End of a token after the answer `/`.
pub const AFTER_EVERYTHING: &str = ":all";

/// A token for which every answer is `/`. The hook returns it if it could not ask the daemon.
pub const NONE: &str = "ascertain-fsmonitor:none";

/// A moment in the run time of one daemon process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// Number of the worktree.
    pub worktree: u64,
    /// Random number of the daemon.
    pub daemon: u64,
    /// Number of the last change that earlier answers contain.
    pub sequence: u64,
    /// `true` if the answer was `/`. A command that lists no untracked files then stores the token, but git's cache of
    /// untracked files stays as old as before. The next answer names all folders, which empties the cache.
    pub is_after_everything: bool,
}

/// The meaning of a text that git sends as a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A token of this program.
    Token(Token),
    /// [`NONE`], an empty text, or the number of nanoseconds that git sends if its index has no token.
    None,
    /// Any other text.
    Other,
}

impl fmt::Display for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.is_after_everything { AFTER_EVERYTHING } else { "" };
        write!(f, "{PREFIX}{:016x}:{:016x}:{}{kind}", self.worktree, self.daemon, self.sequence)
    }
}

/// Reads a token.
pub fn parse(text: &[u8]) -> Parsed {
    if text.is_empty() || text == NONE.as_bytes() || (text.len() < 40 && text.iter().all(u8::is_ascii_digit)) {
        return Parsed::None;
    }
    read(text).map_or(Parsed::Other, Parsed::Token)
}

fn read(text: &[u8]) -> Option<Token> {
    let text = std::str::from_utf8(text).ok()?.strip_prefix(PREFIX)?;
    let (text, is_after_everything) = text.strip_suffix(AFTER_EVERYTHING).map_or((text, false), |text| (text, true));
    let mut parts = text.split(':');
    let mut number = |radix: u32, digits: usize| {
        let part = parts.next().filter(|part| digits == 0 || part.len() == digits)?;
        // Only digits: `from_str_radix` also accepts a sign.
        part.bytes().all(|byte| byte.is_ascii_alphanumeric()).then(|| u64::from_str_radix(part, radix).ok())?
    };
    let token =
        Token { worktree: number(16, 16)?, daemon: number(16, 16)?, sequence: number(10, 0)?, is_after_everything };
    parts.next().is_none().then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_read_as_it_was_written() {
        for is_after_everything in [false, true] {
            let token = Token { worktree: 1, daemon: u64::MAX, sequence: 77, is_after_everything };
            assert_eq!(parse(token.to_string().as_bytes()), Parsed::Token(token));
        }
    }

    #[test]
    fn other_texts_are_no_tokens() {
        for text in ["", NONE, "1700000000000000000", "0"] {
            assert_eq!(parse(text.as_bytes()), Parsed::None, "{text}");
        }
        let good = Token { worktree: 1, daemon: 2, sequence: 3, is_after_everything: false }.to_string();
        let wrong = [
            "junk".to_owned(),
            format!("{good}:"),
            format!("{good}x"),
            format!(" {good}"),
            good.replace(":3", ":+3"),
            good.replace(":3", ":99999999999999999999999"),
            good.replacen("0000", "000", 1),
            "9".repeat(1_000_000),
        ];
        for text in wrong {
            assert_eq!(parse(text.as_bytes()), Parsed::Other, "{text}");
        }
        assert_eq!(parse(b"ascertain-fsmonitor:\xff"), Parsed::Other);
    }
}
