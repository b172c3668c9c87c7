/// Escapes the characters that could control a terminal, reorder or hide the text around them, or are not allowed in
/// XML. The result shows exactly which characters the text has.
pub fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) { shown.push(c) } else { shown.extend(c.escape_default()) }
    }
    shown
}

/// Returns whether a character is visible as itself and does not change how the text around it looks.
pub fn is_harmless(c: char) -> bool {
    !c.is_control() && !is_format(c)
}

/// Returns whether a character is invisible but affects how the text around it looks. Examples are bidirectional
/// controls, zero-width spaces and joiners, separators, and language tags.
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// Escapes text for XML, between tags and in attributes. The caller has escaped control characters already.
pub fn escape_xml(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            // XML can't represent these characters, not even as references.
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escape_xml("<a href=\"x\">&'\u{ffff}"), "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}");
    }
}
