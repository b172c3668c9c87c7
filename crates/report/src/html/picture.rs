//! Pictures, in the sizes that a page shows them in, with their tables.

use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::RecordedRun;
use askama::Template;

use super::markup::Html;
use super::pack::Pack;
use super::table::TableView;
use crate::pictures::{self, Picture, PictureKind};
use crate::plot::Plot;
use crate::plot::svg::{self, Size};

/// Pictures as a template draws them.
#[derive(Template)]
#[template(path = "pictures.html")]
struct Pictures {
    pictures: Vec<PictureView>,
}

/// A picture as the template draws it.
struct PictureView {
    id: String,
    title: String,
    /// `judged`, where its colours are those of verdicts.
    class: &'static str,
    /// For wide windows, where it may be as wide.
    wide: Option<Html>,
    narrow: Html,
    table: Option<TableView>,
}

/// All pictures of the page of these runs, in its order, under the ids that they have there: what
/// [`svg::standalone`] draws on its own.
pub fn pictures(runs: &[RecordedRun]) -> Vec<Picture> {
    let of_run = |(index, run): (usize, &RecordedRun)| {
        let prefix = prefix(index, runs.len());
        // Alone, a picture of a claim must say of which.
        let of_claim = |(index, claim): (usize, &ClaimResult)| {
            let mut pictures = pictures::of_claim(run, index);
            pictures.iter_mut().for_each(|Picture { plot, .. }| plot.title = format!("{}: {}", claim.id, plot.title));
            pictures
        };
        let claims = run.outcome.claims.iter().enumerate().flat_map(of_claim);
        let experiments = run.header.experiments.iter().flat_map(|spec| pictures::of_experiment(run, &spec.id));
        let all = pictures::overview(run).into_iter().chain(claims).chain(experiments);
        let renamed = |mut picture: Picture| {
            picture.plot.id = format!("{prefix}{}", picture.plot.id);
            picture
        };
        all.map(renamed).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// What the addresses of a run begin with: nothing, where it is the only one.
pub(super) fn prefix(index: usize, runs: usize) -> String {
    if runs > 1 { format!("r{}-", index + 1) } else { String::new() }
}

/// Pictures in a part of the page that is open from the start are drawn in it, in two sizes; those of a part that is
/// closed are packed, in the narrow one, two beside each other; those of all claims in both. Their addresses begin with
/// the run's prefix, and what is inside of them has names that begin with `short`, since a mark that is drawn by
/// reference says its name each time.
pub(super) fn figures(pictures: Vec<Picture>, prefix: &str, short: &str, is_open: bool, pack: &mut Pack) -> Html {
    if pictures.is_empty() {
        return Html::default();
    }
    let figure = |(index, Picture { plot, table, kind }): (usize, Picture)| {
        let id = format!("{prefix}{}", plot.id);
        let plot = Plot { id: format!("{prefix}{short}{index}"), ..plot };
        let is_of_verdicts = matches!(kind, PictureKind::Overview | PictureKind::Evidence | PictureKind::Ratios);
        PictureView {
            id,
            class: if is_of_verdicts { "picture judged" } else { "picture" },
            // A claim's whole name has room only in a wide one.
            wide: (is_open || kind == PictureKind::Overview).then(|| Html(svg::render(&plot, Size::Wide))),
            narrow: Html(svg::render(&plot, Size::Narrow)),
            table: TableView::of(&format!("{}, as a table", plot.title), &table.grid()),
            title: plot.title,
        }
    };
    let pictures = Pictures { pictures: pictures.into_iter().enumerate().map(figure).collect() };
    let html = Html(pictures.render().expect("texts go into a String"));
    if is_open { html } else { pack.put(html) }
}

/// A name with only what an address may hold.
pub(super) fn in_addresses(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
