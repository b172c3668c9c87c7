//! The API of Route 53, version 2013-04-01.

use ascertain_netlab::dns::Name;
use ascertain_transfer::Service;
use quick_xml::de::from_str;
use quick_xml::escape::escape;
use serde::Deserialize;

use super::hosted::{ApiRequest, ChangeStatus, Hosted, Interface, ListedZone, ProviderOptions, Refusal, bare_id};
use super::providers::{Record, TTL_S};

const API: &str = "/2013-04-01";

struct Route53;

/// The XML elements that answers of the API may contain. Each answer contains one of them.
#[derive(Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
struct Response {
    change_info: Option<ChangeInfo>,
    hosted_zone: Option<Zone>,
    hosted_zones: Option<List<Zone>>,
    resource_record_sets: Option<List<RecordSet>>,
    /// The error in the usual form. If the API refuses a batch of changes, `messages` contains the error instead, in an
    /// older form.
    error: Option<Error>,
    messages: Option<List<String>>,
}

/// An XML element that contains a list of child elements.
#[derive(Deserialize)]
struct List<T> {
    #[serde(rename = "$value", default = "Vec::new")]
    items: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct ChangeInfo {
    id: String,
    status: String,
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
struct RecordSet {
    name: String,
    #[serde(rename = "Type")]
    kind: String,
    /// The values of the records; `None` for an alias.
    resource_records: Option<List<List<String>>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Error {
    code: String,
    #[serde(default)]
    message: String,
}

/// Creates a client for a zone at Route 53, with credentials from the environment.
pub fn open(options: &ProviderOptions) -> Result<Hosted, String> {
    let service = Service::aws_global("route53", "route_53", &options.service_options());
    Hosted::new(service.map_err(|failure| failure.message)?, Box::new(Route53), options)
}

fn parse(text: &str) -> Response {
    from_str(text).unwrap_or_default()
}

impl Interface for Route53 {
    fn name(&self) -> &'static str {
        "Route 53"
    }

    fn address(&self, zone_id: &str) -> String {
        format!("route53 {zone_id}")
    }

    fn zone_request(&self, zone_id: &str) -> ApiRequest {
        ApiRequest::get(format!("{API}/hostedzone/{zone_id}"), Vec::new())
    }

    fn zones_request(&self, name: &Name) -> ApiRequest {
        ApiRequest::get(format!("{API}/hostedzonesbyname"), vec![("dnsname", name.to_ascii())])
    }

    fn change_request(&self, zone_id: &str, record: &Record, is_added: bool) -> ApiRequest {
        // UPSERT would replace other records with the same name.
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
        ApiRequest::post(format!("{API}/hostedzone/{zone_id}/rrset"), "application/xml", body)
    }

    fn status_request(&self, _: &str, change_id: &str) -> ApiRequest {
        ApiRequest::get(format!("{API}/change/{change_id}"), Vec::new())
    }

    fn record_request(&self, zone_id: &str, record: &Record) -> ApiRequest {
        let query = vec![("name", record.name.to_ascii()), ("type", "TXT".into()), ("maxitems", "1".into())];
        ApiRequest::get(format!("{API}/hostedzone/{zone_id}/rrset"), query)
    }

    fn zones(&self, text: &str) -> Option<Vec<ListedZone>> {
        let Response { hosted_zone, hosted_zones, .. } = parse(text);
        let zones = hosted_zone.map(|zone| vec![zone]).or(hosted_zones.map(|zones| zones.items))?;
        let listed = |Zone { id, name, config }| ListedZone { id, name, is_private: config.private_zone };
        Some(zones.into_iter().map(listed).collect())
    }

    fn change(&self, text: &str) -> Option<ChangeStatus> {
        let ChangeInfo { id, status } = parse(text).change_info?;
        Some(ChangeStatus { id: bare_id(&id).into(), is_done: status == "INSYNC" })
    }

    fn is_there(&self, text: &str, record: &Record) -> Option<bool> {
        let sets = parse(text).resource_record_sets?;
        let is_ours = |values: &List<String>| values.items.contains(&record.quoted());
        let is_it = |set: &RecordSet| {
            let is_its_name = Name::from_ascii(&set.name).is_ok_and(|name| name == record.name);
            is_its_name
                && set.kind == "TXT"
                && set.resource_records.iter().flat_map(|records| &records.items).any(is_ours)
        };
        Some(sets.items.iter().any(is_it))
    }

    fn refusal(&self, text: &str) -> Refusal {
        match parse(text) {
            Response { error: Some(Error { code, message }), .. } => Refusal { code, message },
            Response { messages: Some(messages), .. } => {
                Refusal { code: "InvalidChangeBatch".into(), message: messages.items.join(" ") }
            }
            _ => Refusal::default(),
        }
    }

    fn remedy(&self, code: &str) -> Option<&'static str> {
        Some(match code {
            "InvalidClientTokenId" | "UnrecognizedClientException" | "MissingAuthenticationToken" => {
                "check AWS_ACCESS_KEY_ID, or the profile of AWS_PROFILE"
            }
            "SignatureDoesNotMatch" | "IncompleteSignature" => {
                "check AWS_SECRET_ACCESS_KEY, or the profile of AWS_PROFILE, and the clock"
            }
            "ExpiredToken" | "ExpiredTokenException" | "RequestExpired" => "the token has expired; get a new one",
            "AccessDenied" | "AccessDeniedException" => {
                "the credentials need route53:ChangeResourceRecordSets, route53:ListResourceRecordSets and \
                 route53:GetHostedZone on the zone, route53:GetChange, and without zone_id route53:ListHostedZonesByName"
            }
            "NoSuchHostedZone" => "check zone_id",
            "Throttling" | "ThrottlingException" => "other clients use up the account's five requests per second",
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The answers in this test are those of the API's documentation.
    #[test]
    fn answers_are_understood() {
        let zone = "<HostedZone><Id>/hostedzone/Z1</Id><Name>a.example.</Name><Config><Comment/><PrivateZone>true\
                    </PrivateZone></Config><ResourceRecordSetCount>2</ResourceRecordSetCount></HostedZone>";
        for text in [
            format!("<?xml version=\"1.0\"?>\n<GetHostedZoneResponse>{zone}<DelegationSet/></GetHostedZoneResponse>"),
            format!(
                "<ListHostedZonesByNameResponse>\n  <HostedZones>\n{zone}\n</HostedZones></ListHostedZonesByNameResponse>"
            ),
        ] {
            let zones = Route53.zones(&text).unwrap();
            assert_eq!((zones.len(), &*zones[0].id, &*zones[0].name), (1, "/hostedzone/Z1", "a.example."), "{text}");
            assert!(zones[0].is_private);
        }
        assert_eq!(Route53.zones("<R><HostedZones/></R>").map(|zones| zones.len()), Some(0));
        assert!(Route53.zones("<html><body>").is_none() && Route53.zones("{}").is_none());
        let name = Name::from_ascii("b.example.").unwrap();
        let record = Record { zone: name.base_name(), name, text: "ours".into() };
        let sets = |values: &str| {
            format!(
                "<R><ResourceRecordSets><ResourceRecordSet><Name>x.example.</Name><Type>A</Type><AliasTarget/>\
                 </ResourceRecordSet><ResourceRecordSet><Name>b.example.</Name><Type>TXT</Type><TTL>1</TTL>\
                 <ResourceRecords>{values}</ResourceRecords></ResourceRecordSet></ResourceRecordSets></R>"
            )
        };
        let value = |text: &str| format!("<ResourceRecord><Value>\"{text}\"</Value></ResourceRecord>");
        for (values, is_there) in
            [(value("theirs") + &value("ours"), true), (value("theirs"), false), (String::new(), false)]
        {
            assert_eq!(Route53.is_there(&sets(&values), &record), Some(is_there), "{values}");
        }
        assert_eq!(Route53.is_there("<R/>", &record), None);
        let refusal = Route53.refusal("<InvalidChangeBatch><Messages><Message>one</Message><Message>two</Message></Messages></InvalidChangeBatch>");
        assert_eq!((&*refusal.code, &*refusal.message), ("InvalidChangeBatch", "one two"));
    }
}
