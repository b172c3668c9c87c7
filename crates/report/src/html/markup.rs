//! From texts to HTML.

use std::fmt;

use askama::filters::Escaper;

use crate::text::{NAME_END, NAME_START, escape_controls, unbroken_quantities};

/// What templates show goes through this: nothing in it is markup, steers the page or hides.
#[derive(Clone, Copy)]
pub(crate) struct Shown;

impl Escaper for Shown {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        for c in escape_controls(text).chars() {
            match c {
                '&' => to.write_str("&amp;")?,
                '<' => to.write_str("&lt;")?,
                '>' => to.write_str("&gt;")?,
                '"' => to.write_str("&quot;")?,
                '\'' => to.write_str("&#39;")?,
                _ => to.write_char(c)?,
            }
        }
        Ok(())
    }
}

/// HTML: what may stand in a template as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Html(pub String);

impl fmt::Display for Html {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Html {
    /// Words as they are.
    pub fn text(words: &str) -> Html {
        let mut html = String::with_capacity(words.len());
        Shown.write_escaped_str(&mut html, words).expect("a String takes every text");
        Html(html)
    }

    /// Words as they are, with names that may be broken after what joins their parts: `fill-rate.975`.
    pub fn breakable(words: &str) -> Html {
        let chars: Vec<char> = words.chars().collect();
        let mut html = String::with_capacity(words.len());
        let mut rest = 0;
        for (index, around) in chars.windows(3).enumerate() {
            let joins = match around[1] {
                '-' | '_' | '=' | '/' => around[0].is_alphanumeric() && around[2].is_alphanumeric(),
                // Not in a number.
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

    /// A sentence whose names are marked, the names as code, and numbers with their units.
    pub fn sentence(marked: &str) -> Html {
        let words = |words: &str| Html::text(&unbroken_quantities(words));
        let pieces = marked.split(NAME_START).enumerate().map(|(index, piece)| match piece.split_once(NAME_END) {
            Some((name, rest)) if index > 0 => format!("<code>{}</code>{}", Html::text(name), words(rest)),
            _ => words(piece).0,
        });
        Html(pieces.collect())
    }

    /// Somebody's prose: its line breaks are where its file had room, and what it has between backticks is code.
    pub fn prose(words: &str) -> Html {
        let words = words.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut pieces = words.split('`').map(Html::text).collect::<Vec<_>>();
        if pieces.len() % 2 == 0 {
            pieces = vec![Html::text(&words)];
        }
        let pieces = pieces.into_iter().enumerate().map(|(index, piece)| match index % 2 {
            1 => format!("<code>{piece}</code>"),
            _ => piece.0,
        });
        Html(pieces.collect())
    }
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
