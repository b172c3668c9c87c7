//! Functions for text. They make text from users (names, commands, reasons) harmless to display, and shorten, list and
//! count.

use std::fmt::Display;

pub use ascertain_plot::escape_controls;
pub(crate) use ascertain_plot::is_harmless;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// Escapes control characters except newlines in a text of several lines.
pub fn escape_controls_in_lines(text: &str) -> String {
    text.split('\n').map(escape_controls).collect::<Vec<_>>().join("\n")
}

/// The mark before a name in a sentence that will become plain text or Markdown. Escaped text can't contain this
/// character or [`NAME_END`].
pub(crate) const NAME_START: char = '\u{1}';
/// The mark after a name, see [`NAME_START`].
pub(crate) const NAME_END: char = '\u{2}';

/// Escapes the control characters in a name, and puts the name between [`NAME_START`] and [`NAME_END`].
pub(crate) fn quoted(name: &str) -> String {
    format!("{NAME_START}{}{NAME_END}", escape_controls(name))
}

/// Escapes a text, and replaces the backticks around names by [`NAME_START`] and [`NAME_END`]. If the number of
/// backticks is odd, they stay.
pub(crate) fn with_names(plain: &str) -> String {
    let pieces: Vec<String> = plain.split('`').map(escape_controls).collect();
    let pieces = match pieces.len() % 2 {
        0 => return escape_controls(plain),
        _ => pieces.into_iter().enumerate(),
    };
    pieces.map(|(index, piece)| if index % 2 == 1 { quoted(&piece) } else { piece }).collect()
}

/// Replaces the middle of long names in a sentence by "…". A name stays unchanged if another name would look the same
/// after shortening. It also stays if it is part of a text in `whole`, such as a condition, because the middle of such
/// a text is important.
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

/// The length of the longest name that is not shortened, in characters.
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

/// Converts a sentence whose names are between [`NAME_START`] and [`NAME_END`]. `name` converts the names, `words` the
/// text between them.
pub(crate) fn marked_up(sentence: &str, name: impl Fn(&str) -> String, words: impl Fn(&str) -> String) -> String {
    let pieces = sentence.split(NAME_START).enumerate().map(|(index, piece)| match piece.split_once(NAME_END) {
        Some((marked, rest)) if index > 0 => name(marked) + &words(rest),
        _ => words(piece),
    });
    pieces.collect()
}

/// Lists at most `most` names, and the number of the others: "a, b and 3 more".
pub(crate) fn listed(names: &[impl AsRef<str>], most: usize) -> String {
    let named = names.iter().take(most).map(AsRef::as_ref).collect::<Vec<&str>>().join(", ");
    match names.len().saturating_sub(most) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// Returns a sentence as plain text, with backticks in place of [`NAME_START`] and [`NAME_END`] around names.
pub(crate) fn plain(sentence: &str) -> String {
    sentence.replace([NAME_START, NAME_END], "`")
}

/// Adds a full stop unless the text ends with a punctuation mark.
pub(crate) fn ended(text: &str) -> String {
    let text = escape_controls(text.trim());
    if text.ends_with(['.', '!', '?', '…']) { text } else { format!("{text}.") }
}

/// Capitalises the first letter.
pub(crate) fn capitalised(text: &str) -> String {
    let mut rest = text.chars();
    rest.next().map_or_else(String::new, |first| first.to_uppercase().chain(rest).collect())
}

/// Returns a count with its noun: "1 pair", "13 pairs".
pub(crate) fn counted(count: impl Display + From<u8> + PartialEq, noun: &str) -> String {
    let ending = if count == 1.into() { "" } else { "s" };
    format!("{count} {noun}{ending}")
}

/// Writes a number of a sentence. Its thousands are separated if it has five digits or more: `2196`, `21,960`.
pub(crate) fn apart(number: u64) -> String {
    if number < 10_000 { number.to_string() } else { grouped(number) }
}

/// Returns a count with its noun and with its thousands separated: "1 result", "12,000 results".
pub(crate) fn grouped_count(count: u64, noun: &str) -> String {
    let ending = if count == 1 { "" } else { "s" };
    format!("{} {noun}{ending}", grouped(count))
}

/// Joins the texts that are not empty, with an empty line between them.
pub fn parted(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n")
}

/// Groups values by key; the groups are in the order in which their keys first appear.
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

/// Returns each item once, in the order in which the items first appear.
pub(crate) fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    let mut known = Vec::new();
    for item in items {
        if !known.contains(&item) {
            known.push(item);
        }
    }
    known
}

/// Sorts items by a number in ascending order; the sort is stable.
pub(crate) fn sorted<T>(items: Vec<T>, key: impl Fn(&T) -> f64) -> Vec<T> {
    let order = in_order(&items.iter().map(key).collect::<Vec<_>>());
    let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
    order.into_iter().filter_map(|place| items[place].take()).collect()
}

/// Returns the indices of the numbers in ascending order of the numbers. All sorting in this crate uses this function,
/// because each instance of a generic sort has ten kilobytes of machine code.
fn in_order(numbers: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..numbers.len()).collect();
    order.sort_by(|&one, &other| numbers[one].total_cmp(&numbers[other]));
    order
}

/// Shortens a text to a width in columns; "…" replaces its end.
pub(crate) fn cut(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    format!("{}…", within(text.chars(), columns.saturating_sub(1)).trim_end())
}

/// Shortens a text to a width in columns; "…" replaces its middle, because the last words of commands differ more often
/// than the first.
pub(crate) fn cut_middle(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    let room = columns.saturating_sub(1);
    let start = within(text.chars(), room / 2);
    let end = within(text.chars().rev(), room - start.width());
    format!("{start}…{}", end.chars().rev().collect::<String>())
}

/// Shortens a text to a width in columns after a whole word; a first word that is too long is cut.
pub(crate) fn cut_behind_word(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_string();
    }
    let kept = within(text.chars(), columns.saturating_sub(" …".width()));
    let is_whole = text[kept.len()..].starts_with(' ');
    let end = if is_whole { kept.len() } else { kept.rfind(' ').unwrap_or(kept.len()) };
    format!("{} …", kept[..end].trim_end())
}

/// Returns the first characters that fit in a number of columns.
pub(crate) fn within(chars: impl Iterator<Item = char>, columns: usize) -> String {
    let mut left = columns;
    let fits = |char: &char| {
        char.width().unwrap_or(0) <= left && {
            left -= char.width().unwrap_or(0);
            true
        }
    };
    chars.take_while(fits).collect()
}

/// A space at which lines are not wrapped.
pub(crate) const NO_BREAK: &str = "\u{a0}";

/// Replaces each space between a number and its unit by [`NO_BREAK`].
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
    joined.split_off(1)
}

/// Writes an integer with its thousands separated: `65,536`.
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

/// Returns these words as a command line, quoted for a shell. The first word, a path on the machine of the run, is
/// shortened to the file name of the program.
#[cfg(feature = "recorded")]
pub(crate) fn command_line(words: &[String]) -> String {
    let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
    if let Some(program) = words.first_mut() {
        *program = program.rsplit('/').next().unwrap_or(program);
    }
    ascertain_sys::command::join(&words)
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
        assert_eq!(cut("naive", 5), "naive");
        assert_eq!(cut("naively", 5), "naiv…");
        assert_eq!(cut("a 数数数", 5), "a 数…");
        assert_eq!(cut("", 0), "");
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
