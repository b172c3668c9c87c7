//! Plots as SVG.
//!
//! [`render`] returns an `<svg>` element for a page, [`standalone`] a document for a paper or a README. The layout uses
//! the character widths of a wide font, so that text does not overlap or leave the picture in other fonts.
//!
//! # Requirements for a page
//!
//! CSS classes define the look of marks, once for all plots of a page. The page must include the style sheet [`sheet`],
//! and the colours as custom properties: `--s0` to `--s7` for series, `--ink`, `--muted`, `--grid` and `--paper` for
//! the rest. [`properties`] declares them for a light or a dark background. The title is not drawn; the page shows it.
//! Ids begin with the id of the plot and its size, so a page may contain each plot once in each size.
//!
//! # Attributes for a script
//!
//! `web/plot.js` shows the numbers at the pointer or the keyboard focus. The script computes the numbers from the
//! positions of the marks, so that no number is written twice. Coordinates are rounded to a hundredth of a pixel, to a
//! tenth in plots of more than 2,000 marks, and to half a pixel in narrow ones.
//!
//! | element | attribute or class | meaning |
//! |---|---|---|
//! | `svg` | `data-x`, `data-y` | the scale of the axis, the transformed numbers at its two ends, and the positions of both ends in pixels. An example is `log 3 6 60 690`. A transformed number is the number itself (`linear`), its decimal logarithm (`log`), the decimal logarithm of its odds (`logit`), or the index of the name (`names`) |
//! | | `data-x-label`, `data-y-label` | the label of the axis |
//! | | `data-x-unit`, `data-y-unit` | units in descending order, for example `1e9 s,1e6 ms`: the factor and the symbol of each. The script divides a number by the largest factor that is not above the number. If every factor is above the number, the script uses the smallest factor. Without the attribute, the script shows the number as it is |
//! | | `data-x-whole`, `data-y-whole` | present if all marks are at whole numbers: the script rounds the numbers |
//! | | `data-x-names`, `data-y-names` | the names, one per line; if a y axis lacks it, the labels or titles of its ticks are the names |
//! | `g` | `data-series` | the name of the series of the marks inside. If it is empty, the script takes the first name in the legend that has the colour of the marks, if there is one |
//! | `path` | class `line`, `dots`, `marks` | each vertex is a mark (path commands `M`, then `m l h v` with relative coordinates) |
//! | | class `step` | the marks are the first vertex of each subpath, and every second vertex after the first |
//! | | class `band` | closed subpaths: the upper line from left to right, then the lower line back. A line at the edge of the frame is an unbounded end |
//! | | class `interval` | one row: `data-at="x y"` is the position of the estimate in pixels, `data-text` the estimate and its interval |
//! | `g` | class `cells` | `data-v`: the values of all cells by row, separated by commas, empty for a cell without a value; `data-v-label`, `data-v-unit`: the label and the unit of the values |

mod axes;
mod heat;
mod layout;
mod legend;
mod marks;
mod path;
mod sheet;

use std::fmt::Write;

pub(crate) use legend::colored_cells;

use crate::escape::escape_xml as escaped;
pub use crate::ink::{DARK, GROUND, LIGHT};
use crate::label::symbol;
use crate::scale::Ruler;
use crate::scene::Scene;
use crate::ticks::Tick;
use crate::{MOST_MARKS, Plot, Prefixes, Scale};
use layout::Layout;
use path::px;
pub use sheet::sheet;

/// The largest number of marks in a narrow plot; more marks would overlap.
const MOST_MARKS_NARROW: usize = 320;

/// The width of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 720 pixels, for pages and papers.
    Wide,
    /// 360 pixels, for phones.
    Narrow,
}

impl Size {
    fn width(self) -> f64 {
        if self == Size::Wide { 720.0 } else { 360.0 }
    }

    /// Returns the largest number of marks that a plot of this size draws.
    fn most_marks(self) -> usize {
        if self == Size::Wide { MOST_MARKS } else { MOST_MARKS_NARROW }
    }

    /// Returns the height in pixels of the frame that contains the marks, for a y axis of numbers.
    fn plot_height(self) -> f64 {
        if self == Size::Wide { 260.0 } else { 210.0 }
    }
}

/// Returns the CSS declarations of all colours that plots in a page use: `--s0:#1f32af;--s1:…`.
pub fn properties(is_dark: bool) -> String {
    sheet::palette(is_dark).iter().map(|(name, color)| format!("--{name}:{color};")).collect()
}

/// Draws the plot as an `<svg>` element, and returns its text for a page.
///
/// ```
/// use ascertain_plot::{Axis, Layer, Plot, Prefixes, Scale, svg};
/// const TIME: Prefixes = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
/// const NONE: Prefixes = &[];
/// let plot = Plot {
///     id: "sizes".into(),
///     title: "Time by size".into(),
///     alt: "The time grows from 1 µs to 1 ms.".into(),
///     x: Axis::new("elements", Scale::Log, NONE),
///     y: Axis::new("time", Scale::Log, TIME),
///     series: vec!["naive".into()],
///     layers: vec![Layer::Line { series: Some(0), points: vec![[1e3, 1e3], [1e6, 1e6]], steps: false, dashed: false }],
/// };
/// let text = svg::render(&plot, svg::Size::Wide);
/// assert!(text.starts_with("<svg ") && text.contains(">100 µs</text>"));
/// ```
pub fn render(plot: &Plot, size: Size) -> String {
    let suffix = if size == Size::Wide { "w" } else { "n" };
    Drawing { scene: Scene::thinned(plot, size.most_marks()), size, id_suffix: suffix, is_document: false }.drawn()
}

/// Draws the plot as a complete SVG document, 720 pixels wide, with its title. Its colours follow the reader's
/// preference for a light or a dark background.
pub fn standalone(plot: &Plot) -> String {
    let drawing = Drawing { scene: Scene::new(plot), size: Size::Wide, id_suffix: "s", is_document: true };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", drawing.drawn())
}

/// A plot while it is converted to SVG.
struct Drawing {
    scene: Scene,
    size: Size,
    id_suffix: &'static str,
    is_document: bool,
}

impl Drawing {
    fn drawn(&self) -> String {
        let scene = &self.scene;
        let figures = self.figures();
        let layout = Layout::new(scene, self.size, self.is_document, &figures);
        let mut svg = self.opening(&layout);
        if self.is_document {
            let _ = write!(
                svg,
                "<style>{}</style><rect class=\"paper\" x=\"-10\" y=\"-10\" width=\"100%\" height=\"100%\" \
                 fill=\"currentColor\"/>",
                sheet::of_document()
            );
            for (index, line) in layout.title.iter().enumerate() {
                let y = 16 + 20 * index;
                let text = escaped(line);
                let _ = write!(svg, "<text x=\"2\" y=\"{y}\" font-size=\"14\" font-weight=\"600\">{text}</text>");
            }
        }
        self.write_gradient(&mut svg);
        self.write_legend(&layout, &mut svg);
        self.write_color_scale(&layout, &mut svg);
        self.write_axes(&layout, &mut svg);
        // Numbers outside the range of an axis are drawn at its end, so no mark is outside the frame.
        for (index, layer) in scene.plot.layers.iter().enumerate() {
            self.write_layer(index, layer, &layout, &mut svg);
        }
        self.write_figures(&figures, &layout, &mut svg);
        self.write_rule_labels(&layout, &mut svg);
        svg + "</svg>\n"
    }

    /// Returns an id that is unique in the page, even if the page has the same plot in another size.
    fn id(&self, part: &str) -> String {
        format!("{}-{}-{part}", self.scene.plot.id, self.id_suffix)
    }

    /// Returns the CSS class that makes the colour of the series the current colour.
    fn series_color(&self, series: Option<usize>) -> String {
        series.map_or_else(|| "ink".into(), |index| format!("s{}", index % LIGHT.len()))
    }

    fn opening(&self, layout: &Layout) -> String {
        let plot = &self.scene.plot;
        let (width, height) = (px(layout.width), px(layout.height));
        let [title, alt] = [&plot.title, &plot.alt].map(|text| escaped(text));
        if self.is_document {
            // A document, unlike a picture in a page, has a margin around the plot.
            let view = format!("-10 -10 {} {}", px(layout.width + 20.0), px(layout.height + 20.0));
            return format!(
                "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"plot\" viewBox=\"{view}\" width=\"{width}\" \
                 height=\"{height}\" role=\"img\"><title>{title}</title><desc>{alt}</desc>"
            );
        }
        let frame = &layout.frame;
        let axes = axis_data("x", &self.scene.x, frame.left, frame.right, &layout.x_ticks)
            + &axis_data("y", &self.scene.y, frame.bottom, frame.top, &layout.y_ticks);
        format!(
            "<svg class=\"plot\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
             role=\"img\" aria-label=\"{alt}\"{axes}>"
        )
    }
}

/// Returns the `data-` attributes from which a script computes the numbers on the axis `name` (`x` or `y`). `from_px`
/// and `to_px` are the positions of the two ends of the axis in pixels.
fn axis_data(name: &str, ruler: &Ruler, from_px: f64, to_px: f64, ticks: &[Tick]) -> String {
    let (from, to) = ruler.places();
    let scale = match ruler.axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::Logit => "logit",
        Scale::Names(_) => "names",
    };
    // Rounds to a millionth of the length of the axis, which is less than a hundredth of a pixel.
    let digits = (6.0 - (to - from).abs().log10()).clamp(0.0, 15.0) as usize;
    let [from, to] = [from, to].map(|end| shortest(end, digits));
    let mut text = format!(" data-{name}=\"{scale} {from} {to} {} {}\"", px(from_px), px(to_px));
    if !ruler.axis.label.is_empty() {
        let _ = write!(text, " data-{name}-label=\"{}\"", escaped(&ruler.axis.label));
    }
    let prefixes = match ruler.axis.unit {
        _ if ruler.axis.in_percent => "1e-2 %".into(),
        unit if symbol(unit).is_empty() => String::new(),
        unit if ruler.is_binary => binary_prefixes(unit),
        unit => prefixes(unit),
    };
    if !prefixes.is_empty() {
        let _ = write!(text, " data-{name}-unit=\"{prefixes}\"");
    }
    match &ruler.axis.scale {
        // If all names are written at ticks, the script reads them there and needs no attribute.
        Scale::Names(names) if name == "y" && names.len() == ticks.len() => {}
        Scale::Names(names) => {
            let lines: Vec<String> = names.iter().map(|name| escaped(name)).collect();
            let _ = write!(text, " data-{name}-names=\"{}\"", lines.join("&#10;"));
        }
        _ if ruler.is_whole && symbol(ruler.axis.unit).is_empty() => {
            let _ = write!(text, " data-{name}-whole=\"\"");
        }
        _ => {}
    }
    text
}

/// Writes a number with at most `decimals` decimals. Writes all of its digits instead if that is not longer, or if
/// `decimals` is 15 or more.
fn shortest(number: f64, decimals: usize) -> String {
    let rounded = format!("{number:.decimals$}");
    let rounded = if rounded.contains('.') { rounded.trim_end_matches('0').trim_end_matches('.') } else { &rounded };
    let whole = format!("{number:e}");
    if decimals < 15 && rounded.len() < whole.len() { rounded.to_string() } else { whole }
}

/// Returns the prefixes of a unit, in descending order, in the format for the script: `1e9 s,1e6 ms,1e3 µs,1e0 ns`.
fn prefixes(unit: Prefixes) -> String {
    let write = |(factor, symbol): &(f64, &str)| format!("{factor:e} {}", escaped(symbol));
    unit.iter().map(write).collect::<Vec<_>>().join(",")
}

/// Returns the prefixes in powers of 1,024 (`KiB`) for an axis whose ticks are at powers of two.
fn binary_prefixes(unit: Prefixes) -> String {
    let ranks = (0..4).rev().map(|rank| 1024f64.powi(rank));
    let symbol = |factor: f64| {
        crate::label::binary(factor, unit).trim_start_matches(|c: char| c.is_ascii_digit()).trim().to_string()
    };
    ranks.map(|factor| format!("{factor:e} {}", escaped(&symbol(factor)))).collect::<Vec<_>>().join(",")
}
