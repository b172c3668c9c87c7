//! A claim with its verdict.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{AskedTest, ClaimResult, Verdict};
use ascertain_engine::recorded::RecordedRun;

use super::markup::Html;
use super::picture::{Figure, Room, figures};
use super::{basis, missing};
use crate::clause::{Clause, compared_names};
use crate::figure::exact_percent;
use crate::grids;
use crate::pictures::{self, Picture, PictureKind};
use crate::sentence::marked;
use crate::text::quoted;

/// A claim as the template draws it.
pub(super) struct Claim {
    /// Its place in the page's addresses.
    pub anchor: String,
    /// The verdict's word, which the style sheet and the shapes go by.
    pub verdict: &'static str,
    /// The word that is shown: `compare` has its own.
    pub answer: &'static str,
    /// The claim itself, as a sentence.
    pub heading: Html,
    /// What was seen and what follows, as a sentence.
    pub sentence: Html,
    /// The figures in a row.
    pub figures: Vec<Html>,
    /// What speaks against it: trials that are not alike, or not recorded any more.
    pub warnings: Vec<Html>,
    pub source: String,
    pub source_value: String,
    /// The figure here, if there is one.
    pub here: Option<String>,
    pub id: String,
    pub analysis: Html,
    pub restated: Html,
    pub reach: String,
    pub pictures: Vec<Figure>,
    /// How many pictures are left out for the page's size.
    pub undrawn: usize,
    /// Whether its evidence is in sight from the start.
    pub is_open: bool,
}

/// With at most that many claims, the evidence for each is in sight from the start.
const FEW: usize = 3;

/// The claims of a run, in the order asked.
pub(super) fn claims(run: &RecordedRun, prefix: &str) -> Vec<Claim> {
    run.outcome.claims.iter().enumerate().map(|(index, claim)| view(run, index, claim, prefix)).collect()
}

fn view(run: &RecordedRun, index: usize, claim: &ClaimResult, prefix: &str) -> Claim {
    let asked = run.header.plan.claims.iter().find(|asked| asked.id == claim.id);
    let prose = |text: Option<&String>| text.map_or_else(Html::default, |text| Html::prose(text));
    let source = claim.source.strip_suffix(".txt").unwrap_or(&claim.source).to_string();
    let is_judged = matches!(claim.verdict, Verdict::Holds | Verdict::Refuted | Verdict::Undecided);
    let here = Some(grids::here(claim)).filter(|here| is_judged && here != "-");
    let room = Room::of(run);
    let (pictures, undrawn) = pictures_of(run, index, room);
    let missing = run.paths.get(index).and_then(|path| missing::of_claim(claim, path));
    Claim {
        anchor: format!("{prefix}claim-{}", index + 1),
        verdict: claim.verdict.word(),
        answer: grids::answer(claim),
        heading: heading(claim),
        sentence: Html::sentence(&without_verdict(&marked::claim(claim), claim.verdict)),
        figures: basis::figures(claim, run.paths.get(index)).iter().map(|part| Html::sentence(part)).collect(),
        warnings: marked::warning(claim).into_iter().chain(missing).map(|warning| Html::sentence(&warning)).collect(),
        source,
        source_value: claim.source_value.clone(),
        here,
        id: claim.id.clone(),
        analysis: prose(asked.map(|asked| &asked.analysis)),
        restated: prose(asked.map(|asked| &asked.restated)),
        reach: basis::reach(claim, run.state),
        pictures: figures(pictures, prefix, &format!("c{index}p"), room),
        undrawn,
        is_open: run.outcome.claims.len() <= FEW,
    }
}

/// The claim's pictures, and how many are left out. Where room is short that is the path of the evidence if all trials
/// agree: it is a straight line, which the count in the sentence says as well. Where it is shortest, ratios are there only
/// for claims whose trials disagree and that don't hold or took long: the others' are left to the picture of all ratios,
/// and rates to that of all rates; and the path only where it did not reach its end, which a sentence says.
fn pictures_of(run: &RecordedRun, index: usize, room: Room) -> (Vec<Picture>, usize) {
    const LONG_TRIALS: u64 = 200;
    let ClaimResult { trials, successes, ties, verdict, .. } = run.outcome.claims[index];
    let is_straight = successes == 0 || successes == trials - ties;
    let is_expected = verdict == Verdict::Holds && trials <= LONG_TRIALS;
    let is_said = |kind: PictureKind| match (room, kind) {
        (Room::Half, PictureKind::Evidence) => is_straight,
        (Room::Least, PictureKind::Evidence) => is_straight || is_expected || verdict != Verdict::Undecided,
        (Room::Least, PictureKind::Ratios) => is_straight || is_expected,
        (Room::Least, PictureKind::Rate) => true,
        _ => false,
    };
    let mut pictures = pictures::of_claim(run, index);
    let all = pictures.len();
    pictures.retain(|picture| !is_said(picture.kind));
    let undrawn = all - pictures.len();
    (pictures, undrawn)
}

/// The claim as its author put it, or else what it asks.
pub(super) fn heading(claim: &ClaimResult) -> Html {
    match (claim.asked.judging, claim.asked.tests.as_slice()) {
        (Judging::Order, [AskedTest::Versus { candidate, baseline, .. }]) => {
            let (candidate, baseline) = compared_names(candidate, baseline);
            Html::sentence(&format!("{} against {}", quoted(&candidate), quoted(&baseline)))
        }
        _ if !claim.says.is_empty() => Html::prose(&claim.says),
        _ => {
            let Clause { subject, complement } = Clause::of(&claim.asked);
            let often = match claim.rate_claimed {
                rate if rate == 0.5 || claim.asked.judging == Judging::Exact => String::new(),
                rate => format!(", at least {} of the time", exact_percent(rate)),
            };
            Html::sentence(&format!("{subject} is {complement}{often}"))
        }
    }
}

/// The sentence without the word that stands beside it.
fn without_verdict(sentence: &str, verdict: Verdict) -> String {
    let opening = sentence.split_once(": ").filter(|(word, _)| word.eq_ignore_ascii_case(verdict.word()));
    opening.map_or_else(|| sentence.to_string(), |(_, rest)| marked::capitalised(rest))
}
