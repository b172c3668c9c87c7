//! Sentences about facts that an experiment discovered about its arms during the run, such as the cipher in use. These
//! facts are not part of the plan.

use std::collections::{BTreeMap, BTreeSet};

use ascertain_engine::experiment::Level;
use ascertain_engine::outcome::ArmFacts;

use super::names;
use crate::text::quoted;

/// Returns a sentence about the facts that all arms share, and a sentence for each fact that differs between arms.
/// Names are marked as in `crate::text::quoted`.
pub(crate) fn facts(facts: &[ArmFacts], experiment: &str) -> Vec<String> {
    let facts: Vec<&ArmFacts> = facts.iter().filter(|facts| facts.experiment == experiment).collect();
    let arms = names::of_rows(&facts.iter().map(|of| (&of.arm, "")).collect::<Vec<_>>());
    let (mut everywhere, mut sentences) = (Vec::new(), Vec::new());
    for fact in facts.iter().flat_map(|of| of.facts.0.keys()).collect::<BTreeSet<_>>() {
        let are_alike = |of: &ArmFacts, other: &ArmFacts| of.facts.get(fact) == other.facts.get(fact);
        if let Some(level) = facts[0].facts.get(fact).filter(|_| facts.iter().all(|of| are_alike(of, facts[0]))) {
            everywhere.push(quoted(&format!("{fact}={level}")));
            continue;
        }
        let mut who: BTreeMap<&Level, BTreeSet<&str>> = BTreeMap::new();
        for (of, arm) in facts.iter().zip(&arms) {
            let mut of_variant = facts.iter().filter(|other| other.arm.variant == of.arm.variant);
            let name = if of_variant.all(|other| are_alike(of, other)) { &of.arm.variant } else { arm };
            of.facts.get(fact).into_iter().for_each(|level| _ = who.entry(level).or_default().insert(name));
        }
        let of_level = |(level, names): (&Level, BTreeSet<&str>)| {
            let names: Vec<String> = names.into_iter().map(quoted).collect();
            format!("{} for {}", quoted(&level.to_string()), names.join(", "))
        };
        let levels: Vec<String> = who.into_iter().map(of_level).collect();
        sentences.push(format!("Found as {}: {}.", quoted(fact), levels.join("; ")));
    }
    if !everywhere.is_empty() {
        sentences.insert(0, format!("Found: {}.", everywhere.join(", ")));
    }
    sentences
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::{Arm, Point};

    use super::*;
    use crate::text::plain;

    #[test]
    fn what_all_have_is_said_once() {
        let of = |variant: &str, facts: Point| {
            let arm = Arm { variant: variant.into(), point: Point::default().with("bytes", 1) };
            ArmFacts { experiment: "first-flight".into(), arm, facts }
        };
        let plain_http = Point::default().with("mss_bytes", 1448).with("congestion", "cubic");
        let with = |cipher: &str| plain_http.clone().with("cipher", cipher);
        let facts_of =
            [of("http", plain_http.clone()), of("tls1.2", with("B")), of("tls1.3", with("A")), of("h2", with("A"))];
        let said: Vec<String> = facts(&facts_of, "first-flight").iter().map(|sentence| plain(sentence)).collect();
        assert_eq!(
            said,
            [
                "Found: `congestion=cubic`, `mss_bytes=1448`.",
                "Found as `cipher`: `A` for `h2`, `tls1.3`; `B` for `tls1.2`.",
            ]
        );
        assert_eq!(facts(&facts_of, "sum"), Vec::<String>::new());
        // One of the arms reports another cipher.
        let at_two = |cipher: &str| {
            let arm = Arm { variant: "h2".into(), point: Point::default().with("bytes", 2) };
            ArmFacts { arm, ..of("h2", with(cipher)) }
        };
        let last = |other: &str| {
            let facts_of = [of("tls1.2", with("B")), of("h2", with("A")), at_two(other)];
            facts(&facts_of, "first-flight").last().map(|sentence| plain(sentence)).unwrap()
        };
        assert_eq!(last("A"), "Found as `cipher`: `A` for `h2`; `B` for `tls1.2`.");
        assert_eq!(last("B"), "Found as `cipher`: `A` for `h2 (bytes=1)`; `B` for `h2 (bytes=2)`, `tls1.2`.");
        // The run was continued on another kernel, which uses another congestion control.
        let twice = [of("http", plain_http.clone()), of("http", plain_http.with("congestion", "bbr"))];
        let said: Vec<String> = facts(&twice, "first-flight").iter().map(|sentence| plain(sentence)).collect();
        assert_eq!(said, ["Found: `mss_bytes=1448`.", "Found as `congestion`: `bbr` for `http`; `cubic` for `http`."]);
    }
}
