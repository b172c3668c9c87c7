//! From texts to HTML.

use std::fmt;

use askama::filters::Escaper;

use crate::text::{NAME_END, NAME_START, harmless, unbroken_quantities};

/// What templates show goes through this: nothing in it is markup, steers the page or hides.
#[derive(Clone, Copy)]
pub(crate) struct Shown;

impl Escaper for Shown {
    fn write_escaped_str<W: fmt::Write>(&self, mut to: W, text: &str) -> fmt::Result {
        for c in harmless(text).chars() {
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
    fn prose_flows_and_has_code() {
        assert_eq!(Html::prose("one\n  `x<y`\ntwo").0, "one <code>x&lt;y</code> two");
        assert_eq!(Html::prose("it`s").0, "it`s");
    }
}
