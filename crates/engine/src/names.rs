//! Names: one that nobody has yet, and the known one that is nearest to a word.

/// The name, with a number after it when it is taken: `sort`, `sort (2)`, `sort (3)`.
pub(crate) fn unused(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u64| format!("{name} ({number})"));
    let mut candidates = std::iter::once(name.to_string()).chain(numbered);
    candidates.find(|candidate| !is_taken(candidate)).unwrap_or_default()
}

/// The known word that is nearest to `word`, when one is near enough to be what was meant.
///
/// ```
/// use ascertain_engine::names::nearest;
/// assert_eq!(nearest("kahn", ["naive", "kahan"]), Some("kahan"));
/// assert_eq!(nearest("zebra", ["naive", "kahan"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known = known.into_iter().map(|known| (likeness(word, known), known));
    // Of those that are equally near the first.
    let nearest = known.reduce(|nearest, other| if other.0 > nearest.0 { other } else { nearest });
    nearest.filter(|(likeness, _)| *likeness >= 0.5).map(|(_, known)| known)
}

/// The known words, the one that is nearest to `word` first.
pub fn by_nearness<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut known: Vec<&str> = known.into_iter().collect();
    known.sort_by(|one, other| likeness(word, other).total_cmp(&likeness(word, one)));
    known
}

fn likeness(word: &str, known: &str) -> f64 {
    strsim::normalized_damerau_levenshtein(word, known)
}

/// What a message about an unknown word ends with, where a known one is near.
///
/// ```
/// use ascertain_engine::names::suggestion;
/// assert_eq!(suggestion("kahn", ["naive", "kahan"]).as_deref(), Some("; did you mean `kahan`?"));
/// assert_eq!(suggestion("zebra", ["naive", "kahan"]), None);
/// ```
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("; did you mean `{near}`?"))
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
