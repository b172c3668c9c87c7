//! As much XML as requests have in them.

use quick_xml::Reader;
use quick_xml::escape::unescape;
use quick_xml::events::Event;

pub(crate) use quick_xml::escape::escape;

/// The elements of a document in the order in which they end, each with the text that is in it alone. Nothing for what
/// is no XML.
pub(crate) fn elements(document: &[u8]) -> Option<Vec<(String, String)>> {
    let mut reader = Reader::from_reader(document);
    let (mut elements, mut open) = (Vec::new(), Vec::new());
    loop {
        let event = reader.read_event().ok()?;
        match event {
            Event::Start(start) => {
                open.push((String::from_utf8(start.local_name().as_ref().into()).ok()?, String::new()));
            }
            Event::Empty(start) => {
                elements.push((String::from_utf8(start.local_name().as_ref().into()).ok()?, String::new()));
            }
            Event::End(_) => elements.push(open.pop()?),
            Event::Text(text) => {
                let text = text.decode().ok()?;
                match open.last_mut() {
                    Some((_, within)) => within.push_str(&text),
                    None if text.trim().is_empty() => {}
                    None => return None,
                }
            }
            Event::GeneralRef(name) => {
                let reference = format!("&{};", name.decode().ok()?);
                open.last_mut()?.1.push_str(&unescape(&reference).ok()?);
            }
            Event::Eof => return open.is_empty().then_some(elements),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_as_they_end() {
        let document = "<?xml version=\"1.0\"?>\n<A xmlns=\"x\"><B>&quot;1&#34; &amp; 2</B><C/><D><E>3</E></D></A>";
        let elements = elements(document.as_bytes()).unwrap();
        let elements: Vec<_> = elements.iter().map(|(name, text)| (&**name, &**text)).collect();
        assert_eq!(elements, [("B", "\"1\" & 2"), ("C", ""), ("E", "3"), ("D", ""), ("A", "")]);
        for other in ["<A>", "<A></B>", "text", "<A>&what;</A>", "</A>"] {
            assert!(super::elements(other.as_bytes()).is_none(), "{other}");
        }
    }
}
