//! What a page shows only when something is opened: packed once for all of it.
//!
//! Pictures are ten times as large as what they say. Those that are not in sight from the start are compressed together
//! into one block, which `web/report.js` unpacks when the first is wanted; browsers have the other half of it built in.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use miniz_oxide::deflate::compress_to_vec_zlib;

use super::markup::Html;

/// The parts of a page that are drawn when they are opened.
#[derive(Default)]
pub(super) struct Pack(Vec<String>);

/// The usual balance of size and time.
const LEVEL: u8 = 6;

impl Pack {
    /// The element that the part goes into when it is opened.
    pub fn put(&mut self, part: Html) -> Html {
        self.0.push(part.0);
        Html(format!("<div data-packed=\"{}\"></div>", self.0.len() - 1))
    }

    /// All parts: a JSON array of texts, compressed as zlib does, in base 64. Empty where there are none.
    pub fn packed(&self) -> String {
        if self.0.is_empty() {
            return String::new();
        }
        let json = serde_json::to_string(&self.0).expect("texts are JSON");
        BASE64_STANDARD.encode(compress_to_vec_zlib(json.as_bytes(), LEVEL))
    }
}
