//! A grid of characters that can also have Braille dots.

use unicode_width::UnicodeWidthChar;

use crate::ink::terminal_color;

/// The colours and the weight of a character.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Paint {
    /// The default colour of the terminal.
    #[default]
    Plain,
    Bold,
    Muted,
    /// The colour of the series with this index.
    Series(usize),
    /// Text and background each have one of the terminal's 256 colours.
    Ground {
        color: u8,
        text: u8,
    },
}

impl Paint {
    fn code(self) -> String {
        match self {
            Paint::Plain => String::new(),
            Paint::Bold => "1".into(),
            Paint::Muted => "2".into(),
            Paint::Series(series) => format!("38;5;{}", terminal_color(series)),
            Paint::Ground { color, text } => format!("48;5;{color};38;5;{text}"),
        }
    }
}

/// One character of the canvas.
#[derive(Clone, Default)]
struct Square {
    /// The character, with its accents; empty if the square has no character.
    text: String,
    /// `true` if the right half of a wide character is here.
    is_covered: bool,
    /// The Braille dots, one bit per dot.
    dots: u8,
    /// `true` to draw a light shade here if there is no character and no dot.
    is_shaded: bool,
    paint: Paint,
}

/// The rectangle of the canvas that contains the marks, in columns and lines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: usize,
    pub(super) top: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Frame {
    /// Returns the column at a horizontal position, from 0 (left) to 1 (right).
    pub(super) fn column(&self, share: f64) -> usize {
        self.left + ((share * self.width as f64) as usize).min(self.width - 1)
    }

    /// Returns the line at a vertical position, from 0 (bottom) to 1 (top).
    pub(super) fn row(&self, share: f64) -> usize {
        self.top + (((1.0 - share) * self.height as f64) as usize).min(self.height - 1)
    }

    /// Returns the Braille dot at a position in the frame. Dots are counted from the left and the top of the canvas.
    pub(super) fn dot(&self, [x, y]: [f64; 2]) -> [usize; 2] {
        let along = |share: f64, length: usize| ((share * length as f64) as usize).min(length - 1);
        [self.left * 2 + along(x, self.width * 2), self.top * 4 + along(1.0 - y, self.height * 4)]
    }
}

/// A picture that consists of lines of characters.
pub(super) struct Canvas {
    width: usize,
    squares: Vec<Square>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Canvas {
        Canvas { width, squares: vec![Square::default(); width * height] }
    }

    fn square(&mut self, column: usize, row: usize) -> Option<&mut Square> {
        let index = (column < self.width).then_some(row * self.width + column)?;
        self.squares.get_mut(index)
    }

    /// Writes a text; characters beyond the right edge are left out.
    pub(super) fn write(&mut self, column: usize, row: usize, text: &str, paint: Paint) {
        let mut at = column;
        // This selector would make the character before it wider than the computed width.
        for c in text.chars().filter(|c| *c != '\u{fe0f}') {
            let wide = c.width().unwrap_or(0);
            if at + wide > self.width {
                return;
            }
            if wide == 0 {
                // A character without width, such as an accent, is added to the character before it.
                if let Some(before) = at.checked_sub(1).and_then(|before| self.square(before, row)) {
                    before.text.push(c);
                }
                continue;
            }
            // If half of a wide character is overwritten, the other half is removed.
            if self.square(at, row).is_some_and(|square| square.is_covered)
                && let Some(before) = at.checked_sub(1).and_then(|before| self.square(before, row))
            {
                *before = Square::default();
            }
            if let Some(after) = self.square(at + wide, row).filter(|square| square.is_covered) {
                *after = Square::default();
            }
            for covered in 0..wide {
                let Some(square) = self.square(at + covered, row) else { return };
                *square = Square { is_covered: covered > 0, paint, ..Square::default() };
                if covered == 0 {
                    square.text.push(c);
                }
            }
            at += wide;
        }
    }

    /// Returns whether these columns of a line have no characters or dots. Shades and labelled lines
    /// ([`Layer::Rule`](crate::Layer::Rule)) don't count, because they may be overwritten.
    pub(super) fn is_clear(&mut self, column: usize, row: usize, columns: usize) -> bool {
        (column..column + columns).all(|at| {
            let is_clear = |square: &Square| square.text.is_empty() || is_rule(&square.text);
            self.square(at, row).is_some_and(|square| is_clear(square) && !square.is_covered && square.dots == 0)
        })
    }

    /// Shades one character of the canvas. Later characters and dots replace the shade.
    pub(super) fn shade(&mut self, column: usize, row: usize, paint: Paint) {
        if let Some(square) = self.square(column, row).filter(|square| square.dots == 0) {
            (square.is_shaded, square.paint) = (true, paint);
        }
    }

    /// Sets a Braille dot.
    pub(super) fn dot(&mut self, [x, y]: [usize; 2], paint: Paint) {
        const BITS: [[u8; 2]; 4] = [[0x01, 0x08], [0x02, 0x10], [0x04, 0x20], [0x40, 0x80]];
        if let Some(square) = self.square(x / 2, y / 4) {
            if is_rule(&square.text) {
                square.text.clear();
            }
            square.dots |= BITS[y % 4][x % 2];
            square.paint = paint;
        }
    }

    /// Draws a straight line of Braille dots.
    pub(super) fn line(&mut self, from: [usize; 2], to: [usize; 2], paint: Paint) {
        let steps = from[0].abs_diff(to[0]).max(from[1].abs_diff(to[1])).max(1);
        for step in 0..=steps {
            let along = step as f64 / steps as f64;
            let at = |side: usize| (from[side] as f64 + (to[side] as f64 - from[side] as f64) * along).round() as usize;
            self.dot([at(0), at(1)], paint);
        }
    }

    /// Returns all lines, each with a newline, without trailing spaces.
    pub(super) fn text(&self, color: bool) -> String {
        let mut text = String::new();
        for row in self.squares.chunks(self.width) {
            let is_blank = |square: &Square| {
                shown(square).trim().is_empty()
                    && !square.is_covered
                    && !matches!(square.paint, Paint::Ground { .. } if color)
            };
            let used = row.iter().rposition(|square| !is_blank(square)).map_or(0, |last| last + 1);
            let mut current = Paint::Plain;
            for square in row[..used].iter().filter(|square| !square.is_covered) {
                let shown = shown(square);
                let paint = if shown == " " && !matches!(square.paint, Paint::Ground { .. }) {
                    Paint::Plain
                } else {
                    square.paint
                };
                if color && paint != current {
                    if current != Paint::Plain {
                        text += "\x1b[0m";
                    }
                    if paint != Paint::Plain {
                        text += &format!("\x1b[{}m", paint.code());
                    }
                    current = paint;
                }
                text += &shown;
            }
            if current != Paint::Plain {
                text += "\x1b[0m";
            }
            text.push('\n');
        }
        text
    }
}

/// Returns whether a character belongs to a labelled line ([`Layer::Rule`](crate::Layer::Rule)). Such a character may
/// be overwritten by marks.
fn is_rule(text: &str) -> bool {
    matches!(text, "┊" | "╌")
}

fn shown(square: &Square) -> String {
    if !square.text.is_empty() {
        return square.text.clone();
    }
    match square.dots {
        0 if square.is_shaded => "░".into(),
        0 => " ".into(),
        dots => char::from_u32(0x2800 + u32::from(dots)).unwrap_or(' ').to_string(),
    }
}

#[cfg(test)]
mod tests {
    use unicode_width::UnicodeWidthStr;

    use super::*;

    #[test]
    fn a_line_is_as_wide_as_its_squares_whatever_is_written_over_what() {
        let written = |texts: &[(usize, &str)]| {
            let mut canvas = Canvas::new(6, 1);
            texts.iter().for_each(|(column, text)| canvas.write(*column, 0, text, Paint::Plain));
            canvas.text(false)
        };
        assert_eq!(written(&[(0, "和和和"), (1, "a"), (4, "b")]), " a和b\n");
        assert_eq!(written(&[(1, "和"), (0, "和")]), "和\n");
        assert_eq!(written(&[(0, "abcde®\u{fe0f}")]).trim_end().width(), 6);
    }
}
