//! What answers rest on, for who asks: METHODOLOGY.md in a few sentences, of those alone that a run has.

use ascertain_engine::claim::Judging;
use ascertain_engine::outcome::{Basis, ClaimResult, Outcome};

use super::overshoot;
use crate::figure::odds;

/// A sentence or two for each kind of answer.
pub fn explained(outcome: &Outcome) -> Vec<String> {
    let judged: Vec<&ClaimResult> = outcome.claims.iter().filter(|claim| claim.trials > 0).collect();
    let is_any = |is_it: &dyn Fn(&ClaimResult) -> bool| judged.iter().any(|claim| is_it(claim));
    let is_order = |claim: &ClaimResult| claim.asked.judging == Judging::Order;
    let is_from_interval = |claim: &ClaimResult| is_order(claim) && claim.asked.margin.is_some();
    let is_rate = |claim: &ClaimResult| claim.asked.judging == Judging::Rate;
    let paragraphs = [
        (is_any(&|claim| is_order(claim) && !is_from_interval(claim)), COIN.to_string()),
        (is_any(&|claim| claim.basis == Some(Basis::Magnitudes)), MAGNITUDES.to_string()),
        (is_any(&is_from_interval), INTERVAL.to_string()),
        (is_any(&is_rate), RATE.to_string()),
        (is_any(&|claim| is_order(claim) || claim.ratio.is_some()), ALIKE.to_string()),
    ];
    let said = paragraphs.into_iter().filter_map(|(is_so, paragraph)| is_so.then_some(paragraph));
    let overshoot = overshoot(&outcome.claims).map(str::to_string);
    said.chain(overshoot).chain(judged.first().map(|claim| budget(claim, outcome.claims.len()))).collect()
}

const COIN: &str = "In each trial chance drew the order. If neither were faster, each pair would be won like a coin \
                    that is tossed, whatever the machine does meanwhile: so the chance of a wrong answer is exact, \
                    however often one looks. “Faster” means: wins more often than it loses.";
const MAGNITUDES: &str = "“Judged by who won and by how much” bets more on pairs whose difference has come to mean \
                          something. The chance of a wrong answer is as exact; what it shows is that the two differ, \
                          and which way.";
const INTERVAL: &str = "With a margin the answer is read from the ratio's interval. That takes trials to be alike, \
                        and is not exact by randomisation; without --margin an answer is.";
const RATE: &str = "A rate is that of the trials that were measured, on this machine and at this time: its verdict \
                    needs nothing else. To expect it of other trials, these must be alike.";
const ALIKE: &str = "A ratio is the median of the trials' own ratios. Its interval holds at every moment at once, and \
                     takes trials to be alike; where they are seen not to be, a line says so.";

/// How the error is shared out.
fn budget(claim: &ClaimResult, claims: usize) -> String {
    let each = if claims > 1 { "each answer has its share of it" } else { "this answer has all of it" };
    format!(
        "--error bounds the chance that any answer of a run is wrong; {each}, {}. Going on with a run costs none of \
         it; running anew until it pleases does.",
        odds(claim.error)
    )
}
