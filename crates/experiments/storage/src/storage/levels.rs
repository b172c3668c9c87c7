//! Reads and checks the levels of arms, and computes the expected bills.

use std::path::Path;
use std::time::Duration;

use ascertain_engine::experiment::{Arm, Level, TargetError};
use ascertain_engine::finding::{Remark, StoreBill};
use ascertain_experiments_networks::links::OURS;
use ascertain_transfer::Checksum;

use super::budget::{Budget, Prices, Usage, parse_money};
use super::faults::{CONTENT_BYTES, FaultProxy};
use super::search::{GRID_STEP, USUAL_PAIRS};
use super::workload::{Shape, Workload};
use super::{CROSSOVER, DOWNLOAD, FAULTS, Operation, RANGED, SPEC, URL, emulated, is_address, stores};

/// Returns the level of a factor as text; empty if the arm does not have it.
pub fn text(arm: &Arm, factor: &str) -> String {
    arm.point.get(factor).map(Level::to_string).unwrap_or_default()
}

/// Returns the level of a factor that the user gave, or `None` if it is the default `none`.
fn given(arm: &Arm, factor: &str) -> Option<String> {
    Some(text(arm, factor)).filter(|level| !level.is_empty() && level != OURS)
}

fn integer(arm: &Arm, factor: &str) -> u64 {
    let default = || SPEC.default_point().get(factor).and_then(Level::integer);
    arm.integer(factor).ok().or_else(default).unwrap_or_default()
}

pub fn operation(arm: &Arm) -> Operation {
    match &*text(arm, "operation") {
        DOWNLOAD => Operation::Download,
        RANGED => Operation::Ranged,
        _ => Operation::Upload,
    }
}

/// Returns the checksum of a fault check.
pub fn checksum(arm: &Arm) -> Checksum {
    match &*text(arm, "checksum") {
        "none" => Checksum::None,
        "md5" => Checksum::Md5,
        "sha256" => Checksum::Sha256,
        _ => Checksum::Crc64Nvme,
    }
}

/// Returns the factor by which sizes and latencies are reduced. It is 1 for stores at an address.
pub fn scale(arm: &Arm) -> u64 {
    arm.integer("scale").unwrap_or(1).max(1)
}

/// Returns the names or addresses of the arm's stores: one, or two for a crossover.
pub fn store_names(arm: &Arm) -> Vec<String> {
    match &*arm.variant {
        CROSSOVER => text(arm, "pair").split(',').map(|name| name.trim().to_string()).collect(),
        URL => vec![text(arm, "url")],
        FAULTS => vec![given(arm, "url").unwrap_or_else(|| super::S3.into())],
        name => vec![name.into()],
    }
}

/// Returns the properties of requests that transfer `bytes` bytes, not yet divided by the scale.
pub fn shape(arm: &Arm, bytes: u64) -> Shape {
    let concurrency = integer(arm, "concurrency").max(1) as usize;
    Shape {
        operation: operation(arm),
        bytes: bytes.div_ceil(scale(arm)),
        is_fresh: text(arm, "connection") == "fresh",
        is_cold: text(arm, "object") == "cold" && operation(arm) != Operation::Upload,
        is_spread: text(arm, "placement") == "many",
        concurrency,
        requests: (integer(arm, "requests") as usize).max(concurrency),
        rate_per_s: Some(integer(arm, "rate")).filter(|rate| *rate > 0),
        gap: Duration::from_millis(integer(arm, "gap_ms")),
        limit: Duration::from_millis(integer(arm, "timeout_ms")),
        part_bytes: if operation(arm) == Operation::Upload { integer(arm, "part").div_ceil(scale(arm)) } else { 0 },
        // An HTTP address names the object itself.
        key: given(arm, "key").or_else(|| text(arm, "url").starts_with("http").then(String::new)),
    }
}

/// Returns the size of the largest object that an arm writes, in bytes.
pub fn largest_object_bytes(arm: &Arm) -> u64 {
    let bytes = if arm.variant == CROSSOVER { range(arm)[1] } else { size(arm) };
    match &*arm.variant {
        FAULTS => CONTENT_BYTES,
        _ if shape(arm, bytes).key.is_some() => 0,
        _ => shape(arm, bytes).object_bytes(),
    }
}

/// Returns the memory in bytes for the random content, for the buffers of the streams, and for the objects in emulated
/// stores. All arms share the content and the buffers.
pub fn memory_bytes(arms: &[Arm]) -> u64 {
    let content = arms.iter().map(largest_object_bytes).max().unwrap_or(0);
    let stream = |arm: &Arm| match arm.variant == CROSSOVER {
        true => (1, range(arm)[1].div_ceil(scale(arm))),
        false => (integer(arm, "concurrency"), size(arm).div_ceil(scale(arm))),
    };
    let streams: Vec<(u64, u64)> = arms.iter().map(stream).collect();
    let most = streams.iter().map(|(count, _)| *count).max().unwrap_or(0);
    // The arms with the most streams use the last buffer, and only they.
    let of_buffer = |number| streams.iter().filter(|(count, _)| *count >= number).map(|(_, bytes)| *bytes).max();
    let buffers = (1..=most).filter_map(of_buffer).fold(0, u64::saturating_add);
    let stored = |arm: &Arm| match store_names(arm).iter().any(|name| is_address(name)) {
        true => 0,
        // A crossover keeps an object of each size in both stores. The sizes of the grid add up to 4/3 of the largest.
        false if arm.variant == CROSSOVER => largest_object_bytes(arm).saturating_mul(8),
        false => largest_object_bytes(arm).saturating_mul(integer(arm, "concurrency")),
    };
    let stored = arms.iter().map(stored).fold(0, u64::saturating_add);
    content.saturating_add(buffers).saturating_add(stored)
}

/// Returns the size of an arm's requests in bytes, not yet divided by the scale.
pub fn size(arm: &Arm) -> u64 {
    integer(arm, "size")
}

/// Returns the rate of the client's line in bytes per second, if the user gave it.
pub fn line_bytes_per_s(arm: &Arm) -> Option<f64> {
    Some(integer(arm, "line_mbit_s") as f64 * 1e6 / 8.0).filter(|rate| *rate > 0.0)
}

/// Returns the listener that measures the client's line, and whether uploads matter; `None` if the user named none.
pub fn listener(arm: &Arm) -> Option<(String, bool)> {
    Some((given(arm, super::LISTENER)?, operation(arm) == Operation::Upload))
}

/// Returns the rate that downloads together should reach, in bytes per second; `None` for uploads.
pub fn goal_bytes_per_s(arm: &Arm) -> Option<f64> {
    (operation(arm) != Operation::Upload).then(|| integer(arm, "goal_mb_s") as f64 * 1e6)
}

/// Returns the range of sizes of a crossover, in bytes.
pub fn range(arm: &Arm) -> [u64; 2] {
    ["smallest", "largest"].map(|factor| integer(arm, factor))
}

/// Returns the budget for the store with this name; `None` for an emulated store.
pub fn budget(arm: &Arm, store: &str) -> Result<Option<(Budget, Option<Prices>)>, String> {
    if !is_address(store) {
        return Ok(None);
    }
    let prices = given(arm, "prices").map(|path| Prices::read(Path::new(&path))).transpose()?;
    let cost = given(arm, "max_cost").map(|cost| parse_money(&cost)).transpose()?;
    let money = match (cost, &prices) {
        (None, _) => None,
        (Some(_), None) => return Err("`max_cost` needs `prices`, a file with prices".into()),
        (Some((most, currency)), Some(prices)) => {
            let price = prices.of(store)?;
            if price.currency != currency {
                return Err(format!(
                    "`max_cost` is in {currency}, but the prices are in {}; use one currency",
                    price.currency
                ));
            }
            Some((most, price.clone()))
        }
    };
    let (max_requests, max_bytes) = (integer(arm, "max_requests"), integer(arm, "max_mb").saturating_mul(1_000_000));
    Ok(Some((Budget { max_requests, max_bytes, money }, prices)))
}

/// Checks that the levels of an arm fit together.
pub fn check(arm: &Arm) -> Result<(), String> {
    let names = store_names(arm);
    if arm.variant == CROSSOVER && names.len() != 2 {
        return Err(format!("`pair` needs two stores, separated by a comma, not `{}`", text(arm, "pair")));
    }
    for name in &names {
        check_store(name)?;
        budget(arm, name)?;
    }
    let [smallest, largest] = range(arm);
    if arm.variant == CROSSOVER && smallest > largest {
        return Err(format!(
            "`smallest` is {smallest}, which is larger than `largest`, {largest}; lower `smallest`, or raise \
             `largest`"
        ));
    }
    if listener(arm).is_some() {
        super::line::token()?;
    }
    if given(arm, "key").is_some() && text(arm, "url").starts_with("http") {
        return Err("an http address names the object itself; leave `key` out".into());
    }
    if shape(arm, 1).key.is_some() && (operation(arm) == Operation::Upload || text(arm, "object") == "cold") {
        let message = "with `key` or an http address, the experiment writes no objects, so it can only measure downloads of \
                       a warm object; change `operation` or `object`";
        return Err(message.into());
    }
    let part_bytes = shape(arm, size(arm)).part_bytes;
    let has_smallest_part = is_address(&names[0]) && !names[0].starts_with("az");
    if arm.variant != CROSSOVER && has_smallest_part && (1..5 << 20).contains(&part_bytes) {
        return Err("S3 and GCS require parts of at least 5 MiB; raise `part`".into());
    }
    Ok(())
}

fn check_store(name: &str) -> Result<(), String> {
    if emulated::figures(name, Operation::Download).is_some() {
        return Ok(());
    }
    if !is_address(name) {
        let known: Vec<&str> = emulated::STORES.iter().map(|(name, ..)| *name).collect();
        return Err(format!("there is no store `{name}`; give an address, or one of {}", known.join(", ")));
    }
    if name.contains(['@', '?', '#']) {
        return Err(
            "an address must not contain a user, a query or a fragment, because it is recorded; leave them out".into(),
        );
    }
    if name.starts_with("file:") {
        return Err(format!("`{name}` is a folder, which `storage` cannot measure; name an object store"));
    }
    if !stores::SCHEMES.iter().any(|scheme| name.starts_with(scheme)) {
        return Err(format!("`{name}` must begin with {}", stores::SCHEMES.join(" or ")));
    }
    stores::split_endpoint(name).map(drop)
}

/// Selects the arms to measure. If the user gave addresses of stores, these are the arms at the addresses and a
/// crossover for each pair of addresses. If the user also named variants (`are_named`), the arms of these variants are
/// added. Without addresses, the arms of the emulated stores are measured.
pub fn chosen(arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
    let mut chosen = chosen_stores(arms, are_named)?;
    // The level of `url` shows that a crossover of two addresses emulates nothing.
    for arm in chosen.iter_mut().filter(|arm| arm.variant == CROSSOVER) {
        if let Some(address) = store_names(arm).into_iter().find(|name| is_address(name)) {
            arm.point = std::mem::take(&mut arm.point).with("url", &*address);
        }
    }
    Ok(chosen)
}

fn chosen_stores(mut arms: Vec<Arm>, are_named: bool) -> Result<Vec<Arm>, String> {
    // The fault check measures no times, so it runs only if it is named.
    arms.retain(|arm| are_named || arm.variant != FAULTS);
    let is_at_url = |arm: &Arm| arm.variant == URL && given(arm, "url").is_some();
    let (at_url, others): (Vec<Arm>, Vec<Arm>) = arms.into_iter().partition(is_at_url);
    let (without, mut others): (Vec<Arm>, Vec<Arm>) = others.into_iter().partition(|arm| arm.variant == URL);
    if at_url.is_empty() {
        return match others.is_empty() && !without.is_empty() {
            true => Err("the variant `url` needs the address of a store; set `url`".into()),
            false => Ok(others),
        };
    }
    let mut urls: Vec<String> = Vec::new();
    for arm in &at_url {
        let url = text(arm, "url");
        if !urls.contains(&url) {
            urls.push(url);
        }
    }
    // Without named variants, the emulated stores are left out.
    let is_wanted = |arm: &Arm| are_named && arm.variant != CROSSOVER || is_address(&text(arm, "pair"));
    let wants_crossover = !are_named || others.iter().any(|arm| arm.variant == CROSSOVER);
    let model: Option<Arm> = others.iter().find(|arm| arm.variant == CROSSOVER).cloned();
    others.retain(is_wanted);
    let mut chosen = at_url.clone();
    chosen.extend(others);
    if wants_crossover && at_url.iter().all(|arm| shape(arm, 1).key.is_none()) {
        let pairs =
            urls.iter().enumerate().flat_map(|(index, one)| urls[index + 1..].iter().map(move |other| (one, other)));
        for (one, other) in pairs {
            let mut operations: Vec<String> = at_url.iter().map(|arm| text(arm, "operation")).collect();
            operations.dedup();
            for operation in operations {
                let like = at_url.iter().find(|arm| text(arm, "operation") == operation);
                chosen.extend(like.map(|like| crossover(like, model.as_ref(), &format!("{one},{other}"))));
            }
        }
    }
    Ok(chosen)
}

/// Returns the crossover of two stores at addresses. It has the levels of `like`, an arm that measures one of the
/// stores, and the range of sizes of `model`, if the user set one there.
fn crossover(like: &Arm, model: Option<&Arm>, pair: &str) -> Arm {
    use ascertain_engine::experiment::Experiment;
    let mut point = SPEC.default_point();
    for (factor, level) in &like.point.0 {
        point = point.with(factor, level.clone());
    }
    for (factor, emulated) in ["smallest", "largest"].into_iter().zip(super::EMULATED_RANGE) {
        if let Some(level) = model.and_then(|arm| arm.point.get(factor)).filter(|level| **level != emulated.into()) {
            point = point.with(factor, level.clone());
        }
    }
    super::Storage.trimmed(&Arm { variant: CROSSOVER.into(), point: point.with("pair", pair) })
}

/// Returns the expected bill of each store at an address, as one finding. The list is empty if there are no such
/// stores.
///
/// # Errors
/// Returns the reason, for the user, if a budget or the prices are invalid.
pub fn bills(arms: &[Arm], trials: u64) -> Result<Vec<Remark>, String> {
    let mut stores: Vec<(String, Usage, Budget, Option<Prices>)> = Vec::new();
    for arm in arms {
        check(arm)?;
        for name in store_names(arm) {
            let Some((budget, prices)) = budget(arm, &name)? else { continue };
            let usage = usage(arm, trials);
            match stores.iter_mut().find(|(store, ..)| *store == name) {
                Some((_, sum, ..)) => *sum = *sum + usage,
                None => stores.push((name, usage, budget, prices)),
            }
        }
    }
    let bill = |(store, usage, budget, prices): (String, Usage, Budget, Option<Prices>)| {
        let price = prices.as_ref().map(|prices| prices.of(&store)).transpose()?;
        Ok(StoreBill {
            requests: usage.requests(),
            bytes: usage.bytes(),
            cost: price.map(|price| (price.cost(&usage), price.currency.clone())),
            prices: prices.as_ref().map(|prices| (prices.source.clone(), prices.date.clone())),
            max_requests: budget.max_requests,
            max_bytes: budget.max_bytes,
            max_cost: budget.money.map(|(most, _)| most),
            store,
        })
    };
    let bills = stores.into_iter().map(bill).collect::<Result<Vec<_>, String>>()?;
    Ok(if bills.is_empty() { Vec::new() } else { vec![Remark::Bill { stores: bills }] })
}

/// Returns the expected usage of an arm at each of its stores.
fn usage(arm: &Arm, trials: u64) -> Usage {
    if arm.variant == FAULTS {
        return FaultProxy::usage();
    }
    if arm.variant != CROSSOVER {
        return Workload::usage(&shape(arm, integer(arm, "size"))) * trials;
    }
    let [smallest, largest] = range(arm);
    let sizes =
        std::iter::successors(Some(smallest), |bytes| Some(bytes * GRID_STEP)).take_while(|bytes| *bytes < largest);
    let of_size = |bytes| Workload::usage(&shape(arm, bytes)) * USUAL_PAIRS;
    sizes.chain([largest]).map(of_size).fold(Usage::default(), |sum, usage| sum + usage)
}

/// Converts a reason to the error of a session.
pub fn invalid(why: String) -> TargetError {
    TargetError::Failed(why)
}
