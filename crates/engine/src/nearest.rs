//! The nearest known word, for error messages.

/// The known word that is nearest to `word`, when one is near enough to be what was meant.
///
/// ```
/// use ascertain_engine::nearest::nearest;
/// assert_eq!(nearest("kahn", ["naive", "kahan"]), Some("kahan"));
/// assert_eq!(nearest("zebra", ["naive", "kahan"]), None);
/// ```
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let scored = known.into_iter().map(|known| (strsim::normalized_damerau_levenshtein(word, known), known));
    let best = scored.max_by(|(a, _), (b, _)| a.total_cmp(b));
    best.filter(|(score, _)| *score >= 0.5).map(|(_, known)| known)
}

/// What a message about an unknown word ends with, where a known one is near.
///
/// ```
/// use ascertain_engine::nearest::suggestion;
/// assert_eq!(suggestion("kahn", ["naive", "kahan"]).as_deref(), Some("; did you mean `kahan`?"));
/// assert_eq!(suggestion("zebra", ["naive", "kahan"]), None);
/// ```
pub fn suggestion<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    nearest(word, known).map(|near| format!("; did you mean `{near}`?"))
}
