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
    cut(fits)
}
