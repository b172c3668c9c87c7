//! Text that others chose (names, commands, reasons), made harmless to show.

use std::fmt::Display;

pub use ascertain_plot::escape_controls;
pub(crate) use ascertain_plot::is_harmless;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// [`escape_controls`] of text that has lines, for standard error: ends of lines stay.
pub fn escape_controls_in_lines(text: &str) -> String {
    text.split('\n').map(escape_controls).collect::<Vec<_>>().join("\n")
}

/// Where a name begins in a sentence that is still to be put in plain text or Markdown. No text that is
/// harmless has this character or the next.
pub(crate) const NAME_START: char = '\u{1}';
/// And where it ends.
pub(crate) const NAME_END: char = '\u{2}';

/// A name in a sentence: made harmless, and marked as a name.
pub(crate) fn quoted(name: &str) -> String {
    format!("{NAME_START}{}{NAME_END}", escape_controls(name))
}

/// Plain text with what it has between backticks marked as names; as it is where they are no pairs.
pub(crate) fn with_names(plain: &str) -> String {
    let pieces: Vec<String> = plain.split('`').map(escape_controls).collect();
    let pieces = match pieces.len() % 2 {
        0 => return escape_controls(plain),
        _ => pieces.into_iter().enumerate(),
    };
    pieces.map(|(index, piece)| if index % 2 == 1 { quoted(&piece) } else { piece }).collect()
}

/// A sentence in which long names have their middle left out, so that it stays short; unless two of its names
/// would look alike then, or the name is of a part of `whole`: a condition, of which the middle says the most.
pub(crate) fn shortened(sentence: &str, whole: &[&str]) -> String {
    let names = || sentence.split(NAME_START).skip(1).filter_map(|piece| piece.split_once(NAME_END));
    let mut short = sentence.to_string();
    for (name, _) in names().filter(|(name, _)| !whole.iter().any(|text| text.contains(name))) {
        let cut = without_middle(name);
        let is_clear = names().all(|(other, _)| other == name || without_middle(other) != cut);
        if is_clear {
            short = short.replace(&format!("{NAME_START}{name}{NAME_END}"), &format!("{NAME_START}{cut}{NAME_END}"));
        }
    }
    short
}

/// The longest name that stands in a sentence whole, in characters.
const LONGEST_NAME: usize = 40;

fn without_middle(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    if chars.len() <= LONGEST_NAME {
        return name.to_string();
    }
    let half = LONGEST_NAME / 2;
    let (start, end) = (&chars[..half], &chars[chars.len() - half + 1..]);
    start.iter().chain(&['…']).chain(end).collect()
}

/// A sentence as plain text: names between backticks.
pub(crate) fn plain(sentence: &str) -> String {
    sentence.replace([NAME_START, NAME_END], "`")
}

/// The text with a full stop at its end, unless it has an end of its own.
pub(crate) fn ended(text: &str) -> String {
    let text = escape_controls(text.trim());
    if text.ends_with(['.', '!', '?', '…']) { text } else { format!("{text}.") }
}

/// The text with its first letter as a sentence begins.
pub(crate) fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// "1 pair", "13 pairs".
pub(crate) fn counted(count: impl Display + From<u8> + PartialEq, noun: &str) -> String {
    let ending = if count == 1.into() { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// What there is of these, with an empty line between.
pub(crate) fn parted(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// What has the same key together, in the order in which keys come.
pub(crate) fn gathered<K: PartialEq, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, value) in pairs {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, values)) => values.push(value),
            None => groups.push((key, vec![value])),
        }
    }
    groups
}

/// These in ascending order of a number; those of the same one stay as they are.
pub(crate) fn sorted<T>(items: Vec<T>, key: impl Fn(&T) -> f64) -> Vec<T> {
    let order = in_order(&items.iter().map(key).collect::<Vec<_>>());
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| items[place].take()).collect()
}

/// The places of the numbers, in ascending order. The one sort for whatever is in order here: a sort is ten kilobytes of
/// code for each type.
fn in_order(numbers: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&one, &other| numbers[one].total_cmp(&numbers[other]));
    order
}

/// The text in so many columns: as much of it as fits before what says that there is more.
pub(crate) fn cut(text: &str, columns: usize, ellipsis: char) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    let mut used = 1;
    let fits = |char: &char| {
        used += char.width().unwrap_or(0);
        used <= columns
    };
    let kept: String = text.chars().take_while(fits).collect();
    format!("{}{ellipsis}", kept.trim_end())
}

/// The same with what is left out in the middle: commands differ in their last words more often than in their first.
pub(crate) fn cut_middle(text: &str, columns: usize, ellipsis: char) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    let room = columns.saturating_sub(1);
    let start = within(text.chars(), room / 2);
    let end = within(text.chars().rev(), room - start.width());
    format!("{start}{ellipsis}{}", end.chars().rev().collect::<String>())
}

/// The text in so many columns, cut behind a word, or within the first word if that alone is longer.
pub(crate) fn cut_behind_word(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    let kept = within(text.chars(), columns.saturating_sub(" …".width()));
    let is_whole = text[kept.len()..].starts_with(' ');
    let end = if is_whole { kept.len() } else { kept.rfind(' ').unwrap_or(kept.len()) };
    format!("{} …", kept[..end].trim_end())
}

/// As many of the characters as fit into so many columns.
fn within(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    let fits = |char: &char| {
        char.width().unwrap_or(0) <= left && {
            left -= char.width().unwrap_or(0);
            true
        }
    };
    chars.take_while(fits).collect()
}

/// A space at which no line ends.
pub(crate) const NO_BREAK: &str = "\u{a0}";

/// The text with a number and its unit held together, and odds such as "1 in 1,000".
pub(crate) fn unbroken_quantities(text: &str) -> String {
    let is_unit = |word: &str| {
        let word = word.trim_end_matches(|c: char| ",.;:)".contains(c));
        matches!(word, "%" | "ns" | "µs" | "ms" | "s" | "min" | "B" | "kB" | "MB" | "GB")
    };
    let mut joined = String::with_capacity(text.len());
    for word in text.split(' ') {
        let follows_number = joined.ends_with(|c: char| c.is_ascii_digit());
        joined.push_str(if follows_number && is_unit(word) { NO_BREAK } else { " " });
        joined.push_str(word);
    }
    let mut text = joined.split_off(1);
    while let Some(at) = text.match_indices("1 in ").map(|(at, _)| at).find(|at| has_digit(&text[at + "1 in ".len()..]))
    {
        text.replace_range(at..at + "1 in ".len(), &format!("1{NO_BREAK}in{NO_BREAK}"));
    }
    text
}

fn has_digit(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_digit())
}

/// A whole number with its thousands apart: `65,536`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// A command line that a shell would read as these words.
#[cfg(feature = "recorded")]
pub(crate) fn command_line(words: &[String]) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,@%+".contains(c);
    let quoted = words.iter().enumerate().map(|(index, word)| match word.as_str() {
        // Where the program is on that machine says nothing here.
        path if index == 0 => path.rsplit('/').next().unwrap_or(path).to_string(),
        word if !word.is_empty() && word.chars().all(is_plain) => word.to_string(),
        word => format!("'{}'", word.replace('\'', r"'\''")),
    });
    quoted.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_a_terminal_is_escaped() {
        assert_eq!(escape_controls("a\x1b[31mb\nc\td"), r"a\u{1b}[31mb\nc\td");
        assert_eq!(escape_controls("\u{202e}evil\u{9b}"), r"\u{202e}evil\u{9b}");
        assert_eq!(escape_controls("naïve 和 🚀"), "naïve 和 🚀");
        assert_eq!(escape_controls_in_lines("a\x1b[31m\n  b\r\n"), "a\\u{1b}[31m\n  b\\r\n");
    }

    #[test]
    fn names_are_between_backticks() {
        assert_eq!(plain(&format!("{} won", quoted("a\u{1}b"))), r"`a\u{1}b` won");
    }

    #[test]
    fn long_names_lose_their_middle_while_they_can_be_told_apart() {
        let long = |middle: &str| format!("sort --buffer-size=50% {middle} --parallel=2 numbers.txt");
        let sentence = format!("{} beats {}.", quoted(&long("")), quoted("cat"));
        assert_eq!(plain(&shortened(&sentence, &[])), "`sort --buffer-size=5…allel=2 numbers.txt` beats `cat`.");
        let alike = format!("{} beats {}.", quoted(&long("-n")), quoted(&long("-g")));
        assert_eq!(shortened(&alike, &[]), alike);
    }

    #[test]
    fn command_lines_can_be_pasted() {
        let words = ["/opt/bin/ascertain", "compare", "sort -n", "it's", "--at=n=1,2", ""].map(String::from);
        assert_eq!(command_line(&words), r"ascertain compare 'sort -n' 'it'\''s' --at=n=1,2 ''");
    }

    #[test]
    fn thousands_stand_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn a_text_is_cut_where_it_must() {
        assert_eq!(cut("naive", 5, '…'), "naive");
        assert_eq!(cut("naively", 5, '~'), "naiv~");
        assert_eq!(cut("a 数数数", 5, '…'), "a 数…");
        assert_eq!(cut("", 0, '…'), "");
        assert_eq!(cut_behind_word("sort -n 'big file'", 18), "sort -n 'big file'");
        assert_eq!(cut_behind_word("sort -n 'big file'", 17), "sort -n 'big …");
        assert_eq!(cut_behind_word("sort -n 'big file'", 9), "sort -n …");
        assert_eq!(cut_behind_word("/a/long/path", 5), "/a/ …");
    }

    #[test]
    fn sentences_end_once() {
        assert_eq!(ended("needs AVX-512"), "needs AVX-512.");
        assert_eq!(ended("It hung. "), "It hung.");
    }
}
