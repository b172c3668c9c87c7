//! Pictures on the HTML page, each with a table of its numbers.

use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::RecordedRun;
use askama::Template;

use super::markup::Html;
use super::pack::Pack;
use super::table::TableView;
use crate::pictures::{self, Picture, PictureKind};
use crate::plot::Plot;
use crate::plot::svg::{self, Size};

/// The pictures of a section, for the HTML template.
#[derive(Template)]
#[template(path = "pictures.html")]
struct Pictures {
    pictures: Vec<PictureView>,
}

/// The data of a picture that the HTML template uses.
struct PictureView {
    id: String,
    title: String,
    /// The CSS class. It includes `judged` if the picture has the colours of verdicts.
    class: &'static str,
    /// The drawing for wide windows; `None` if the narrow drawing is used at all widths.
    wide: Option<Html>,
    narrow: Html,
    table: Option<TableView>,
}

/// Returns all pictures that a page of these runs contains, for [`svg::standalone`]. The pictures have the same order
/// and ids as on the page.
pub fn pictures(runs: &[RecordedRun]) -> Vec<Picture> {
    let of_run = |(index, run): (usize, &RecordedRun)| {
        let prefix = prefix(index, runs.len());
        // Outside of the page, the title of a claim's picture must name the claim.
        let of_claim = |(index, claim): (usize, &ClaimResult)| {
            let mut pictures = pictures::of_claim(run, index);
            pictures.iter_mut().for_each(|Picture { plot, .. }| plot.title = format!("{}: {}", claim.id, plot.title));
            pictures
        };
        let claims = run.outcome.claims.iter().enumerate().flat_map(of_claim);
        let experiments = run.header.experiments.iter().flat_map(|spec| pictures::of_experiment(run, &spec.id));
        let windows = pictures::windows(&run.outcome);
        let all = pictures::overview(run).into_iter().chain(windows).chain(claims).chain(experiments);
        let renamed = |mut picture: Picture| {
            picture.plot.id = format!("{prefix}{}", picture.plot.id);
            picture
        };
        all.map(renamed).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// Returns the prefix of the anchors and ids of a run; empty if the page has only one run.
pub(super) fn prefix(index: usize, runs: usize) -> String {
    if runs > 1 { format!("r{}-", index + 1) } else { String::new() }
}

/// Draws the pictures of a section. Each picture has a narrow drawing. Overviews, and all pictures of an open section,
/// also have a wide drawing. The pictures of a closed section are compressed in `pack`.
///
/// Anchors begin with `prefix`. Ids inside a drawing begin with `prefix` and `short`. A short id keeps the page small,
/// because each reference to a marker repeats the marker's id.
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
            // Only the wide size has space for the whole name of a claim.
            wide: (is_open || kind == PictureKind::Overview).then(|| Html(svg::render(&plot, Size::Wide))),
            narrow: Html(svg::render(&plot, Size::Narrow)),
            table: TableView::new(&format!("{}, as a table", plot.title), &table.grid()),
            title: plot.title,
        }
    };
    let pictures = Pictures { pictures: pictures.into_iter().enumerate().map(figure).collect() };
    let html = Html(pictures.render().expect("writing to a String can't fail"));
    if is_open { html } else { pack.put(html) }
}

/// Replaces all characters of a name that are not allowed in anchors by hyphens.
pub(super) fn in_addresses(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
