//! Replacing characters that the terminal can't show.

use std::borrow::Cow;

/// The characters that a terminal can show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// All characters of Unicode.
    Unicode,
    /// Only ASCII, because `LC_ALL`, `LC_CTYPE` or `LANG` is `C` or `POSIX`.
    Ascii,
}

impl Alphabet {
    /// Returns the alphabet that the environment variables of this process select.
    #[must_use]
    pub fn from_environment() -> Alphabet {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        match locale.as_deref() {
            Some("C" | "POSIX") => Alphabet::Ascii,
            _ => Alphabet::Unicode,
        }
    }

    /// Returns the text for display. If the terminal can show only ASCII, the symbols of this program, such as `±`, are
    /// replaced by similar ASCII characters. All other characters stay as they are, for example the letters of names
    /// and commands. Tables and plots keep their columns. Output that programs read must not be converted.
    #[must_use]
    pub fn shown(self, text: &str) -> Cow<'_, str> {
        if self == Alphabet::Unicode || text.is_ascii() {
            return Cow::Borrowed(text);
        }
        let mut text = text.replace(" ± ", " +-").replace('±', "+-");
        for digit in RAISED {
            text = text.replace(&format!("{FACTOR}{digit}"), &format!("e{digit}"));
        }
        let mut shown = String::with_capacity(text.len());
        let mut was_raised = false;
        for c in text.chars() {
            let raised = RAISED.iter().position(|digit| *digit == c).map(|place| b"0123456789-"[place] as char);
            if raised.is_some() && !was_raised && !shown.ends_with('e') {
                shown.push('^');
            }
            was_raised = raised.is_some();
            shown.push(raised.unwrap_or_else(|| nearest(c)));
        }
        Cow::Owned(shown)
    }

    /// Returns the text for a progress line. Characters for which the alphabet has no similar character become `?`.
    pub(crate) fn in_line(self, text: &str) -> String {
        match self {
            Alphabet::Unicode => text.to_string(),
            Alphabet::Ascii => self.shown(&text.replace('━', "#")).replace(|c: char| !c.is_ascii(), "?"),
        }
    }
}

/// The text between a number and a power of ten. In ASCII it becomes `e`, so that `5×10⁶` is `5e6`.
const FACTOR: &str = "×10";
/// The raised digits 0 to 9, and the minus sign, of an exponent.
const RAISED: [char; 11] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁻'];

/// The characters that this program prints itself. [`IN_ASCII`] has a similar ASCII character for each, at the same
/// position. The symbols that distinguish the series of a plot are replaced by distinct ASCII characters.
const OURS: &str = "µσ…·—–−─━╌└┬│┤├┊’“”←◄→►↑↓×●○■□▲△◆◇▵•░▒▓█";
const IN_ASCII: &[u8] = b"us~-------++||||'\"\"<<>>^vxoOmMaAdD^..:%#";

/// Returns the nearest ASCII character if the character is one of [`OURS`], otherwise the character itself.
fn nearest(c: char) -> char {
    match c {
        // A Braille character has two columns of four dots, one bit each. The result shows whether dots are set in the
        // upper two rows, in the lower two, or in both.
        '\u{2800}'..='\u{28ff}' => match (c as u32 & 0b0001_1011 != 0, c as u32 & 0b1110_0100 != 0) {
            (false, false) => ' ',
            (true, false) => '\'',
            (false, true) => '.',
            (true, true) => ':',
        },
        _ => OURS.chars().position(|ours| ours == c).map_or(c, |place| IN_ASCII[place] as char),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_is_ascii_and_others_is_theirs() {
        let shown = |text| Alphabet::Ascii.shown(text).into_owned();
        assert_eq!(shown("1.2 µs ± 0.3 · 5.136×10⁻¹⁵ … 2× 10³⁰⁰"), "1.2 us +-0.3 - 5.136e-15 ~ 2x 10^300");
        assert_eq!(shown("resize 3×100"), "resize 3x100");
        assert_eq!(shown("└──┬ 50 %┤⠁⡀⣿⠀█ ─●─"), "+--+ 50 %|'.: # -o-");
        assert_eq!(shown("`größer`"), "`größer`");
        assert_eq!(Alphabet::Unicode.shown("1 µs"), "1 µs");
    }
}
