//! The characters that are shown to people.

use std::borrow::Cow;

/// The characters that a terminal shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Alphabet {
    /// All of them.
    Unicode,
    /// ASCII, where `LC_ALL`, `LC_CTYPE` or `LANG` says `C` or `POSIX`.
    Ascii,
}

impl Alphabet {
    /// That of this process's environment.
    #[must_use]
    pub fn of_environment() -> Alphabet {
        let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set);
        match locale.as_deref() {
            Some("C" | "POSIX") => Alphabet::Ascii,
            _ => Alphabet::Unicode,
        }
    }

    /// The text as it is shown: where there is only ASCII, with what is nearest for each character of ours, and as wide
    /// wherever that can be, so that tables and plots keep their columns. Others' characters (names, commands) stay,
    /// but for those that are ours too; what programs read is never drawn like this.
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
}

/// Stands before a power of ten.
const FACTOR: &str = "×10";
/// The digits of a power, and its sign.
const RAISED: [char; 11] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁻'];

/// What is nearest in ASCII, of our own characters; any other as it is. Marks of plots stay apart.
fn nearest(c: char) -> char {
    match c {
        'µ' => 'u',
        'σ' => 's',
        '…' => '~',
        '·' | '—' | '–' | '−' | '─' | '━' | '╌' => '-',
        '└' | '┬' => '+',
        '│' | '┤' | '├' | '┊' => '|',
        '’' => '\'',
        '“' | '”' => '"',
        '←' | '◄' => '<',
        '→' | '►' => '>',
        '↑' => '^',
        '↓' => 'v',
        '×' => 'x',
        '●' => 'o',
        '○' => 'O',
        '■' => 'm',
        '□' => 'M',
        '▲' => 'a',
        '△' => 'A',
        '◆' => 'd',
        '◇' => 'D',
        '•' | '░' => '.',
        '▒' => ':',
        '▓' => '%',
        '█' => '#',
        // Dots in two columns of four, by a bit each: the upper two rows of them, the lower two, or both.
        '\u{2800}'..='\u{28ff}' => match (c as u32 & 0b0001_1011 != 0, c as u32 & 0b1110_0100 != 0) {
            (false, false) => ' ',
            (true, false) => '\'',
            (false, true) => '.',
            (true, true) => ':',
        },
        _ => c,
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
