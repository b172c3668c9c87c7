//! Cloud DNS' interface, version 1.

use ascertain_netlab::dns::Name;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Service;
use serde_json::{Value, json};

use super::hosted::{Ask, Change, Client, Hosted, Interface, Refusal, Told};
use super::providers::{Record, TTL_S};
use super::route53::one_public;

const ENDPOINT: &str = "https://dns.googleapis.com";
const SCOPE: &str = "https://www.googleapis.com/auth/ndev.clouddns.readwrite";

/// A zone there, by its project and its name in it.
struct CloudDns {
    project: String,
    zone_id: String,
    endpoint: Option<String>,
}

/// A zone of Cloud DNS', found by its name unless it is known which one it is.
pub fn find(zone: &Name, told: &Told, stop: &Stop) -> Result<Hosted, String> {
    let client = client(told)?;
    let project = told.project.as_deref().or(client.project());
    let project = project.ok_or("the zone's project is not known: say --at project=…, or set GOOGLE_CLOUD_PROJECT")?;
    let interface =
        |id: &str| CloudDns { project: project.into(), zone_id: id.into(), endpoint: told.endpoint.clone() };
    let given = interface(told.zone_id.as_deref().unwrap_or_default());
    let ask = match &told.zone_id {
        Some(_) => Ask::get(given.zone()),
        None => Ask { query: vec![("dnsName", zone.to_ascii())], ..Ask::get(given.zones()) },
    };
    let text = client.read(&given, &ask, Some(stop))?;
    let said: Value = serde_json::from_str(&text)
        .map_err(|_| "what answers does not speak Cloud DNS' language: is the endpoint right?")?;
    let all = if told.zone_id.is_some() { std::slice::from_ref(&said) } else { listed(&said["managedZones"]) };
    let text_of = |zone: &'_ Value, key: &str| zone[key].as_str().unwrap_or_default().to_string();
    let zones: Vec<_> = all
        .iter()
        .map(|zone| (text_of(zone, "name"), text_of(zone, "dnsName"), zone["visibility"] == "private"))
        .collect();
    let zones = zones.iter().map(|(id, name, is_private)| (&**id, &**name, *is_private));
    let interface = interface(&one_public("Cloud DNS", zone, told.zone_id.is_some(), zones)?);
    Ok(Hosted::new(client, Box::new(interface), told.limit))
}

/// A zone that is known.
pub fn noted(project: &str, zone_id: &str, told: &Told) -> Result<Hosted, String> {
    let (project, zone_id) = (project.into(), zone_id.into());
    let interface = CloudDns { project, zone_id, endpoint: told.endpoint.clone() };
    Ok(Hosted::new(client(told)?, Box::new(interface), told.limit))
}

fn client(told: &Told) -> Result<Client, String> {
    Client::new(Service::google(ENDPOINT, SCOPE, &told.options()))
}

fn listed(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

impl CloudDns {
    fn zones(&self) -> String {
        format!("/dns/v1/projects/{}/managedZones", self.project)
    }

    fn zone(&self) -> String {
        format!("{}/{}", self.zones(), self.zone_id)
    }
}

impl Interface for CloudDns {
    fn name(&self) -> &'static str {
        "Cloud DNS"
    }

    fn address(&self) -> String {
        let endpoint = self.endpoint.as_ref().map(|endpoint| format!(" {endpoint}")).unwrap_or_default();
        format!("cloud-dns {} {}{endpoint}", self.project, self.zone_id)
    }

    fn change(&self, record: &Record, is_added: bool) -> Ask {
        // A name that has such records already can't have them added, nor others be taken away than are told.
        let what = if is_added { "additions" } else { "deletions" };
        let (name, values) = (record.name.to_ascii(), [record.quoted()]);
        let set = json!({ "name": name, "type": "TXT", "ttl": TTL_S, "rrdatas": values });
        let body = json!({ what: [set] }).to_string();
        Ask { body: Some(("application/json", body)), ..Ask::get(format!("{}/changes", self.zone())) }
    }

    fn status(&self, id: &str) -> Ask {
        Ask::get(format!("{}/changes/{id}", self.zone()))
    }

    fn lookup(&self, record: &Record) -> Ask {
        let query = vec![("name", record.name.to_ascii()), ("type", "TXT".into())];
        Ask { query, ..Ask::get(format!("{}/rrsets", self.zone())) }
    }

    fn changed(&self, text: &str) -> Option<Change> {
        let said: Value = serde_json::from_str(text).ok()?;
        Some(Change { id: said["id"].as_str()?.into(), is_done: said["status"].as_str()? == "done" })
    }

    fn is_there(&self, text: &str, record: &Record) -> Option<bool> {
        let said: Value = serde_json::from_str(text).ok()?;
        let is_ours = |set: &Value| listed(&set["rrdatas"]).contains(&record.quoted().into());
        said.is_object().then(|| listed(&said["rrsets"]).iter().any(is_ours))
    }

    fn refusal(&self, text: &str) -> Refusal {
        let said: Value = serde_json::from_str(text).unwrap_or_default();
        let part = |value: &Value| value.as_str().unwrap_or_default().to_string();
        let error = &said["error"];
        let reason = listed(&error["errors"]).first().map(|first| part(&first["reason"]));
        Refusal { code: reason.unwrap_or_else(|| part(&error["status"])), message: part(&error["message"]) }
    }

    fn way_out(&self, code: &str) -> Option<&'static str> {
        Some(match code {
            "authError" | "UNAUTHENTICATED" => {
                "get a new token, or name a service account's file in GOOGLE_APPLICATION_CREDENTIALS"
            }
            "forbidden" | "insufficientPermissions" | "PERMISSION_DENIED" => {
                "it takes the permissions of roles/dns.admin on the zone, and without zone_id dns.managedZones.list on \
                 the project"
            }
            "accessNotConfigured" => "let the project have the API dns.googleapis.com",
            "notFound" => "look at project and zone_id",
            _ => return None,
        })
    }
}
