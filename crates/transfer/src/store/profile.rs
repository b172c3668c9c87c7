//! Reads the shared configuration of AWS's tools: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::HashMap;
use std::path::PathBuf;

use super::Result;
use super::open::Environment;
use crate::Failure;

/// The settings of one AWS profile, from the files `credentials` and `config`. If both contain a setting, the one in
/// `credentials` applies.
#[derive(Default)]
pub struct Profile {
    name: String,
    values: HashMap<String, String>,
    found: bool,
}

impl Profile {
    /// Reads a profile: the one that the caller requests, or else the one that the environment names, or else
    /// `default`. Fails if the profile does not exist, unless it is `default`.
    pub fn read(asked: Option<&str>, environment: &Environment) -> Result<Self> {
        let named = asked.or_else(|| environment.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]));
        let mut profile = Self { name: named.unwrap_or("default").into(), ..Self::default() };
        for (variable, path) in
            [("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"), ("AWS_CONFIG_FILE", ".aws/config")]
        {
            let file = environment.first(&[variable]).map(PathBuf::from).or_else(|| environment.home(path));
            let Some(file) = file else { continue };
            match std::fs::read_to_string(&file) {
                Ok(text) => profile.add(&text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::fatal(format!("{}: {error}", file.display()))),
            }
        }
        if !profile.found && named.is_some() {
            let words = "is neither in ~/.aws/credentials nor in ~/.aws/config";
            return Err(Failure::denied(format!("the profile {} {words}", profile.name)));
        }
        Ok(profile)
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.values.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// Adds the profile's settings in the text of one file. Keeps the value of a setting that an earlier file
    /// contained.
    fn add(&mut self, text: &str) {
        let mut ours = false;
        for line in text.lines() {
            let line = line.trim_end();
            if let Some(section) = line.strip_prefix('[') {
                let section = section.split(']').next().unwrap_or_default().trim();
                ours = section.strip_prefix("profile ").unwrap_or(section).trim() == self.name;
                self.found |= ours;
            } else if ours
                && !line.starts_with(['#', ';'])
                && let Some((key, value)) = line.split_once('=')
            {
                // Indented lines belong to the setting before them: `s3 =`, ` addressing_style = path`. They are read
                // as ordinary settings, because their names are unique.
                let key = key.trim().to_ascii_lowercase();
                self.values.entry(key).or_insert_with(|| value.trim().into());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_profile_is_read_from_both_files_and_no_other_section() {
        let folder = tempfile::tempdir().unwrap();
        let credentials = folder.path().join("credentials");
        let config = folder.path().join("config");
        std::fs::write(&credentials, "[default]\naws_access_key_id=A\n[work]\naws_access_key_id = B # not cut\n")
            .unwrap();
        std::fs::write(
            &config,
            "[default]\nregion = eu-west-1\n# [profile work]\n[profile work]\nregion=us-west-2\ns3 =\n  \
             addressing_style = path\n",
        )
        .unwrap();
        let environment: Environment = [
            ("AWS_SHARED_CREDENTIALS_FILE", credentials.to_str().unwrap()),
            ("AWS_CONFIG_FILE", config.to_str().unwrap()),
        ]
        .into_iter()
        .collect();
        let default = Profile::read(None, &environment).unwrap();
        assert_eq!((default.get("aws_access_key_id"), default.get("region")), (Some("A"), Some("eu-west-1")));
        let work = Profile::read(Some("work"), &environment).unwrap();
        assert_eq!((work.get("aws_access_key_id"), work.get("region")), (Some("B # not cut"), Some("us-west-2")));
        assert_eq!(work.get("addressing_style"), Some("path"));
        let missing = Profile::read(Some("play"), &environment).err().unwrap();
        assert_eq!(missing.kind, crate::Kind::Denied);
        assert!(Profile::read(None, &Environment::default()).is_ok());
    }
}
