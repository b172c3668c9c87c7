//! The parts of the tests that `cargo xtask test` runs.

use std::fmt;

use crate::tools::Need;
use crate::{checkers, elsewhere, exports, fuzz, git_tests, gits, guest, hyperfine, otava, packages, quick};

/// A part of the tests, which can be run on its own.
pub struct Part {
    pub name: &'static str,
    /// The tools that the part needs and that a machine may lack.
    pub needs: &'static [Need],
    /// The inputs of a slow part; `None` for a quick part. Quick parts are deterministic and always run. A slow part
    /// runs if it is named or if `--all` is given. With `--changed-since`, it runs if an input changed.
    pub inputs: Option<&'static [Input]>,
    pub run: fn() -> anyhow::Result<()>,
}

/// Something on which the result of a slow part depends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// A package with all its dependencies, as `cargo metadata` lists them.
    Package(&'static str),
    /// Every package of the workspace.
    Workspace,
    /// A file, or all files in a folder, by the path below the root.
    Path(&'static str),
    /// The manifests of the workspace, and the conditions in all `cfg` and `cfg_attr` attributes.
    Features,
}

impl Part {
    pub const fn quick(name: &'static str, needs: &'static [Need], run: fn() -> anyhow::Result<()>) -> Part {
        Part { name, needs, inputs: None, run }
    }

    pub const fn slow(
        name: &'static str,
        needs: &'static [Need],
        inputs: &'static [Input],
        run: fn() -> anyhow::Result<()>,
    ) -> Part {
        Part { name, needs, inputs: Some(inputs), run }
    }
}

/// Returns all parts, in the order in which they run.
pub fn all() -> impl Iterator<Item = &'static Part> {
    let lists: [&'static [Part]; 11] = [
        quick::PARTS,
        checkers::PARTS,
        packages::PARTS,
        elsewhere::PARTS,
        exports::PARTS,
        otava::PARTS,
        hyperfine::PARTS,
        guest::PARTS,
        fuzz::PARTS,
        gits::PARTS,
        git_tests::PARTS,
    ];
    lists.into_iter().flatten()
}

/// An error that means that a part cannot run on this machine. The text is the reason.
#[derive(Debug)]
pub struct Skipped(pub String);

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Skipped {}
