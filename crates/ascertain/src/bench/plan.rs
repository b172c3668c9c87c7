//! What of a group is measured and judged.

use ascertain_engine::claim::Claim;
use ascertain_engine::experiment::{Arm, Experiment};
use ascertain_engine::function::Group;
use ascertain_engine::plan::{Config, Plan, Table};

/// One function alone has nothing to be compared with: this many observations describe it.
const ALONE_BATCHES: u64 = 100;

/// Functions of a group to be compared, at each input with the first one there; without another there they are
/// described. The time is for each input.
#[must_use]
pub fn plan(group: &Group, config: &Config) -> Plan {
    let id = &group.spec().id;
    let arms = group.table_arms();
    let versus = with_the_first(&arms).into_iter();
    let claims: Vec<Claim> = versus.map(|[candidate, reference]| Claim::order(id, candidate, reference)).collect();
    let inputs = u32::try_from(arms.len() - claims.len()).unwrap_or(u32::MAX);
    let max_time = config.max_time.saturating_mul(inputs);
    let table_trials = claims.is_empty().then_some(ALONE_BATCHES);
    let config = Config { table_trials, max_time, ..config.clone() };
    Plan { claims, tables: vec![Table { experiment: id.clone(), arms }], commands: Vec::new(), config }
}

/// At each point, the arms there behind the first, each with that.
pub(crate) fn with_the_first(arms: &[Arm]) -> Vec<[&Arm; 2]> {
    let versus = arms.iter().filter_map(|arm| {
        let reference = arms.iter().find(|other| other.point == arm.point).filter(|reference| *reference != arm);
        Some([arm, reference?])
    });
    versus.collect()
}
