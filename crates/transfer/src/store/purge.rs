//! Removes everything that S3 or GCS keeps under one name, and recognises buckets whose objects cannot be removed.
//!
//! Each list requests the entries of one name, and entries with other names are ignored.

use serde::Deserialize;

use super::Result;
use super::client::{Call, Client, Headers};
use super::dialect::Dialect;
use crate::{Attempt, Kind};

/// Returns the query parameter that names the version of an object.
pub fn version_key(dialect: Dialect) -> &'static str {
    if dialect == Dialect::Google { "generation" } else { "versionId" }
}

/// Removes the object `name`, then its versions, and aborts its unfinished uploads.
pub async fn purge(client: &Client, dialect: Dialect, name: &str, attempt: &mut Attempt) -> Result<()> {
    client.delete(name, &[], Headers::new(), attempt).await?;
    for id in uploads(client, name, attempt).await? {
        client.delete(name, &[("uploadId", &*id)], Headers::new(), attempt).await?;
    }
    for version in versions(client, name, attempt).await? {
        client.delete(name, &[(version_key(dialect), &*version)], Headers::new(), attempt).await?;
    }
    Ok(())
}

/// Returns the ids of the unfinished uploads of an object.
async fn uploads(client: &Client, name: &str, attempt: &mut Attempt) -> Result<Vec<String>> {
    let query = &[("uploads", ""), ("prefix", name)];
    let permission = "s3:ListBucketMultipartUploads (GCS: storage.multipartUploads.list)";
    let Some(text) = listed(client, name, (query, permission), attempt).await? else { return Ok(Vec::new()) };
    let list: Uploads = client.parse(name, &text)?;
    Ok(list.uploads.into_iter().filter(|upload| upload.key == name).map(|upload| upload.upload_id).collect())
}

/// Returns the versions and the delete markers of an object.
async fn versions(client: &Client, name: &str, attempt: &mut Attempt) -> Result<Vec<String>> {
    let query = &[("versions", ""), ("prefix", name)];
    let permission = "s3:ListBucketVersions (GCS: storage.objects.list)";
    let Some(text) = listed(client, name, (query, permission), attempt).await? else { return Ok(Vec::new()) };
    let list: Versions = client.parse(name, &text)?;
    let entries = list.entries.into_iter().filter_map(|entry| match entry {
        Entry::Version(version) | Entry::DeleteMarker(version) => Some(version),
        Entry::Other => None,
    });
    let of_name = entries.filter(|version| version.key == name);
    // A bucket that no longer keeps versions has entries with the version `null`.
    Ok(of_name.filter_map(|version| version.version_id.or(version.generation)).collect())
}

/// Describes the rule of a bucket that keeps new objects from being removed.
///
/// # Errors
/// Fails if the rules cannot be read, because objects may then stay.
pub async fn retention(client: &Client, dialect: Dialect, attempt: &mut Attempt) -> Result<Option<String>> {
    if dialect == Dialect::Google {
        return google_retention(client, attempt).await;
    }
    let call = Call { query: &[("object-lock", "")], ..Call::default() };
    let answer = client.send_for_text(call, attempt).await;
    let Some(text) = setting(client, answer, "s3:GetBucketObjectLockConfiguration")? else { return Ok(None) };
    let has_rule = text.contains("<Rule>") && text.contains("<DefaultRetention>");
    Ok(has_rule.then(|| "a default retention (Object Lock)".into()))
}

/// Reads the rules of a bucket of GCS from its JSON interface, because the XML interface does not show them.
async fn google_retention(client: &Client, attempt: &mut Attempt) -> Result<Option<String>> {
    let Some((endpoint, bucket)) = client.configured_base().rsplit_once('/') else { return Ok(None) };
    let base = format!("{endpoint}/storage/v1/b/{bucket}");
    let query = &[("fields", "retentionPolicy,defaultEventBasedHold")];
    let answer = client.send_for_text(Call { base: Some(&base), query, ..Call::default() }, attempt).await;
    let Some(text) = setting(client, answer, "storage.buckets.get")? else { return Ok(None) };
    let rules: GoogleRules = serde_json::from_str(&text).unwrap_or_default();
    let policy = rules.retention_policy.map(|_| "a retention policy");
    Ok(policy.or(rules.default_event_based_hold.then_some("a default event-based hold")).map(String::from))
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct GoogleRules {
    retention_policy: Option<serde_json::Value>,
    default_event_based_hold: bool,
}

/// Requests a list, and returns the text of the answer. `None` if the store does not support the operation. If the list
/// is denied, the failure names the `permission` that it needs.
async fn listed(
    client: &Client,
    name: &str,
    (query, permission): (&[(&str, &str)], &str),
    attempt: &mut Attempt,
) -> Result<Option<String>> {
    match client.send_for_text(Call { query, ..Call::default() }, attempt).await {
        Ok((_, text)) => Ok(Some(text)),
        Err(failure) if matches!(attempt.status, Some(405 | 501)) || failure.message.contains("NotImplemented") => {
            Ok(None)
        }
        Err(failure) if failure.kind == Kind::Denied && !failure.concerns_whole_store => {
            let message = format!("its versions and uploads could not be listed, which needs {permission}: ");
            Err(client.failure(name, Kind::Denied, &(message + &failure.message)))
        }
        Err(failure) => Err(failure),
    }
}

/// Returns the text of an answer about a setting of the bucket. `None` if the bucket has no such setting, or if the
/// store does not know it. If the answer is denied, the failure names the `permission` that it needs.
fn setting(
    client: &Client,
    answer: Result<(super::transport::Response, String)>,
    permission: &str,
) -> Result<Option<String>> {
    match answer {
        Ok((_, text)) => Ok(Some(text)),
        Err(failure) if failure.kind == Kind::Denied && !failure.concerns_whole_store => {
            let message = format!("the store does not show whether objects can be removed, which needs {permission}: ");
            Err(client.failure("", Kind::Denied, &(message + &failure.message)))
        }
        Err(failure) if failure.concerns_whole_store || matches!(failure.kind, Kind::Transient(_)) => Err(failure),
        // Stores without the operation answer with various errors.
        Err(_) => Ok(None),
    }
}

#[derive(Deserialize)]
struct Uploads {
    #[serde(rename = "Upload", default)]
    uploads: Vec<Unfinished>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Unfinished {
    key: String,
    upload_id: String,
}

#[derive(Deserialize)]
struct Versions {
    #[serde(rename = "$value", default)]
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
enum Entry {
    Version(Version),
    DeleteMarker(Version),
    #[serde(other)]
    Other,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Version {
    key: String,
    version_id: Option<String>,
    generation: Option<String>,
}
