//! Colours, dashes and shapes of series. They can distinguish up to 56 series.

/// The colours of series on white.
///
/// A random search chose them for the greatest distance (OKLab, Ottosson 2020) between the two most similar colours. It
/// considered normal vision and three types of colour blindness (simulated after Machado, Oliveira and Fernandes 2009,
/// severity 1). The distance is at least 0.11, and each colour has a contrast of at least 3:1 against white. A test
/// recomputes distances and contrasts.
pub const LIGHT: [&str; COLORS] =
    ["#1f32af", "#b44c23", "#4d9f91", "#5b395e", "#126f9c", "#bd8700", "#8c0000", "#9f70f3"];

/// The colours of the same series on black or on dark grey (up to `#1b1d20`). They were chosen in the same way as
/// [`LIGHT`], and their distance is at least 0.1.
pub const DARK: [&str; COLORS] =
    ["#b0c7fe", "#d1681e", "#6cf6b2", "#aa728f", "#59a8d6", "#dfce41", "#e6968b", "#7d76df"];

/// The colours of text, axes and background. Each has a name, its value on white, and its value on a dark background.
pub const GROUND: [(&str, &str, &str); 4] = [
    // Text, thresholds and marks without a series.
    ("ink", "#1f2328", "#e6e8eb"),
    // Ticks, labels of axes, and rules.
    ("muted", "#59616b", "#a3abb5"),
    // Grid lines behind the marks.
    ("grid", "#e3e6ea", "#33383e"),
    // The background: inside of hollow dots, and around text over marks.
    ("paper", "#ffffff", "#1b1d20"),
];

/// Number of colours of series. After the last colour, the next series has the first colour again. The number has no
/// common divisor with [`SHAPES`], so the first 56 series all have different combinations of colour and shape.
pub const COLORS: usize = 8;
/// Number of shapes, and also of dash patterns, that distinguish the series.
pub const SHAPES: usize = 7;

/// The dashes of lines, as lengths of strokes and gaps in pixels; the first entry is a solid line.
const DASHES: [&str; SHAPES] = ["", "7 3", "2 2.5", "9 3 2 3", "14 4", "6 2.5 1.5 2.5 1.5 2.5", "4 6"];

/// Returns the lengths of strokes and gaps in the line of a series, for `stroke-dasharray`.
pub(crate) fn dash(series: usize) -> &'static str {
    DASHES[series % SHAPES]
}

/// The dash pattern of lines that show limits and models. All series have other patterns.
pub(crate) const MODEL_DASH: &str = "1 3";

/// Outlines of marks about 8 pixels high around 0,0: circle, square, triangle, diamond, triangle pointing down, plus
/// sign, and x. The path data is relative: a path command that moves to the position of the mark comes before it.
pub(crate) const OUTLINES: [&str; SHAPES] = [
    "m0-3.6a3.6 3.6 0 1 1-.01 0z",
    "m-3.3-3.3h6.6v6.6h-6.6z",
    "m0-4.4l4.2 7.6h-8.4z",
    "m0-4.7l4.7 4.7-4.7 4.7-4.7-4.7z",
    "m0 4.4l4.2-7.6h-8.4z",
    "m-1.3-4.2h2.6v2.9h2.9v2.6h-2.9v2.9h-2.6v-2.9h-2.9v-2.6h2.9z",
    "m0-1.6l2.6-2.6 1.6 1.6-2.6 2.6 2.6 2.6-1.6 1.6-2.6-2.6-2.6 2.6-1.6-1.6 2.6-2.6-2.6-2.6 1.6-1.6z",
];

/// Returns the index of the shape of a series.
pub(crate) fn shape(series: usize) -> usize {
    series % SHAPES
}

/// The characters of the first 16 series in a terminal, all one column wide.
const GLYPHS: [char; 16] = ['●', '○', '■', '□', '▲', '△', '◆', '◇', '+', '×', '*', '#', '%', '@', '&', '$'];

/// Returns the character of a series: one of the 16 marks, or a letter for later series.
pub(crate) fn glyph(series: Option<usize>) -> char {
    let of = |series: usize| GLYPHS.into_iter().chain('a'..='z').chain('A'..='Z').cycle().nth(series).unwrap_or('•');
    series.map_or('•', of)
}

/// The character of hollow dots in a terminal. No series has it.
pub(crate) const HOLLOW: char = '▵';

/// The colours of series as indices of the terminal's 256 colours. They are readable on light and dark backgrounds, and
/// near the colours of [`LIGHT`] and [`DARK`].
const TERMINAL: [u8; COLORS] = [33, 166, 37, 133, 74, 178, 167, 99];

/// Returns the colour of a series as an index of the terminal's 256 colours.
pub(crate) fn terminal_color(series: usize) -> u8 {
    TERMINAL[series % COLORS]
}

/// A perceptually uniform colour scale from low to high, which also works for colour-blind readers and in greyscale.
/// Its nine colours are from viridis (van der Walt and Smith 2015, public domain); colours between them are
/// interpolated linearly.
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

/// Returns the colour at a position on the scale, from 0 for the lowest to 1 for the highest value.
pub(crate) fn ramp(share: f64) -> [u8; 3] {
    let place = share.clamp(0.0, 1.0) * (RAMP.len() - 1) as f64;
    let below = (place as usize).min(RAMP.len() - 2);
    let between = place - below as f64;
    std::array::from_fn(|channel| {
        let [from, to] = [below, below + 1].map(|index| f64::from(RAMP[index][channel]));
        (from + (to - from) * between).round() as u8
    })
}

/// Returns whether black text is more readable than white text on the colour at this position on the scale.
pub(crate) fn is_light(share: f64) -> bool {
    let [black, white] = contrasts(share);
    black > white
}

/// Returns two contrasts with the colour at this position on the scale: first that of black text, then that of white
/// text. They are computed from the relative luminance as in WCAG 2.
fn contrasts(share: f64) -> [f64; 2] {
    let linear = |channel: u8| match f64::from(channel) / 255.0 {
        value if value <= 0.040_45 => value / 12.92,
        value => ((value + 0.055) / 1.055).powf(2.4),
    };
    let [red, green, blue] = ramp(share).map(linear);
    let luminance = 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    [(luminance + 0.05) / 0.05, 1.05 / (luminance + 0.05)]
}

/// The terminal colours that are nearest to [`RAMP`], each lighter than the previous colour.
const TERMINAL_RAMP: [u8; 9] = [54, 24, 30, 36, 77, 112, 148, 184, 220];

/// Returns the terminal colour at a position on the scale (0 to 1), and the colour of text on it: white or black.
pub(crate) fn terminal_ramp(share: f64) -> (u8, u8) {
    let index = ((share.clamp(0.0, 1.0) * TERMINAL_RAMP.len() as f64) as usize).min(TERMINAL_RAMP.len() - 1);
    (TERMINAL_RAMP[index], if index < 3 { 231 } else { 16 })
}

/// Writes a colour in CSS notation.
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
