//! The positions of all elements of a picture, chosen so that none overlaps another or leaves the picture.

use super::{Size, legend};
use crate::names::{em_width, shortened};
use crate::scale::Ruler;
use crate::scene::Scene;
use crate::stairs::{LabelSpace, Step, arranged};
use crate::ticks::{Tick, TickSpace, are_apart, ticks};

/// The font size in pixels.
pub(super) const TEXT: f64 = 12.0;
/// The distance between lines of text in pixels.
pub(super) const LINE: f64 = 17.0;

/// Returns the width of a text in pixels.
pub(super) fn text_width(text: &str) -> f64 {
    em_width(text) * TEXT
}

/// Shortens a text to at most `most` pixels.
pub(super) fn fitting(text: &str, most: f64) -> String {
    shortened(text, most, text_width)
}

/// The rectangle that contains the marks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Frame {
    pub(super) fn x(&self, share: f64) -> f64 {
        self.left + share * (self.right - self.left)
    }

    pub(super) fn y(&self, share: f64) -> f64 {
        self.bottom - share * (self.bottom - self.top)
    }
}

/// The sizes and positions of all elements, in pixels.
pub(super) struct Layout {
    pub(super) width: f64,
    pub(super) height: f64,
    pub(super) frame: Frame,
    pub(super) title: Vec<String>,
    pub(super) legend: Vec<legend::Key>,
    /// The y coordinate of the top of the colour scale, which only heat maps have.
    pub(super) colors_top: f64,
    pub(super) x_ticks: Vec<Tick>,
    /// The baseline of the x axis labels above the frame; `None` if there are none. Only a tall plot repeats the labels
    /// above, because its x axis may be out of sight.
    pub(super) x_ticks_above: Option<f64>,
    pub(super) y_ticks: Vec<Tick>,
    /// `true` if the labels of the x axis are slanted.
    pub(super) is_slanted: bool,
    pub(super) y_label: String,
    pub(super) rules: Vec<Step>,
}

impl Layout {
    pub(super) fn new(scene: &Scene, size: Size, titled: bool, figures: &[String]) -> Layout {
        let width = size.width();
        let title = if titled { wrapped(&scene.plot.title, width - 8.0) } else { Vec::new() };
        let legend_top = title.len() as f64 * 20.0 + if titled { 6.0 } else { 0.0 };
        let (legend, legend_height) = legend::arranged(scene, width, legend_top);
        let has_colors = legend::colored_cells(scene).is_some();
        let colors_top = legend_top + legend_height;
        let y_label = fitting(&scene.y.axis.label, width * 0.5);

        let cells = has_colors.then_some([Scene::names(&scene.x), Scene::names(&scene.y)]);
        let height = plot_height(scene, size, cells.is_some());
        let names_most = width * if size == Size::Wide { 0.36 } else { 0.48 };
        let y_ticks = y_ticks_of(&scene.y, height, names_most);
        let labels = y_ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
        let left = (labels + 10.0).max(14.0).round();
        let beside_rows = figures.iter().map(|figure| text_width(figure) + 14.0).fold(0.0, f64::max);
        let mut right = (width - 14.0_f64.max(beside_rows)).round();
        if let Some([Some(columns), _]) = cells {
            right = right.min(left + columns as f64 * 96.0);
        }
        let height = match cells {
            Some([Some(columns), Some(rows)]) => rows as f64 * ((right - left) / columns as f64).clamp(9.0, 40.0),
            _ => height,
        };
        let y_ticks = if cells.is_some() { y_ticks_of(&scene.y, height, names_most) } else { y_ticks };

        let mut frame = Frame { left, top: 0.0, right, bottom: height.round() };
        let (x_ticks, is_slanted) = x_ticks_of(&scene.x, &frame, width);
        // A narrow plot has no room for ticks without a label.
        let is_seen = |tick: &Tick| size == Size::Wide || !tick.label.is_empty();
        let [x_ticks, y_ticks] = [x_ticks, y_ticks].map(|ticks| ticks.into_iter().filter(is_seen).collect::<Vec<_>>());
        let taken = if y_label.is_empty() { 0.0 } else { text_width(&y_label) + 8.0 };
        let room = LabelSpace { width, taken, gap: 4.0, measure: &text_width };
        let (rules, rows) = arranged(scene, |share| frame.x(share), &room);
        let is_tall = cells.is_none() && Scene::names(&scene.y).is_some_and(|rows| rows > TALL);
        let head = colors_top + if has_colors { 3.0 * LINE } else { 0.0 } + if is_tall { LINE } else { 0.0 };
        let top = (head + rows as f64 * LINE + 10.0).round();
        let x_ticks_above = is_tall.then_some(head - 2.0);
        frame.top += top;
        frame.bottom += top;

        let below = if is_slanted {
            let longest = x_ticks.iter().map(|tick| text_width(&tick.label)).fold(0.0, f64::max);
            longest * SLANT.sin() + 16.0
        } else {
            20.0
        };
        let label_below = if scene.x.axis.label.is_empty() { 0.0 } else { LINE };
        let height = (frame.bottom + below + label_below + 4.0).round();
        Layout {
            width,
            height,
            frame,
            title,
            legend,
            colors_top,
            x_ticks,
            x_ticks_above,
            y_ticks,
            is_slanted,
            y_label,
            rules,
        }
    }

    /// Returns whether the page's script (`plot.js`) can read the name of the series from the legend. The legend must
    /// have the unshortened name, and the series must be the first one of its colour.
    pub(super) fn names_series(&self, series: Option<usize>, name: &str) -> bool {
        let is_first = series.is_some_and(|series| series < super::LIGHT.len());
        is_first && self.legend.iter().any(|key| key.series == series && key.text == name)
    }

    /// Returns the horizontal centre of a tick label below the frame, moved so that the whole label is inside the
    /// picture.
    pub(super) fn centered(label: &str, x: f64, width: f64) -> f64 {
        let half = text_width(label) / 2.0 + 1.0;
        x.min(width - half).max(half)
    }
}

/// A plot with more rows than this repeats the labels of the x axis above the frame.
const TALL: usize = 30;

/// The angle of slanted labels, in radians.
const SLANT: f64 = std::f64::consts::FRAC_PI_4;

/// Returns the height of the frame. If the y axis has names, the height depends on their number. For a heat map,
/// returns 0, because its height is computed later.
fn plot_height(scene: &Scene, size: Size, is_cells: bool) -> f64 {
    match Scene::names(&scene.y) {
        Some(_) if is_cells => 0.0,
        Some(rows @ 0..=2) => rows as f64 * 34.0,
        Some(rows @ 3..=12) => rows as f64 * 26.0,
        Some(rows) => rows as f64 * 19.0,
        None => size.plot_height(),
    }
}

fn y_ticks_of(ruler: &Ruler, height: f64, names_most: f64) -> Vec<Tick> {
    let is_named = Scene::names(ruler).is_some();
    let (length, apart) = match Scene::names(ruler) {
        // The height of a heat map is not known yet, because it depends on the width of the longest name.
        Some(_) if height == 0.0 => (f64::INFINITY, 0.0),
        Some(_) => (height, 13.0),
        None => (height, 30.0),
    };
    let fits = |ticks: &[Tick]| {
        ticks.windows(2).all(|pair| (pair[1].share - pair[0].share).abs() * length >= apart - 0.01)
            && ticks.iter().all(|tick| is_named || text_width(&tick.label) <= names_most)
    };
    ticks(ruler, &TickSpace { fits: &fits, most: names_most, width: text_width })
}

/// Returns the ticks of the x axis. Also returns `true` if their labels must be slanted, because they don't fit side by
/// side.
fn x_ticks_of(ruler: &Ruler, frame: &Frame, width: f64) -> (Vec<Tick>, bool) {
    let length = frame.right - frame.left;
    let ends = |tick: &Tick| {
        let (middle, half) = (Layout::centered(&tick.label, frame.x(tick.share), width), text_width(&tick.label) / 2.0);
        [middle - half, middle + half]
    };
    let beside = |ticks: &[Tick], gap: f64| are_apart(ticks, gap, ends);
    let Some(columns) = Scene::names(ruler) else {
        let fits = |ticks: &[Tick]| beside(ticks, 22.0);
        return (ticks(ruler, &TickSpace { fits: &fits, most: f64::INFINITY, width: text_width }), false);
    };
    let whole = ticks(ruler, &TickSpace { fits: &|_| true, most: length / 2.0, width: text_width });
    let are_numbers = whole.iter().all(|tick| tick.label.chars().all(|c| c.is_ascii_digit()));
    if beside(&whole, 6.0) || are_numbers {
        let fits = |ticks: &[Tick]| beside(ticks, 6.0);
        return (ticks(ruler, &TickSpace { fits: &fits, most: length / 2.0, width: text_width }), false);
    }
    // A slanted label ends at its tick, and begins to the left of it and below. The first label must not leave the
    // picture.
    let column = length / columns as f64;
    let most = ((frame.left + column / 2.0 - 4.0) / SLANT.cos()).clamp(24.0, 130.0);
    let fits = |ticks: &[Tick]| ticks.windows(2).all(|pair| (pair[1].share - pair[0].share) * length >= TEXT * 1.4);
    (ticks(ruler, &TickSpace { fits: &fits, most, width: text_width }), true)
}

/// Wraps a bold text into lines of at most `most` pixels.
fn wrapped(text: &str, most: f64) -> Vec<String> {
    let bold_width = |text: &str| em_width(text) * 14.0 * 1.12;
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = shortened(word, most, bold_width);
        match lines.last_mut() {
            Some(line) if bold_width(&format!("{line} {word}")) <= most => *line += &format!(" {word}"),
            _ => lines.push(word),
        }
    }
    lines
}
