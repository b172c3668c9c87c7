//! The operations of Cloud DNS's API (version 1) that are needed to change records.

use serde_json::{Value, json};

use super::HostedZone;
use super::records::{Conflict, RecordChange, RecordSet, canonical};
use super::running::{ProviderRequest, State};
use super::tokens;
use crate::store::Answer;
use crate::threads::lock;

pub(super) fn json(status: u16, document: &Value) -> Answer {
    let mut answer = Answer::new(status).header("content-type", "application/json; charset=UTF-8");
    answer.content = vec![document.to_string().into()];
    answer
}

fn refused(code: u16, reason: &str, message: &str) -> Answer {
    let errors = json!([{ "message": message, "domain": "global", "reason": reason }]);
    json(code, &json!({ "error": { "code": code, "message": message, "errors": errors } }))
}

pub(super) fn answer(state: &State, request: &ProviderRequest) -> Answer {
    let (method, path) = (request.head.method.as_str(), request.head.raw_path.as_str());
    if (method, path) == ("POST", "/token") {
        return tokens::answer(state, request);
    }
    let token = request.head.header("authorization").strip_prefix("Bearer ").unwrap_or_default();
    if !lock(&state.shared).tokens.holds(token, state.now()) {
        return refused(401, "authError", "The request has no valid token.");
    }
    if state.is_too_often(request) {
        return refused(403, "rateLimitExceeded", "Rate Limit Exceeded");
    }
    let parts: Vec<&str> = path.split('/').skip(1).collect();
    let ["dns", "v1", "projects", project, "managedZones", rest @ ..] = &parts[..] else {
        return refused(404, "notFound", "This request is not supported.");
    };
    if *project != "project" {
        return refused(403, "forbidden", &format!("You have no access to the project {project}."));
    }
    let [id, rest @ ..] = rest else { return list_zones(state, request) };
    let Some(zone) = state.zone(id) else {
        return refused(404, "notFound", &format!("The 'parameters.managedZone' named '{id}' does not exist."));
    };
    match (method, rest) {
        ("GET", []) => json(200, &shown(zone)),
        ("POST", ["changes"]) => change(state, zone, &request.body),
        ("GET", ["changes", id]) => match lock(&state.shared).changes.get(*id) {
            Some(since_ns) => json(200, &change_of(id, state.is_done(*since_ns))),
            None => refused(404, "notFound", &format!("The 'parameters.changeId' named '{id}' does not exist.")),
        },
        ("GET", ["rrsets"]) => list(state, zone, request),
        _ => refused(404, "notFound", "This request is not supported."),
    }
}

fn shown(HostedZone { id, name, is_private, .. }: &HostedZone) -> Value {
    let visibility = if *is_private { "private" } else { "public" };
    json!({ "kind": "dns#managedZone", "name": id, "dnsName": name, "visibility": visibility })
}

fn list_zones(state: &State, request: &ProviderRequest) -> Answer {
    let name = request.head.parameter("dnsName");
    let zones = state.provider.zones.iter().filter(|zone| name.is_none_or(|name| name == zone.name));
    json(200, &json!({ "kind": "dns#managedZonesListResponse", "managedZones": zones.map(shown).collect::<Vec<_>>() }))
}

fn list(state: &State, zone: &HostedZone, request: &ProviderRequest) -> Answer {
    let (name, kind) = (request.head.parameter("name"), request.head.parameter("type"));
    let shared = lock(&state.shared);
    let is_asked =
        |set: &&RecordSet| name.is_none_or(|name| name == set.name) && kind.is_none_or(|kind| kind == set.kind);
    let sets = shared.records.in_zone(zone).filter(is_asked).map(|RecordSet { name, kind, ttl_s, values }| {
        json!({ "name": name, "type": kind, "ttl": ttl_s, "rrdatas": values })
    });
    json(200, &json!({ "kind": "dns#resourceRecordSetsListResponse", "rrsets": sets.collect::<Vec<_>>() }))
}

/// Parses a record set; `None` if the JSON is invalid.
fn record_set(json: &Value) -> Option<RecordSet> {
    let values = json["rrdatas"].as_array()?.iter().map(|value| value.as_str().map(String::from));
    Some(RecordSet {
        name: canonical(json["name"].as_str()?),
        kind: json["type"].as_str()?.into(),
        ttl_s: json["ttl"].as_u64()?.try_into().ok()?,
        values: values.collect::<Option<_>>()?,
    })
}

fn parse_changes(body: &[u8]) -> Option<Vec<RecordChange>> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let sets = |name: &str, is_added| {
        let sets = body[name].as_array().into_iter().flatten();
        sets.map(move |set| Some(RecordChange { set: record_set(set)?, is_added }))
    };
    let changes: Vec<_> = sets("deletions", false).chain(sets("additions", true)).collect::<Option<_>>()?;
    (!changes.is_empty()).then_some(changes)
}

fn change(state: &State, zone: &HostedZone, body: &[u8]) -> Answer {
    let Some(changes) = parse_changes(body) else { return refused(400, "invalid", "The change is invalid.") };
    let mut shared = lock(&state.shared);
    let named = |what, set: &RecordSet| format!("The 'entity.change.{what}[0]' named '{} ({})'", set.name, set.kind);
    match shared.records.change(zone, changes) {
        Ok(()) => {
            let id = shared.changed();
            json(200, &change_of(&id, false))
        }
        Err(Conflict::Exists(set)) => {
            refused(409, "alreadyExists", &format!("{} already exists", named("additions", &set)))
        }
        Err(Conflict::Missing(set)) => {
            refused(404, "notFound", &format!("{} does not exist.", named("deletions", &set)))
        }
        Err(Conflict::Differs(set)) => {
            refused(412, "conditionNotMet", &format!("{} has other values.", named("deletions", &set)))
        }
        Err(Conflict::Invalid(why)) => refused(400, "invalid", &why),
    }
}

fn change_of(id: &str, is_done: bool) -> Value {
    json!({ "kind": "dns#change", "id": id, "status": if is_done { "done" } else { "pending" } })
}
