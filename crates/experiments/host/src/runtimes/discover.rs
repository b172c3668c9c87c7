//! The runtimes of this machine: on `PATH`, of version managers, and among Debian's alternatives.

use std::env;
use std::fs;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::languages::Language;
use super::probe::{self, Runtime};

/// Folders of version managers, relative to the home folder, and the place of programs below each version.
const MANAGERS: [(&str, &str); 6] = [
    (".pyenv/versions", "bin"),
    (".local/share/uv/python", "bin"),
    (".asdf/installs/python", "bin"),
    (".nvm/versions/node", "bin"),
    (".nodenv/versions", "bin"),
    (".asdf/installs/nodejs", "bin"),
];
/// The folder with a file for each group of Debian's alternatives.
const ALTERNATIVES: &str = "/var/lib/dpkg/alternatives";

/// Returns whether there is an executable file at the path.
pub fn is_program(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

/// Returns whether the file begins with `#!`.
pub fn is_script(path: &Path) -> bool {
    let mut start = [0; 2];
    fs::File::open(path).and_then(|mut file| file.read_exact(&mut start)).is_ok() && start == *b"#!"
}

/// Returns the programs of this name on `PATH`, in its order.
pub fn on_path(name: &str) -> Vec<PathBuf> {
    let folders = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(name))
        .filter(|path| is_program(path))
        .collect()
}

/// Returns the programs of a language, beginning with the programs on `PATH`. Scripts are left out. The only exception
/// is the first program that has one of the plain names, such as `python3`, because users start that program.
fn candidates(language: &Language) -> Vec<PathBuf> {
    let plain = language.programs.iter().find_map(|name| on_path(name).into_iter().next());
    let mut found: Vec<PathBuf> = plain.into_iter().collect();
    let mut add = |folder: &Path| {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let named = entries.filter(|entry| language.is_named(&entry.file_name().to_string_lossy()));
        let mut paths: Vec<PathBuf> = named.map(|entry| entry.path()).collect();
        // A longer name is more precise: `python3.12` before `python3`.
        paths.sort_by_key(|path| std::cmp::Reverse(path.as_os_str().len()));
        found.extend(paths.into_iter().filter(|path| is_program(path) && !is_script(path)));
    };
    env::split_paths(&env::var_os("PATH").unwrap_or_default())
        .filter(|folder| folder.is_absolute())
        .for_each(|folder| add(&folder));
    let home = env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let roots = MANAGERS.iter().map(|(root, bin)| (home.join(root), *bin));
    let named_root = env::var_os("PYENV_ROOT").map(|root| (PathBuf::from(root).join("versions"), "bin"));
    for (root, bin) in named_root.into_iter().chain(roots) {
        let mut versions: Vec<PathBuf> =
            fs::read_dir(root).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        versions.sort();
        versions.iter().for_each(|version| add(&version.join(bin)));
    }
    for group in fs::read_dir(ALTERNATIVES).into_iter().flatten().flatten() {
        if language.is_named(&group.file_name().to_string_lossy()) {
            let listed = fs::read_to_string(group.path()).unwrap_or_default();
            let paths = listed.lines().filter(|line| line.starts_with('/')).map(PathBuf::from);
            found.extend(paths.filter(|path| is_program(path) && !is_script(path)));
        }
    }
    found
}

/// Returns the runtimes of a language on this machine. The first one is the program that users start by its plain name.
/// Others follow by version. Files that cannot be examined, and copies of a runtime, are left out.
pub fn installed(language: &Language) -> Vec<Arc<Runtime>> {
    let mut seen: Vec<PathBuf> = Vec::new();
    let mut found: Vec<Arc<Runtime>> = Vec::new();
    for path in candidates(language) {
        let Ok(real) = fs::canonicalize(&path) else { continue };
        if seen.contains(&real) {
            continue;
        }
        seen.push(real);
        let Ok(runtime) = probe::runtime(&path, true) else { continue };
        seen.extend(fs::canonicalize(&runtime.program.path));
        let is_copy = found.iter().any(|other| other.identity == runtime.identity);
        if runtime.language.name == language.name && !is_copy {
            found.push(runtime);
        }
    }
    if let Some((_, others)) = found.split_first_mut() {
        others.sort_by_key(|runtime| numbers(runtime.version()));
    }
    found
}

/// Returns the numbers of a version, by which versions are ordered.
pub fn numbers(version: &str) -> Vec<u64> {
    let digits = version.split(|c: char| !c.is_ascii_digit());
    digits.filter_map(|part| part.parse().ok()).collect()
}

/// Returns whether `version` is the requested one or one of its patch versions: `3.11` stands for `3.11.7`.
pub fn is_version(version: &str, requested: &str) -> bool {
    let [version, requested] = [version, requested].map(numbers);
    !requested.is_empty() && version.starts_with(&requested)
}
