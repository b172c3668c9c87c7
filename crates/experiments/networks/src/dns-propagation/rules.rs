//! Checks the levels of arms: each variant requires some factors, and accepts others.

use std::path::Path;

use ascertain_engine::experiment::{Arm, Experiment, Level, Unavailable};
use ascertain_netlab::Link;
use ascertain_netlab::dns::{Name, RData, RecordType};

use super::primary::key_here;
use super::{CLOUD_DNS, DnsPropagation, EXEC, MOST_PER_S, RFC2136, ROUTE53, WATCH, is_simulated, rhythm};
use crate::levels::given;
use crate::links::{self, OURS};
use crate::name_servers::{address, addresses};

/// The variants whose zones are not simulated.
const REAL: &[&str] = &[WATCH, RFC2136, ROUTE53, CLOUD_DNS, EXEC];

/// Factors that only apply to zones that are not simulated. Each factor has two lists of variants: those that require
/// the factor, and others that accept it.
const RULES: [(&str, &[&str], &[&str]); 12] = [
    ("record", &[WATCH], &[]),
    ("expect", &[WATCH], &[]),
    ("type", &[], &[WATCH]),
    ("zone", &[RFC2136, ROUTE53, CLOUD_DNS, EXEC], &[]),
    ("server", &[RFC2136], &[]),
    ("exec", &[EXEC], &[]),
    ("zone_id", &[], &[ROUTE53, CLOUD_DNS]),
    ("project", &[], &[CLOUD_DNS]),
    ("endpoint", &[], &[ROUTE53, CLOUD_DNS]),
    ("addresses", &[], REAL),
    ("resolver", &[], REAL),
    ("family", &[], REAL),
];

/// Returns whether the arm's level of `factor` differs from the default.
fn is_given(arm: &Arm, factor: &str) -> bool {
    let default = DnsPropagation.spec().factors.iter().find(|of| of.name == factor).map(|factor| &factor.default);
    arm.point.get(factor).is_some_and(|level| Some(level) != default)
}

/// Returns whether a factor applies to an arm. A factor of another variant also applies if the user gave a level for
/// it. The arm is then reported as unavailable, because its variant does not accept the factor.
pub fn has(arm: &Arm, factor: &str) -> bool {
    let rule = RULES.iter().find(|(name, ..)| *name == factor);
    match (factor, rule) {
        (_, Some((_, needing, taking))) => {
            needing.iter().chain(*taking).any(|variant| *variant == arm.variant) || is_given(arm, factor)
        }
        ("interval_ms" | "ports" | "limit_s", None) => true,
        _ => is_simulated(arm),
    }
}

/// Checks the arm's levels. If the zone is simulated, also checks that emulated links are available.
pub fn is_available(arm: &Arm) -> Result<(), Unavailable> {
    check(arm).map_err(Unavailable::levels)?;
    if is_simulated(arm) { links::is_available(&Link::default()) } else { Ok(()) }
}

/// Checks that the arm's variant accepts every factor that the user gave.
fn check_variant(arm: &Arm) -> Result<(), String> {
    for (factor, needing, taking) in RULES.iter().filter(|(factor, ..)| is_given(arm, factor)) {
        let variants = [*needing, *taking].concat();
        if !variants.contains(&&*arm.variant) {
            let names: Vec<String> = variants.iter().map(|variant| format!("`{variant}`")).collect();
            let whose = if *taking == REAL { "zones that are not simulated".into() } else { names.join(", ") };
            return Err(format!("`{factor}` is only for {whose}"));
        }
    }
    Ok(())
}

/// Checks that the arm has all factors that its variant requires, that the variant accepts all given factors, and that
/// all levels are valid.
fn check(arm: &Arm) -> Result<(), String> {
    check_variant(arm)?;
    let is_missing =
        |(factor, needing, _): &&(&str, &[&str], _)| needing.contains(&&*arm.variant) && !is_given(arm, factor);
    if let Some((missing, ..)) = RULES.iter().find(is_missing) {
        return Err(format!("needs `{missing}=…`"));
    }
    ["zone_id", "project"]
        .iter()
        .try_for_each(|factor| given(arm, factor).map_or(Ok(()), |text| check_text(factor, &text)))?;
    check_expected(arm)?;
    check_rate(arm)
}

/// Checks that servers on other machines do not get too many queries.
fn check_rate(arm: &Arm) -> Result<(), String> {
    let (ports, interval) = rhythm(arm).map_err(|error| error.to_string())?;
    let per_s = ports as u64 * 1_000 / interval.as_millis() as u64;
    let is_here = |text: String| addresses(&text).is_ok_and(|all| all.iter().all(|at| at.ip().is_loopback()));
    if per_s <= MOST_PER_S || is_simulated(arm) || given(arm, "addresses").is_some_and(is_here) {
        return Ok(());
    }
    Err(format!(
        "{ports} ports that send every {} ms make {per_s} queries per second to each server, but at most {MOST_PER_S} \
         are allowed to other machines; use fewer `ports` or a longer `interval_ms`",
        interval.as_millis()
    ))
}

/// If the user named variants, checks that their arms are valid. Otherwise keeps only the arms of the single variant
/// that accepts the given levels.
pub fn chosen(arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
    let check_named = |arm: &Arm| check(arm).map_err(|why| format!("`{}`: {why}", arm.variant));
    if are_named {
        arms.iter().try_for_each(check_named)?;
        return Ok(arms);
    }
    if !arms.iter().any(|arm| RULES.iter().any(|(factor, ..)| is_given(arm, factor))) {
        return Ok(arms);
    }
    // A variant that accepts all given levels may require further levels, which the user did not give.
    let takes_all = |arm: &Arm| check_variant(arm).is_ok();
    let (fit, unfit): (Vec<Arm>, Vec<Arm>) = arms.into_iter().filter(takes_all).partition(|arm| check(arm).is_ok());
    let mut variants: Vec<&str> = fit.iter().map(|arm| arm.variant.as_str()).collect();
    variants.dedup();
    match (&variants[..], unfit.first()) {
        ([_], _) => Ok(fit),
        ([], Some(arm)) => check_named(arm).map(|()| Vec::new()),
        ([], None) => Err("no variant accepts all of these factors; see `ascertain explain dns-propagation`".into()),
        _ => Err(format!("these factors fit each of {}; choose one of these variants", variants.join(", "))),
    }
}

/// Record types whose values are parsed as in zone files. The values of other types may be any text.
const CHECKED: [RecordType; 6] =
    [RecordType::A, RecordType::AAAA, RecordType::CNAME, RecordType::MX, RecordType::NS, RecordType::SRV];

/// Checks that the expected value is valid for the record's type.
fn check_expected(arm: &Arm) -> Result<(), String> {
    let (Some(expected), Some(kind)) = (given(arm, "expect"), given(arm, "type")) else { return Ok(()) };
    let kind = parse_type(&kind)?;
    let reads = |text: &str| RData::try_from_str(kind, text).is_ok();
    if CHECKED.contains(&kind) && !reads(&expected) && !reads(&format!("{expected}.")) {
        return Err(format!("`{expected}` is not a value of a record of type {kind}"));
    }
    Ok(())
}

/// Checks a text that becomes part of URLs without escaping.
fn check_text(factor: &str, text: &str) -> Result<(), String> {
    let is_odd = |letter: char| !letter.is_ascii_alphanumeric() && !"-_.:/".contains(letter);
    if text.contains(is_odd) { Err(format!("`{text}` is not a valid {factor}")) } else { Ok(()) }
}

/// Checks a level that the user gave, and returns the level for the measurement. Names of hosts are replaced by their
/// addresses.
pub fn settled(factor: &str, level: Level) -> Result<Level, String> {
    let text = level.to_string();
    if text == OURS {
        return Ok(level);
    }
    match factor {
        // Updates are signed, so an invalid key must be reported before any server is queried.
        "server" => key_here().and(address(&text).map(|at| Level::Text(at.to_string()))),
        "resolver" => Ok(Level::Text(address(&text)?.to_string())),
        "addresses" => {
            let addresses: Vec<String> = addresses(&text)?.iter().map(ToString::to_string).collect();
            Ok(Level::Text(addresses.join(",")))
        }
        "record" | "zone" => parse_name(&text).map(|_| level),
        "type" => parse_type(&text).map(|_| level),
        "zone_id" | "project" => check_text(factor, &text).map(|()| level),
        "exec" if !Path::new(&text).is_file() => Err("the file does not exist".into()),
        _ => Ok(level),
    }
}

pub fn parse_name(text: &str) -> Result<Name, String> {
    let mut name = Name::from_ascii(text).map_err(|_| format!("`{text}` is not a domain name"))?;
    name.set_fqdn(true);
    Ok(name)
}

pub fn parse_type(text: &str) -> Result<RecordType, String> {
    text.to_ascii_uppercase().parse().map_err(|_| format!("`{text}` is not a record type; give one such as TXT or A"))
}
