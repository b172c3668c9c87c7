//! The API of Google Cloud DNS, version 1.

use ascertain_netlab::dns::Name;
use ascertain_transfer::Service;
use serde_json::{Value, json};

use super::hosted::{ApiRequest, ChangeStatus, Hosted, Interface, ListedZone, ProviderOptions, Refusal};
use super::providers::{Record, TTL_S};

const ENDPOINT: &str = "https://dns.googleapis.com";
const SCOPE: &str = "https://www.googleapis.com/auth/ndev.clouddns.readwrite";

/// The API for the zones of one project.
struct CloudDns {
    project: String,
}

/// Creates a client for a zone at Cloud DNS, with credentials from the environment.
pub fn open(options: &ProviderOptions) -> Result<Hosted, String> {
    let service = Service::google(ENDPOINT, SCOPE, &options.service_options()).map_err(|failure| failure.message)?;
    let project = options.project.as_deref().or(service.project());
    let project = project.ok_or("the zone's project is unknown; set `project`, or GOOGLE_CLOUD_PROJECT")?;
    let interface = Box::new(CloudDns { project: project.into() });
    Hosted::new(service, interface, options)
}

/// Parses an answer. Returns null if the answer is not JSON.
fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_default()
}

fn listed(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

fn text_of(value: &Value) -> String {
    value.as_str().unwrap_or_default().into()
}

impl CloudDns {
    fn zones_path(&self) -> String {
        format!("/dns/v1/projects/{}/managedZones", self.project)
    }

    fn zone_path(&self, zone_id: &str, rest: &str) -> String {
        format!("{}/{zone_id}{rest}", self.zones_path())
    }
}

impl Interface for CloudDns {
    fn name(&self) -> &'static str {
        "Cloud DNS"
    }

    fn address(&self, zone_id: &str) -> String {
        format!("cloud-dns {} {zone_id}", self.project)
    }

    fn zone_request(&self, zone_id: &str) -> ApiRequest {
        ApiRequest::get(self.zone_path(zone_id, ""), Vec::new())
    }

    fn zones_request(&self, name: &Name) -> ApiRequest {
        ApiRequest::get(self.zones_path(), vec![("dnsName", name.to_ascii())])
    }

    fn change_request(&self, zone_id: &str, record: &Record, is_added: bool) -> ApiRequest {
        // Cloud DNS refuses to add records if the name has some of the same type already. It also refuses to delete
        // records that differ from the given ones. So this request never changes a record of someone else.
        let what = if is_added { "additions" } else { "deletions" };
        let (name, values) = (record.name.to_ascii(), [record.quoted()]);
        let set = json!({ "name": name, "type": "TXT", "ttl": TTL_S, "rrdatas": values });
        let body = json!({ what: [set] }).to_string();
        ApiRequest::post(self.zone_path(zone_id, "/changes"), "application/json", body)
    }

    fn status_request(&self, zone_id: &str, change_id: &str) -> ApiRequest {
        ApiRequest::get(self.zone_path(zone_id, &format!("/changes/{change_id}")), Vec::new())
    }

    fn record_request(&self, zone_id: &str, record: &Record) -> ApiRequest {
        let query = vec![("name", record.name.to_ascii()), ("type", "TXT".into())];
        ApiRequest::get(self.zone_path(zone_id, "/rrsets"), query)
    }

    fn zones(&self, text: &str) -> Option<Vec<ListedZone>> {
        let answer: Value = serde_json::from_str(text).ok()?;
        let is_one = answer["dnsName"].is_string();
        let zones = if is_one { std::slice::from_ref(&answer) } else { listed(&answer["managedZones"]) };
        let listed = |zone: &Value| ListedZone {
            id: text_of(&zone["name"]),
            name: text_of(&zone["dnsName"]),
            is_private: zone["visibility"] == "private",
        };
        Some(zones.iter().map(listed).collect())
    }

    fn change(&self, text: &str) -> Option<ChangeStatus> {
        let change = parse(text);
        Some(ChangeStatus { id: change["id"].as_str()?.into(), is_done: change["status"].as_str()? == "done" })
    }

    fn is_there(&self, text: &str, record: &Record) -> Option<bool> {
        let answer = parse(text);
        let is_ours = |set: &Value| listed(&set["rrdatas"]).contains(&record.quoted().into());
        answer.is_object().then(|| listed(&answer["rrsets"]).iter().any(is_ours))
    }

    fn refusal(&self, text: &str) -> Refusal {
        let error = &parse(text)["error"];
        let reason = listed(&error["errors"]).first().map(|first| text_of(&first["reason"]));
        Refusal { code: reason.unwrap_or_else(|| text_of(&error["status"])), message: text_of(&error["message"]) }
    }

    fn remedy(&self, code: &str) -> Option<&'static str> {
        Some(match code {
            "authError" | "UNAUTHENTICATED" => {
                "get a new token, or name a service account's file in GOOGLE_APPLICATION_CREDENTIALS"
            }
            "forbidden" | "insufficientPermissions" | "PERMISSION_DENIED" => {
                "the credentials need the permissions of roles/dns.admin on the zone, and without zone_id \
                 dns.managedZones.list on the project"
            }
            "accessNotConfigured" => "enable the API dns.googleapis.com for the project",
            "notFound" => "check project and zone_id",
            _ => return None,
        })
    }
}
