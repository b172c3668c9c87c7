//! Makes a name unique, and finds the known name that is most similar to a given word.

/// Returns the name if it is not taken. Otherwise appends a number to it: `sort (2)`, `sort (3)`.
pub(crate) fn unused(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u64| format!("{name} ({number})"));
    let mut candidates = std::iter::once(name.to_string()).chain(numbered);
    candidates.find(|candidate| !is_taken(candidate)).unwrap_or_default()
}

/// Returns the known word that is most similar to `word`. Returns `None` if no known word is so similar that the user
/// may have meant it.
///
/// ```
/// use ascertain_engine::names::nearest;
/// assert_eq!(nearest("kahn", ["naive", "kahan"]), Some("kahan"));
/// assert_eq!(nearest("zebra", ["naive", "kahan"]), None);
/// assert_eq!(nearest("link-thr", ["link-truth", "link-throughput"]), Some("link-throughput"));
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter().map(|known| (likeness(word, known), known));
    // If several words are equally similar, keep the first.
    let nearest = known.reduce(|nearest, other| if other.0 > nearest.0 { other } else { nearest });
    nearest.filter(|(likeness, _)| *likeness >= 0.5).map(|(_, known)| known)
}

/// Returns the known words, sorted by their similarity to `word`; the most similar word comes first.
pub fn by_nearness<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_by(|one, other| likeness(word, other).total_cmp(&likeness(word, one)));
    known
}

/// Minimum length in bytes of a word that is searched for in known words. Shorter words occur in too many of them.
pub const LEAST_LENGTH: usize = 3;

/// Returns how similar a known word is to `word`: a number between 0 and 1, which is higher if fewer letters differ.
/// Adds 2 if the known word begins with `word`, or 1 if it contains `word` elsewhere. A `word` of fewer than
/// [`LEAST_LENGTH`] bytes gets neither addition.
fn likeness(word: &str, known: &str) -> f64 {
    let bonus = match known.find(word).filter(|_| word.len() >= LEAST_LENGTH) {
        Some(0) => 2.0,
        Some(_) => 1.0,
        None => 0.0,
    };
    bonus + strsim::normalized_damerau_levenshtein(word, known)
}

/// Returns a suggestion to append to an error message about an unknown word; `None` if no known word is similar.
///
/// ```
/// use ascertain_engine::names::suggestion;
/// assert_eq!(suggestion("kahn", ["naive", "kahan"]).as_deref(), Some("; did you mean `kahan`?"));
/// assert_eq!(suggestion("zebra", ["naive", "kahan"]), None);
/// ```
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("; did you mean `{near}`?"))
}

/// Returns an error message for a word that is not known. `what` is the kind of word, and `known` has all known words.
pub(crate) fn unknown<'k>(what: &str, word: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let list = if known.is_empty() { "there are none".into() } else { format!("known are {}", known.join(", ")) };
    format!("unknown {what} `{word}`; {list}{}", suggestion(word, known).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_added_until_nobody_has_the_name() {
        let taken = ["sort", "sort (2)", "uniq"];
        let unused = |name| unused(name, |candidate| taken.contains(&candidate));
        assert_eq!(unused("cat"), "cat");
        assert_eq!(unused("uniq"), "uniq (2)");
        assert_eq!(unused("sort"), "sort (3)");
    }
}
