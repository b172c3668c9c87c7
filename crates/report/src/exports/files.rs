//! The list of export formats, and the files that a run writes in these formats.

use std::path::Path;

use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::plan::Plan;
use ascertain_engine::run::{Observer, Progress};
use ascertain_engine::values::Values;
use ascertain_sys::clock;

use super::results::Results;
#[cfg(feature = "exports")]
use super::{bencher, github, go, google_benchmark, junit};
use crate::export::{Error, Export};
#[cfg(feature = "exports")]
use crate::hyperfine::{self, CommandTimes};
use crate::options::TableLayout;

/// A file format for other tools.
#[derive(Debug)]
pub struct ExportFormat {
    /// The name of the command-line option for this format, without its dashes.
    pub option: &'static str,
    /// A line for `--help`: the content of the file, and which tools read it.
    pub about: &'static str,
    /// `true` for a format that appends its text to an existing file; otherwise the file is replaced.
    pub is_added: bool,
    /// Returns the text of the file for these results.
    pub write: fn(&Results) -> String,
}

/// The list of export formats, which is empty because the feature `exports` is off.
#[cfg(not(feature = "exports"))]
pub const FORMATS: &[ExportFormat] = &[];

/// All export formats, in the order of `--help`.
#[cfg(feature = "exports")]
pub const FORMATS: &[ExportFormat] = &[
    kind("export-json", "File for the results in hyperfine 2's JSON format", |r| {
        hyperfine::json(&CommandTimes::all(r), &r.outcome.machine)
    }),
    kind("export-json-1", "File for the results in hyperfine 1's JSON format", |r| {
        hyperfine::json_1(&CommandTimes::all(r))
    }),
    kind("export-csv", "File for the times in hyperfine's CSV format", |r| hyperfine::csv(&CommandTimes::all(r))),
    kind("export-markdown", "File for the times in hyperfine's Markdown format", |r| {
        hyperfine::markdown(&CommandTimes::all(r), r.layout)
    }),
    kind("export-asciidoc", "File for the times in hyperfine's AsciiDoc format", |r| {
        hyperfine::asciidoc(&CommandTimes::all(r), r.layout)
    }),
    kind("export-orgmode", "File for the times in hyperfine's org-mode format", |r| {
        hyperfine::orgmode(&CommandTimes::all(r), r.layout)
    }),
    kind("export-junit", "File for JUnit XML, for CI servers: a test case for each claim", junit::write),
    ExportFormat {
        is_added: true,
        ..kind(
            "export-github",
            "File to which a job summary for GitHub is appended, such as \"$GITHUB_STEP_SUMMARY\"",
            github::summary,
        )
    },
    kind("export-bencher", "File for Bencher Metric Format: medians with intervals", bencher::write),
    kind("export-go", "File for the Go benchmark format, for benchstat: a line for each trial", go::write),
    kind(
        "export-google-benchmark",
        "File for Google Benchmark's JSON, for its compare.py: a repetition for each trial",
        google_benchmark::write,
    ),
];

/// Creates a format whose files replace the previous file.
#[cfg(feature = "exports")]
const fn kind(option: &'static str, about: &'static str, write: fn(&Results) -> String) -> ExportFormat {
    ExportFormat { option, about, is_added: false, write }
}

/// The shortest time between two updates of the files, in nanoseconds.
const EVERY_NS: u64 = 2_000_000_000;
/// Updating the files may take at most 1 / `SHARE` of the run's time.
const SHARE: u64 = 20;

/// The files that a run writes for other tools. They are opened before the measurement, so that a wrong path is found
/// early. They are updated during the run. If the run is killed, the files lack at most its last few seconds.
///
/// `Files` is an [`Observer`]: pass it to the run, so that the files are updated. After the run, pass the result to
/// [`keep`](Self::keep). At the end, call [`finish`](Self::finish).
#[derive(Debug)]
pub struct Files {
    files: Vec<ExportFile>,
    layout: TableLayout,
    /// The runs that have ended, combined into one: the plan, the outcome, and the values of each point of the outcome.
    /// `None` if no run has ended yet.
    kept: Option<(Plan, Outcome, Vec<Values>)>,
    next_ns: u64,
    asked_ns: u64,
}

#[derive(Debug)]
struct ExportFile {
    kind: &'static ExportFormat,
    export: Export,
    /// The content that the file had before the run, if the format appends to it; otherwise empty.
    before: String,
}

impl Files {
    /// Opens the files. The text of a format that appends is written after the existing content.
    ///
    /// # Errors
    /// Fails in the cases of [`Export::open`], and if two exports have the same path.
    pub fn open<'p>(
        wanted: impl IntoIterator<Item = (&'static ExportFormat, &'p Path)>,
        layout: TableLayout,
    ) -> Result<Files, Error> {
        let mut files: Vec<ExportFile> = Vec::new();
        for (kind, path) in wanted {
            let export = Export::open(path)?;
            if files.iter().any(|file| file.export.is_same(&export)) {
                return Err(Error::Twice(path.to_path_buf()));
            }
            let mut before = if kind.is_added { export.standing()? } else { String::new() };
            if !(before.is_empty() || before.ends_with('\n')) {
                before.push('\n');
            }
            files.push(ExportFile { kind, export, before });
        }
        let next_ns = clock::now_ns() + EVERY_NS;
        Ok(Files { files, layout, kept: None, next_ns, asked_ns: 0 })
    }

    /// Keeps the result of a run that ended. Several runs can be written to the same files, one after the other.
    pub fn keep(&mut self, plan: &Plan, outcome: &Outcome, observations: &Observations) {
        if self.files.is_empty() {
            return;
        }
        let values = observations.arms().iter().flat_map(|arm| arm.of_points().cloned());
        self.kept = Some(match self.kept.take() {
            None => (plan.clone(), outcome.clone(), values.collect()),
            Some((before, earlier, known)) => {
                (joined_plan(&before, plan), joined(&earlier, outcome), known.into_iter().chain(values).collect())
            }
        });
    }

    /// Writes the results of all kept runs; this is the last time that the files are written.
    ///
    /// # Errors
    /// Fails if a file can't be written. The other files are still written.
    pub fn finish(&self) -> Result<(), Error> {
        let Some((plan, outcome, values)) = &self.kept else { return Ok(()) };
        let values = values.iter().map(|values| &**values).collect();
        self.write(&Results { plan, outcome, values, layout: self.layout, is_final: true })
    }

    fn write(&self, results: &Results) -> Result<(), Error> {
        let written = self.files.iter().map(|file| {
            let text = file.before.clone() + &(file.kind.write)(results);
            if results.is_final { file.export.finish(&text) } else { file.export.update(&text) }
        });
        // An error must not prevent the other files from being written, so it is returned after all of them.
        written.collect::<Vec<_>>().into_iter().collect()
    }
}

/// Combines the plans of two runs into one.
fn joined_plan(earlier: &Plan, plan: &Plan) -> Plan {
    Plan {
        claims: [&*earlier.claims, &plan.claims].concat(),
        tables: [&*earlier.tables, &plan.tables].concat(),
        commands: [&*earlier.commands, &plan.commands].concat(),
        ..plan.clone()
    }
}

/// Combines the outcomes of two runs into one.
fn joined(earlier: &Outcome, outcome: &Outcome) -> Outcome {
    Outcome {
        points: [&*earlier.points, &outcome.points].concat(),
        by_key: [&*earlier.by_key, &outcome.by_key].concat(),
        claims: [&*earlier.claims, &outcome.claims].concat(),
        left_out: [&*earlier.left_out, &outcome.left_out].concat(),
        facts: [&*earlier.facts, &outcome.facts].concat(),
        remarks: [&*earlier.remarks, &outcome.remarks].concat(),
        ..outcome.clone()
    }
}

impl Observer for Files {
    fn progress(&mut self, _: &Progress) {}

    fn outcome_due(&mut self, now_ns: u64) -> bool {
        self.asked_ns = now_ns;
        !self.files.is_empty() && now_ns >= self.next_ns
    }

    fn outcome(&mut self, plan: &Plan, outcome: &Outcome, observations: &Observations) {
        let mut results = Results::new(plan, outcome, observations, self.layout, false);
        let all;
        if let Some((before, earlier, values)) = &self.kept {
            all = (joined_plan(before, plan), joined(earlier, outcome));
            (results.plan, results.outcome) = (&all.0, &all.1);
            results.values = values.iter().map(|values| &**values).chain(results.values).collect();
        }
        // An error does not end the run. If the file still can't be written at the end, that error is reported.
        let _ = self.write(&results);
        let now_ns = clock::now_ns();
        self.next_ns = now_ns + EVERY_NS.max(now_ns.saturating_sub(self.asked_ns).saturating_mul(SHARE));
    }
}
