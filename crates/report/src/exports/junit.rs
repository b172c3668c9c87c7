//! JUnit XML for Jenkins, GitLab and others: a test suite for each experiment, and a test case for each claim. A
//! refuted claim is a failure. A claim whose target failed is an error. A claim without a verdict is skipped, with the
//! reason.
//!
//! The file only has elements and attributes that Jenkins's xUnit plugin knows (its `junit-10.xsd`), because the plugin
//! rejects all others. Its schema has no attribute for a source location. The output of a test case therefore begins
//! with the claim's file and line number.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Outcome};

use super::results::{Mark, Results};
use crate::sentence;
use crate::tails;
use crate::text::{distinct, escape_controls, plain};

/// Returns the content of the file for `--export-junit`.
pub(super) fn write(results: &Results) -> String {
    let Results { outcome, .. } = results;
    let all: Vec<&ClaimResult> = outcome.claims.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text += &format!("<testsuites name=\"ascertain\"{}>\n", counts(results, &all));
    for experiment in distinct(outcome.claims.iter().map(|claim| claim.experiment.as_str())) {
        let claims: Vec<&ClaimResult> = all.iter().copied().filter(|claim| claim.experiment == experiment).collect();
        let skipped = claims.iter().filter(|claim| results.mark(claim) == Mark::Skipped).count();
        let counts = counts(results, &claims);
        text += &format!("  <testsuite name=\"{}\"{counts} skipped=\"{skipped}\">\n", escaped(experiment));
        text += &properties(outcome, results.is_final);
        text.extend(claims.iter().map(|claim| test_case(results, claim)));
        text += "  </testsuite>\n";
    }
    text + "</testsuites>\n"
}

fn counts(results: &Results, claims: &[&ClaimResult]) -> String {
    let count = |mark| claims.iter().filter(|claim| results.mark(claim) == mark).count();
    let [failed, broken] = [Mark::Failed, Mark::Broken].map(count);
    let elapsed_ns = claims.iter().map(|claim| claim.elapsed_ns).sum();
    format!(" tests=\"{}\" failures=\"{failed}\" errors=\"{broken}\"{}", claims.len(), time(elapsed_ns))
}

/// Returns a duration in seconds, as text. If claims share trials, each claim has the whole duration of the shared
/// trials.
fn time(elapsed_ns: u64) -> String {
    format!(" time=\"{:.3}\"", elapsed_ns as f64 / 1e9)
}

fn properties(outcome: &Outcome, is_final: bool) -> String {
    let properties = [
        ("run", outcome.run_id.clone()),
        ("seed", outcome.seed.to_string()),
        ("final", is_final.to_string()),
        ("interrupted", outcome.interrupted.to_string()),
        ("cpu", outcome.machine.cpu_model.clone()),
        ("kernel", outcome.machine.kernel.clone()),
    ];
    let property =
        |(name, value): &(&str, String)| format!("      <property name=\"{name}\" value=\"{}\"/>\n", escaped(value));
    format!("    <properties>\n{}    </properties>\n", properties.iter().map(property).collect::<String>())
}

fn test_case(results: &Results, claim: &ClaimResult) -> String {
    let place = results.place(claim);
    let place = place.map(|place| format!("{}:{}", place.file.to_string_lossy(), place.line));
    // The statement of a comparison is left out: it looks like an answer, and the sentence names the commands anyway.
    let says = Some(claim.says.clone()).filter(|_| claim.asked.judging != Judging::Order);
    let said = [place, says, Some(plain(&tails::after_sentence(claim))), sentence::warning(claim)];
    let said: Vec<String> = said.into_iter().flatten().filter(|said| !said.is_empty()).collect();
    let element = |name: &str, verdict: &str| {
        let message = escaped(&plain(&tails::after_sentence(claim)));
        format!("      <{name}{verdict} message=\"{message}\"/>\n")
    };
    let verdict = format!(" type=\"{}\"", claim.verdict.word());
    let result = match results.mark(claim) {
        Mark::Passed => String::new(),
        Mark::Failed => element("failure", &verdict),
        Mark::Broken => element("error", &verdict),
        Mark::Skipped => element("skipped", ""),
    };
    format!(
        "    <testcase classname=\"{}\" name=\"{}\"{}>\n{result}      <system-out>{}</system-out>\n    \
         </testcase>\n",
        escaped(&claim.experiment),
        escaped(&claim.id),
        time(claim.elapsed_ns),
        escaped(&said.join("\n"))
    )
}

/// Escapes text for an element or an attribute, so that programs read the original text. Characters that are not
/// allowed in XML 1.0 or that control a terminal become escapes in Rust's notation: `\u{1b}`.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            // XML parsers replace these characters in attributes by spaces, and remove a carriage return everywhere.
            '\t' | '\n' | '\r' => written.push_str(&format!("&#{};", u32::from(c))),
            '\u{fffe}' | '\u{ffff}' => written.extend(c.escape_unicode()),
            _ => written += &escape_controls(c.encode_utf8(&mut [0; 4])),
        }
    }
    written
}
