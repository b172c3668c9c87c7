//! What a page shows only when something is opened: packed once for all of it.
//!
//! Pictures are ten times as large as what they say. Those that are not in sight from the start are compressed together
//! into one block, which `web/report.js` unpacks when the first is wanted; browsers have the other half of it built in.

use miniz_oxide::deflate::compress_to_vec_zlib;

use super::markup::Html;

/// The parts of a page that are drawn when they are opened.
#[derive(Default)]
pub(super) struct Pack(Vec<String>);

/// What a path's data follows.
const PATH: &str = " d=\"";

/// The usual balance of size and time.
const LEVEL: u8 = 6;

impl Pack {
    /// The element that the part goes into when it is opened.
    pub fn put(&mut self, part: Html) -> Html {
        self.0.push(part.0);
        Html(format!("<div data-packed=\"{}\"></div>", self.0.len() - 1))
    }

    /// All parts: a JSON array of the parts, in which each path's data is missing, and of these, a line each; compressed as
    /// zlib does, in base 85. Numbers together and markup together take less than both mixed. Empty where there are no
    /// parts.
    pub fn packed(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let (mut frames, mut paths) = (Vec::new(), String::new());
        for part in &self.0 {
            let mut pieces = part.split(PATH);
            let mut frame = pieces.next().unwrap_or_default().to_string();
            for piece in pieces {
                let (path, rest) = piece.split_once('"').unwrap_or_default();
                paths += &format!("\n{path}");
                frame += PATH;
                frame += "\"";
                frame += rest;
            }
            frames.push(frame);
        }
        let text = serde_json::to_string(&frames).expect("texts are JSON") + &paths;
        in_base_85(compress_to_vec_zlib(text.as_bytes(), LEVEL))
    }
}

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
