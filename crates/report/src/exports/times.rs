//! Arms as hyperfine's commands.

use ascertain::experiment::Arm;

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
        command: shown(arm),
        parameters: arm.at.0.iter().map(|(name, level)| (name.clone(), level.to_string())).collect(),
        wall_s: seconds(wall_ns),
        user_s: seconds(values("user")),
        system_s: seconds(values("system")),
        memory_bytes: values("memory_peak").to_vec(),
        exit_codes: values("exit").iter().map(|&code| code.is_finite().then_some(code as i32)).collect(),
    })
}

/// What hyperfine calls a command: its name or its line with the parameters filled in. Levels that are no
/// parameters of the line stand behind it.
fn shown(arm: &ArmResults) -> String {
    let mut line = arm.variant.to_string();
    let mut rest = arm.at.clone();
    for (name, level) in &arm.at.0 {
        let placeholder = format!("{{{name}}}");
        if line.contains(&placeholder) {
            line = line.replace(&placeholder, &level.to_string());
            rest.0.remove(name);
        }
    }
    Arm { variant: line, point: rest }.to_string()
}
