//! What a page shows only when something is opened: packed once for all of it.
//!
//! Pictures are ten times as large as what they say. Those that are not in sight from the start are compressed together
//! into one block, which `web/report.js` unpacks when the first is wanted; browsers have the other half of it built in.

use std::collections::BTreeMap;

use miniz_oxide::deflate::compress_to_vec_zlib;

use super::markup::Html;

/// The parts of a page that are drawn when they are opened.
#[derive(Default)]
pub(super) struct Pack(Vec<String>);

/// As small as this format gets: a page is written once.
const LEVEL: u8 = 9;

impl Pack {
    /// The element that the part goes into when it is opened.
    pub fn put(&mut self, part: Html) -> Html {
        self.0.push(part.0);
        Html(format!("<div data-packed=\"{}\"></div>", self.0.len() - 1))
    }

    /// All parts, compressed as zlib does, in base 85: a JSON object of the parts, in which what stands between tags
    /// and in attributes is missing, and of each of these, by the attribute's name, what is missing, in its order. What
    /// is alike, together, takes two thirds of what it takes mixed. Empty where there are no parts.
    pub fn packed(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let mut missing: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let frames: Vec<String> = self.0.iter().map(|part| frame(part, &mut missing)).collect();
        let missing: BTreeMap<&str, String> =
            missing.into_iter().map(|(name, values)| (name, values.join("\n"))).collect();
        let text = serde_json::to_string(&(frames, missing)).expect("texts are JSON");
        in_base_85(compress_to_vec_zlib(text.as_bytes(), LEVEL))
    }
}

/// The name under which that is kept which stands between tags.
const TEXT: &str = "";

/// A part without what stands between its tags and in their attributes, which goes with the rest of its kind.
/// Templates and pictures write each attribute as `name="value"`, and escape what would be markup; of a line break,
/// which ends a value here, there is none in an attribute, and between tags it stays.
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

/// Stands where something is missing: a control character, of which no page has one.
const BLANK: char = '\u{7f}';

/// Five characters for four bytes, where base 64 takes six: the 85 from `(` on, but `!` and `#` for `<` and `>`, which
/// would be markup. The first character says how many of the last bytes only fill up the last four.
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
