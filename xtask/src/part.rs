//! The parts of `cargo xtask test`.

use std::fmt;

use crate::tools::Need;
use crate::{checkers, elsewhere, exports, fuzz, guest, hyperfine, packages, quick};

/// One part of the tests.
pub struct Part {
    pub name: &'static str,
    /// Tools that the part needs and that a machine may lack.
    pub needs: &'static [Need],
    pub tier: Tier,
    pub run: fn() -> anyhow::Result<()>,
}

/// When a part runs.
pub enum Tier {
    /// Always. Such a part is deterministic.
    Quick,
    /// With `--all`, when it is named, or with `--changed-since` if one of these inputs changed.
    Slow(&'static [Input]),
}

/// Something that the result of a slow part depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A package with everything that it depends on, as `cargo metadata` lists it.
    Package(&'static str),
    /// Every package of the workspace.
    Workspace,
    /// A file, or all files of a folder, by a path below the root.
    Path(&'static str),
    /// The manifests of the workspace, and the condition in each `cfg` and `cfg_attr`.
    Features,
}

impl Part {
    pub const fn quick(name: &'static str, needs: &'static [Need], run: fn() -> anyhow::Result<()>) -> Part {
        Part { name, needs, tier: Tier::Quick, run }
    }

    pub const fn slow(
        name: &'static str,
        needs: &'static [Need],
        inputs: &'static [Input],
        run: fn() -> anyhow::Result<()>,
    ) -> Part {
        Part { name, needs, tier: Tier::Slow(inputs), run }
    }

    /// Returns the inputs of a slow part, and `None` for a quick one.
    pub fn inputs(&self) -> Option<&'static [Input]> {
        match self.tier {
            Tier::Quick => None,
            Tier::Slow(inputs) => Some(inputs),
        }
    }
}

/// Returns all parts, in the order in which they run.
pub fn all() -> impl Iterator<Item = &'static Part> {
    let lists: [&'static [Part]; 8] = [
        quick::PARTS,
        checkers::PARTS,
        packages::PARTS,
        elsewhere::PARTS,
        exports::PARTS,
        hyperfine::PARTS,
        guest::PARTS,
        fuzz::PARTS,
    ];
    lists.into_iter().flatten()
}

/// The error of a part that cannot run on this machine, with the reason.
#[derive(Debug)]
pub struct Skipped(pub String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}
