//! The kinds of file that other tools read, and the files that a run writes.

use std::path::Path;

use ascertain_engine::observations::Observations;
use ascertain_engine::outcome::Outcome;
use ascertain_engine::run::{Observer, Progress};
use ascertain_engine::values::Values;
use ascertain_sys::clock;

use super::results::{Purpose, Results};
#[cfg(feature = "exports")]
use super::{bencher, github, go, google_benchmark, junit};
use crate::export::{Error, Export};
#[cfg(feature = "exports")]
use crate::hyperfine::{self, CommandTimes};

/// A kind of file that other tools read.
#[derive(Debug)]
pub struct ExportFormat {
    /// The option that asks for it, without its dashes.
    pub option: &'static str,
    /// What is in it and who reads it, as a line of help.
    pub about: &'static str,
    /// Whether what stands in the file is kept, and this added to it.
    pub is_added: bool,
    /// The file's text.
    pub write: fn(&Results) -> String,
}

/// None without the feature `exports`.
#[cfg(not(feature = "exports"))]
pub const FORMATS: &[ExportFormat] = &[];

/// Every kind.
#[cfg(feature = "exports")]
pub const FORMATS: &[ExportFormat] = &[
    kind("export-json", "Write what was measured as hyperfine's JSON, in the form of its version 2", |r| {
        hyperfine::json(&CommandTimes::of(r), &r.outcome.machine)
    }),
    kind("export-json-1", "The same in the form of its versions 1", |r| hyperfine::json_1(&CommandTimes::of(r))),
    kind("export-csv", "Write the times as hyperfine's CSV", |r| hyperfine::csv(&CommandTimes::of(r))),
    kind("export-markdown", "Write the times as hyperfine's Markdown table", |r| {
        hyperfine::markdown(&CommandTimes::of(r), r.purpose.layout)
    }),
    kind("export-asciidoc", "Write the times as hyperfine's AsciiDoc table", |r| {
        hyperfine::asciidoc(&CommandTimes::of(r), r.purpose.layout)
    }),
    kind("export-orgmode", "Write the times as hyperfine's org-mode table", |r| {
        hyperfine::orgmode(&CommandTimes::of(r), r.purpose.layout)
    }),
    kind("export-junit", "Write JUnit XML for CI servers: a test case for each claim", junit::write),
    ExportFormat {
        is_added: true,
        ..kind(
            "export-github",
            "Add a job summary for GitHub to FILE, \"$GITHUB_STEP_SUMMARY\" there; what stands in it is kept",
            github::summary,
        )
    },
    kind("export-bencher", "Write Bencher Metric Format: medians with intervals", bencher::write),
    kind("export-go", "Write the Go benchmark format, for benchstat: a line for each trial", go::write),
    kind(
        "export-google-benchmark",
        "Write Google Benchmark's JSON, for its compare.py: a repetition for each trial",
        google_benchmark::write,
    ),
];

/// A kind that takes the place of what stands in the file.
#[cfg(feature = "exports")]
const fn kind(option: &'static str, about: &'static str, write: fn(&Results) -> String) -> ExportFormat {
    ExportFormat { option, about, is_added: false, write }
}

/// Files are written anew at most this often.
const EVERY_NS: u64 = 2_000_000_000;
/// And so seldom that it takes at most one part in so many of the time.
const SHARE: u64 = 20;

/// The files that a run writes for other tools. They are opened before anything is measured, so that a
/// wrong path is found then, and written anew as results arrive: a run that is killed leaves what was known
/// at most some seconds before.
///
/// It is an [`Observer`]: hand it to the run, [`keep`](Self::keep) what came of it, and [`finish`](Self::finish).
#[derive(Debug)]
pub struct Files {
    files: Vec<ExportFile>,
    purpose: Purpose,
    /// What came of the runs so far, and the values behind each of its points.
    kept: Option<(Outcome, Vec<Values>)>,
    next_ns: u64,
    asked_ns: u64,
}

#[derive(Debug)]
struct ExportFile {
    kind: &'static ExportFormat,
    export: Export,
    /// What stood there, where that is to be kept.
    before: String,
}

impl Files {
    /// Opens the files. What stands in one of a kind that is added to is kept.
    ///
    /// # Errors
    /// As [`Export::open`]; also when two are to be the same file.
    pub fn open<'p>(
        wanted: impl IntoIterator<Item = (&'static ExportFormat, &'p Path)>,
        purpose: Purpose,
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
        Ok(Files { files, purpose, kept: None, next_ns, asked_ns: 0 })
    }

    /// Takes over what came of a run. Where several runs go into the same files, each is kept, one after the
    /// other.
    pub fn keep(&mut self, outcome: &Outcome, observations: &Observations) {
        if self.files.is_empty() {
            return;
        }
        let values = observations.arms().iter().flat_map(|arm| arm.of_points().cloned());
        self.kept = Some(match self.kept.take() {
            None => (outcome.clone(), values.collect()),
            Some((earlier, known)) => (joined(&earlier, outcome), known.into_iter().chain(values).collect()),
        });
    }

    /// Writes what was kept, for the last time.
    ///
    /// # Errors
    /// When a file can't be written; the others are all the same.
    pub fn finish(&self) -> Result<(), Error> {
        let Some((outcome, values)) = &self.kept else { return Ok(()) };
        let values = values.iter().map(|values| &**values).collect();
        self.write(&Results { outcome, values, purpose: &self.purpose, is_final: true })
    }

    fn write(&self, results: &Results) -> Result<(), Error> {
        let written = self.files.iter().map(|file| {
            let text = file.before.clone() + &(file.kind.write)(results);
            if results.is_final { file.export.finish(&text) } else { file.export.update(&text) }
        });
        // Each is tried before the first that failed is said.
        written.collect::<Vec<_>>().into_iter().collect()
    }
}

/// The outcomes of two runs as one.
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

    fn outcome(&mut self, outcome: &Outcome, observations: &Observations) {
        let mut results = Results::new(outcome, observations, &self.purpose, false);
        let all;
        if let Some((earlier, values)) = &self.kept {
            all = joined(earlier, outcome);
            results.outcome = &all;
            results.values = values.iter().map(|values| &**values).chain(results.values).collect();
        }
        // A run is not ended for it: if one still can't be written at the end, that is said then.
        let _ = self.write(&results);
        let now_ns = clock::now_ns();
        self.next_ns = now_ns + EVERY_NS.max(now_ns.saturating_sub(self.asked_ns).saturating_mul(SHARE));
    }
}
