/// The text with everything that could steer a terminal, or that XML can't hold, written as an escape: control
/// characters and those that reorder or hide the text around them. What is left shows exactly what is there.
pub fn escape_controls(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.chars() {
        if is_harmless(c) { shown.push(c) } else { shown.extend(c.escape_default()) }
    }
    shown
}

/// Whether a character shows as itself, and changes nothing around it.
pub fn is_harmless(c: char) -> bool {
    !c.is_control() && !is_format(c)
}

/// Characters without a width of their own that change how others look: bidirectional controls, zero-width spaces and
/// joiners, separators, language tags.
fn is_format(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}
