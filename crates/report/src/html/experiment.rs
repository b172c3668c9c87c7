//! An experiment on the HTML page, with the sections of its README.

use ascertain_engine::claim::Judging;
use ascertain_engine::command::CommandSet;
use ascertain_engine::experiment::{Emulates, Metric, Spec};
use ascertain_engine::outcome::{ClaimResult, Outcome, PointSummary};
use ascertain_engine::recorded::RecordedRun;
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};

use super::markup::Html;
use super::pack::Pack;
use super::picture::figures;
use super::table::TableView;
use crate::counters;
use crate::grid;
use crate::options::TableLayout;
use crate::pictures;
use crate::sentence::left_out;
use crate::suite;
use crate::text::{escape_controls, quoted};

/// The data of an experiment that the HTML template uses.
pub(super) struct ExperimentView {
    /// The section `Question` of the README.
    pub question: Vec<Section>,
    pub pictures: Html,
    /// Sentences about the best levels, about metrics whose values are all equal, and about facts that the experiment
    /// found.
    pub constants: Vec<Html>,
    /// The table of the arms. Its label has the levels that all rows share.
    pub table: Option<TableView>,
    /// The tables of counters, and those of metrics that have a value for each key, such as for each server.
    /// `counter_notes` has notes about the counters.
    pub others: Vec<TableView>,
    pub counter_notes: Vec<Html>,
    /// The name and the description of each metric in the tables.
    pub metrics: Vec<(String, String)>,
    pub left_out: Vec<Html>,
    /// The section `Threats` of the README, about threats to the results.
    pub threats: Vec<Section>,
    /// The other sections of the README, such as source, design and units.
    pub design: Vec<Section>,
    /// `true` if the run is about this experiment; its section is then open when the page loads.
    pub is_open: bool,
}

/// Returns the data of the experiment with this index in the header of the run. All anchors begin with `prefix`. If the
/// section of the experiment is closed, its pictures are added to `pack`.
pub(super) fn experiment(run: &RecordedRun, index: usize, prefix: &str, pack: &mut Pack) -> ExperimentView {
    let spec = &run.header.experiments[index];
    let about = |section: &Section, word: &str| section.title.to_lowercase().starts_with(word);
    let (question, rest): (Vec<Section>, Vec<Section>) = shown_sections(&spec.readme)
        .into_iter()
        .partition(|section| about(section, "question") || section.title.is_empty());
    let (threats, design) = rest.into_iter().partition(|section| about(section, "threat"));
    let left_out = left_out::of_outcome_where(&run.outcome, |experiment| experiment == spec.id);
    let is_open = is_what_was_asked(run, spec);
    let pictures = pictures::of_experiment(run, &spec.id);
    let asked = of_experiment(run, &spec.id);
    let mut constants = grid::scan::best_levels(&asked, &TableLayout::default());
    constants.extend(pictures::constants(run, &spec.id));
    let suites = run.outcome.suites.iter().filter(|suite| suite.experiment == spec.id);
    constants.extend(suites.flat_map(|of_experiment| suite::sentences(of_experiment, &run.outcome)));
    constants.extend(pictures::facts(&run.outcome.facts, &spec.id));
    constants.extend(spec.emulates.as_ref().filter(|_| is_emulated(run, spec)).map(emulated));
    let mut others = grid::by_key(&asked);
    others.push(("Counters".into(), counters::grid(&asked, &TableLayout::default())));
    ExperimentView {
        question,
        pictures: figures(pictures, prefix, &format!("e{index}p"), is_open, pack),
        constants: constants.iter().map(|sentence| Html::sentence(sentence)).collect(),
        table: table(run, spec),
        others: others.iter().filter_map(|(heading, grid)| TableView::new(heading, grid)).collect(),
        counter_notes: counters::notes(&asked).iter().map(|note| Html::sentence(note)).collect(),
        metrics: metrics(run, spec),
        left_out: left_out.iter().map(|sentence| Html::sentence(sentence)).collect(),
        threats,
        design,
        is_open,
    }
}

/// Returns the part of the run's outcome that is about one experiment and was requested.
fn of_experiment(run: &RecordedRun, id: &str) -> Outcome {
    let mut asked = run.outcome.asked_for(&run.header.plan.tables);
    asked.claims.retain(|claim| claim.experiment == id);
    asked.points.retain(|point| point.experiment == id);
    asked.by_key.retain(|point| point.experiment == id);
    asked
}

/// Returns whether any arm measured an emulation instead of a real system.
fn is_emulated(run: &RecordedRun, spec: &Spec) -> bool {
    let mut of_it = run.outcome.points.iter().filter(|point| point.experiment == spec.id);
    of_it.any(|point| spec.emulated(&point.arm).is_some())
}

/// Returns a sentence that states what is emulated, and how to measure a real system. For example: "Emulated: a link
/// and both servers, in this process; to measure a real system, set `url`."
fn emulated(Emulates { what, unless, .. }: &Emulates) -> String {
    let factors: Vec<String> = unless.iter().map(|factor| quoted(factor)).collect();
    let given = if factors.is_empty() {
        String::new()
    } else {
        format!("; to measure a real system, set {}", factors.join(", "))
    };
    format!("Emulated: {}{given}.", escape_controls(what))
}

/// Returns whether the run was started to measure this experiment, and not to judge claims about it.
fn is_what_was_asked(run: &RecordedRun, spec: &Spec) -> bool {
    let plan = &run.header.plan;
    plan.tables.iter().any(|table| table.experiment == spec.id) || plan.commands.iter().any(|set| set.id == spec.id)
}

/// Returns a few words about what the experiment measures.
pub(super) fn title(run: &RecordedRun, spec: &Spec) -> String {
    let is_one = |set: &CommandSet| set.id == spec.id && set.commands.len() == 1;
    if run.header.plan.commands.iter().any(is_one) {
        return "a command, started anew in each trial".into();
    }
    spec.title.clone()
}

/// Returns the name and description of each metric that was observed.
fn metrics(run: &RecordedRun, spec: &Spec) -> Vec<(String, String)> {
    let is_observed = |metric: &&Metric| {
        let of_metric =
            |point: &PointSummary| point.experiment == spec.id && point.metric == metric.name && point.n > 0;
        !metric.about.is_empty() && run.outcome.points.iter().chain(&run.outcome.by_key).any(of_metric)
    };
    spec.metrics.iter().filter(is_observed).map(|metric| (metric.name.clone(), metric.about.clone())).collect()
}

fn table(run: &RecordedRun, spec: &Spec) -> Option<TableView> {
    let outcome = &run.outcome.asked_for(&run.header.plan.tables);
    let is_comparison = |claim: &ClaimResult| claim.experiment == spec.id && claim.asked.judging == Judging::Order;
    if outcome.claims.iter().any(is_comparison) {
        return TableView::new(&spec.title, &grid::compared(outcome, &TableLayout::default()));
    }
    let points: Vec<&PointSummary> = grid::in_tables(outcome).filter(|point| point.experiment == spec.id).collect();
    if points.is_empty() {
        return None;
    }
    let (shared, grid) = grid::experiment_table(&spec.id, &points, outcome);
    TableView::new(&shared, &grid)
}

/// A section of a README. It begins with a heading, or with bold words at the beginning of a paragraph.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Section {
    /// The title, for example `Question`; empty for the text before the first heading.
    pub title: String,
    /// The text of the section.
    pub body: Html,
    /// The text, with the title in bold before it.
    pub titled: Html,
}

/// Divides a README into sections, each with its title. A section begins with a heading, or with bold words at the
/// beginning of a paragraph. The title of the README is left out. The text before the first heading has an empty title.
pub fn sections(readme: &str) -> Vec<(String, String)> {
    let mut sections: Vec<(String, String)> = vec![Default::default()];
    let mut in_code = false;
    let mut after_blank = true;
    for line in readme.lines() {
        in_code ^= line.trim_start().starts_with("```");
        let opening = if in_code || !after_blank { None } else { opening(line) };
        let heading = if in_code { None } else { heading(line) };
        match heading.or(opening) {
            Some((title, rest)) => sections.push((title.to_string(), rest.to_string())),
            None => sections.last_mut().expect("the list begins with a section").1 += line,
        }
        sections.last_mut().expect("the list begins with a section").1.push('\n');
        after_blank = line.trim().is_empty() || heading.is_some();
    }
    sections.retain(|(_, body)| !body.trim().is_empty());
    sections
}

/// Returns the sections of a README as HTML, in the order of the README.
fn shown_sections(readme: &str) -> Vec<Section> {
    let section = |(title, body): (String, String)| {
        let body = body.trim_matches('\n');
        // A paragraph begins on the line of the title; a list or a table begins on a new line.
        let flows = body.starts_with(|c: char| c.is_alphanumeric() || c == '`');
        let between = if flows { " " } else { "\n\n" };
        let titled = if title.is_empty() { body.to_string() } else { format!("**{title}.**{between}{body}") };
        Section { title: escape_controls(&title), body: to_html(body), titled: to_html(&titled) }
    };
    sections(readme).into_iter().map(section).collect()
}

/// Parses a heading such as `## Threats`. The heading of the whole README (`#`) begins a section without a title.
fn heading(line: &str) -> Option<(&str, &str)> {
    let title = line.strip_prefix('#')?;
    let words = title.trim_start_matches('#').strip_prefix(' ')?;
    Some(if title.starts_with('#') { (words.trim(), "") } else { ("", "") })
}

/// Parses the bold words at the beginning of a paragraph, as in `**Threats.** None but …`.
fn opening(line: &str) -> Option<(&str, &str)> {
    let (title, rest) = line.strip_prefix("**")?.split_once("**")?;
    Some((title.strip_suffix('.')?, rest.trim_start()))
}

/// Converts Markdown to HTML that fetches nothing and contains no HTML of the author. HTML in the Markdown is shown as
/// text, a picture as its description, and a heading in bold. Only links to web pages stay links.
fn to_html(markdown: &str) -> Html {
    let events = Parser::new_ext(markdown, Options::ENABLE_TABLES).map(|event| match event {
        Event::Html(raw) | Event::InlineHtml(raw) => Event::Text(shown(&raw)),
        Event::Text(text) => Event::Text(shown(&text)),
        Event::Code(code) => Event::Code(shown(&code)),
        Event::Start(Tag::HtmlBlock) => Event::Start(Tag::Paragraph),
        Event::End(TagEnd::HtmlBlock) => Event::End(TagEnd::Paragraph),
        Event::Start(Tag::Image { .. } | Tag::Heading { .. }) => Event::Start(Tag::Strong),
        Event::End(TagEnd::Image | TagEnd::Heading(_)) => Event::End(TagEnd::Strong),
        Event::Start(Tag::Link { dest_url, .. }) if !leads_to_the_web(&dest_url) => Event::Start(Tag::Emphasis),
        other => other,
    });
    let mut text = String::new();
    html::push_html(&mut text, balanced(events));
    Html(text)
}

fn shown(text: &str) -> CowStr<'static> {
    // The line breaks of the author stay.
    text.split('\n').map(escape_controls).collect::<Vec<_>>().join("\n").into()
}

fn leads_to_the_web(url: &str) -> bool {
    url.starts_with("https://") || url.starts_with("http://")
}

/// Makes each end tag match its start tag. The two differ if an earlier step replaced only the start tag, for example
/// to turn a link into emphasised text.
fn balanced<'a>(events: impl Iterator<Item = Event<'a>>) -> impl Iterator<Item = Event<'a>> {
    let mut open: Vec<TagEnd> = Vec::new();
    events.map(move |event| match event {
        Event::Start(tag) => {
            open.push(tag.to_end());
            Event::Start(tag)
        }
        Event::End(end) => Event::End(open.pop().unwrap_or(end)),
        other => other,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_found_by_heading_or_opening() {
        let readme = "# sum: adding\n\n**Question.** How\nfast?\n\n## Threats\n\nCaches.\n\n**Why not.** It `is`.\n";
        let sections = shown_sections(readme);
        let titles: Vec<&str> = sections.iter().map(|section| section.title.as_str()).collect();
        assert_eq!(titles, ["Question", "Threats", "Why not"]);
        assert_eq!(sections[0].body.0, "<p>How\nfast?</p>\n");
        assert_eq!(sections[2].body.0, "<p>It <code>is</code>.</p>\n");
        assert_eq!(sections[2].titled.0, "<p><strong>Why not.</strong> It <code>is</code>.</p>\n");
        let plain = shown_sections("Command lines, each started anew.");
        assert_eq!((plain.len(), plain[0].title.as_str()), (1, ""));
    }

    #[test]
    fn code_has_no_headings() {
        let readme = "**Design.** So:\n\n```\n# not a heading\n**Nor.** this\n```\n";
        assert_eq!(sections(readme).len(), 1);
    }

    #[test]
    fn html_in_a_readme_is_not_live() {
        let html = to_html(
            "<script>alert(1)</script>\n\na <b onclick=x>c</b> ![pic](https://example.org/x.png) \
             [bad](javascript:alert(1)) [good](https://example.org) \u{202e}\n",
        );
        assert!(html.0.contains("&lt;script&gt;") && !html.0.contains("<script"), "{html}");
        assert!(!html.0.contains("<b ") && !html.0.contains("<img") && !html.0.contains("javascript"), "{html}");
        assert!(html.0.contains("<strong>pic</strong>") && html.0.contains("<em>bad</em>"), "{html}");
        assert!(html.0.contains(r#"<a href="https://example.org">good</a>"#) && !html.0.contains('\u{202e}'), "{html}");
    }
}
