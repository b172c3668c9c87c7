//! Names that were asked for and are not there.

use ascertain::nearest::nearest;

/// The name that was probably meant, "; did you mean `sum`?", or where none is near, "; there are: sum, fill-rate".
pub fn among<'a>(asked: &str, known: impl IntoIterator<Item = &'a str> + Clone) -> String {
    match nearest(asked, known.clone()) {
        Some(near) => format!("; did you mean `{near}`?"),
        None => format!("; there are: {}", known.into_iter().collect::<Vec<_>>().join(", ")),
    }
}
