//! Finds which inputs of the slow parts of the tests changed since a revision.
//!
//! A Rust file counts as changed only if its tokens changed, not if only comments or documentation did. A TOML file
//! counts as changed only if its values changed. Markdown is documentation and never counts as changed. The packages
//! and their dependencies come from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::path::Path;

use anyhow::{Context, ensure};
use proc_macro2::{Group, TokenStream, TokenTree};
use serde_json::Value;

use crate::lines::is_punct;
use crate::part::Input;
use crate::tools;

/// The changes of the repository since a revision.
#[derive(Default)]
pub struct Changes {
    since: String,
    graph: Graph,
    /// The packages of this repository that changed. The value is `true` if files other than tests, examples and
    /// benches changed.
    packages: BTreeMap<String, bool>,
    /// The packages whose entries in Cargo.lock changed.
    external: BTreeSet<String>,
    /// Paths of the changed files, relative to the root of the repository. Documentation is left out.
    files: BTreeSet<String>,
    has_new_features: bool,
    /// `true` if the profiles, lints or dependencies of the workspace changed, which affects every build.
    has_new_settings: bool,
}

/// Distance of a part from a change that affects every build. It is larger than any other distance, so parts that
/// another change affects more directly are chosen first.
const FARTHEST: usize = usize::MAX;

/// Files with settings that apply to every build.
const SETTINGS: [&str; 2] = ["Cargo.toml", ".cargo/config.toml"];

impl Changes {
    /// Compares the current files with those of `revision`: a commit, or a number of hours before the last commit
    /// (`24h`).
    pub fn since(revision: &str) -> anyhow::Result<Changes> {
        let base = resolve(revision)?;
        let names = git(&["diff", "--name-only", "--no-renames", "-z", &base])?;
        let new = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
        let mut changes = Changes {
            since: format!("{revision} ({})", base.chars().take(12).collect::<String>()),
            graph: Graph::read()?,
            ..Changes::default()
        };
        for path in names.split('\0').chain(new.split('\0')).filter(|path| !path.is_empty()) {
            let before = tools::output_of("git", &["show", &format!("{base}:{path}")]).ok();
            let after = std::fs::read(tools::root().join(path)).ok();
            changes.add(
                path,
                before.as_deref(),
                after.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).as_deref(),
            );
        }
        Ok(changes)
    }

    /// Records the change of a file. `before` and `after` are its texts; `None` means that the file does not exist.
    fn add(&mut self, path: &str, before: Option<&str>, after: Option<&str>) {
        let extension = Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if path == "Cargo.lock" {
            self.external = changed_versions(before.unwrap_or_default(), after.unwrap_or_default());
            return;
        }
        let is_same = match extension {
            "md" => true,
            "rs" => before.and_then(Code::parse).is_some_and(|before| after.and_then(Code::parse) == Some(before)),
            "toml" => before.and_then(toml_values).is_some_and(|before| after.and_then(toml_values) == Some(before)),
            _ => before == after,
        };
        if is_same {
            return;
        }
        self.files.insert(path.to_owned());
        self.has_new_settings |= SETTINGS.contains(&path);
        self.has_new_features |= match extension {
            "rs" => Code::cfgs_of(before) != Code::cfgs_of(after),
            _ => path.ends_with("Cargo.toml"),
        };
        if let Some((package, rest)) = self.graph.package_of(path) {
            let is_built_into_others =
                !["tests/", "examples/", "benches/"].iter().any(|folder| rest.starts_with(folder));
            *self.packages.entry(package).or_default() |= is_built_into_others;
        }
    }

    /// Returns how many dependency steps lead from `inputs` to the nearest change. It is 0 if an input itself changed,
    /// and `None` if no change affects the inputs.
    pub fn distance(&self, inputs: &[Input]) -> Option<usize> {
        inputs.iter().filter_map(|input| self.distance_of(input)).min()
    }

    fn distance_of(&self, input: &Input) -> Option<usize> {
        match input {
            Input::Path(path) => self.files.iter().any(|file| Path::new(file).starts_with(path)).then_some(0),
            Input::Features => self.has_new_features.then_some(0),
            Input::Package(package) => self.package_distance(package),
            Input::Workspace => self.graph.members.iter().filter_map(|member| self.package_distance(member)).min(),
        }
    }

    fn package_distance(&self, package: &str) -> Option<usize> {
        let near = self.graph.steps_from(package).into_iter().filter(|(other, steps)| match self.packages.get(other) {
            Some(is_built_into_others) => *steps == 0 || *is_built_into_others,
            None => self.external.contains(other),
        });
        near.map(|(_, steps)| steps).min().or(self.has_new_settings.then_some(FARTHEST))
    }
}

impl fmt::Display for Changes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let packages: Vec<&str> = self.packages.keys().map(String::as_str).collect();
        let packages = if packages.is_empty() { "none".into() } else { packages.join(", ") };
        write!(
            f,
            "changed since {}, without documentation: {} {}; packages: {packages}",
            self.since,
            self.files.len(),
            if self.files.len() == 1 { "file" } else { "files" },
        )
    }
}

/// Returns the commit that `revision` names. Hours count back from the last commit, not from now.
fn resolve(revision: &str) -> anyhow::Result<String> {
    let hours = revision.strip_suffix('h').and_then(|hours| hours.parse::<u64>().ok());
    let Some(hours) = hours else {
        let commit = git(&["rev-parse", "--verify", "--quiet", &format!("{revision}^{{commit}}")]);
        return Ok(commit
            .with_context(|| {
                format!("invalid revision `{revision}`: expected a commit, or a number of hours such as 24h")
            })?
            .trim()
            .into());
    };
    let last_s: u64 = git(&["log", "-1", "--format=%ct"])?.trim().parse()?;
    let before = format!("--before={}", last_s.saturating_sub(hours * 3600));
    let commit = git(&["rev-list", "-1", "--first-parent", &before, "HEAD"])?;
    if !commit.trim().is_empty() {
        return Ok(commit.trim().into());
    }
    // The history is shorter than the given hours, so all files count as new.
    Ok(git(&["hash-object", "-t", "tree", "/dev/null"])?.trim().into())
}

fn git(arguments: &[&str]) -> anyhow::Result<String> {
    tools::output_of("git", arguments)
}

/// The code of a Rust file without comments and documentation.
#[derive(Default, PartialEq)]
struct Code {
    tokens: String,
    /// The text in parentheses after each `cfg` and `cfg_attr` of the file.
    cfgs: Vec<String>,
}

impl Code {
    fn parse(text: &str) -> Option<Code> {
        let mut cfgs = Vec::new();
        let tokens = without_documentation(text.parse().ok()?, &mut cfgs).to_string();
        Some(Code { tokens, cfgs })
    }

    fn cfgs_of(text: Option<&str>) -> Vec<String> {
        text.and_then(Code::parse).unwrap_or_default().cfgs
    }
}

/// Returns the tokens without documentation. Adds the text in parentheses after each `cfg` and `cfg_attr` to `cfgs`.
fn without_documentation(stream: TokenStream, cfgs: &mut Vec<String>) -> TokenStream {
    let mut kept: Vec<TokenTree> = Vec::new();
    let mut is_cfg = false;
    for tree in stream {
        // An attribute begins with `#` or `#!`.
        let sign = kept.iter().rposition(|tree| !is_punct(tree, '!')).filter(|at| is_punct(&kept[*at], '#'));
        match (tree, sign) {
            (tree, Some(sign)) if is_documentation(&tree) => kept.truncate(sign),
            (TokenTree::Group(group), _) => {
                cfgs.extend(std::mem::take(&mut is_cfg).then(|| group.to_string()));
                kept.push(Group::new(group.delimiter(), without_documentation(group.stream(), cfgs)).into());
            }
            (tree, _) => {
                is_cfg = match &tree {
                    TokenTree::Ident(ident) => ident == "cfg" || ident == "cfg_attr",
                    _ => is_cfg,
                };
                kept.push(tree);
            }
        }
    }
    kept.into_iter().collect()
}

/// Returns whether a token is the group of a `#[doc = "…"]` attribute. The parser converts doc comments to such
/// attributes.
pub fn is_documentation(tree: &TokenTree) -> bool {
    let TokenTree::Group(group) = tree else { return false };
    matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(ident)) if ident == "doc")
}

fn toml_values(text: &str) -> Option<toml::Table> {
    toml::from_str(text).ok()
}

/// Returns the packages that differ between two lock files, or that only one of the files contains.
fn changed_versions(before: &str, after: &str) -> BTreeSet<String> {
    let packages = |text: &str| -> BTreeSet<(String, String)> {
        let table = toml_values(text).unwrap_or_default();
        let packages = table.get("package").and_then(toml::Value::as_array).into_iter().flatten();
        let name = |package: &toml::Value| package.get("name").and_then(toml::Value::as_str).map(str::to_owned);
        packages.filter_map(|package| Some((name(package)?, format!("{package:?}")))).collect()
    };
    packages(before).symmetric_difference(&packages(after)).map(|(name, _)| name.clone()).collect()
}

/// The dependencies of all packages in this repository, including the fuzz targets.
#[derive(Default)]
struct Graph {
    members: BTreeSet<String>,
    /// Folder of each package below the root.
    folders: BTreeMap<String, String>,
    /// Dependencies of each package, and dependencies of its tests.
    dependencies: BTreeMap<String, Dependencies>,
}

#[derive(Default)]
struct Dependencies {
    build: BTreeSet<String>,
    tests: BTreeSet<String>,
}

impl Graph {
    fn read() -> anyhow::Result<Graph> {
        let mut graph = Graph::default();
        graph.add(&cargo_metadata("Cargo.toml")?)?;
        graph.members = graph.folders.keys().cloned().collect();
        graph.add(&cargo_metadata("fuzz/Cargo.toml")?)?;
        ensure!(graph.members.len() > 1, "cargo metadata lists no packages of the workspace");
        Ok(graph)
    }

    fn add(&mut self, metadata: &Value) -> anyhow::Result<()> {
        let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
        let mut names = BTreeMap::new();
        for package in list(&metadata["packages"]) {
            let name = package["name"].as_str().context("a package has no name")?;
            names.insert(package["id"].clone().to_string(), name.to_owned());
            let manifest = Path::new(package["manifest_path"].as_str().unwrap_or_default());
            let folder = manifest.parent().and_then(|folder| folder.strip_prefix(tools::root()).ok());
            if let Some(folder) = folder.filter(|_| package["source"].is_null()) {
                self.folders.insert(name.into(), folder.to_string_lossy().into_owned());
            }
        }
        for node in list(&metadata["resolve"]["nodes"]) {
            let Some(name) = names.get(&node["id"].to_string()) else { continue };
            let dependencies = self.dependencies.entry(name.clone()).or_default();
            for dependency in list(&node["deps"]) {
                let Some(other) = names.get(&dependency["pkg"].to_string()) else { continue };
                for kind in list(&dependency["dep_kinds"]) {
                    let is_for_tests = kind["kind"] == "dev";
                    let kind = if is_for_tests { &mut dependencies.tests } else { &mut dependencies.build };
                    kind.insert(other.clone());
                }
            }
        }
        Ok(())
    }

    /// Returns the package that contains the file, and the file's path in that package. If packages are nested, the
    /// innermost package counts.
    fn package_of<'a>(&self, path: &'a str) -> Option<(String, &'a str)> {
        let below = |folder: &str| path.strip_prefix(folder)?.strip_prefix('/');
        let packages = self.folders.iter().filter_map(|(package, folder)| Some((package.clone(), below(folder)?)));
        packages.min_by_key(|(_, rest)| rest.len())
    }

    /// Returns all packages on which the tests of `package` depend, each with the smallest number of dependency steps
    /// from `package`.
    fn steps_from(&self, package: &str) -> BTreeMap<String, usize> {
        let mut steps = BTreeMap::from([(package.to_owned(), 0)]);
        let mut queue = VecDeque::from([package.to_owned()]);
        while let Some(package) = queue.pop_front() {
            let next = steps[&package] + 1;
            let Some(Dependencies { build, tests }) = self.dependencies.get(&package) else { continue };
            for other in build.iter().chain(tests.iter().filter(|_| next == 1)) {
                if !steps.contains_key(other) {
                    steps.insert(other.clone(), next);
                    queue.push_back(other.clone());
                }
            }
        }
        steps
    }
}

fn cargo_metadata(manifest: &str) -> anyhow::Result<Value> {
    let options = ["metadata", "--locked", "--format-version", "1", "--manifest-path", &tools::in_root(manifest)];
    serde_json::from_str(&tools::output_of("cargo", &options)?).context("could not parse the output of cargo metadata")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> Code {
        Code::parse(text).unwrap()
    }

    #[test]
    fn comments_documentation_and_formatting_are_no_change() {
        let before = "/// Adds.\nfn add(a: u32) -> u32 { a + 1 } // one";
        let after = "//! A crate.\n/** Adds\n one. */\n#[doc = \"x\"] fn add(a: u32) -> u32 {\n    a + /* */ 1\n}";
        assert!(code(before) == code(after));
        for other in
            ["fn add(a: u32) -> u32 { a + 2 }", "#[inline] fn add(a: u32) -> u32 { a + 1 }", "fn add(a: u32) {}"]
        {
            assert!(code(before) != code(other), "{other}");
        }
        assert!(code("f(\"// a\")") != code("f(\"// b\")"));
        assert!(code("a & &b") != code("a && b"));
    }

    #[test]
    fn only_another_cfg_changes_the_features() {
        let one = Code::cfgs_of(Some("#[cfg(feature = \"a\")] fn f() {}"));
        assert_eq!(one, Code::cfgs_of(Some("#[cfg(feature = \"a\")] fn g() { h() }")));
        assert_ne!(one, Code::cfgs_of(Some("#[cfg(feature = \"b\")] fn f() {}")));
        assert_ne!(one, Code::cfgs_of(Some("fn f() {}")));
        assert_ne!(Code::cfgs_of(Some("fn f() {}")), Code::cfgs_of(Some("fn f() { cfg!(test); }")));
    }

    #[test]
    fn a_lock_file_changes_the_packages_with_other_versions() {
        let lock =
            |version: &str| format!("[[package]]\nname = \"a\"\nversion = \"1\"\n[[package]]\nname = \"b\"\n{version}");
        let changed = changed_versions(&lock("version = \"1\""), &lock("version = \"2\""));
        assert_eq!(changed, BTreeSet::from(["b".to_owned()]));
    }

    /// Creates an empty set of changes. `graph` lists each package with its dependencies and the dependencies of its
    /// tests.
    fn changes(graph: &[(&str, &[&str], &[&str])]) -> Changes {
        let owned = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect::<BTreeSet<_>>();
        let mut changes = Changes::default();
        for (name, build, tests) in graph {
            changes.graph.folders.insert((*name).into(), format!("crates/{name}"));
            changes.graph.members.insert((*name).into());
            let dependencies = Dependencies { build: owned(build), tests: owned(tests) };
            changes.graph.dependencies.insert((*name).into(), dependencies);
        }
        changes
    }

    /// `c` depends on `b`. `b` depends on `a` and `outside`; its tests depend on `t`.
    const GRAPH: &[(&str, &[&str], &[&str])] =
        &[("a", &[], &[]), ("t", &[], &[]), ("b", &["a", "outside"], &["t"]), ("c", &["b"], &[])];

    #[test]
    fn a_change_reaches_the_parts_that_build_it() {
        let mut changes = changes(GRAPH);
        assert_eq!(changes.distance(&[Input::Package("c"), Input::Path("crates/a"), Input::Features]), None);
        changes.add("crates/a/src/lib.rs", Some("fn f() {}"), Some("/// Documented.\nfn f() {}"));
        changes.add("crates/a/README.md", Some("old"), Some("new"));
        assert_eq!(changes.distance(&[Input::Package("c")]), None);
        changes.add("crates/a/src/lib.rs", Some("fn f() {}"), Some("fn g() {}"));
        assert_eq!(changes.distance(&[Input::Package("a")]), Some(0));
        assert_eq!(changes.distance(&[Input::Package("c")]), Some(2));
        assert_eq!(changes.distance(&[Input::Package("t")]), None);
        assert_eq!(changes.distance(&[Input::Workspace]), Some(0));
        assert_eq!(changes.distance(&[Input::Features, Input::Path("crates/a/src")]), Some(0));
        assert_eq!(changes.distance(&[Input::Features]), None);
    }

    #[test]
    fn the_tests_of_a_package_concern_only_itself() {
        let mut changes = changes(GRAPH);
        changes.add("crates/t/tests/all/main.rs", None, Some("fn f() {}"));
        assert_eq!(changes.distance(&[Input::Package("b")]), None);
        changes.add("crates/t/src/lib.rs", None, Some("fn f() {}"));
        assert_eq!(changes.distance(&[Input::Package("b")]), Some(1));
        assert_eq!(changes.distance(&[Input::Package("c")]), None, "the tests of `b` are not built for `c`");
    }

    #[test]
    fn versions_and_settings_reach_every_part_that_builds_with_them() {
        let mut changes = changes(GRAPH);
        changes.add("Cargo.lock", None, Some("[[package]]\nname = \"outside\"\n"));
        assert_eq!(changes.distance(&[Input::Package("c")]), Some(2));
        assert_eq!(changes.distance(&[Input::Package("a")]), None);
        changes.add("Cargo.toml", Some("# one\n[workspace]"), Some("[workspace]"));
        assert_eq!(changes.distance(&[Input::Package("a")]), None, "a comment is not a setting");
        changes.add("Cargo.toml", Some("[workspace]"), Some("[workspace]\nresolver = \"3\""));
        assert_eq!(changes.distance(&[Input::Package("a")]), Some(FARTHEST));
        assert_eq!(changes.distance(&[Input::Features]), Some(0));
    }

    #[test]
    fn the_packages_of_this_workspace_are_known() {
        let graph = Graph::read().unwrap();
        let steps = graph.steps_from("ascertain-cli");
        assert_eq!(steps.get("ascertain-cli"), Some(&0));
        assert!(steps.contains_key("ascertain-sys") && steps.contains_key("libc"), "{steps:?}");
        for (path, package, rest) in [
            ("crates/sync/src/lib.rs", "ascertain-sync", "src/lib.rs"),
            ("crates/experiments/src/lib.rs", "ascertain-experiments", "src/lib.rs"),
            ("crates/experiments/sync/src/lib.rs", "ascertain-experiments-sync", "src/lib.rs"),
        ] {
            assert_eq!(graph.package_of(path), Some((package.into(), rest)));
        }
        assert!(graph.steps_from("ascertain-fuzz").contains_key("ascertain-netlab"));
        let inputs = crate::part::all().filter_map(|part| part.inputs).flatten();
        for input in inputs {
            match input {
                Input::Package(name) => assert!(graph.folders.contains_key(*name), "no package {name}"),
                Input::Path(path) => assert!(tools::root().join(path).exists(), "no file {path}"),
                Input::Workspace | Input::Features => (),
            }
        }
    }
}
