//! The operations of Route 53's API (version 2013-04-01) that are needed to change records.

use super::records::{Conflict, RecordChange, RecordSet, canonical};
use super::running::{ProviderRequest, State};
use super::{HostedZone, Provider};
use crate::store::sigv4::{self, Keys};
use crate::store::{Answer, Refusal, elements, escape};
use crate::threads::lock;

const PREFIX: &str = "/2013-04-01/";

fn refused(status: u16, code: &str, message: &str) -> Answer {
    let kind = if status < 500 { "Sender" } else { "Receiver" };
    let message = escape(message);
    let error = format!("<Error><Type>{kind}</Type><Code>{code}</Code><Message>{message}</Message></Error>");
    Answer::new(status).with_xml(&format!("<ErrorResponse>{error}<RequestId>0</RequestId></ErrorResponse>"))
}

pub(super) fn answer(state: &State, request: &ProviderRequest) -> Answer {
    let Provider { account, secret, .. } = &state.provider;
    let keys = Keys { account, secret, service: "route53", region: "us-east-1" };
    if let Err(refusal) = sigv4::verify_body(&request.head, keys, &request.body) {
        return unsigned(&refusal);
    }
    if state.is_too_often(request) {
        return refused(400, "Throttling", "Rate exceeded");
    }
    let path = request.head.raw_path.strip_prefix(PREFIX).unwrap_or_default().trim_end_matches('/');
    let parts: Vec<&str> = path.split('/').collect();
    let zone = |id: &str| {
        state
            .zone(id)
            .ok_or_else(|| refused(404, "NoSuchHostedZone", &format!("There is no hosted zone with ID: {id}")))
    };
    let answered = match (request.head.method.as_str(), &parts[..]) {
        ("GET", ["hostedzonesbyname"]) => Ok(list_zones(state, request)),
        ("GET", ["hostedzone", id]) => zone(id).map(|zone| document("GetHostedZoneResponse", &shown(zone))),
        ("POST", ["hostedzone", id, "rrset"]) => zone(id).map(|zone| change(state, zone, &request.body)),
        ("GET", ["hostedzone", id, "rrset"]) => zone(id).map(|zone| list(state, zone, request)),
        ("GET", ["change", id]) => Ok(status_of(state, id)),
        _ => Err(refused(404, "UnknownOperationException", "This request is not supported.")),
    };
    answered.unwrap_or_else(|refusal| refusal)
}

/// Converts the reason why a signature is refused into Route 53's answer. Route 53 uses the same signatures as S3, but
/// other error codes.
fn unsigned(refusal: &Refusal) -> Answer {
    let code = match refusal.code {
        "InvalidAccessKeyId" => "InvalidClientTokenId",
        "AccessDenied" => "MissingAuthenticationToken",
        "AuthorizationHeaderMalformed" => "IncompleteSignature",
        // Route 53 reports an old date as a wrong signature, too.
        _ => "SignatureDoesNotMatch",
    };
    refused(403, code, &refusal.message)
}

fn document(name: &str, content: &str) -> Answer {
    Answer::xml(&format!("<{name} xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">{content}</{name}>"))
}

fn shown(HostedZone { id, name, is_private, .. }: &HostedZone) -> String {
    format!(
        "<HostedZone><Id>/hostedzone/{id}</Id><Name>{name}</Name><CallerReference>0</CallerReference><Config>\
         <PrivateZone>{is_private}</PrivateZone></Config></HostedZone>"
    )
}

/// Lists the zones from the requested name on. They are sorted by their names, which are compared label by label from
/// the last label to the first.
fn list_zones(state: &State, request: &ProviderRequest) -> Answer {
    let reversed = |name: &str| canonical(name).split('.').rev().map(String::from).collect::<Vec<_>>();
    let from = request.head.parameter("dnsname").map(reversed).unwrap_or_default();
    let most: usize = request.head.parameter("maxitems").and_then(|most| most.parse().ok()).unwrap_or(100);
    let mut zones: Vec<&HostedZone> = state.provider.zones.iter().filter(|zone| reversed(&zone.name) >= from).collect();
    zones.sort_by_key(|zone| reversed(&zone.name));
    let is_truncated = zones.len() > most;
    let zones: String = zones.into_iter().take(most).map(shown).collect();
    let content = format!("<HostedZones>{zones}</HostedZones><IsTruncated>{is_truncated}</IsTruncated>");
    document("ListHostedZonesByNameResponse", &content)
}

fn list(state: &State, zone: &HostedZone, request: &ProviderRequest) -> Answer {
    let from = request.head.parameter("name").map(canonical).unwrap_or_default();
    let shared = lock(&state.shared);
    let sets = shared.records.in_zone(zone).filter(|set| set.name >= from).map(|set| {
        let RecordSet { name, kind, ttl_s, values } = set;
        let values: String = values
            .iter()
            .map(|value| format!("<ResourceRecord><Value>{}</Value></ResourceRecord>", escape(value.as_str())))
            .collect();
        format!(
            "<ResourceRecordSet><Name>{name}</Name><Type>{kind}</Type><TTL>{ttl_s}</TTL><ResourceRecords>{values}\
             </ResourceRecords></ResourceRecordSet>"
        )
    });
    let sets: String = sets.collect();
    document("ListResourceRecordSetsResponse", &format!("<ResourceRecordSets>{sets}</ResourceRecordSets>"))
}

/// Parses the changes in a request; `None` if the request is invalid.
fn parse_changes(body: &[u8]) -> Option<Vec<RecordChange>> {
    let mut all = Vec::new();
    let (mut action, mut name, mut kind, mut ttl_s, mut values) = (None, None, None, None, Vec::new());
    for (element, text) in elements(body)? {
        match element.as_str() {
            "Action" => action = Some(text),
            "Name" => name = Some(canonical(&text)),
            "Type" => kind = Some(text),
            "TTL" => ttl_s = Some(text.parse().ok()?),
            "Value" => values.push(text),
            "Change" => {
                let values = std::mem::take(&mut values);
                let set = RecordSet { name: name.take()?, kind: kind.take()?, ttl_s: ttl_s.take()?, values };
                let is_added = match action.take()?.as_str() {
                    "CREATE" => true,
                    "DELETE" => false,
                    _ => return None,
                };
                all.push(RecordChange { set, is_added });
            }
            _ => {}
        }
    }
    (!all.is_empty()).then_some(all)
}

fn change(state: &State, zone: &HostedZone, body: &[u8]) -> Answer {
    let Some(changes) = parse_changes(body) else {
        return refused(400, "InvalidInput", "The change is invalid: only CREATE and DELETE are supported.");
    };
    let mut shared = lock(&state.shared);
    match shared.records.change(zone, changes) {
        Ok(()) => {
            let id = shared.changed();
            document("ChangeResourceRecordSetsResponse", &change_info(&id, false))
        }
        Err(conflict) => refused(400, "InvalidChangeBatch", &in_words(&conflict)),
    }
}

fn in_words(conflict: &Conflict) -> String {
    let named = |set: &RecordSet| format!("the record set [name='{}', type='{}']", set.name, set.kind);
    match conflict {
        Conflict::Exists(set) => format!("[{} can't be created: it already exists]", named(set)),
        Conflict::Missing(set) => format!("[{} can't be deleted: it was not found]", named(set)),
        Conflict::Differs(set) => format!("[{} can't be deleted: it has other values]", named(set)),
        Conflict::Invalid(why) => format!("[{why}]"),
    }
}

fn status_of(state: &State, id: &str) -> Answer {
    match lock(&state.shared).changes.get(id) {
        Some(since_ns) => document("GetChangeResponse", &change_info(id, state.is_done(*since_ns))),
        None => refused(404, "NoSuchChange", &format!("There is no change with ID: {id}")),
    }
}

fn change_info(id: &str, is_done: bool) -> String {
    let status = if is_done { "INSYNC" } else { "PENDING" };
    format!("<ChangeInfo><Id>/change/{id}</Id><Status>{status}</Status></ChangeInfo>")
}
