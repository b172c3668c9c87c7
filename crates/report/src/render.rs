//! Converting the result of a run to text: one `match` on the question that the run answers.

use std::borrow::Cow;
use std::path::Path;

use ascertain_engine::calibration::calibrate;
use ascertain_engine::command::Output;
use ascertain_engine::evidence;
use ascertain_engine::experiment::Arm;
use ascertain_engine::outcome::{Absence, ClaimResult, Outcome, Verdict};
use ascertain_engine::plan::{Config, UseCase};
use ascertain_engine::recorded::{self, RecordedRun};
use ascertain_engine::result::RunResult;
use ascertain_engine::suite::Suite;
use ascertain_sys::process;

use crate::options::{Format, RenderOptions};
use crate::pictures::{PictureKind, for_terminal, forests_in_short};
use crate::terminal::{self, Style};
use crate::text::{parted, quoted};
use crate::{calibration, csv, html, json, markdown, sentence, suite, windows};

/// Returns the text for standard output. CSV has a single table: the claims if the question is about claims, otherwise
/// the measured values.
///
/// ```
/// use ascertain_engine::plan::{Plan, UseCase};
/// use ascertain_engine::run::{Recording, Silent, run};
/// use ascertain_report::options::{Format, RenderOptions};
/// use ascertain_report::render::render;
///
/// let plan = Plan { use_case: UseCase::Check, ..Plan::default() };
/// let result = run(&plan, &[], Recording::None, &Default::default(), &mut Silent)?;
/// let csv = render(&result, &RenderOptions { format: Format::Csv, ..RenderOptions::default() });
/// assert!(csv.starts_with("id,says,source"));
/// # Ok::<(), ascertain_engine::Error>(())
/// ```
#[must_use]
pub fn render(result: &RunResult, options: &RenderOptions) -> String {
    let RunResult { plan, outcome, .. } = result;
    match options.format {
        Format::Table if options.quiet => String::new(),
        Format::Table => parted([for_people(result, options), explanation(result, options)]),
        Format::Json => match calibrate(result).filter(|_| plan.use_case == UseCase::CalibrateHere) {
            Some(calibration) => json::object(&calibration),
            None => json::outcome(outcome),
        },
        Format::Csv if let Some(report) = &outcome.windows => windows::csv(report),
        Format::Csv if is_about_claims(plan.use_case) => csv::claims(outcome),
        Format::Csv => csv::outcome(outcome),
        Format::Markdown => parted([
            markdown::outcome(&with_whole_times(result).asked_for(&plan.tables), &options.layout),
            markdown_windows(outcome),
        ]),
    }
}

/// Returns sentences for standard error. They give the reasons for failures and missing results, unless standard output
/// already has these reasons. The assumptions behind the answers follow if the user requested them and standard output
/// does not have them.
#[must_use]
pub fn notes(result: &RunResult, options: &RenderOptions) -> Vec<String> {
    let use_case = result.plan.use_case;
    let has_reasons = match options.format {
        Format::Table => !options.quiet && use_case != UseCase::CalibrateHere,
        Format::Csv => is_about_claims(use_case),
        Format::Json => use_case != UseCase::CalibrateHere,
        Format::Markdown => true,
    };
    let mut notes: Vec<String> = Vec::new();
    if use_case == UseCase::Compare && !options.quiet {
        notes.extend(missing_trials(result));
    }
    if !has_reasons {
        notes.extend(missing_results(result, options.quiet));
    }
    if options.format != Format::Table || options.quiet {
        let text = explanation(result, options);
        notes.extend(Some(text.trim_end().to_string()).filter(|text| !text.is_empty()));
    }
    notes
}

/// Returns whether the answer to this question is a verdict about a claim, and not a table of measured values.
fn is_about_claims(use_case: UseCase) -> bool {
    matches!(use_case, UseCase::Slo | UseCase::Check)
}

fn explanation(result: &RunResult, options: &RenderOptions) -> String {
    if options.explain { terminal::explained(&result.outcome, &options.style) } else { String::new() }
}

/// Returns the outcome. The durations of all claims are set to 0 (unknown) if the run was continued, because they do
/// not include the trials that were recorded before.
fn with_whole_times(result: &RunResult) -> Cow<'_, Outcome> {
    let mut outcome = Cow::Borrowed(&result.outcome);
    if result.recorded_trials > 0 {
        outcome.to_mut().claims.iter_mut().for_each(|claim| claim.elapsed_ns = 0);
    }
    outcome
}

fn for_people(result: &RunResult, options: &RenderOptions) -> String {
    let RunResult { plan, folder, .. } = result;
    let outcome = &*with_whole_times(result);
    let (style, asked) = (&options.style, outcome.asked_for(&plan.tables));
    let report = folder.as_deref().map(|folder| process::join(&["ascertain", "report", &run_argument(folder)]));
    let checked = || terminal::checked(&without_means(&asked), &options.shown, report.as_deref(), style);
    match plan.use_case {
        UseCase::Compare => comparison(outcome, result, options),
        UseCase::Slo => parted([
            terminal::slo(outcome, style),
            measured_windows(outcome, style),
            plots(result, options),
            advice(result, style),
            terminal::threats(outcome, style),
        ]),
        UseCase::Check => checked(),
        UseCase::CalibrateHere => match calibrate(result) {
            Some(calibration) => {
                style.paragraphs(&calibration::sentences(&calibration)) + &terminal::threats(outcome, style)
            }
            None => comparison(outcome, result, options),
        },
        UseCase::Run | UseCase::Bench => {
            let table = if options.shown.all { terminal::points_table } else { terminal::points_screen };
            let is_empty = without_means(outcome).claims.is_empty();
            let claims = if is_empty { terminal::threats(outcome, style) } else { checked() };
            parted([table(&asked, style), suites(outcome, style), curves(result, &asked, style), claims])
        }
    }
}

/// Returns the windows of a long measurement: the picture, the table, the pictures of derived series, and sentences about
/// drift and the recorded observations. Empty for any other run.
fn measured_windows(outcome: &Outcome, style: &Style) -> String {
    let Some(report) = &outcome.windows else { return String::new() };
    let pictures = crate::pictures::windows(outcome);
    let mut drawn = pictures.iter().map(|picture| terminal::plot(&picture.plot, style));
    let first = drawn.next().unwrap_or_default();
    let table = style.table(&windows::grid(report));
    let sentences = style.paragraphs(&windows::sentences(outcome));
    parted([first, table].into_iter().chain(drawn).chain([sentences]))
}

/// Returns the windows of a long measurement in Markdown: the table, a table of each derived series, and the sentences.
/// Empty for any other run.
fn markdown_windows(outcome: &Outcome) -> String {
    let Some(report) = &outcome.windows else { return String::new() };
    let of_series = crate::pictures::of_live_series(report).into_iter().flat_map(|picture| {
        let heading = format!("{}: results by window", quoted(&picture.plot.series[0]));
        [markdown::paragraph(&heading), markdown::table(&picture.table.grid())]
    });
    let sentences = windows::sentences(outcome).into_iter().map(|sentence| markdown::paragraph(&sentence));
    parted([markdown::table(&windows::grid(report))].into_iter().chain(of_series).chain(sentences))
}

/// Returns the sentences and the table of a comparison, then plots if requested, and the threats.
fn comparison(outcome: &Outcome, result: &RunResult, options: &RenderOptions) -> String {
    let RenderOptions { layout, style, .. } = options;
    let has_reason = |claim: &ClaimResult| !claim.reasons.is_empty() && claim.verdict != Verdict::Undecided;
    // The sentence of a failed claim already names the reason.
    let is_reason_known = outcome.claims.iter().any(has_reason);
    let left_out = if is_reason_known { String::new() } else { terminal::left_out(outcome, style) };
    let sentences = terminal::sentences(outcome, style);
    if outcome.points.iter().all(|point| point.n == 0) {
        return parted([sentences, left_out]);
    }
    parted([
        terminal::best_levels(outcome, layout, style),
        sentences,
        terminal::tails(outcome, style),
        terminal::compare_table(outcome, layout, style),
        left_out,
        terminal::counters_table(outcome, layout, style),
        plots(result, options),
        terminal::threats(outcome, style),
    ])
}

fn plots(result: &RunResult, options: &RenderOptions) -> String {
    if !options.plot {
        return String::new();
    }
    let plots = for_terminal(&result.outcome, &result.observations);
    parted(plots.iter().map(|plot| terminal::plot(plot, &options.style)))
}

/// Returns the outcome without the comparisons of a suite's means, because the text of the suite has their verdicts.
fn without_means(outcome: &Outcome) -> Outcome {
    let is_mean = |claim: &ClaimResult| {
        let is_of_suite = outcome.suites.iter().any(|suite| suite.experiment == claim.experiment);
        claim.decision.is_some() && is_of_suite
    };
    let claims = outcome.claims.iter().filter(|claim| !is_mean(claim)).cloned().collect();
    Outcome { claims, ..outcome.clone() }
}

/// Returns the pictures and the sentences of each suite.
fn suites(outcome: &Outcome, style: &Style) -> String {
    let of_suite = |suite: &Suite| {
        let pictures = forests_in_short(suite);
        let drawn = pictures.iter().map(|picture| terminal::forest(&picture.plot, style));
        parted(drawn.chain([style.paragraphs(&suite::sentences(suite, outcome))]))
    };
    parted(outcome.suites.iter().map(of_suite))
}

/// Draws the curves of a metric over time. They are drawn only if a single arm was measured, and if this arm measured a
/// real system in an experiment that can also emulate one. `asked` has the requested results.
fn curves(result: &RunResult, asked: &Outcome, style: &Style) -> String {
    let mut measured = asked.points.iter().filter(|point| point.n > 0).peekable();
    let Some(&first) = measured.peek() else { return String::new() };
    let is_alone = measured.all(|point| point.is_of(&first.experiment, &first.arm));
    // Curves are recorded only in the evidence of the run.
    let run = result.folder.as_deref().filter(|_| is_alone).and_then(|folder| recorded::read(folder).ok());
    let Some(run) = run.filter(|run| is_real(run, &first.experiment, &first.arm)) else { return String::new() };
    let pictures = html::pictures(&[run]);
    let curves = pictures.iter().filter(|picture| picture.kind == PictureKind::Curve);
    parted(curves.map(|picture| terminal::plot(&picture.plot, style)))
}

/// Returns whether the arm measured a real system, in an experiment that can also emulate one.
fn is_real(run: &RecordedRun, experiment: &str, arm: &Arm) -> bool {
    let spec = run.header.experiments.iter().find(|spec| spec.id == experiment);
    spec.is_some_and(|spec| spec.emulates.is_some() && spec.emulated(arm).is_none())
}

/// Returns advice for failed commands. It names the option that shows the commands' output, the option that measures
/// commands despite failures, or both.
fn advice(result: &RunResult, style: &Style) -> String {
    let outcome = &result.outcome;
    let is_inherited = result.plan.commands.iter().any(|set| set.output == Output::Inherit);
    let is_seen = is_inherited || !outcome.remarks.is_empty();
    let mut broken =
        outcome.claims.iter().filter(|claim| claim.verdict != Verdict::Holds).flat_map(|claim| &claim.broken);
    let is_failed = outcome.left_out.iter().any(|left_out| left_out.absence == Absence::Failed);
    if is_failed && result.plan.use_case == UseCase::Compare {
        let output = if is_seen { "" } else { "; `--show-output` shows their output" };
        return style.paragraph(&format!("`-i` measures commands despite failures{output}."));
    }
    match broken.any(|broken| broken.metric == "exit") && !is_seen {
        true => style.paragraph("`--show-output` shows the output of the command."),
        false => String::new(),
    }
}

/// Returns a note if the time ran out before the table had the requested number of trials. (hyperfine would measure all
/// of them and exceed the time.)
fn missing_trials(result: &RunResult) -> Option<String> {
    let RunResult { plan, outcome, .. } = result;
    let Config { table_trials, exact_trials, max_trials, .. } = plan.config;
    let taken = outcome.points.iter().map(|point| point.n).min().unwrap_or(0);
    let wanted = table_trials.filter(|wanted| taken < *wanted && exact_trials.is_none())?;
    let is_by_time = max_trials.is_none_or(|most| most > taken) && !outcome.interrupted && !result.target_failed;
    let were = if taken == 1 { "was" } else { "were" };
    is_by_time.then(|| format!("only {taken} of {wanted} trials {were} measured; allow more time with --max-time"))
}

/// Returns the reasons for failed claims or, if nothing was measured, for all claims. If no claim has such a reason,
/// returns the reasons why arms were left out. With `is_quiet`, returns nothing if there are measurements and no target
/// failed.
fn missing_results(result: &RunResult, is_quiet: bool) -> Vec<String> {
    let outcome = &result.outcome;
    let is_empty = outcome.points.iter().all(|point| point.n == 0);
    if !result.target_failed && !is_empty && is_quiet {
        return Vec::new();
    }
    let has_reason = |claim: &&ClaimResult| claim.verdict == Verdict::Failed || (is_empty && !claim.reasons.is_empty());
    let is_named = |claim: &ClaimResult| outcome.claims.len() > 1 && claim.decision.is_none();
    let sentences = outcome.claims.iter().filter(has_reason).map(|claim| match is_named(claim) {
        true => format!("{}: {}", claim.id, sentence::claim(claim)),
        false => sentence::claim(claim),
    });
    let sentences: Vec<String> = sentences.collect();
    if sentences.is_empty() { sentence::left_out(outcome) } else { sentences }
}

/// Returns the argument that identifies a run on the command line: its name if it is in the default folder for runs,
/// otherwise its path.
#[must_use]
pub fn run_argument(folder: &Path) -> String {
    let name = folder.file_name().filter(|_| folder.parent() == Some(&evidence::runs_folder()));
    name.unwrap_or(folder.as_os_str()).to_string_lossy().into_owned()
}
