//! Converting texts to HTML.

use std::fmt;

use askama::filters::Escaper;

use crate::plot::escape_xml;
use crate::text::{escape_controls, marked_up, unbroken_quantities, with_names};

/// The escaper for texts in HTML templates: it escapes markup, and characters that hide or reorder text.
#[derive(Clone, Copy)]
pub(crate) struct HtmlEscaper;

impl Escaper for HtmlEscaper {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        to.write_str(&Html::text(text).0)
    }
}

/// HTML that templates insert unchanged.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Html(pub String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Html {
    /// Escapes a text for HTML.
    pub fn text(words: &str) -> Html {
        Html(escape_xml(&escape_controls(words)))
    }

    /// Escapes a text, and allows line breaks after separators within names: `fill-rate.975`.
    pub fn breakable(words: &str) -> Html {
        let chars: Vec<char> = words.chars().collect();
        let mut html = String::with_capacity(words.len());
        let mut rest = 0;
        for (index, around) in chars.windows(3).enumerate() {
            let joins = match around[1] {
                '-' | '_' | '=' | '/' => around[0].is_alphanumeric() && around[2].is_alphanumeric(),
                // A decimal point does not separate words of a name.
                '.' => around[0].is_alphabetic() && around[2].is_alphanumeric(),
                _ => false,
            };
            if joins {
                html += &Html::text(&chars[rest..index + 2].iter().collect::<String>()).0;
                html += "<wbr/>";
                rest = index + 2;
            }
        }
        Html(html + &Html::text(&chars[rest..].iter().collect::<String>()).0)
    }

    /// Converts a sentence to HTML. Its names, which are marked as in `crate::text::quoted`, become code. No line is
    /// broken between a number and its unit.
    pub fn sentence(marked: &str) -> Html {
        Html(marked_up(marked, code, |rest| Html::text(&unbroken_quantities(rest)).0))
    }

    /// Converts a text that a user wrote to HTML: line breaks become spaces, and text between backticks becomes code.
    pub fn prose(words: &str) -> Html {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        Html(marked_up(&with_names(&words), code, |rest| Html::text(rest).0))
    }
}

fn code(name: &str) -> String {
    format!("<code>{}</code>", Html::text(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::quoted;

    #[test]
    fn nothing_is_markup_and_nothing_hides() {
        let hostile = "<script>alert('1')</script>\x1b[31m\u{202e}\"&amp;";
        let html = Html::text(hostile).0;
        assert_eq!(html, "&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;\\u{1b}[31m\\u{202e}&quot;&amp;amp;");
        let sentence = Html::sentence(&format!("{} won", quoted("a<b\u{1}")));
        assert_eq!(sentence.0, "<code>a&lt;b\\u{1}</code> won");
    }

    #[test]
    fn names_break_where_they_are_joined() {
        assert_eq!(Html::breakable("fill-rate.975 at 1.5e-3 - x").0, "fill-<wbr/>rate.<wbr/>975 at 1.5e-<wbr/>3 - x");
        assert_eq!(Html::breakable("a<b").0, "a&lt;b");
    }

    #[test]
    fn prose_flows_and_has_code() {
        assert_eq!(Html::prose("one\n  `x<y`\ntwo").0, "one <code>x&lt;y</code> two");
        assert_eq!(Html::prose("it`s").0, "it`s");
    }
}
