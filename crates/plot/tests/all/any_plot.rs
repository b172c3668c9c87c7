//! Tests with arbitrary plots: no mark is outside the picture, and the text fits the terminal.

use ascertain_plot::{Cell, Interval, Range, thin, thin_ranges};
use proptest::prelude::*;
use unicode_width::UnicodeWidthStr;

use super::plots::{RATE, SIZE};
use super::*;

const PER_SECOND: Prefixes = &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")];
/// Prefixes that are not in descending order, and have markup in their symbols.
const UNSORTED: Prefixes = &[(7.0, "<&\""), (0.0, ""), (1e3, "k")];

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => 0.0..1.0,
        4 => -5.0..40.0,
        2 => 1e-6..1e12,
        1 => prop::num::f64::ANY,
        1 => prop::sample::select(vec![
            0.0, -0.0, 1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e-300, 1e300, -1e300, f64::MAX, f64::MIN,
            5e-324, 1.0 - f64::EPSILON, 1e15 + 1.0,
        ]),
    ]
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[a-z<>&'\"\\x1b\\n é和🚀-]{0,60}"]
}

fn axis() -> impl Strategy<Value = Axis> {
    let scale = prop_oneof![
        Just(Scale::Linear),
        Just(Scale::Log),
        Just(Scale::Logit),
        prop::collection::vec(name(), 0..6).prop_map(Scale::Names),
    ];
    let unit = prop::sample::select(vec![TIME, SIZE, RATE, PER_SECOND, NONE, UNSORTED]);
    let domain = prop::option::of((number(), number()));
    let axis = (name(), scale, unit, domain, any::<bool>());
    axis.prop_map(|(label, scale, unit, domain, in_percent)| Axis {
        label,
        scale,
        unit,
        domain,
        in_percent,
        levels: Vec::new(),
    })
}

fn layer() -> impl Strategy<Value = Layer> {
    let points = || prop::collection::vec([number(), number()], 0..40);
    let series = || prop::option::of(0..4usize);
    let range = (number(), number(), number()).prop_map(|(x, low, high)| Range { x, low, high });
    let row = ([number(), number(), number(), number()], name()).prop_map(|([y, value, low, high], label)| Interval {
        y,
        value,
        low,
        high,
        label,
    });
    let cell = (0..7usize, 0..7usize, number()).prop_map(|(x, y, value)| Cell { x, y, value });
    prop_oneof![
        (series(), points(), any::<bool>(), any::<bool>()).prop_map(|(series, points, steps, dashed)| Layer::Line {
            series,
            points,
            steps,
            dashed
        }),
        (series(), prop::collection::vec(range, 0..20)).prop_map(|(series, ranges)| Layer::Band { series, ranges }),
        (series(), points(), any::<bool>()).prop_map(|(series, points, hollow)| Layer::Dots { series, points, hollow }),
        (series(), points()).prop_map(|(series, points)| Layer::Area { series, points }),
        (series(), prop::collection::vec(row, 0..8)).prop_map(|(series, rows)| Layer::Intervals { series, rows }),
        (prop::collection::vec(cell, 0..30), prop::option::of((number(), number())), name())
            .prop_map(|(cells, domain, label)| Layer::Cells { cells, domain, label, unit: TIME }),
        (any::<bool>(), number(), name())
            .prop_map(|(is_x, at, label)| { Layer::Rule { on: if is_x { Which::X } else { Which::Y }, at, label } }),
    ]
}

prop_compose! {
    fn plot()(
        names in [name(), name(), name()], axes in (axis(), axis()), series in prop::collection::vec(name(), 0..4),
        layers in prop::collection::vec(layer(), 0..6),
    ) -> Plot {
        let [id, title, alt] = names;
        Plot { id, title, alt, x: axes.0, y: axes.1, series, layers }
    }
}

/// Returns the text without the escapes for colours.
fn colorless(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or_default().to_string();
    first + &parts.map(|part| part.split_once('m').expect("the colour must be reset").1).collect::<String>()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn any_plot_is_drawn_inside_of_its_picture(plot in plot()) {
        for svg in pictures(&plot) {
            check(&svg, &mut BTreeSet::new());
            prop_assert!(!svg.contains(|c: char| c.is_control() && c != '\n'));
        }
    }

    #[test]
    fn any_plot_fits_its_terminal(plot in plot(), width in 40..130usize, height in 0..40usize) {
        let plain = text::render(&plot, width, height, false);
        for line in plain.lines() {
            prop_assert!(line.width() <= width, "{} columns of {width}: {line}", line.width());
        }
        prop_assert!(!plain.contains(|c: char| c.is_control() && c != '\n'));
        // With colours, the background of cells also covers trailing spaces. These are trimmed here.
        let colored = colorless(&text::render(&plot, width, height, true));
        prop_assert!(colored.lines().map(str::trim_end).eq(plain.lines()));
    }

    #[test]
    fn thinning_keeps_extremes_and_order(
        ys in prop::collection::vec(prop_oneof![9 => -100.0..100.0, 1 => Just(f64::NAN)], 0..400), most in 0..120usize,
    ) {
        let points: Vec<[f64; 2]> = ys.iter().enumerate().map(|(at, y)| [at as f64, *y]).collect();
        let kept = thin(&points, most);
        prop_assert!(kept.len() <= most);
        prop_assert!(kept.windows(2).all(|pair| pair[0][0] < pair[1][0]));
        let few = kept.len();
        prop_assert_eq!(thin(&kept, few.max(most)).len(), few);
        if points.len() <= most {
            prop_assert_eq!(kept.len(), points.len());
        }
        let ends = |points: &[[f64; 2]]| {
            let finite = || points.iter().map(|p| p[1]).filter(|y| y.is_finite());
            (finite().reduce(f64::min), finite().reduce(f64::max))
        };
        if most >= 2 {
            prop_assert_eq!(ends(&kept), ends(&points));
        }
        // If `most` is large enough, thinning keeps the first and the last point of a line, and a gap in it.
        if most >= 8 && points.len() > most && ys.iter().all(|y| y.is_finite()) {
            prop_assert_eq!((kept[0], kept[few - 1]), (points[0], points[points.len() - 1]));
        }
        if most >= 10 && ys.iter().any(|y| y.is_nan()) {
            prop_assert!(kept.iter().any(|p| p[1].is_nan()));
        }
    }

    #[test]
    fn thinned_bands_keep_their_ends(lows in prop::collection::vec(-100.0..100.0, 1..300), most in 4..80usize) {
        let range = |(at, low): (usize, &f64)| Range { x: at as f64, low: *low, high: low + 1.0 + (at % 7) as f64 };
        let ranges: Vec<Range> = lows.iter().enumerate().map(range).collect();
        let kept = thin_ranges(&ranges, most);
        prop_assert!(kept.len() <= most);
        let low = |ranges: &[Range]| ranges.iter().map(|r| r.low).reduce(f64::min);
        let high = |ranges: &[Range]| ranges.iter().map(|r| r.high).reduce(f64::max);
        prop_assert_eq!((low(&kept), high(&kept)), (low(&ranges), high(&ranges)));
    }
}
