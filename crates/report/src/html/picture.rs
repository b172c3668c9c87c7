//! Pictures, in the sizes that a page shows them in, with their tables.

use ascertain_engine::outcome::ClaimResult;
use ascertain_engine::recorded::RecordedRun;

use super::markup::Html;
use super::table::TableView;
use crate::pictures::{self, Picture};
use crate::plot::Plot;
use crate::plot::svg::{self, Size};

/// A picture as the template draws it: for wide and for narrow windows, or in the narrow form for both.
pub(super) struct PictureView {
    pub id: String,
    pub title: String,
    pub wide: Option<Html>,
    pub narrow: Html,
    pub table: Option<TableView>,
}

/// All plots of the page of these runs, in its order, under the ids that they have there: what
/// [`svg::standalone`] draws on its own.
pub fn plots(runs: &[RecordedRun]) -> Vec<Plot> {
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
        let renamed = |plot: Plot| Plot { id: format!("{prefix}{}", plot.id), ..plot };
        all.map(|picture| renamed(picture.plot)).collect::<Vec<_>>()
    };
    runs.iter().enumerate().flat_map(of_run).collect()
}

/// What the addresses of a run begin with: nothing, where it is the only one.
pub(super) fn prefix(index: usize, runs: usize) -> String {
    if runs > 1 { format!("r{}-", index + 1) } else { String::new() }
}

/// How large the pictures of a part of the page are.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum PictureSize {
    /// As wide as the window lets them be.
    Full,
    /// Narrow in every window: two fit beside each other, and the page is half as large.
    Half,
    /// Narrow, without tables, and only what no other picture and no sentence of the page says.
    Least,
}

impl PictureSize {
    /// What a run's claims and experiments get: less, where it has many claims.
    pub(super) fn of(run: &RecordedRun) -> PictureSize {
        const MANY: usize = 8;
        const VERY_MANY: usize = 40;
        match run.outcome.claims.len() {
            claims if claims > VERY_MANY => PictureSize::Least,
            claims if claims > MANY => PictureSize::Half,
            _ => PictureSize::Full,
        }
    }
}

/// The pictures as a page shows them, under addresses that begin with the run's prefix. What is inside of them
/// has names that begin with `short`, since a mark that is drawn by reference says its name each time.
pub(super) fn figures(pictures: Vec<Picture>, prefix: &str, short: &str, size: PictureSize) -> Vec<PictureView> {
    let figure = |(index, Picture { plot, table, .. }): (usize, Picture)| {
        let id = format!("{prefix}{}", plot.id);
        let plot = Plot { id: format!("{prefix}{short}{index}"), ..plot };
        PictureView {
            id,
            wide: (size == PictureSize::Full).then(|| Html(svg::render(&plot, Size::Wide))),
            narrow: Html(svg::render(&plot, Size::Narrow)),
            table: TableView::of("The picture as a table", &table.grid()).filter(|_| size != PictureSize::Least),
            title: plot.title,
        }
    };
    pictures.into_iter().enumerate().map(figure).collect()
}

/// A name with only what an address may hold.
pub(super) fn in_addresses(name: &str) -> String {
    name.chars().map(|c| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' }).collect()
}
