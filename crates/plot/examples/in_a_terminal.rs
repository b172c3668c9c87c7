//! Draws a plot in the terminal, or writes it to a file as SVG: `in_a_terminal [FILE.svg]`.
#![allow(clippy::print_stdout)]

use ascertain_plot::{Axis, Layer, Plot, Prefixes, Scale, svg, text};

const TIME: Prefixes = &[(1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")];
const NONE: Prefixes = &[];

fn main() -> std::io::Result<()> {
    let line = |series: usize, time_ns: fn(f64) -> f64| Layer::Line {
        series: Some(series),
        points: (6..=40).map(|i| 2f64.powf(f64::from(i) / 2.0)).map(|size| [size, time_ns(size)]).collect(),
        steps: false,
        dashed: false,
    };
    let plot = Plot {
        id: "sorting".into(),
        title: "Sorting by insertion and by merging".into(),
        alt: "Insertion sort is faster up to about 50 elements.".into(),
        x: Axis::new("elements", Scale::Log, NONE),
        y: Axis::new("time", Scale::Log, TIME),
        series: vec!["insertion".into(), "merging".into()],
        layers: vec![line(0, |n| 0.5 * n * n), line(1, |n| 4.0 * n * n.log2() + 20.0)],
    };
    match std::env::args().nth(1) {
        Some(file) => std::fs::write(file, svg::standalone(&plot)),
        None => {
            print!("{}", text::render(&plot, 80, 24, false));
            Ok(())
        }
    }
}
