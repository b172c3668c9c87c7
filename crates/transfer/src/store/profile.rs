//! Reads the shared configuration of AWS's tools: `~/.aws/credentials` and `~/.aws/config`.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::Result;
use super::open::Environment;
use crate::Failure;

/// The settings of one AWS profile, from the files `credentials` and `config`. If both contain a setting, the one in
/// `credentials` applies.
#[derive(Default)]
pub struct Profile {
    name: String,
    sections: Arc<Sections>,
}

/// The sections of both files, by their kind and name: `("profile", "work")`. In a section, the key of a nested setting
/// contains the setting around it: `s3.addressing_style`.
type Sections = HashMap<(String, String), HashMap<String, String>>;

impl Profile {
    /// Reads a profile: the one that the caller requests, or else the one that the environment names, or else
    /// `default`. Fails if the profile does not exist, unless it is `default`.
    pub fn read(asked: Option<&str>, environment: &Environment) -> Result<Self> {
        let named = asked.or_else(|| environment.first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]));
        let mut sections = Sections::default();
        for (variable, path) in
            [("AWS_SHARED_CREDENTIALS_FILE", ".aws/credentials"), ("AWS_CONFIG_FILE", ".aws/config")]
        {
            let file = environment.first(&[variable]).map(PathBuf::from).or_else(|| environment.home(path));
            let Some(file) = file else { continue };
            match std::fs::read_to_string(&file) {
                Ok(text) => add(&mut sections, &text),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
                Err(error) => return Err(Failure::fatal(format!("{}: {error}", file.display()))),
            }
        }
        let profile = Self { name: named.unwrap_or("default").into(), sections: sections.into() };
        if named.is_some() { profile.other(&profile.name) } else { Ok(profile) }
    }

    /// Returns another profile of the same files. Fails if it does not exist.
    pub fn other(&self, name: &str) -> Result<Self> {
        if !self.sections.contains_key(&("profile".into(), name.into())) {
            let words = "is neither in ~/.aws/credentials nor in ~/.aws/config";
            return Err(Failure::denied(format!("the profile {name} {words}")));
        }
        Ok(Self { name: name.into(), sections: Arc::clone(&self.sections) })
    }

    pub fn get(&self, key: &str) -> Option<&str> {
        self.get_in("profile", &self.name, key)
    }

    /// Returns a setting of another section, such as `[services NAME]`.
    pub fn get_in(&self, kind: &str, name: &str, key: &str) -> Option<&str> {
        let section = self.sections.get(&(kind.into(), name.into()))?;
        section.get(key).map(String::as_str).filter(|value| !value.is_empty())
    }

    pub fn name(&self) -> &str {
        &self.name
    }
}

/// Adds the settings in the text of one file. Keeps the value of a setting that an earlier file contained.
fn add(sections: &mut Sections, text: &str) {
    let mut section = None;
    // The last setting that was not nested, with its indentation.
    let mut outer: Option<(usize, String)> = None;
    for line in text.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line.starts_with(['#', ';']) {
            continue;
        }
        if let Some(header) = line.strip_prefix('[').filter(|_| indent == 0) {
            let header = header.split(']').next().unwrap_or_default().trim();
            // The file `credentials` has the names of profiles without the word `profile`.
            let (kind, name) = header
                .split_once(char::is_whitespace)
                .filter(|(kind, _)| ["profile", "services", "sso-session"].contains(kind))
                .unwrap_or(("profile", header));
            let name = name.trim().trim_matches(['"', '\'']);
            section = Some(sections.entry((kind.into(), name.into())).or_default());
            outer = None;
            continue;
        }
        let (Some(section), Some((key, value))) = (&mut section, line.split_once('=')) else { continue };
        let key = key.trim().to_ascii_lowercase();
        // Lines that are further indented than a setting belong to it: `s3 =`, `  addressing_style = path`.
        let key = match &outer {
            Some((of_outer, parent)) if indent > *of_outer => format!("{parent}.{key}"),
            _ => {
                outer = Some((indent, key.clone()));
                key
            }
        };
        section.entry(key).or_insert_with(|| value.trim().into());
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
        assert_eq!((work.get("s3.addressing_style"), work.get("addressing_style")), (Some("path"), None));
        let missing = Profile::read(Some("play"), &environment).err().unwrap();
        assert_eq!(missing.kind, crate::Kind::Denied);
        assert!(Profile::read(None, &Environment::default()).is_ok());
    }
    #[test]
    fn nested_settings_belong_to_the_setting_and_the_section_around_them() {
        let text = "[profile dev]\n  services = local\n  region=x\n[services local]\ndynamodb =\n  endpoint_url = d\n\
                    ; no\ns3 =\n  # no\n  endpoint_url = s\n  other = o\nplain = p\n[sso-session dev]\nregion = y\n\
                    [profile \"with space\"]\nregion = z\n";
        let mut sections = Sections::default();
        add(&mut sections, text);
        let dev = Profile { name: "default".into(), sections: sections.into() }.other("dev").unwrap();
        assert_eq!((dev.get("services"), dev.get("region")), (Some("local"), Some("x")));
        let of = |key| dev.get_in("services", "local", key);
        assert_eq!(
            (of("s3.endpoint_url"), of("dynamodb.endpoint_url"), of("endpoint_url")),
            (Some("s"), Some("d"), None)
        );
        assert_eq!((of("s3.other"), of("plain"), of("s3.plain")), (Some("o"), Some("p"), None));
        assert_eq!(dev.get_in("sso-session", "dev", "region"), Some("y"));
        assert_eq!(dev.other("with space").unwrap().get("region"), Some("z"));
        assert!(dev.other("local").is_err());
    }
}
