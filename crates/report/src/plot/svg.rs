//! Plots as SVG.
//!
//! [`render`] gives an `<svg>` element for a page, [`standalone`] a document for a paper or a README. Text is as
//! wide as a common wide face would make it, so that nothing overlaps or leaves the picture in another.
//!
//! # What a page must do
//!
//! Colours are custom properties, each with the colour for a white ground to fall back on: `--s0` to `--s7` for
//! series, `--ink`, `--muted`, `--grid` and `--paper` for the rest. [`properties`] gives their declarations for a
//! light and for a dark ground. The title is not drawn: it is the element's accessible name, and the page's to show.
//! Ids begin with the plot's id and the size, so that a plot may be in a page once in each size.
//!
//! # What a script finds
//!
//! `web/plot.js` shows the numbers under the pointer or the keyboard's focus. Places of marks say what they are,
//! so that no number is written twice. Coordinates are rounded to a hundredth of a pixel, or to a tenth in plots
//! of more than 2,000 marks.
//!
//! | on | attribute | means |
//! |---|---|---|
//! | `svg` | `data-x`, `data-y` | `log 3 6 60 690`: the scale, the places of two ends, and their pixels. A place is the number itself (`linear`), its decimal logarithm (`log`), the decimal logarithm of its odds (`nines`), or which name it is, from 0 (`names`) |
//! | | `data-x-label`, `data-y-label` | the label of the axis |
//! | | `data-x-unit`, `data-y-unit` | prefixes from the largest, `1e9 s,1e6 ms`: factor and symbol. A number is shown divided by the first factor that it reaches, else by the last |
//! | | `data-x-whole`, `data-y-whole` | present where all marks are at whole numbers: round |
//! | | `data-x-names`, `data-y-names` | the names, a line each |
//! | `g` | `data-series` | the name of the series that the marks inside belong to, possibly empty |
//! | `path` | `data-m="line"`, `"dots"` | marks at all vertices (`M m l h v`, relative after the first) |
//! | | `data-m="step"` | of each run the first vertex is a mark, and every second after it |
//! | | `data-m="band"` | closed runs: the upper line from left to right, then the lower line back. An end at the frame's edge is not bounded |
//! | | `data-m="interval"` | one row: `data-at="x y"` in pixels, `data-text` its figure |
//! | `g` | `data-m="marks"` | marks at the `x` and `y` of each `use` inside, in pixels |
//! | `g` | `data-m="cells"` | `data-v`: the values of all cells by row, separated by commas, empty where there is none; `data-v-label`, `data-v-unit` |

mod axes;
mod heat;
mod layout;
mod legend;
mod marks;
mod path;
mod rules;

use std::fmt::Write;

use ascertain::unit::Unit;

pub(super) use legend::colored_cells;
pub(crate) use path::escaped;

pub use super::ink::{DARK, GROUND, LIGHT};
use super::scale::Ruler;
use super::scene::Scene;
use super::{Plot, Scale};
use layout::Layout;
use path::px;

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

    /// The height of the frame of a plot without rows.
    fn plot_height(self) -> f64 {
        if self == Size::Wide { 260.0 } else { 210.0 }
    }
}

/// The declarations of all custom properties that plots in a page use: `--s0:#1f32af;--s1:…`.
pub fn properties(is_dark: bool) -> String {
    let series = if is_dark { DARK } else { LIGHT };
    let mut text = String::new();
    for (index, color) in series.iter().enumerate() {
        let _ = write!(text, "--s{index}:{color};");
    }
    for (name, light, dark) in GROUND {
        let _ = write!(text, "--{name}:{};", if is_dark { dark } else { light });
    }
    text
}

/// The plot as an `<svg>` element for a page.
///
/// ```
/// use ascertain::unit::Unit;
/// use ascertain_report::plot::{Axis, Layer, Plot, Scale, svg};
/// let plot = Plot {
///     id: "sizes".into(),
///     title: "Time by size".into(),
///     alt: "The time grows from 1 µs to 1 ms.".into(),
///     x: Axis::new("elements", Scale::Log, Unit::One),
///     y: Axis::new("time", Scale::Log, Unit::Nanosecond),
///     series: vec!["naive".into()],
///     layers: vec![Layer::Line { series: Some(0), points: vec![[1e3, 1e3], [1e6, 1e6]], steps: false, dashed: false }],
/// };
/// let text = svg::render(&plot, svg::Size::Wide);
/// assert!(text.starts_with("<svg ") && text.contains(">100 µs</text>"));
/// ```
pub fn render(plot: &Plot, size: Size) -> String {
    let suffix = if size == Size::Wide { "w" } else { "n" };
    Drawing { scene: Scene::new(plot), size, id_suffix: suffix, is_document: false }.drawn()
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
            svg += &style();
            let _ = write!(
                svg,
                "<rect x=\"-10\" y=\"-10\" width=\"100%\" height=\"100%\" fill=\"currentColor\" {}/>",
                self.color("paper")
            );
            for (index, line) in layout.title.iter().enumerate() {
                let y = 16 + 20 * index;
                let text = escaped(line);
                let _ = write!(
                    svg,
                    "<text x=\"2\" y=\"{y}\" font-size=\"14\" font-weight=\"600\" fill=\"currentColor\">{text}</text>"
                );
            }
        }
        self.write_defs(&layout, &mut svg);
        self.write_legend(&layout, &mut svg);
        self.write_color_scale(&layout, &mut svg);
        self.write_axes(&layout, &mut svg);
        let _ = write!(svg, "<g clip-path=\"url(#{})\">", self.id("clip"));
        for layer in &scene.plot.layers {
            self.write_layer(layer, &layout, &mut svg);
        }
        svg += "</g>";
        self.write_figures(&figures, &layout, &mut svg);
        self.write_rule_labels(&layout, &mut svg);
        svg + "</svg>\n"
    }

    /// An id that no other plot has, nor this one in another size.
    fn id(&self, part: &str) -> String {
        format!("{}-{}-{part}", self.scene.plot.id, self.id_suffix)
    }

    /// The attribute that makes a colour current: of a page its property, of a document its class.
    fn color(&self, name: &str) -> String {
        if self.is_document {
            return format!("class=\"{name}\"");
        }
        let fallback = match name.strip_prefix('s').and_then(|index| index.parse::<usize>().ok()) {
            Some(index) => LIGHT[index % LIGHT.len()],
            None => GROUND.iter().find(|(known, ..)| *known == name).map_or("currentColor", |(_, light, _)| light),
        };
        format!("style=\"color:var(--{name},{fallback})\"")
    }

    /// The colour of a series.
    fn series_color(&self, series: Option<usize>) -> String {
        series.map_or_else(|| self.color("ink"), |index| self.color(&format!("s{}", index % LIGHT.len())))
    }

    fn opening(&self, layout: &Layout) -> String {
        let plot = &self.scene.plot;
        let [title, desc] = ["title", "desc"].map(|part| self.id(part));
        let (width, height) = (px(layout.width), px(layout.height));
        let frame = &layout.frame;
        let axes = axis_data("x", &self.scene.x, frame.left, frame.right)
            + &axis_data("y", &self.scene.y, frame.bottom, frame.top);
        let ground = match self.color("ink") {
            style if self.is_document => style,
            style => style.replacen("style=\"", "style=\"max-width:100%;height:auto;", 1),
        };
        let namespace = if self.is_document { " xmlns=\"http://www.w3.org/2000/svg\"" } else { "" };
        // A document has a margin.
        let view = if self.is_document {
            format!("-10 -10 {} {}", px(layout.width + 20.0), px(layout.height + 20.0))
        } else {
            format!("0 0 {width} {height}")
        };
        format!(
            "<svg{namespace} viewBox=\"{view}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
             aria-labelledby=\"{title} {desc}\" {ground} font-family=\"system-ui,-apple-system,'Segoe UI',Roboto,\
             'Helvetica Neue',Arial,sans-serif\" font-size=\"12\"{axes}><title id=\"{title}\">{}</title>\
             <desc id=\"{desc}\">{}</desc>",
            escaped(&plot.title),
            escaped(&plot.alt),
        )
    }

    fn write_defs(&self, layout: &Layout, svg: &mut String) {
        // Marks at the very edge are whole.
        let (frame, air) = (&layout.frame, 5.0);
        let [x, y] = [frame.left - air, frame.top - air].map(px);
        let [width, height] = [frame.right - frame.left + 2.0 * air, frame.bottom - frame.top + 2.0 * air].map(px);
        let clip = self.id("clip");
        let _ = write!(
            svg,
            "<defs><clipPath id=\"{clip}\"><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/></clipPath>"
        );
        self.write_shapes(svg);
        self.write_gradient(svg);
        *svg += "</defs>";
    }
}

/// The colours of a document, by class.
fn style() -> String {
    let classes = |is_dark: bool| {
        let declared = properties(is_dark);
        let rules =
            declared.trim_end_matches(';').split(';').filter_map(|line| line.strip_prefix("--")?.split_once(':'));
        rules.map(|(name, color)| format!(".{name}{{color:{color}}}")).collect::<String>()
    };
    format!("<style>{}@media screen and (prefers-color-scheme:dark){{{}}}</style>", classes(false), classes(true))
}

/// The attributes that say what places on an axis mean.
fn axis_data(name: &str, ruler: &Ruler, from_px: f64, to_px: f64) -> String {
    let (from, to) = ruler.places();
    let scale = match ruler.axis.scale {
        Scale::Linear => "linear",
        Scale::Log => "log",
        Scale::Nines => "nines",
        Scale::Names(_) => "names",
    };
    let label = escaped(&ruler.axis.label);
    let mut text = format!(
        " data-{name}=\"{scale} {from:e} {to:e} {} {}\" data-{name}-label=\"{label}\" data-{name}-unit=\"{}\"",
        px(from_px),
        px(to_px),
        if ruler.is_binary { binary_prefixes(ruler.axis.unit) } else { prefixes(ruler.axis.unit) }
    );
    match &ruler.axis.scale {
        Scale::Names(names) => {
            let lines: Vec<String> = names.iter().map(|name| escaped(name)).collect();
            let _ = write!(text, " data-{name}-names=\"{}\"", lines.join("&#10;"));
        }
        _ if ruler.is_whole && ruler.axis.unit == Unit::One => {
            let _ = write!(text, " data-{name}-whole=\"\"");
        }
        _ => {}
    }
    text
}

/// The prefixes of a unit from the largest, as a script reads them: `1e9 s,1e6 ms,1e3 µs,1e0 ns`.
fn prefixes(unit: Unit) -> String {
    let mut known: Vec<(f64, &str)> = [6e10, 1e9, 1e6, 1e3, 1.0].map(|value| unit.prefix(value)).to_vec();
    known.dedup();
    let write = |(factor, symbol): &(f64, &str)| format!("{factor:e} {symbol}");
    known.iter().map(write).collect::<Vec<_>>().join(",")
}

/// The same in powers of 1,024, as the ticks of such an axis are.
fn binary_prefixes(unit: Unit) -> String {
    let ranks = (0..4).rev().map(|rank| 1024f64.powi(rank));
    let symbol = |factor: f64| {
        super::label::binary(factor, unit).trim_start_matches(|c: char| c.is_ascii_digit()).trim().to_string()
    };
    ranks.map(|factor| format!("{factor:e} {}", symbol(factor))).collect::<Vec<_>>().join(",")
}
