//! What was found of an experiment's arms that nobody chose.

use std::collections::{BTreeMap, BTreeSet};

use ascertain_engine::experiment::Arm;
use ascertain_engine::outcome::ArmFacts;

use super::names;
use crate::text::quoted;

/// A sentence of what all arms have, and one for each fact that not all have alike, with names marked.
pub(crate) fn facts(facts: &[ArmFacts], experiment: &str) -> Vec<String> {
    let of_experiment: Vec<&ArmFacts> = facts.iter().filter(|facts| facts.experiment == experiment).collect();
    let arms: Vec<Arm> =
        of_experiment.iter().map(|of| Arm { variant: of.variant.clone(), point: of.at.clone() }).collect();
    let of_arms = names::of_rows(&arms.iter().map(|arm| (arm, "")).collect::<Vec<_>>());
    // By fact and what it is, who has it.
    let mut found: BTreeMap<&str, BTreeMap<String, BTreeSet<&str>>> = BTreeMap::new();
    for (of, name) in of_experiment.iter().zip(&of_arms) {
        for (fact, level) in &of.facts.0 {
            found.entry(fact).or_default().entry(level.to_string()).or_default().insert(name);
        }
    }
    let all = of_arms.iter().collect::<BTreeSet<_>>().len();
    let (shared, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|(_, levels)| levels.len() == 1 && levels.values().all(|arms| arms.len() == all));
    let everywhere: Vec<String> =
        shared.iter().flat_map(|(fact, levels)| levels.keys().map(move |level| format!("{fact}={level}"))).collect();
    let mut sentences = Vec::new();
    if !everywhere.is_empty() {
        sentences
            .push(format!("Found: {}.", everywhere.iter().map(|fact| quoted(fact)).collect::<Vec<_>>().join(", ")));
    }
    sentences.extend(others.iter().map(|(fact, levels)| {
        let of_level = |(level, arms): (&String, &BTreeSet<&str>)| {
            let arms = arms.iter().map(|arm| quoted(arm)).collect::<Vec<_>>().join(", ");
            format!("{} for {arms}", quoted(level))
        };
        format!("Found as {}: {}.", quoted(fact), levels.iter().map(of_level).collect::<Vec<_>>().join("; "))
    }));
    sentences
}

#[cfg(test)]
mod tests {
    use ascertain_engine::experiment::Point;

    use super::*;
    use crate::text::plain;

    #[test]
    fn what_all_have_is_said_once() {
        let of = |variant: &str, facts: Point| {
            let (experiment, variant) = ("first-flight".to_string(), variant.to_string());
            ArmFacts { experiment, variant, at: Point::default().with("bytes", 1), facts }
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
        // A run that went on with another kernel.
        let twice = [of("http", plain_http.clone()), of("http", plain_http.with("congestion", "bbr"))];
        let said: Vec<String> = facts(&twice, "first-flight").iter().map(|sentence| plain(sentence)).collect();
        assert_eq!(said, ["Found: `mss_bytes=1448`.", "Found as `congestion`: `bbr` for `http`; `cubic` for `http`."]);
    }
}
