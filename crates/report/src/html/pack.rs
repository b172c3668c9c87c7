//! Compression of pictures that are drawn only when their section of the page is opened.
//!
//! The SVG of a picture is ten times as large as its data. The pictures of all closed sections are compressed together
//! into one block. `web/report.js` decompresses the block when the first picture is needed, with the browser's own
//! function.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;

use super::markup::Html;

/// The pieces of a page that are compressed until they are needed.
#[derive(Default)]
pub(super) struct Pack(Vec<String>);

/// The compression level. It is the highest one: a page is written only once, so the time does not matter.
const LEVEL: u8 = 9;

impl Pack {
    /// Adds a piece of HTML. Returns an empty element to put into the page instead. A script fills this element when
    /// its section is opened.
    pub fn put(&mut self, part: Html) -> Html {
        self.0.push(part.0);
        Html(format!("<div data-packed=\"{}\"></div>", self.0.len() - 1))
    }

    /// Returns all pieces, compressed as zlib and encoded in base 85; empty if there are no pieces. The content is a
    /// JSON array with two items. The first is the list of the pieces without their texts and attribute values. The
    /// second is an object with these texts and values, grouped by the name of the attribute. Grouping reduces the
    /// compressed size to two thirds.
    pub fn packed(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let frames: Vec<String> = self.0.iter().map(|part| frame(part, &mut missing)).collect();
        let missing: BTreeMap<&str, String> =
            missing.into_iter().map(|(name, values)| (name, values.join("\n"))).collect();
        let text = serde_json::to_string(&(frames, missing)).expect("strings can be written as JSON");
        in_base_85(compress_to_vec_zlib(text.as_bytes(), LEVEL))
    }
}

/// The key of the texts between tags. All other keys of the object are names of attributes.
const TEXT: &str = "";

/// Returns a piece of HTML in which placeholders replace the texts and attribute values. Adds these texts and values to
/// `missing`, grouped by the name of the attribute. The templates and pictures guarantee that all attributes have the
/// form `name="value"`, and that markup in values is escaped.
///
/// The texts and values are later joined with line breaks, so none of them may contain a line break. Attribute values
/// never contain one. A text that contains one is not replaced.
fn frame<'a>(part: &'a str, missing: &mut BTreeMap<&'a str, Vec<&'a str>>) -> String {
    let mut frame = String::new();
    let mut rest = part;
    while let Some(begin) = rest.find('<') {
        let (text, tag) = rest.split_at(begin);
        match text.contains('\n') || text.is_empty() {
            true => frame += text,
            false => {
                frame.push(BLANK);
                missing.entry(TEXT).or_default().push(text);
            }
        }
        let end = tag.find('>').map_or(tag.len(), |end| end + 1);
        let (mut tag, after) = tag.split_at(end);
        while let Some((before, value)) = tag.split_once("=\"") {
            let name = before.rsplit(' ').next().unwrap_or_default();
            let (value, after) = value.split_once('"').unwrap_or((value, ""));
            frame += before;
            frame += "=\"";
            frame.push(BLANK);
            frame.push('"');
            missing.entry(name).or_default().push(value);
            tag = after;
        }
        frame += tag;
        rest = after;
    }
    frame + rest
}

/// The placeholder for a text or an attribute value: a control character that no page contains.
const BLANK: char = '\u{7f}';

/// Encodes each group of four bytes as five characters (base 64 needs 5.3). The 85 characters are consecutive from `(`
/// on, except that `!` and `#` replace `<` and `>`, which would be markup. The first character of the result is the
/// number of padding bytes.
fn in_base_85(mut bytes: Vec<u8>) -> String {
    let filled = (4 - bytes.len() % 4) % 4;
    bytes.resize(bytes.len() + filled, 0);
    let character = |digit: u32| match (b'(' + digit as u8) as char {
        '<' => '!',
        '>' => '#',
        plain => plain,
    };
    let words = bytes.chunks_exact(4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]));
    let digits = words.flat_map(|word| [4, 3, 2, 1, 0].map(|place| word / 85_u32.pow(place) % 85));
    format!("{filled}{}", digits.map(character).collect::<String>())
}
