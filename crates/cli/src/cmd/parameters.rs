//! Parameters of command lines: a parameter `n` has several values, and each of them replaces `{n}` in turn.

use anyhow::{Context, bail};
use ascertain::Error;
use ascertain_engine::command::{CommandError, CommandSet};
use ascertain_engine::experiment::{Accepts, Factor, Level};

/// Options that define parameters of the command lines.
#[derive(clap::Args, Clone, Debug)]
pub struct Parameters {
    /// Parameter and its values, separated by commas; each value replaces `{VAR}` in the commands
    ///
    /// Write `\,` for a comma inside a value. The table has a column for each parameter, and the best value is printed
    /// above it.
    #[arg(short = 'L', long, num_args = 2, allow_hyphen_values = true, value_names = ["VAR", "VALUES"],
          help_heading = "Commands")]
    parameter_list: Vec<String>,
    /// Parameter that takes the numbers from MIN to MAX, in steps of 1 or of --parameter-step-size
    #[arg(short = 'P', long, num_args = 3, allow_hyphen_values = true, value_names = ["VAR", "MIN", "MAX"],
          help_heading = "Commands")]
    parameter_scan: Vec<String>,
    /// Step of a --parameter-scan; with several scans, one step for each in the same order [default: 1]
    #[arg(
        short = 'D',
        long,
        value_name = "STEP",
        requires = "parameter_scan",
        allow_hyphen_values = true,
        help_heading = "Commands"
    )]
    parameter_step_size: Vec<String>,
}

impl Parameters {
    /// Returns the parameters as factors, whose levels are the parameters' values.
    pub fn factors(&self) -> anyhow::Result<Vec<Factor>> {
        let lists = self
            .parameter_list
            .chunks_exact(2)
            .map(|list| Ok((list[0].clone(), values(&list[1]).into_iter().map(Level::Text).collect::<Vec<_>>())));
        let (scans, steps) = (self.parameter_scan.chunks_exact(3), &self.parameter_step_size);
        if !steps.is_empty() && steps.len() != scans.len() {
            bail!(
                "--parameter-step-size is given {} times for {} --parameter-scan; give one step for each scan, in order",
                steps.len(),
                scans.len()
            );
        }
        let scans = scans.enumerate().map(|(index, scan)| {
            let step = steps.get(index).map_or("1", String::as_str);
            let levels =
                scan_levels(&scan[1], &scan[2], step).with_context(|| format!("--parameter-scan {}", scan[0]))?;
            Ok((scan[0].clone(), levels))
        });
        let factor = |(name, levels): (String, Vec<Level>)| Factor {
            name,
            about: "parameter of the command line".into(),
            default: levels[0].clone(),
            accepts: Accepts::OneOf(levels),
        };
        let parameters = lists.chain(scans).collect::<anyhow::Result<Vec<_>>>()?;
        for (index, (name, levels)) in parameters.iter().enumerate() {
            if parameters[..index].iter().any(|(other, _)| other == name) {
                bail!("the parameter `{name}` is given twice; leave one of them out");
            }
            if let Some(level) = levels.iter().enumerate().find_map(|(at, l)| levels[..at].contains(l).then_some(l)) {
                bail!("the parameter `{name}` has the value `{level}` twice; leave one of them out");
            }
        }
        Ok(parameters.into_iter().map(factor).collect())
    }
}

/// Splits a list of values at its commas. A backslash before a comma or a backslash makes that character part of a
/// value.
fn values(list: &str) -> Vec<String> {
    let (mut values, mut value, mut characters) = (Vec::new(), String::new(), list.chars().peekable());
    while let Some(character) = characters.next() {
        match character {
            ',' => values.push(std::mem::take(&mut value)),
            '\\' => value.push(characters.next_if(|next| [',', '\\'].contains(next)).unwrap_or('\\')),
            _ => value.push(character),
        }
    }
    values.push(value);
    values
}

/// Returns the number of decimal places of a number, such as 4 for `1.5e-3`.
fn decimals(text: &str) -> usize {
    let (digits, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let behind = digits.split_once('.').map_or(0, |(_, behind)| behind.len() as i64);
    // A number that needs more than 400 decimal places is out of range anyway.
    behind.saturating_sub(exponent.parse().unwrap_or(0)).clamp(0, 400) as usize
}

/// Returns the numbers from `min` to `max` in steps of `step`, with as many decimal places as the most precise of the
/// three.
fn scan_levels(min: &str, max: &str, step: &str) -> anyhow::Result<Vec<Level>> {
    let decimals = decimals(min).max(decimals(max)).max(decimals(step));
    // Calculate in units of the last decimal place, so that no step is rounded.
    let whole = |text: &str| {
        let number: f64 = text.parse().with_context(|| format!("`{text}` is not a number"))?;
        let scaled = (number * 10_f64.powi(decimals as i32)).round();
        anyhow::ensure!(scaled.abs() < 1e15, "`{text}` is out of range");
        Ok::<i64, anyhow::Error>(scaled as i64)
    };
    let (first, last, by) = (whole(min)?, whole(max)?, whole(step)?);
    if first > last || by <= 0 || (last - first) / by >= 10_000 {
        bail!("the range from {min} to {max} in steps of {step} has no values, or more than 10,000");
    }
    let text = |value: i64| format!("{:.decimals$}", value as f64 / 10_f64.powi(decimals as i32));
    Ok((first..=last).step_by(by as usize).map(|value| Level::Text(text(value))).collect())
}

/// If the error is that a parameter occurs in no command line, appends the placeholders that the command lines contain.
pub fn with_placeholders(error: anyhow::Error, set: &CommandSet) -> anyhow::Error {
    let Some(Error::Engine(ascertain::engine::Error::Command(CommandError::UnusedParameter(_)))) = error.downcast_ref()
    else {
        return error;
    };
    let mut there: Vec<String> = set.commands.iter().flat_map(|command| placeholders(&command.line)).collect();
    there.sort();
    there.dedup();
    match there.as_slice() {
        [] => error,
        there => anyhow::anyhow!("{error}; the command lines contain {}", there.join(", ")),
    }
}

/// Returns the placeholders in a command line, such as `{n}`.
fn placeholders(line: &str) -> Vec<String> {
    let is_name = |text: &&str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || "_-".contains(c));
    let braced = line.split('{').skip(1).filter_map(|rest| rest.split_once('}').map(|(name, _)| name));
    braced.filter(is_name).map(|name| format!("`{{{name}}}`")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_step_exactly() {
        let texts = |min, max, step| -> Vec<String> {
            scan_levels(min, max, step).unwrap().iter().map(Level::to_string).collect()
        };
        assert_eq!(texts("1", "5", "2"), ["1", "3", "5"]);
        assert_eq!(texts("0.1", "0.4", "0.1"), ["0.1", "0.2", "0.3", "0.4"]);
        assert_eq!(texts("-1", "1", "1"), ["-1", "0", "1"]);
        assert_eq!(texts("0", "1", "5e-1"), ["0.0", "0.5", "1.0"]);
        assert_eq!(texts("1e3", "1.5E3", "2.5e2"), ["1000", "1250", "1500"]);
        assert!(scan_levels("0", "1", "1e-99999999999999999999").is_err());
        assert!(scan_levels("0", "1", "1e-9223372036854775808").is_err());
        assert!(scan_levels("2", "1", "1").is_err());
        assert!(scan_levels("1", "2", "0").is_err());
        assert!(scan_levels("x", "2", "1").is_err());
        assert!(scan_levels("NaN", "2", "1").is_err());
    }

    #[test]
    fn a_comma_behind_a_backslash_is_part_of_a_value() {
        assert_eq!(values(r"a,b\,c,\\,\n,"), ["a", "b,c", r"\", r"\n", ""]);
    }

    #[test]
    fn placeholders_are_names_in_braces() {
        assert_eq!(placeholders("awk '{ print }' {file} {} {n-1}"), ["`{file}`", "`{n-1}`"]);
    }
}
