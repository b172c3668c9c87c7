//! Compact path data.

use std::fmt::Write;

/// Writes a coordinate with at most one decimal.
pub(super) fn px(at: f64) -> String {
    let mut text = String::new();
    push_number(&mut text, (at * 10.0).round() as i64, 10);
    text
}

/// The data of an SVG path. Coordinates are rounded to `1 / grain` pixels. Each is written relative to the previous
/// position after rounding, so that rounding errors don't add up.
pub(super) struct Path {
    data: String,
    grain: i64,
    at: [i64; 2],
    start: [i64; 2],
}

impl Path {
    pub(super) fn new(grain: i64) -> Path {
        Path { data: String::new(), grain, at: [0; 2], start: [0; 2] }
    }

    /// Starts a new subpath at this position.
    pub(super) fn jump(&mut self, x: f64, y: f64) {
        let to = self.rounded(x, y);
        let from = if self.data.is_empty() { [0; 2] } else { self.at };
        self.data.push(if self.data.is_empty() { 'M' } else { 'm' });
        self.numbers(&[to[0] - from[0], to[1] - from[1]]);
        (self.at, self.start) = (to, to);
    }

    /// Draws a straight line to this position.
    pub(super) fn line(&mut self, x: f64, y: f64) {
        let to = self.rounded(x, y);
        match [to[0] - self.at[0], to[1] - self.at[1]] {
            [across, 0] => self.command('h', &[across]),
            [0, up] => self.command('v', &[up]),
            both => self.command('l', &both),
        }
        self.at = to;
    }

    /// Draws a dot, a line of length 0. With round caps, its diameter is the width of the stroke.
    pub(super) fn dot(&mut self, x: f64, y: f64) {
        self.jump(x, y);
        self.command('h', &[0]);
    }

    /// Closes the subpath with a line to its start.
    pub(super) fn close(&mut self) {
        self.data.push('z');
        self.at = self.start;
    }

    /// Draws the polyline through these points, or a dot if there is only one.
    pub(super) fn polyline(&mut self, points: &[[f64; 2]]) {
        match points {
            [] => {}
            [[x, y]] => self.dot(*x, *y),
            [[x, y], rest @ ..] => {
                self.jump(*x, *y);
                rest.iter().for_each(|[x, y]| self.line(*x, *y));
            }
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    pub(super) fn data(self) -> String {
        self.data
    }

    fn rounded(&self, x: f64, y: f64) -> [i64; 2] {
        [x, y].map(|at| (at * self.grain as f64).round() as i64)
    }

    fn command(&mut self, letter: char, numbers: &[i64]) {
        self.data.push(letter);
        self.numbers(numbers);
    }

    fn numbers(&mut self, numbers: &[i64]) {
        for (index, number) in numbers.iter().enumerate() {
            if index > 0 && *number >= 0 {
                self.data.push(' ');
            }
            push_number(&mut self.data, *number, self.grain);
        }
    }
}

/// Appends `number / grain` without needless zeros: `12.5`, `-.25`, `3`. `grain` must be a divisor of 100.
fn push_number(text: &mut String, number: i64, grain: i64) {
    if number < 0 {
        text.push('-');
    }
    let (whole, rest) = (number.abs() / grain, number.abs() % grain);
    if whole > 0 || rest == 0 {
        let _ = write!(text, "{whole}");
    }
    if rest > 0 {
        let hundredths = rest * 100 / grain;
        let _ = write!(text, ".{}", format!("{hundredths:02}").trim_end_matches('0'));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_short_and_exact() {
        let mut path = Path::new(10);
        path.polyline(&[[0.04, 10.0], [1.26, 9.5], [1.26, 4.0], [3.0, 4.0]]);
        path.dot(2.0, 4.5);
        assert_eq!(path.data(), "M0 10l1.3-.5v-5.5h1.7m-1 .5h0");
    }
}
