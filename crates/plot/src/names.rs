//! Measuring the width of texts, and shortening of names.

use std::collections::{BTreeMap, BTreeSet};

/// Returns the width of a text in a sans-serif typeface, in units of the font size. It uses the widths of the
/// characters of DejaVu Sans, one of the widest common typefaces, so the text also fits in other typefaces.
pub(crate) fn em_width(text: &str) -> f64 {
    text.chars().map(advance).sum()
}

fn advance(c: char) -> f64 {
    match c {
        'i' | 'j' | 'l' | 'I' | 'J' | '\'' => 0.29,
        '.' | ',' | ' ' | ':' | ';' | '/' | '\\' | '|' | '-' | 'f' => 0.36,
        't' | 'r' | '(' | ')' | '[' | ']' | '!' | '⁰'..='⁹' | '⁻' | '²' | '³' | '¹' => 0.41,
        's' | 'z' | 'c' | '"' | '*' | '?' | '_' | '`' | '–' => 0.55,
        'm' | 'w' | 'M' | 'W' | '%' | '@' | '…' => 1.0,
        'A'..='Z' | '#' | '&' | '+' | '<' | '=' | '>' | '^' | '~' | '×' | '→' | '←' | '↑' | '↓' => 0.8,
        c if c.is_ascii() => 0.64,
        // Letters of other alphabets; the branch below is for ideographs and pictures.
        c if c < '\u{1100}' => 0.8,
        _ => 1.1,
    }
}

/// Replaces the middle of a text by `…`, so that the `width` of the text is at most `most`. The middle is replaced
/// because names differ least there. Words are kept whole if that costs little. Numbers are never split.
pub(crate) fn shortened(text: &str, most: f64, width: impl Fn(&str) -> f64) -> String {
    cut_at(text, 0.5, most, width)
}

/// Shortens names that are written one below the other. Different names stay different if possible. The middle of each
/// name is replaced by `…`. If different names would become equal in this way, another part of these names is replaced
/// instead.
pub(crate) fn told_apart(names: &[String], most: f64, width: impl Fn(&str) -> f64) -> Vec<String> {
    const HEADS: [f64; 7] = [0.65, 0.35, 0.8, 0.2, 0.9, 0.1, 0.0];
    let mut labels: Vec<String> = names.iter().map(|name| cut_at(name, 0.5, most, &width)).collect();
    for head in HEADS {
        for alike in alike(names, &labels) {
            let other: Vec<String> = alike.iter().map(|&index| cut_at(&names[index], head, most, &width)).collect();
            let taken =
                |label: &String| labels.iter().enumerate().any(|(at, known)| known == label && !alike.contains(&at));
            let different = other.iter().collect::<BTreeSet<_>>().len();
            let now = alike.iter().map(|&index| &labels[index]).collect::<BTreeSet<_>>().len();
            if different > now && !other.iter().any(taken) {
                alike.iter().zip(other).for_each(|(&index, label)| labels[index] = label);
            }
        }
    }
    labels
}

/// Returns the indices of different names that have the same label, grouped by label.
fn alike(names: &[String], labels: &[String]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    labels.iter().enumerate().for_each(|(index, label)| places.entry(label).or_default().push(index));
    places.into_values().filter(|places| places.iter().any(|&index| names[index] != names[places[0]])).collect()
}

/// Shortens a text to the width `most` by replacing characters within it by `…`. Of the characters that stay, the share
/// `head` (0 to 1) is before the `…`.
fn cut_at(text: &str, head: f64, most: f64, width: impl Fn(&str) -> f64) -> String {
    if width(text) <= most {
        return text.to_string();
    }
    let all: Vec<char> = text.chars().collect();
    let kept = |count: usize| -> [String; 2] {
        let head = (count as f64 * head).ceil() as usize;
        [&all[..head], &all[all.len() - (count - head)..]].map(|part| part.iter().collect())
    };
    // The width grows with the number of kept characters, so a binary search finds the largest number that fits.
    let (mut fits, mut too_long) = (0, all.len());
    while too_long - fits > 1 {
        let middle = usize::midpoint(fits, too_long);
        if width(&kept(middle).join("…")) <= most { fits = middle } else { too_long = middle }
    }
    let [head, tail] = kept(fits);
    let (whole_head, whole_tail) = (up_to_number(up_to_joint(&head), text), from_number(from_joint(&tail), text));
    match (whole_head.is_empty(), whole_tail.is_empty()) {
        (true, true) => format!("{head}…{tail}"),
        _ => format!("{whole_head}…{whole_tail}"),
    }
}

/// Returns `head`, the beginning of `text`. If the end of `head` splits a number in `text`, the digits of this number
/// are removed from `head`.
fn up_to_number<'a>(head: &'a str, text: &str) -> &'a str {
    if text[head.len()..].starts_with(is_of_number) { head.trim_end_matches(is_of_number) } else { head }
}

/// Returns `tail`, the end of `text`. If the beginning of `tail` splits a number in `text`, the digits of this number
/// are removed from `tail`.
fn from_number<'a>(tail: &'a str, text: &str) -> &'a str {
    if text[..text.len() - tail.len()].ends_with(is_of_number) { tail.trim_start_matches(is_of_number) } else { tail }
}

/// Returns whether a character is a digit or a decimal point.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// Returns whether a character separates the words of a name.
fn is_joint(c: char) -> bool {
    "-._/=( ".contains(c)
}

/// Returns the beginning of a name, cut after its last separator so that it ends with a whole word. If less than two
/// thirds of it would stay, it is not cut.
fn up_to_joint(head: &str) -> &str {
    let kept = head.trim_end_matches(|c| !is_joint(c));
    if kept.len() * 3 >= head.len() * 2 { kept } else { head }
}

/// Returns the end of a name, cut before its first whole word. If less than two thirds of it would stay, it is not cut.
fn from_joint(tail: &str) -> &str {
    let kept = tail.trim_start_matches(|c| !is_joint(c));
    if kept.len() * 3 >= tail.len() * 2 { kept } else { tail }
}

#[cfg(test)]
mod tests {
    use super::{shortened, told_apart};

    fn columns(text: &str) -> f64 {
        text.chars().count() as f64
    }

    #[test]
    fn names_are_cut_between_their_words() {
        assert_eq!(shortened("sort -n big.txt", 15.0, columns), "sort -n big.txt");
        assert_eq!(shortened("compress --level 9 --threads 2 big.tar", 22.0, columns), "compress --… 2 big.tar");
        assert_eq!(shortened("abcdefghijklmnop", 7.0, columns), "abc…nop");
    }

    #[test]
    fn numbers_are_not_cut() {
        assert_eq!(shortened("sort file-1234567890", 12.0, columns), "sort …");
        assert_eq!(shortened("1234567 and so on, to 7654321", 11.0, columns), "12345…54321");
        assert_eq!(shortened("sleep 0.0123", 11.0, columns), "sleep…");
        assert_eq!(shortened("12345678901234567890", 5.0, columns), "12…90", "the text is one number");
    }

    #[test]
    fn names_are_cut_where_they_can_be_told_apart() {
        let cut = |names: &[&str], most| {
            told_apart(&names.iter().map(ToString::to_string).collect::<Vec<_>>(), most, columns)
        };
        let alike =
            ["kahan-avx512 (accumulators=4)", "kahan-avx512-fma (accumulators=4)", "kahan-avx512 (accumulators=2)"];
        let labels = cut(&alike, 22.0);
        assert!(labels.iter().all(|label| columns(label) <= 22.0), "{labels:?}");
        assert!(labels[0] != labels[1] && labels[0] != labels[2], "{labels:?}");
        assert_eq!(cut(&["one", "one"], 9.0), ["one", "one"]);
        // Only names whose labels are equal are shortened elsewhere.
        let labels = cut(&["faster-than-radix-100-fixed", "faster-at-1-than-radix-100-fixed", "sort -n big.txt"], 14.0);
        assert!(labels[0] != labels[1], "{labels:?}");
        assert_eq!(labels[2], "sort -….txt");
        assert_eq!(cut(&["sort -n big.txt", "sort -n small.txt"], 12.0), ["sort…big.txt", "sort…all.txt"]);
    }
}
