//! Hints for error messages about unknown names.

use ascertain_engine::names::suggestion;
use ascertain_report::terminal::escape_controls;

/// Returns a hint for an error message about the unknown name `asked`, such as "; did you mean `sum`?". If no known
/// name is similar, the hint lists all: "; there are: sum, fill-rate".
#[must_use]
pub fn among<'a>(asked: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    let all = || match known.as_slice() {
        [] => "; there is none".into(),
        known => format!("; there are: {}", known.join(", ")),
    };
    escape_controls(&suggestion(asked, known.iter().copied()).unwrap_or_else(all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_names_are_told_what_there_is() {
        assert_eq!(among("sun", ["sum", "fill-rate"]), "; did you mean `sum`?");
        assert_eq!(among("zebra", ["sum", "fill-rate"]), "; there are: sum, fill-rate");
        assert_eq!(among("sum", []), "; there is none");
        assert_eq!(among("zebra", ["a\nb"]), "; there are: a\\nb");
    }
}
