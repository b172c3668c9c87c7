use super::results::Results;
use super::{bencher, github, go, google_benchmark, junit, times};
use crate::hyperfine;

/// A kind of file that other tools read.
#[derive(Debug)]
pub struct Kind {
    /// The option that asks for it, without its dashes.
    pub option: &'static str,
    /// What is in it and who reads it, as a line of help.
    pub about: &'static str,
    /// The file's text.
    pub write: fn(&Results) -> String,
}

/// Every kind.
pub const KINDS: &[Kind] = &[
    Kind {
        option: "export-json",
        about: "Write the times as hyperfine's JSON",
        write: |r| hyperfine::json(&times::of(r)),
    },
    Kind {
        option: "export-csv",
        about: "Write the times as hyperfine's CSV",
        write: |r| hyperfine::csv(&times::of(r)),
    },
    Kind {
        option: "export-markdown",
        about: "Write the times as hyperfine's Markdown table",
        write: |r| hyperfine::markdown(&times::of(r)),
    },
    Kind {
        option: "export-asciidoc",
        about: "Write the times as hyperfine's AsciiDoc table",
        write: |r| hyperfine::asciidoc(&times::of(r)),
    },
    Kind {
        option: "export-orgmode",
        about: "Write the times as hyperfine's org-mode table",
        write: |r| hyperfine::orgmode(&times::of(r)),
    },
    Kind {
        option: "export-junit",
        about: "Write JUnit XML for CI servers: a test case for each claim",
        write: junit::write,
    },
    Kind {
        option: "export-github",
        about: "Write a job summary for GitHub; FILE is \"$GITHUB_STEP_SUMMARY\", and what stands there is kept",
        write: github::summary,
    },
    Kind {
        option: "export-bencher",
        about: "Write Bencher Metric Format: medians with intervals",
        write: bencher::write,
    },
    Kind {
        option: "export-go",
        about: "Write the Go benchmark format, for benchstat: a line for each trial",
        write: go::write,
    },
    Kind {
        option: "export-google-benchmark",
        about: "Write Google Benchmark's JSON, for its compare.py: a repetition for each trial",
        write: google_benchmark::write,
    },
];
