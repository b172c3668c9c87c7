//! JUnit XML as Jenkins, GitLab and others read it: a suite for each experiment, a test case for each
//! claim. A refuted claim is a failure, one whose target failed an error, and one that came to no verdict
//! is skipped, with the reason.
//!
//! Only elements and attributes that the xUnit plugin of Jenkins knows (its `junit-10.xsd`): it turns a file with any
//! other away. So a claim's place in its file is the first line of its output.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{ClaimResult, Outcome};

use super::results::{Mark, Results};
use crate::sentence;
use crate::text::escape_controls;

/// `--export-junit`.
pub(super) fn write(results: &Results) -> String {
    let Results { outcome, .. } = results;
    let all: Vec<&ClaimResult> = outcome.claims.iter().collect();
    let mut text = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    text += &format!("<testsuites name=\"ascertain\"{}>\n", counts(results, &all));
    let mut experiments: Vec<&str> = Vec::new();
    for claim in &outcome.claims {
        if !experiments.contains(&claim.experiment.as_str()) {
            experiments.push(&claim.experiment);
        }
    }
    for experiment in experiments {
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

/// In seconds. Claims that shared a trial each have the whole of it.
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
    let place = results.purpose.places.get(&claim.id);
    let place = place.map(|place| format!("{}:{}", place.file.to_string_lossy(), place.line));
    // What a comparison asks reads like an answer, and its sentence names the commands itself.
    let says = Some(claim.says.clone()).filter(|_| claim.asked.judging != Judging::Order);
    let said = [place, says, Some(sentence::claim(claim)), sentence::warning(claim)];
    let said: Vec<String> = said.into_iter().flatten().filter(|said| !said.is_empty()).collect();
    let element = |name: &str, verdict: &str| {
        let message = escaped(&sentence::claim(claim));
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

/// Text for an element or an attribute that reads back as it is. Characters that XML 1.0 can't hold in any
/// way, and those that would steer whatever shows it, are written as Rust's escapes: `\u{1b}`.
fn escaped(text: &str) -> String {
    let mut written = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => written.push_str("&amp;"),
            '<' => written.push_str("&lt;"),
            '>' => written.push_str("&gt;"),
            '"' => written.push_str("&quot;"),
            // In an attribute they would read back as spaces, and a carriage return nowhere as itself.
            '\t' | '\n' | '\r' => written.push_str(&format!("&#{};", u32::from(c))),
            '\u{fffe}' | '\u{ffff}' => written.extend(c.escape_unicode()),
            _ => written += &escape_controls(c.encode_utf8(&mut [0; 4])),
        }
    }
    written
}
