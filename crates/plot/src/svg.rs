//! Plots as SVG.
//!
//! [`render`] gives an `<svg>` element for a page, [`standalone`] a document for a paper or a README. Text is as
//! wide as a common wide face would make it, so that nothing overlaps or leaves the picture in another.
//!
//! # What a page must do
//!
//! How marks look is said by classes, once for all plots of a page: it must have [`sheet`] among its styles, and the
//! colours as custom properties, which [`properties`] declares for a light and for a dark ground: `--s0` to `--s7` for
//! series, `--ink`, `--muted`, `--grid` and `--paper` for the rest. The title is not drawn: it is the page's to show.
//! Ids begin with the plot's id and the size, so that a plot may be in a page once in each size.
//!
//! # What a script finds
//!
//! `web/plot.js` shows the numbers under the pointer or the keyboard's focus. Places of marks say what they are,
//! so that no number is written twice. Coordinates are rounded to a hundredth of a pixel, to a tenth in plots of
//! more than 2,000 marks, and to half a pixel in narrow ones.
//!
//! | on | | means |
//! |---|---|---|
//! | `svg` | `data-x`, `data-y` | `log 3 6 60 690`: the scale, the places of two ends, and their pixels. A place is the number itself (`linear`), its decimal logarithm (`log`), the decimal logarithm of its odds (`logit`), or which name it is, from 0 (`names`) |
//! | | `data-x-label`, `data-y-label` | the label of the axis |
//! | | `data-x-unit`, `data-y-unit` | prefixes from the largest, `1e9 s,1e6 ms`: factor and symbol. A number is shown divided by the first factor that it reaches, else by the last; without the attribute as it is |
//! | | `data-x-whole`, `data-y-whole` | present where all marks are at whole numbers: round |
//! | | `data-x-names`, `data-y-names` | the names, a line each; of a y axis without it those that its ticks are labelled or titled with |
//! | `g` | `data-series` | the name of the series that the marks inside belong to; empty: what the legend calls the first of that colour, if anything |
//! | `path` | class `line`, `dots`, `marks` | marks at all vertices (`M m l h v`, relative after the first) |
//! | | class `step` | of each run the first vertex is a mark, and every second after it |
//! | | class `band` | closed runs: the upper line from left to right, then the lower line back. An end at the frame's edge is not bounded |
//! | | class `interval` | one row: `data-at="x y"` in pixels, `data-text` its figure |
//! | `g` | class `cells` | `data-v`: the values of all cells by row, separated by commas, empty where there is none; `data-v-label`, `data-v-unit` |

mod axes;
mod heat;
mod layout;
mod legend;
mod marks;
mod path;
mod rules;
mod sheet;

use std::fmt::Write;

pub(crate) use legend::colored_cells;
use path::escaped;

pub use crate::ink::{DARK, GROUND, LIGHT};
use crate::label::symbol;
use crate::scale::Ruler;
use crate::scene::Scene;
use crate::ticks::Tick;
use crate::{MOST_MARKS, Plot, Prefixes, Scale};
use layout::Layout;
use path::px;
pub use sheet::sheet;

/// The most marks of a narrow plot: more would lie on top of each other.
const MOST_MARKS_NARROW: usize = 320;

/// For which width a plot is laid out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// 720 pixels: pages and papers.
    Wide,
    /// 360 pixels: phones.
    Narrow,
}

impl Size {
    fn width(self) -> f64 {
        if self == Size::Wide { 720.0 } else { 360.0 }
    }

    /// The most marks that a plot draws.
    fn most_marks(self) -> usize {
        if self == Size::Wide { MOST_MARKS } else { MOST_MARKS_NARROW }
    }

    /// The height of the frame of a plot without rows.
    fn plot_height(self) -> f64 {
        if self == Size::Wide { 260.0 } else { 210.0 }
    }
}

/// The declarations of all custom properties that plots in a page use: `--s0:#1f32af;--s1:…`.
pub fn properties(is_dark: bool) -> String {
    sheet::palette(is_dark).iter().map(|(name, color)| format!("--{name}:{color};")).collect()
}

/// The plot as an `<svg>` element for a page.
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

/// The plot as a whole SVG document of 720 pixels, with its title, light or dark as its reader prefers.
pub fn standalone(plot: &Plot) -> String {
    let drawing = Drawing { scene: Scene::new(plot), size: Size::Wide, id_suffix: "s", is_document: true };
    format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n{}", drawing.drawn())
}

/// A plot on its way to text.
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
        // No mark leaves the frame: numbers beyond it are placed at its edge.
        for (index, layer) in scene.plot.layers.iter().enumerate() {
            self.write_layer(index, layer, &layout, &mut svg);
        }
        self.write_figures(&figures, &layout, &mut svg);
        self.write_rule_labels(&layout, &mut svg);
        svg + "</svg>\n"
    }

    /// An id that no other plot has, nor this one in another size.
    fn id(&self, part: &str) -> String {
        format!("{}-{}-{part}", self.scene.plot.id, self.id_suffix)
    }

    /// The class that makes the colour of a series current.
    fn series_color(&self, series: Option<usize>) -> String {
        series.map_or_else(|| "ink".into(), |index| format!("s{}", index % LIGHT.len()))
    }

    fn opening(&self, layout: &Layout) -> String {
        let plot = &self.scene.plot;
        let (width, height) = (px(layout.width), px(layout.height));
        let [title, alt] = [&plot.title, &plot.alt].map(|text| escaped(text));
        if self.is_document {
            // A document has a margin.
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

/// The attributes that say what places on an axis mean.
fn axis_data(name: &str, ruler: &Ruler, from_px: f64, to_px: f64, ticks: &[Tick]) -> String {
    let (from, to) = ruler.places();
    let scale = match ruler.axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::Logit => "logit",
        Scale::Names(_) => "names",
    };
    // A millionth of the axis is less than a pixel's hundredth.
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
        // Those that are all written need not be said again.
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

/// A number with at most so many decimals, or as it is where that is shorter or these are too few.
fn shortest(number: f64, decimals: usize) -> String {
    let rounded = format!("{number:.decimals$}");
    let rounded = if rounded.contains('.') { rounded.trim_end_matches('0').trim_end_matches('.') } else { &rounded };
    let whole = format!("{number:e}");
    if decimals < 15 && rounded.len() < whole.len() { rounded.to_string() } else { whole }
}

/// The prefixes of a unit from the largest, as a script reads them: `1e9 s,1e6 ms,1e3 µs,1e0 ns`.
fn prefixes(unit: Prefixes) -> String {
    let write = |(factor, symbol): &(f64, &str)| format!("{factor:e} {}", escaped(symbol));
    unit.iter().map(write).collect::<Vec<_>>().join(",")
}

/// The same in powers of 1,024, as the ticks of such an axis are.
fn binary_prefixes(unit: Prefixes) -> String {
    let ranks = (0..4).rev().map(|rank| 1024f64.powi(rank));
    let symbol = |factor: f64| {
        crate::label::binary(factor, unit).trim_start_matches(|c: char| c.is_ascii_digit()).trim().to_string()
    };
    ranks.map(|factor| format!("{factor:e} {}", escaped(&symbol(factor)))).collect::<Vec<_>>().join(",")
}
