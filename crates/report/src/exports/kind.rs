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
    /// Whether what stands in the file is kept, and this added to it.
    pub is_added: bool,
    /// The file's text.
    pub write: fn(&Results) -> String,
}

/// Every kind.
pub const KINDS: &[Kind] = &[
    Kind {
        option: "export-json",
        about: "Write the times as hyperfine's JSON",
        is_added: false,
        write: |r| hyperfine::json(&times::of(r)),
    },
    Kind {
        option: "export-csv",
        about: "Write the times as hyperfine's CSV",
        is_added: false,
        write: |r| hyperfine::csv(&times::of(r)),
    },
    Kind {
        option: "export-markdown",
        about: "Write the times as hyperfine's Markdown table",
        is_added: false,
        write: |r| hyperfine::markdown(&times::of(r)),
    },
    Kind {
        option: "export-asciidoc",
        about: "Write the times as hyperfine's AsciiDoc table",
        is_added: false,
        write: |r| hyperfine::asciidoc(&times::of(r)),
    },
    Kind {
        option: "export-orgmode",
        about: "Write the times as hyperfine's org-mode table",
        is_added: false,
        write: |r| hyperfine::orgmode(&times::of(r)),
    },
    Kind {
        option: "export-junit",
        about: "Write JUnit XML for CI servers: a test case for each claim",
        is_added: false,
        write: junit::write,
    },
    Kind {
        option: "export-github",
        about: "Add a job summary for GitHub to FILE, \"$GITHUB_STEP_SUMMARY\" there; what stands in it is kept",
        is_added: true,
        write: github::summary,
    },
    Kind {
        option: "export-bencher",
        about: "Write Bencher Metric Format: medians with intervals",
        is_added: false,
        write: bencher::write,
    },
    Kind {
        option: "export-go",
        about: "Write the Go benchmark format, for benchstat: a line for each trial",
        is_added: false,
        write: go::write,
    },
    Kind {
        option: "export-google-benchmark",
        about: "Write Google Benchmark's JSON, for its compare.py: a repetition for each trial",
        is_added: false,
        write: google_benchmark::write,
    },
];
