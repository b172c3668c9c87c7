//! Environment variables, as they are given: a test has its own, and none is looked up behind anybody's back.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// The variables that credentials, certificates and proxies are found by. Its `Debug` has names only.
#[derive(Clone, Default)]
pub struct Environment(BTreeMap<String, String>);

impl Environment {
    /// Those of this process. What is not Unicode is left out.
    #[must_use]
    pub fn of_process() -> Self {
        let unicode =
            std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
        unicode.collect()
    }

    /// The first of these that is set to something.
    pub(super) fn first(&self, names: &[&str]) -> Option<&str> {
        let values = names.iter().filter_map(|name| self.0.get(*name));
        values.map(|value| value.trim()).find(|value| !value.is_empty())
    }

    /// A file in the home folder.
    pub(super) fn home(&self, path: &str) -> Option<PathBuf> {
        Some(PathBuf::from(self.first(&["HOME", "USERPROFILE"])?).join(path))
    }
}

impl<K: Into<String>, V: Into<String>> FromIterator<(K, V)> for Environment {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(variables: I) -> Self {
        Self(variables.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}
