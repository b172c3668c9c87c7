//! Route 53's interface, of 2013-04-01.

use ascertain_netlab::dns::Name;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::Service;
use quick_xml::de::from_str;
use quick_xml::escape::escape;
use serde::Deserialize;

use super::hosted::{Ask, Change, Client, Hosted, Interface, Refusal, Told};
use super::providers::{Record, TTL_S};

const API: &str = "/2013-04-01";

/// A zone there, by its number.
struct Route53 {
    zone_id: String,
    endpoint: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Changed {
    change_info: ChangeInfo,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeInfo {
    id: String,
    status: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Zones {
    hosted_zones: Listed,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Listed {
    #[serde(default)]
    hosted_zone: Vec<Zone>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct One {
    hosted_zone: Zone,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Zone {
    id: String,
    name: String,
    config: Config,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Config {
    private_zone: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Sets {
    resource_record_sets: SetList,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct SetList {
    #[serde(default)]
    resource_record_set: Vec<Set>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Set {
    name: String,
    #[serde(rename = "Type")]
    kind: String,
    #[serde(default)]
    resource_records: Values,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Values {
    #[serde(default)]
    resource_record: Vec<Value>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Value {
    value: String,
}

/// Most errors are in an element of their own; that of a batch, the older way, has messages alone.
#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Refused {
    error: Option<Error>,
    messages: Option<Messages>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Error {
    code: String,
    #[serde(default)]
    message: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Messages {
    #[serde(default)]
    message: Vec<String>,
}

/// A zone of Route 53's, found by its name unless it is known which one it is.
pub fn find(zone: &Name, told: &Told, stop: &Stop) -> Result<Hosted, String> {
    let client = client(told)?;
    let interface = |id: &str| Route53 { zone_id: bare(id).into(), endpoint: told.endpoint.clone() };
    let given = interface(told.zone_id.as_deref().unwrap_or_default());
    let is_named = told.zone_id.is_some();
    let ask = if is_named {
        Ask::get(format!("{API}/hostedzone/{}", given.zone_id))
    } else {
        Ask { query: vec![("dnsname", zone.to_ascii())], ..Ask::get(format!("{API}/hostedzonesbyname")) }
    };
    let text = client.read(&given, &ask, Some(stop))?;
    let zones = if is_named {
        from_str(&text).map(|One { hosted_zone }| vec![hosted_zone])
    } else {
        from_str(&text).map(|Zones { hosted_zones }| hosted_zones.hosted_zone)
    };
    let zones = zones.map_err(|_| "what answers does not speak Route 53's language: is the endpoint right?")?;
    let zones = zones.iter().map(|Zone { id, name, config }| (bare(id), &**name, config.private_zone));
    let id = one_public("Route 53", zone, is_named, zones)?;
    Ok(Hosted::new(client, Box::new(interface(&id)), told.limit))
}

/// The only zone of that name that all may see, of its provider's number, name, and whether it is private.
pub fn one_public<'a>(
    provider: &str,
    zone: &Name,
    is_named: bool,
    zones: impl Iterator<Item = (&'a str, &'a str, bool)>,
) -> Result<String, String> {
    let of_name = |name: &str| Name::from_ascii(name).is_ok_and(|name| name == *zone);
    let (of_name, others): (Vec<_>, Vec<_>) = zones.partition(|(_, name, _)| of_name(name));
    let public: Vec<&str> = of_name.iter().filter(|(_, _, is_private)| !is_private).map(|(id, ..)| *id).collect();
    match public[..] {
        [id] => Ok(id.into()),
        [] if !of_name.is_empty() => {
            Err(format!("{zone} is private at {provider}: nobody outside of its networks is told of it"))
        }
        [] => match others.first().filter(|_| is_named) {
            Some((id, name, _)) => Err(format!("{id} is {name} at {provider}, and not {zone}")),
            None => Err(format!("{provider} has no zone {zone} for these credentials")),
        },
        _ => Err(format!("{provider} has {} zones {zone}: say --at zone_id={}", public.len(), public.join(" or "))),
    }
}

/// A zone that is known.
pub fn noted(zone_id: &str, told: &Told) -> Result<Hosted, String> {
    let interface = Route53 { zone_id: zone_id.into(), endpoint: told.endpoint.clone() };
    Ok(Hosted::new(client(told)?, Box::new(interface), told.limit))
}

fn client(told: &Told) -> Result<Client, String> {
    Client::new(Service::aws_global("route53", "AWS_ENDPOINT_URL_ROUTE_53", &told.options()))
}

/// A number without the kind of thing that it is of.
fn bare(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

impl Interface for Route53 {
    fn name(&self) -> &'static str {
        "Route 53"
    }

    fn address(&self) -> String {
        let endpoint = self.endpoint.as_ref().map(|endpoint| format!(" {endpoint}")).unwrap_or_default();
        format!("route53 {}{endpoint}", self.zone_id)
    }

    fn change(&self, record: &Record, is_added: bool) -> Ask {
        // Not UPSERT: that would replace what others have put there.
        let action = if is_added { "CREATE" } else { "DELETE" };
        let (name, text) = (record.name.to_ascii(), record.quoted());
        let (name, text) = (escape(&*name), escape(&*text));
        let set = format!(
            "<Name>{name}</Name><Type>TXT</Type><TTL>{TTL_S}</TTL><ResourceRecords><ResourceRecord>\
             <Value>{text}</Value></ResourceRecord></ResourceRecords>"
        );
        let change = format!("<Change><Action>{action}</Action><ResourceRecordSet>{set}</ResourceRecordSet></Change>");
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<ChangeResourceRecordSetsRequest \
             xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\"><ChangeBatch><Changes>{change}</Changes>\
             </ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        let ask = Ask::get(format!("{API}/hostedzone/{}/rrset", self.zone_id));
        Ask { body: Some(("application/xml", body)), ..ask }
    }

    fn status(&self, id: &str) -> Ask {
        Ask::get(format!("{API}/change/{id}"))
    }

    fn lookup(&self, record: &Record) -> Ask {
        let query = vec![("name", record.name.to_ascii()), ("type", "TXT".into()), ("maxitems", "1".into())];
        Ask { query, ..Ask::get(format!("{API}/hostedzone/{}/rrset", self.zone_id)) }
    }

    fn changed(&self, text: &str) -> Option<Change> {
        let Changed { change_info: ChangeInfo { id, status } } = from_str(text).ok()?;
        Some(Change { id: bare(&id).into(), is_done: status == "INSYNC" })
    }

    fn is_there(&self, text: &str, record: &Record) -> Option<bool> {
        let Sets { resource_record_sets } = from_str(text).ok()?;
        let is_ours = |value: &Value| value.value == record.quoted();
        let is_it = |set: &Set| {
            let is_its_name = Name::from_ascii(&set.name).is_ok_and(|name| name == record.name);
            is_its_name && set.kind == "TXT" && set.resource_records.resource_record.iter().any(is_ours)
        };
        Some(resource_record_sets.resource_record_set.iter().any(is_it))
    }

    fn refusal(&self, text: &str) -> Refusal {
        match from_str(text) {
            Ok(Refused { error: Some(Error { code, message }), .. }) => Refusal { code, message },
            Ok(Refused { messages: Some(Messages { message }), .. }) => {
                Refusal { code: "InvalidChangeBatch".into(), message: message.join(" ") }
            }
            _ => Refusal::default(),
        }
    }

    fn way_out(&self, code: &str) -> Option<&'static str> {
        Some(match code {
            "InvalidClientTokenId" | "UnrecognizedClientException" | "MissingAuthenticationToken" => {
                "look at AWS_ACCESS_KEY_ID, or the profile of AWS_PROFILE"
            }
            "SignatureDoesNotMatch" | "IncompleteSignature" => {
                "look at AWS_SECRET_ACCESS_KEY, or the profile of AWS_PROFILE, and at the clock"
            }
            "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => "the token has expired: get a new one",
            "AccessDenied" | "AccessDeniedException" => {
                "it takes route53:ChangeResourceRecordSets, route53:ListResourceRecordSets and route53:GetHostedZone \
                 on the zone, route53:GetChange, and without zone_id route53:ListHostedZonesByName"
            }
            "NoSuchHostedZone" => "look at zone_id",
            "Throttling" | "ThrottlingException" => "somebody else uses up the account's five requests a second",
            _ => return None,
        })
    }
}
