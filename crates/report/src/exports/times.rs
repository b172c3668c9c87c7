//! Arms as hyperfine's commands.

use super::results::{ArmResults, Results};
use crate::hyperfine::CommandTimes;

/// The times of each arm that has any. What was not measured (the processor time of a function, its exit
/// code) is empty.
pub(super) fn of(results: &Results) -> Vec<CommandTimes> {
    results.arms().iter().filter_map(times).collect()
}

fn times(arm: &ArmResults) -> Option<CommandTimes> {
    let (_, wall_ns) = arm.time()?;
    let values = |name: &str| arm.metric(name).map_or(&[][..], |(_, values)| values);
    let seconds = |ns: &[f64]| ns.iter().map(|ns| ns / 1e9).collect();
    Some(CommandTimes {
        command: arm.label(),
        parameters: arm.at.0.iter().map(|(name, level)| (name.clone(), level.to_string())).collect(),
        wall_s: seconds(wall_ns),
        user_s: seconds(values("user")),
        system_s: seconds(values("system")),
        memory_bytes: values("memory_peak").to_vec(),
        exit_codes: values("exit").iter().map(|&code| code.is_finite().then_some(code as i32)).collect(),
    })
}
