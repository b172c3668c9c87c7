//! How wide text will be, and how it is made to fit.

use std::collections::{BTreeMap, BTreeSet};

/// The width of a text in a sans-serif face, in units of its size. The advances are those of DejaVu Sans, one of
/// the widest common faces, so that text which fits by this estimate fits in others too.
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
        // Letters of other alphabets, then ideographs and pictures.
        c if c < '\u{1100}' => 0.8,
        _ => 1.1,
    }
}

/// The text cut in its middle, where names differ least, so that it is no wider than `most` as `width` measures it.
/// Words are kept whole where that costs little, and numbers always.
pub(crate) fn shortened(text: &str, most: f64, width: impl Fn(&str) -> f64) -> String {
    cut_at(text, 0.5, most, width)
}

/// Names that stand below each other, shortened: cut in their middle, but for those that would look like another one
/// then and that can be told from all others by a cut elsewhere.
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

/// The places of names that differ and whose labels do not, those of each label together.
fn alike(names: &[String], labels: &[String]) -> Vec<Vec<usize>> {
    let mut places: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    labels.iter().enumerate().for_each(|(index, label)| places.entry(label).or_default().push(index));
    places.into_values().filter(|places| places.iter().any(|&index| names[index] != names[places[0]])).collect()
}

/// The text cut so that so large a share of what is left is before the cut.
fn cut_at(text: &str, head: f64, most: f64, width: impl Fn(&str) -> f64) -> String {
    if width(text) <= most {
        return text.to_string();
    }
    let all: Vec<char> = text.chars().collect();
    let cut = |kept: usize| {
        let head = (kept as f64 * head).ceil() as usize;
        let tail = &all[all.len() - (kept - head)..];
        all[..head].iter().chain(&['…']).chain(tail).collect::<String>()
    };
    // The width grows with what is kept, so the longest that fits is found by halving.
    let (mut fits, mut too_long) = (0, all.len());
    while too_long - fits > 1 {
        let middle = usize::midpoint(fits, too_long);
        if width(&cut(middle)) <= most { fits = middle } else { too_long = middle }
    }
    let head = (fits as f64 * head).ceil() as usize;
    let (head, tail) = (&all[..head], &all[all.len() - (fits - head)..]);
    let (head, tail): (String, String) = (head.iter().collect(), tail.iter().collect());
    let (whole_head, whole_tail) = (up_to_number(up_to_joint(&head), text), from_number(from_joint(&tail), text));
    match (whole_head.is_empty(), whole_tail.is_empty()) {
        (true, true) => format!("{head}…{tail}"),
        _ => format!("{whole_head}…{whole_tail}"),
    }
}

/// The text's beginning without the part of a number that it ends in.
fn up_to_number<'a>(head: &'a str, text: &str) -> &'a str {
    if text[head.len()..].starts_with(is_of_number) { head.trim_end_matches(is_of_number) } else { head }
}

/// The text's end without the part of a number that it begins with.
fn from_number<'a>(tail: &'a str, text: &str) -> &'a str {
    if text[..text.len() - tail.len()].ends_with(is_of_number) { tail.trim_start_matches(is_of_number) } else { tail }
}

/// Digits, and the point before decimals.
fn is_of_number(c: char) -> bool {
    c.is_ascii_digit() || c == '.'
}

/// What joins the parts of a name.
fn is_joint(c: char) -> bool {
    "-._/=( ".contains(c)
}

/// The text up to its last joint, if that is most of it.
fn up_to_joint(head: &str) -> &str {
    let kept = head.trim_end_matches(|c| !is_joint(c));
    if kept.len() * 3 >= head.len() * 2 { kept } else { head }
}

/// The text from its first joint on, if that is most of it.
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
        assert_eq!(shortened("12345678901234567890", 5.0, columns), "12…90", "there is nothing else");
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
        // Only those that look alike are cut elsewhere.
        let labels = cut(&["faster-than-radix-100-fixed", "faster-at-1-than-radix-100-fixed", "sort -n big.txt"], 14.0);
        assert!(labels[0] != labels[1], "{labels:?}");
        assert_eq!(labels[2], "sort -….txt");
        assert_eq!(cut(&["sort -n big.txt", "sort -n small.txt"], 12.0), ["sort…big.txt", "sort…all.txt"]);
    }
}
