//! Fetches packages from Debian's archive without installing them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};

use crate::tools;

/// The file with the public keys of Debian's archive.
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
const ARCHIVE: &str = "http://deb.debian.org/debian";

/// The packages of a Debian suite.
pub struct Packages {
    suite: String,
    folder: PathBuf,
    options: Vec<String>,
}

impl Packages {
    /// Fetches the list of the packages into `folder`. The package lists and the cache are in this folder, so this
    /// needs no root and leaves the system unchanged. The program apt-get checks the signatures.
    pub fn open(suite: &str, folder: &Path) -> anyhow::Result<Self> {
        Self::open_list("deb", suite, folder)
    }

    /// Fetches the list of the source packages into `folder`.
    pub fn open_sources(suite: &str, folder: &Path) -> anyhow::Result<Self> {
        Self::open_list("deb-src", suite, folder)
    }

    fn open_list(kind: &str, suite: &str, folder: &Path) -> anyhow::Result<Self> {
        ensure!(Path::new(KEYS).exists(), "{KEYS} does not exist; install debian-archive-keyring");
        for name in ["lists/partial", "cache/archives/partial"] {
            let name = folder.join(name);
            fs::create_dir_all(&name).with_context(|| format!("could not create {}", name.display()))?;
        }
        let shown = folder.display();
        fs::write(folder.join("sources.list"), format!("{kind} [signed-by={KEYS}] {ARCHIVE} {suite} main\n"))?;
        let options = [
            format!("Dir::Etc::sourcelist={shown}/sources.list"),
            "Dir::Etc::sourceparts=-".into(),
            format!("Dir::State::lists={shown}/lists"),
            format!("Dir::Cache={shown}/cache"),
            "Acquire::Languages=none".into(),
            "Acquire::IndexTargets::deb::DEP-11::DefaultEnabled=false".into(),
            "Acquire::Retries=3".into(),
            // The user `_apt` may not write to this folder.
            "APT::Sandbox::User=root".into(),
        ];
        let options = ["-qq".to_owned()].into_iter().chain(options.into_iter().flat_map(|set| ["-o".into(), set]));
        let packages = Self { suite: suite.into(), folder: folder.into(), options: options.collect() };
        packages.apt_get(&["update"])?;
        Ok(packages)
    }

    /// Downloads a package, and unpacks it into `root`.
    pub fn unpack(&self, package: &str, root: &Path) -> anyhow::Result<()> {
        let folder = self.folder.join(package);
        fs::create_dir_all(&folder)?;
        fs::create_dir_all(root)?;
        self.apt_get(&["download", &format!("{package}/{}", self.suite)])?;
        let unpack = "cd \"$0\" && mv ./*.deb \"$1\" && dpkg-deb -x \"$1\"/*.deb \"$2\"";
        let arguments: [&Path; 5] = ["-c".as_ref(), unpack.as_ref(), &self.folder, &folder, root];
        tools::output_of("sh", &arguments)?;
        Ok(())
    }

    /// Downloads the source of a package, and unpacks its upstream archive into `root`, without Debian's changes.
    pub fn unpack_source(&self, package: &str, root: &Path) -> anyhow::Result<()> {
        fs::create_dir_all(root)?;
        self.apt_get(&["source", "--download-only", package])?;
        let unpack = "cd \"$0\" && tar -x --strip-components=1 -C \"$1\" -f ./*.orig.tar.*";
        let arguments: [&Path; 4] = ["-c".as_ref(), unpack.as_ref(), &self.folder, root];
        tools::output_of("sh", &arguments)?;
        Ok(())
    }

    fn apt_get(&self, command: &[&str]) -> anyhow::Result<()> {
        let script = "cd \"$0\" && exec apt-get \"$@\"";
        let folder = self.folder.to_string_lossy().into_owned();
        let options = self.options.iter().map(String::as_str);
        let words = ["-c", script, &folder].into_iter().chain(options).chain(command.iter().copied());
        tools::output_of("sh", &words.collect::<Vec<_>>()).map(drop)
    }
}
