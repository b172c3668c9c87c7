//! Names that tell things apart.

/// The name, with a number after it when it is taken: `sort`, `sort (2)`, `sort (3)`.
pub(crate) fn unused(name: &str, is_taken: impl Fn(&str) -> bool) -> String {
    let numbered = (2..).map(|number: u64| format!("{name} ({number})"));
    let mut candidates = std::iter::once(name.to_string()).chain(numbered);
    candidates.find(|candidate| !is_taken(candidate)).unwrap_or_default()
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
