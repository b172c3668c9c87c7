//! Attributes of stored objects, such as their metadata and storage class.

use std::collections::BTreeMap;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use chrono::{DateTime, SecondsFormat, Utc};

use crate::crc64;
use crate::error::{Error, Result};

/// Attributes that an object gets when it is stored. `None` means the default of the store or bucket.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes {
    /// Media type of the object.
    pub content_type: Option<String>,
    /// The `Cache-Control` header with which the store answers requests for the object.
    pub cache_control: Option<String>,
    /// Names and values that the store keeps with the object. Stores ignore the case of names.
    pub metadata: BTreeMap<String, String>,
    /// Storage class, such as `STANDARD_IA` (S3), `NEARLINE` (GCS) or `Cool` (the access tier of Azure).
    pub storage_class: Option<String>,
    /// Method of the encryption by the store: `AES256`, `aws:kms` or `aws:kms:dsse` (S3).
    pub sse: Option<String>,
    /// Identifier of the key with which the store encrypts the object (S3 and GCS). For S3, it implies `aws:kms`.
    pub sse_kms_key_id: Option<String>,
    /// Name of a predefined access control list, such as `public-read` (S3 and GCS).
    pub acl: Option<String>,
    /// Tags, encoded as in the query of an address: `team=data&stage=test` (S3 and Azure).
    pub tagging: Option<String>,
    /// Time of the last modification of the file that becomes the object. A store that can't keep it ignores it.
    ///
    /// S3 keeps it as the metadata `mtime`, in seconds since 1970. Azure and GCS keep it in the form of RFC 3339, and
    /// GCS also as `goog-reserved-file-mtime` in seconds. rclone reads and writes the same metadata.
    pub modified: Option<SystemTime>,
}

/// A function that writes a time as the value of a metadata header.
pub(super) type TimeFormat = fn(SystemTime) -> Option<String>;

impl Attributes {
    /// Checks that the object at `address` can have all attributes that are set. `known` are the names of the fields
    /// that its `store` supports. [`Self::modified`] is not checked.
    ///
    /// # Errors
    /// Returns [`Error::UnsupportedOption`] for the first attribute that the store does not support. Returns
    /// [`Error::Request`] for a value that can't be sent in a header.
    pub fn check(&self, address: &str, store: &'static str, known: &[&str]) -> Result<()> {
        let metadata = self.metadata.values().map(|value| ("metadata", Some(value)));
        let given = [
            ("content_type", &self.content_type),
            ("cache_control", &self.cache_control),
            ("storage_class", &self.storage_class),
            ("sse", &self.sse),
            ("sse_kms_key_id", &self.sse_kms_key_id),
            ("acl", &self.acl),
            ("tagging", &self.tagging),
        ]
        .map(|(option, value)| (option, value.as_ref()));
        for (option, value) in metadata.chain(given) {
            let Some(value) = value else { continue };
            if !known.contains(&option) {
                return Err(Error::UnsupportedOption { address: address.into(), option, store });
            }
            if !value.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
                let value = value.escape_debug();
                return Err(Error::Request(format!(
                    "{address}: the value `{value}` of `{option}` has characters that are not printable ASCII; encode \
                     them, for example as in an address (%C3%BC)"
                )));
            }
        }
        let is_name = |name: &str| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
        };
        match self.metadata.keys().find(|name| !is_name(name)) {
            None => Ok(()),
            Some(name) => {
                let name = name.escape_debug();
                let message =
                    format!("{address}: `{name}` can't be a name of metadata; use letters, digits, `-`, `_` and `.`");
                Err(Error::Request(message))
            }
        }
    }

    /// Returns a number that differs if the attributes differ.
    pub(crate) fn fingerprint(&self) -> u64 {
        crc64(format!("{self:?}").as_bytes())
    }

    /// Returns the headers for the metadata, each with its name and value. All names begin with `prefix`. `times` are
    /// the names under which the store keeps the time of modification, and functions that write the time.
    pub(super) fn metadata_headers(&self, prefix: &str, times: &[(&str, TimeFormat)]) -> Vec<(String, String)> {
        let times = times.iter().filter_map(|(name, write)| Some((name.to_string(), write(self.modified?)?)));
        let mut all: BTreeMap<String, String> = times.collect();
        // The caller's own values take precedence.
        all.extend(self.metadata.iter().map(|(name, value)| (name.to_ascii_lowercase(), value.clone())));
        all.into_iter().map(|(name, value)| (format!("{prefix}{name}"), value)).collect()
    }
}

/// Names of the headers with the time of modification of the original file, in the order in which they are looked for.
pub(super) const MODIFIED: [&str; 4] =
    ["x-amz-meta-mtime", "x-goog-meta-mtime", "x-goog-meta-goog-reserved-file-mtime", "x-ms-meta-mtime"];

/// Writes a time as seconds since 1970, with up to nine decimal places.
pub(super) fn decimal_seconds(time: SystemTime) -> Option<String> {
    let (sign, since) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => ("", since),
        Err(before) => ("-", before.duration()),
    };
    let text = format!("{sign}{}.{:09}", since.as_secs(), since.subsec_nanos());
    Some(text.trim_end_matches('0').trim_end_matches('.').into())
}

/// Writes a time as whole seconds since 1970.
pub(super) fn whole_seconds(time: SystemTime) -> Option<String> {
    Some(date_time(time)?.timestamp().to_string())
}

/// Writes a time in the form of RFC 3339, in UTC.
pub(super) fn rfc_3339(time: SystemTime) -> Option<String> {
    Some(date_time(time)?.to_rfc3339_opts(SecondsFormat::AutoSi, true))
}

/// Returns the date of a time; `None` if it is too far from now, such as a year after 262143.
fn date_time(time: SystemTime) -> Option<DateTime<Utc>> {
    let (seconds, nanoseconds) = match time.duration_since(UNIX_EPOCH) {
        Ok(since) => (i64::try_from(since.as_secs()).ok()?, since.subsec_nanos()),
        Err(before) => {
            let before = before.duration();
            // Nanoseconds are counted forwards from the full second before the time.
            let is_within = before.subsec_nanos() > 0;
            let seconds = i64::try_from(before.as_secs()).ok()?.checked_neg()?.checked_sub(is_within.into())?;
            (seconds, if is_within { 1_000_000_000 - before.subsec_nanos() } else { 0 })
        }
    };
    DateTime::from_timestamp(seconds, nanoseconds)
}

/// Parses a time in one of the forms that the functions of this module write. Returns `None` if it is invalid.
pub(super) fn parse_modified(text: &str) -> Option<SystemTime> {
    if let Ok(time) = DateTime::parse_from_rfc3339(text) {
        return Some(time.into());
    }
    let (is_before, text) = text.strip_prefix('-').map_or((false, text), |text| (true, text));
    let (seconds, decimals) = text.split_once('.').unwrap_or((text, "0"));
    if decimals.is_empty() || ![seconds, decimals].iter().all(|text| text.bytes().all(|byte| byte.is_ascii_digit())) {
        return None;
    }
    let nanoseconds = format!("{decimals:0<9}")[..9].parse().ok()?;
    let since = Duration::new(seconds.parse().ok()?, nanoseconds);
    if is_before { UNIX_EPOCH.checked_sub(since) } else { UNIX_EPOCH.checked_add(since) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The texts are those that rclone writes for these times.
    #[test]
    fn times_are_written_as_rclone_does_and_read_back() {
        let time = |seconds, nanoseconds| UNIX_EPOCH + Duration::new(seconds, nanoseconds);
        for (time, decimal, rfc) in [
            (time(1_354_040_105, 123_456_789), "1354040105.123456789", "2012-11-27T18:15:05.123456789Z"),
            (time(1_354_040_105, 120_000_000), "1354040105.12", "2012-11-27T18:15:05.120Z"),
            (time(1_354_040_100, 0), "1354040100", "2012-11-27T18:15:00Z"),
            (UNIX_EPOCH - Duration::from_millis(1500), "-1.5", "1969-12-31T23:59:58.500Z"),
        ] {
            assert_eq!((&*decimal_seconds(time).unwrap(), &*rfc_3339(time).unwrap()), (decimal, rfc));
            assert_eq!([decimal, rfc].map(parse_modified), [Some(time); 2]);
        }
        assert_eq!(parse_modified(&whole_seconds(time(5, 9)).unwrap()), Some(time(5, 0)));
        assert_eq!(parse_modified("1.1234567891"), Some(time(1, 123_456_789)));
        assert_eq!(parse_modified("2012-11-27T19:15:05+01:00"), Some(time(1_354_040_105, 0)));
        for wrong in ["", "-", "x", "1.", "1.-5", "--1", "1e9", "99999999999999999999", "é.5"] {
            assert_eq!(parse_modified(wrong), None, "{wrong}");
        }
        // The calendar has no date for such a late time, so the header is left out.
        let late = time(1 << 50, 0);
        assert_eq!((rfc_3339(late), whole_seconds(late)), (None, None));
        assert!(parse_modified(&u64::MAX.to_string()).is_none(), "the time is too late for this machine");
    }

    #[test]
    fn attributes_that_a_store_does_not_keep_are_refused() {
        let some = || Some("x".to_string());
        let with = |attributes: Attributes| attributes.check("az://box/a", "az://", &["metadata", "content_type"]);
        let metadata = |name: &str, value: &str| [(name.to_string(), value.to_string())].into();
        with(Attributes { content_type: some(), metadata: metadata("a-b_c.d", "x y"), ..Attributes::default() })
            .unwrap();
        let error = with(Attributes { acl: some(), ..Attributes::default() }).unwrap_err();
        assert!(matches!(error, Error::UnsupportedOption { option: "acl", store: "az://", .. }), "{error}");
        for (name, value, reason) in
            [("a", "ü", "ASCII"), ("a", "x\n", "ASCII"), ("", "x", "``"), ("a b", "x", "`a b`")]
        {
            let error = with(Attributes { metadata: metadata(name, value), ..Attributes::default() }).unwrap_err();
            assert!(error.to_string().contains(reason), "{error}");
        }
    }
}
