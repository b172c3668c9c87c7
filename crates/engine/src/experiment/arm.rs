//! Where an experiment is measured: points, and variants at them.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::Level;

/// One combination of levels, by factor.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(pub BTreeMap<String, Level>);

impl Point {
    /// The level of a factor.
    pub fn get(&self, factor: &str) -> Option<&Level> {
        self.0.get(factor)
    }

    /// This point with one level changed.
    #[must_use]
    pub fn with(mut self, factor: &str, level: impl Into<Level>) -> Point {
        self.0.insert(factor.to_string(), level.into());
        self
    }

    /// The text with each `{factor}` replaced by its level. What else stands in braces stays.
    ///
    /// ```
    /// use ascertain_engine::experiment::Point;
    /// assert_eq!(Point::default().with("n", 4).fill("sort -n{n} {file}"), "sort -n4 {file}");
    /// ```
    pub fn fill(&self, text: &str) -> String {
        let mut filled = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('{') {
            let (before, braced) = rest.split_at(at);
            filled.push_str(before);
            let level = braced.find('}').and_then(|end| Some((end, self.get(&braced[1..end])?)));
            match level {
                Some((end, level)) => {
                    filled.push_str(&level.to_string());
                    rest = &braced[end + 1..];
                }
                None => {
                    filled.push('{');
                    rest = &braced[1..];
                }
            }
        }
        filled + rest
    }
}

impl fmt::Display for Point {
    /// `elements=187500 type=f32`; nothing for an experiment without factors.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (factor, level)) in self.0.iter().enumerate() {
            let space = if index == 0 { "" } else { " " };
            write!(f, "{space}{factor}={level}")?;
        }
        Ok(())
    }
}

/// One variant at one point.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Arm {
    /// The variant's name.
    pub variant: String,
    /// Where.
    pub point: Point,
}

impl Arm {
    /// Whether the variant is a command line in which this factor's level stands.
    pub fn shows(&self, factor: &str) -> bool {
        self.variant.contains(&format!("{{{factor}}}"))
    }
}

impl fmt::Display for Arm {
    /// `kahan (accumulators=4)`; what stands in a command line as `{n}` is filled in: `sort -n4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.point.fill(&self.variant))?;
        let beside = self.point.0.iter().filter(|(factor, _)| !self.shows(factor));
        let beside = Point(beside.map(|(factor, level)| (factor.clone(), level.clone())).collect());
        if beside.0.is_empty() { Ok(()) } else { write!(f, " ({beside})") }
    }
}
