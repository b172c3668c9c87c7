//! Colours, dashes and shapes, by which up to 56 series are told apart.

/// The colours of series on white.
///
/// Chosen here by random search for the greatest least distance (OKLab, Ottosson 2020) between any two, as seen
/// with normal vision and with each of the three colour blindnesses (simulated after Machado, Oliveira and Fernandes
/// 2009, severity 1): at least 0.11. Each has a contrast of at least 3:1 against white. A test recomputes both.
pub const LIGHT: [&str; COLORS] =
    ["#1f32af", "#b44c23", "#4d9f91", "#5b395e", "#126f9c", "#bd8700", "#8c0000", "#9f70f3"];

/// The colours of the same series on black or a dark grey (up to `#1b1d20`), chosen alike: at least 0.1 apart.
pub const DARK: [&str; COLORS] =
    ["#b0c7fe", "#d1681e", "#6cf6b2", "#aa728f", "#59a8d6", "#dfce41", "#e6968b", "#7d76df"];

/// The colours of everything else: what it is called, on white, and on a dark ground.
pub const GROUND: [(&str, &str, &str); 4] = [
    // Text, thresholds and marks of no series.
    ("ink", "#1f2328", "#e6e8eb"),
    // Ticks, labels of axes and rules.
    ("muted", "#59616b", "#a3abb5"),
    // Lines behind the marks.
    ("grid", "#e3e6ea", "#33383e"),
    // What the plot stands on: inside of rings, around text over marks.
    ("paper", "#ffffff", "#1b1d20"),
];

/// So many colours series have before the first comes again, and so many shapes and dashes. The two numbers have no
/// common divisor, so that each pair of a colour and a shape has a series, and the first comes again at the 57th.
pub const COLORS: usize = 8;
/// See [`COLORS`].
pub const SHAPES: usize = 7;

/// Dashes in pixels; the first is a whole line.
const DASHES: [&str; SHAPES] = ["", "7 3", "2 2.5", "9 3 2 3", "14 4", "6 2.5 1.5 2.5 1.5 2.5", "4 6"];

/// The dash of a series' line.
pub(crate) fn dash(series: usize) -> &'static str {
    DASHES[series % SHAPES]
}

/// The dash of a limit or a model, unlike those of series.
pub(crate) const MODEL_DASH: &str = "1 3";

/// Outlines of marks about 8 pixels high around 0,0: circle, square, triangle, diamond, triangle downwards, cross,
/// and a cross that lies; relative, so that they can follow a place.
pub(crate) const OUTLINES: [&str; SHAPES] = [
    "m0-3.6a3.6 3.6 0 1 1-.01 0z",
    "m-3.3-3.3h6.6v6.6h-6.6z",
    "m0-4.4l4.2 7.6h-8.4z",
    "m0-4.7l4.7 4.7-4.7 4.7-4.7-4.7z",
    "m0 4.4l4.2-7.6h-8.4z",
    "m-1.3-4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z",
    "m0-1.6l2.6-2.6 1.6 1.6-2.6 2.6 2.6 2.6-1.6 1.6-2.6-2.6-2.6 2.6-1.6-1.6 2.6-2.6-2.6-2.6 1.6-1.6z",
];

/// The shape of a series' marks, as an index.
pub(crate) fn shape(series: usize) -> usize {
    series % SHAPES
}

/// The characters of series in a terminal, all one column wide.
const GLYPHS: [char; 16] = ['●', '○', '■', '□', '▲', '△', '◆', '◇', '+', '×', '*', '#', '%', '@', '&', '$'];

/// The character of a series; letters, where there are many.
pub(crate) fn glyph(series: Option<usize>) -> char {
    let of = |series: usize| GLYPHS.into_iter().chain('a'..='z').chain('A'..='Z').cycle().nth(series).unwrap_or('•');
    series.map_or('•', of)
}

/// The terminal colours of series: those of the 256 that are readable on both grounds and nearest to the colours
/// that pages have.
const TERMINAL: [u8; COLORS] = [33, 166, 37, 133, 74, 178, 167, 99];

/// The number of a series' colour among a terminal's 256.
pub(crate) fn terminal_color(series: usize) -> u8 {
    TERMINAL[series % COLORS]
}

/// A scale of colours from low to high that is even to the eye, also without colour vision and in greys: nine
/// colours of viridis (van der Walt and Smith 2015; dedicated to the public), straight lines between them.
pub(crate) const RAMP: [[u8; 3]; 9] = [
    [0x44, 0x01, 0x54],
    [0x47, 0x2d, 0x7b],
    [0x3b, 0x52, 0x8b],
    [0x2c, 0x72, 0x8e],
    [0x21, 0x91, 0x8c],
    [0x28, 0xae, 0x80],
    [0x5e, 0xc9, 0x62],
    [0xad, 0xdc, 0x30],
    [0xfd, 0xe7, 0x25],
];

/// The colour at a share of the scale.
pub(crate) fn ramp(share: f64) -> [u8; 3] {
    let place = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (place as usize).min(RAMP.len() - 2);
    let between = place - below as f64;
    std::array::from_fn(|channel| {
        let [from, to] = [below, below + 1].map(|index| f64::from(RAMP[index][channel]));
        (from + (to - from) * between).round() as u8
    })
}

/// Whether black text is easier to read on the colour at a share of the scale than white.
pub(crate) fn is_light(share: f64) -> bool {
    let [black, white] = contrasts(share);
    black > white
}

/// The contrast of black text, and of white, on the colour at a share of the scale: by relative luminance, as WCAG 2
/// has it.
fn contrasts(share: f64) -> [f64; 2] {
    let linear = |channel: u8| match f64::from(channel) / 255.0 {
        value if value <= 0.040_45 => value / 12.92,
        value => ((value + 0.055) / 1.055).powf(2.4),
    };
    let [red, green, blue] = ramp(share).map(linear);
    let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    [(luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05)]
}

/// Those of a terminal's 256 colours that are nearest to such a scale and grow lighter from one to the next.
const TERMINAL_RAMP: [u8; 9] = [54, 24, 30, 36, 77, 112, 148, 184, 220];

/// A terminal's colour at a share of the scale, and that of text on it, white or black.
pub(crate) fn terminal_ramp(share: f64) -> (u8, u8) {
    let index = ((share.clamp(0.0, 1.0) * TERMINAL_RAMP.len() as f64) as usize).min(TERMINAL_RAMP.len() - 1);
    (TERMINAL_RAMP[index], if index < 3 { 231 } else { 16 })
}

/// A colour as CSS writes it.
pub(crate) fn hex([red, green, blue]: [u8; 3]) -> String {
    format!("#{red:02x}{green:02x}{blue:02x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_can_be_read_on_every_colour_of_the_scale() {
        for share in (0..=1000).map(|step| f64::from(step) / 1000.0) {
            let [black, white] = contrasts(share);
            assert!(if is_light(share) { black } else { white } >= 4.5, "{share}: {black} and {white}");
        }
    }
}
