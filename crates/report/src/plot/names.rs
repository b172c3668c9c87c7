//! How wide text will be, and how it is made to fit.

/// The width of a text in a sans-serif face, in units of its size. The advances are those of DejaVu Sans, one of
/// the widest common faces, so that text which fits by this estimate fits in others too.
pub(super) fn em_width(text: &str) -> f64 {
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
/// Words are kept whole where that costs little.
pub(super) fn shortened(text: &str, most: f64, width: impl Fn(&str) -> f64) -> String {
    if width(text) <= most {
        return text.to_string();
    }
    let all: Vec<char> = text.chars().collect();
    let cut = |kept: usize| {
        let head = kept.div_ceil(2);
        let tail = &all[all.len() - (kept - head)..];
        all[..head].iter().chain(&['…']).chain(tail).collect::<String>()
    };
    // The width grows with what is kept, so the longest that fits is found by halving.
    let (mut fits, mut too_long) = (0, all.len());
    while too_long - fits > 1 {
        let middle = usize::midpoint(fits, too_long);
        if width(&cut(middle)) <= most { fits = middle } else { too_long = middle }
    }
    let text = cut(fits);
    let (head, tail) = text.split_once('…').unwrap_or((&text, ""));
    format!("{}…{}", up_to_joint(head), from_joint(tail))
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
    use super::shortened;

    #[test]
    fn names_are_cut_between_their_words() {
        let columns = |text: &str| text.chars().count() as f64;
        assert_eq!(shortened("sort -n big.txt", 15.0, columns), "sort -n big.txt");
        assert_eq!(shortened("compress --level 9 --threads 2 big.tar", 22.0, columns), "compress --… 2 big.tar");
        assert_eq!(shortened("abcdefghijklmnop", 7.0, columns), "abc…nop");
    }
}
