//! Pictures of many kinds of runs must show all recorded values, and nothing else.

mod claims;
mod experiments;
mod sound;

use std::collections::BTreeSet;

use ascertain_engine::claim::{Bound, Claim, Effect, Hypothesis, Judging, Test};
use ascertain_engine::experiment::{
    self, Arm, ArmId, Better, Experiment, Footprint, Metric, Point, Reduce, Sample, Samples, Session, Setup, Spec,
    TargetError, Trial,
};
use ascertain_engine::function::Group;
use ascertain_engine::outcome::{Absence, LeftOut, Outcome, PointSummary, Verdict};
use ascertain_engine::plan::{Config, Plan, Table};
use ascertain_engine::predicate::Predicate;
use ascertain_engine::recorded::{self, RecordedRun};
use ascertain_engine::run::{self, Recording, Silent};
use ascertain_report::pictures::{self, Picture};
use ascertain_report::plot::{Interval, Layer, Plot, Range, Scale, Which, text};

use crate::shapes::{Random, SHAPES, Shape, arm, keyed, scalar};

fn read(shape: &Shape) -> RecordedRun {
    let runs = tempfile::tempdir().unwrap();
    recorded::read(&shape.write(runs.path())).unwrap()
}

fn all(run: &RecordedRun) -> Vec<Picture> {
    let claims = (0..run.outcome.claims.len()).flat_map(|claim| pictures::of_claim(run, claim));
    let experiments = run.header.experiments.iter().flat_map(|spec| pictures::of_experiment(run, &spec.id));
    pictures::overview(run).into_iter().chain(claims).chain(experiments).collect()
}

fn ids(pictures: &[Picture]) -> Vec<&str> {
    pictures.iter().map(|picture| picture.plot.id.as_str()).collect()
}

fn with_id<'a>(pictures: &'a [Picture], id: &str) -> &'a Picture {
    pictures.iter().find(|picture| picture.plot.id == id).unwrap_or_else(|| panic!("{id}: {:?}", ids(pictures)))
}

fn lines(plot: &Plot) -> Vec<&[[f64; 2]]> {
    let lines = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Line { points, .. } => Some(points.as_slice()),
        _ => None,
    });
    lines.collect()
}

fn dots(plot: &Plot) -> Vec<&[[f64; 2]]> {
    let dots = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Dots { points, .. } => Some(points.as_slice()),
        _ => None,
    });
    dots.collect()
}

fn rules(plot: &Plot) -> Vec<(Which, f64, &str)> {
    let rules = plot.layers.iter().filter_map(|layer| match layer {
        Layer::Rule { on, at, label } => Some((*on, *at, label.as_str())),
        _ => None,
    });
    rules.collect()
}

/// Returns the index of a layer's series, and the points that the layer shows. The points are the estimates of
/// intervals, and the low ends of bands.
fn marks(layer: &Layer) -> (Option<usize>, Vec<[f64; 2]>) {
    match layer {
        Layer::Line { series, points, .. } | Layer::Dots { series, points, .. } | Layer::Area { series, points } => {
            (*series, points.clone())
        }
        Layer::Band { series, ranges } => (*series, ranges.iter().map(|range| [range.x, range.low]).collect()),
        Layer::Intervals { series, rows } => {
            // An interval without an estimate has its low end instead.
            let x = |row: &Interval| if row.value.is_nan() { row.low } else { row.value };
            (*series, rows.iter().map(|row| [x(row), row.y]).collect())
        }
        Layer::Cells { cells, .. } => (None, cells.iter().map(|cell| [cell.x as f64, cell.y as f64]).collect()),
        Layer::Rule { .. } => (None, Vec::new()),
    }
}

fn has_place(scale: &Scale, value: f64) -> bool {
    value.is_finite()
        && match scale {
            Scale::Linear => true,
            Scale::Log => value > 0.0,
            Scale::Logit => value > 0.0 && value < 1.0,
            Scale::Names(names) => value.fract() == 0.0 && (0.0..names.len() as f64).contains(&value),
        }
}

/// Checks the properties that all pictures must have.
fn check(pictures: &[Picture]) {
    let mut ids = BTreeSet::new();
    for Picture { plot, table, .. } in pictures {
        let id = &plot.id;
        assert!(ids.insert(id), "{id} twice");
        assert!(!id.is_empty() && id.chars().all(|c| c.is_ascii_alphanumeric() || c == '-' || c == '_'), "{id}");
        assert!(!plot.title.is_empty() && plot.alt.contains(|c: char| c.is_ascii_digit()), "{id}: {}", plot.alt);
        assert!(plot.layers.iter().any(|layer| !matches!(layer, Layer::Rule { .. })), "{id}: rules alone");
        let mut drawn = 0;
        for layer in &plot.layers {
            let (series, points) = marks(layer);
            assert!(series.is_none_or(|series| series < plot.series.len()), "{id}: {series:?}");
            drawn +=
                points.iter().filter(|[x, y]| has_place(&plot.x.scale, *x) && has_place(&plot.y.scale, *y)).count();
            if let Scale::Names(names) = &plot.y.scale {
                assert!(points.iter().all(|point| point[1] < names.len() as f64), "{id}");
            }
            if let Layer::Band { ranges, .. } = layer {
                assert!(ranges.iter().all(|range| range.low <= range.high), "{id}");
            }
        }
        assert!(drawn > 0, "{id}: nothing is drawn");
        assert!(!table.rows.is_empty(), "{id}: an empty table");
        assert!(table.rows.iter().all(|row| row.len() == table.headings.len()), "{id}");
    }
}
