//! Tests of zones at providers with an HTTP API. The providers are simulated by netlab within this process, and check
//! all requests.

use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

use ascertain_engine::experiment::Experiment;
use ascertain_netlab::dns::{Name, ZoneServer};
use ascertain_netlab::provider::{HostedZone, Interface, Provider as ProviderSpec, RunningProvider};
use ascertain_transfer::Environment;

use super::super::hosted::{Hosted, ProviderOptions};
use super::super::providers::Provider;
use super::super::rules::is_available;
use super::super::{CLOUD_DNS, DnsPropagation, OURS, RFC2136, ROUTE53, cloud_dns, route53};
use super::tests::{arm_with, patient, served};
use super::*;

/// A private key that does not belong to any account.
const OTHER_KEY: &str = include_str!("other-key.pem");

/// A simulated provider with a zone `example.`.
struct Stand {
    running: RunningProvider,
    zone: ZoneServer,
    addresses: String,
    folder: tempfile::TempDir,
}

impl Stand {
    fn new(interface: Interface, change: impl Fn(ProviderSpec) -> ProviderSpec) -> Self {
        let (zone, addresses) = served(&[1, 300]);
        let zones = vec![HostedZone::new("Z1", "example.", zone.primary())];
        let plan = match interface {
            Interface::Route53 => ProviderSpec::route53(zones),
            Interface::CloudDns => ProviderSpec::cloud_dns(zones),
        };
        // The rate limit is high, because most of these tests are not about it.
        let plan = change(ProviderSpec { requests_per_s: 100, ..plan });
        let running = plan.start(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap()).unwrap();
        Self { running, zone, addresses, folder: tempfile::tempdir().unwrap() }
    }

    /// Returns the environment variables that hold the credentials.
    fn variables(&self) -> Vec<(&'static str, String)> {
        let ProviderSpec { interface, account, secret, .. } = self.running.provider();
        match interface {
            Interface::Route53 => {
                vec![("AWS_ACCESS_KEY_ID", account.clone()), ("AWS_SECRET_ACCESS_KEY", secret.clone())]
            }
            Interface::CloudDns => self.in_file(&self.running.service_account()),
        }
    }

    fn in_file(&self, credentials: &str) -> Vec<(&'static str, String)> {
        let path = self.folder.path().join("credentials.json");
        std::fs::write(&path, credentials).unwrap();
        vec![("GOOGLE_APPLICATION_CREDENTIALS", path.display().to_string())]
    }

    fn options(&self, variables: Vec<(&'static str, String)>) -> ProviderOptions {
        let endpoint = Some(self.running.url().into());
        ProviderOptions {
            environment: variables.into_iter().collect(),
            endpoint,
            limit: Duration::from_secs(60),
            ..ProviderOptions::default()
        }
    }

    fn find(&self, options: &ProviderOptions) -> Result<Hosted, String> {
        let (zone, stop) = (Name::from_ascii("example.").unwrap(), Stop::default());
        match self.running.provider().interface {
            Interface::Route53 => route53::open(options),
            Interface::CloudDns => cloud_dns::open(options),
        }?
        .find(&zone, &stop)
    }

    fn hosted(&self) -> Hosted {
        self.find(&self.options(self.variables())).unwrap()
    }

    fn settling(&self, settling: Duration) -> Hosted {
        let mut hosted = self.hosted();
        hosted.settling = settling;
        hosted
    }

    /// Opens a session that changes the zone at this provider.
    fn updates(&self, hosted: Hosted) -> Updates {
        let primary = self.zone.primary().to_string();
        let levels = [("zone", "example."), ("server", &*primary), ("addresses", &*self.addresses)];
        let mut updates = patient(Updates::open(&[arm_with(RFC2136, &levels)], &Setup::default()).unwrap());
        let zone = &mut updates.arms[0].zone;
        zone.changed_by = ChangedBy::Us(Box::new(hosted));
        zone.notes = self.notes();
        updates
    }

    fn notes(&self) -> std::path::PathBuf {
        self.folder.path().join("notes")
    }
}

const BOTH: [Interface; 2] = [Interface::Route53, Interface::CloudDns];

fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map_or(0, Iterator::count)
}

/// Returns how many of the requests change a zone.
fn changes(seen: &[(String, u16)]) -> usize {
    let is_change = |what: &str| what.starts_with("POST ") && !what.ends_with("/token");
    seen.iter().filter(|(what, _)| is_change(what)).count()
}

fn record(text: &str) -> Record {
    let zone = Name::from_ascii("example.").unwrap();
    Record { name: zone.prepend_label(&b"_ascertain-1"[..]).unwrap(), zone, text: text.into() }
}

fn add(hosted: &Hosted, record: &Record) -> Result<(), Failure> {
    hosted.add(record, &|| (), &Stop::default())
}

#[test]
fn a_zone_at_a_provider_is_changed_and_left_as_it_was() {
    for interface in BOTH {
        let stand = Stand::new(interface, |plan| ProviderSpec { done_after: Duration::from_millis(600), ..plan });
        let mut updates = stand.updates(stand.hosted());
        let mut out = Samples::default();
        updates.verify(0).unwrap();
        updates.measure(0, &Trial { number: 0, seed: 7 }, &mut out).unwrap();
        let value = |metric| out.iter().find(|sample| sample.metric == metric).unwrap().value;
        // The provider reports "done" 600 ms after the change, whether or not the servers have it.
        assert!(value(DONE) >= 600e6, "{interface:?}: {}", value(DONE));
        assert_eq!(value(ALL) - value(DONE), value(DONE_BEFORE));
        assert_eq!(out.iter().filter(|sample| sample.metric == SERVER).count(), 2);
        assert!(stand.running.names().is_empty() && count(&stand.notes()) == 0);
        let seen = stand.running.seen();
        assert!(changes(&seen) == 2 && seen.iter().all(|(_, status)| *status == 200), "{seen:?}");
    }
}

/// Checks that an error contains these words and none of the secrets.
fn is_said(stand: &Stand, options: &ProviderOptions, words: &[&str], secrets: &[&str]) {
    let error = stand.find(options).map(|_| ()).unwrap_err();
    assert!(words.iter().all(|word| error.contains(word)), "{words:?}: {error}");
    assert!(
        secrets.iter().all(|secret| !error.contains(secret) && !format!("{options:?}").contains(secret)),
        "{error}"
    );
}

#[test]
fn route_53_says_what_is_wrong_with_who_asks() {
    let stand = Stand::new(Interface::Route53, |plan| plan);
    let keys = |id: &str, secret: &str| {
        stand.options(vec![("AWS_ACCESS_KEY_ID", id.into()), ("AWS_SECRET_ACCESS_KEY", secret.into())])
    };
    let secret = "PLANTED0123456789";
    is_said(
        &stand,
        &keys("ascertain", secret),
        &["Route 53: SignatureDoesNotMatch: ", "check AWS_SECRET_ACCESS_KEY", "(403)"],
        &[secret],
    );
    is_said(&stand, &keys("other", secret), &["InvalidClientTokenId", "check AWS_ACCESS_KEY_ID"], &[secret]);
    is_said(&stand, &stand.options(Vec::new()), &["set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"], &[]);
    for (ahead_s, words) in [(1_230, "this machine's clock is 20 minutes behind"), (-1_230, "20 minutes ahead of")] {
        let stand = Stand::new(Interface::Route53, |plan| ProviderSpec { ahead_s, ..plan });
        is_said(&stand, &stand.options(stand.variables()), &["SignatureDoesNotMatch", words], &["not-a-secret"]);
    }
    // At this endpoint, no server answers.
    let options = ProviderOptions { endpoint: Some("http://127.0.0.1:1".into()), ..stand.options(stand.variables()) };
    is_said(&stand, &options, &["Route 53: ", "no connection to 127.0.0.1:1"], &[]);
}

#[test]
fn cloud_dns_says_what_is_wrong_with_who_asks() {
    let stand = Stand::new(Interface::CloudDns, |plan| plan);
    let key: serde_json::Value = serde_json::from_str(&stand.running.service_account()).unwrap();
    let with = |field: &str, value: &str| {
        let mut key = key.clone();
        key[field] = value.into();
        stand.options(stand.in_file(&key.to_string()))
    };
    let mine = OTHER_KEY.lines().nth(3).unwrap();
    let words = ["Cloud DNS: ", "no token", "invalid_grant Invalid JWT Signature.", "still belongs to the account"];
    is_said(&stand, &with("private_key", OTHER_KEY), &words, &[mine]);
    is_said(&stand, &with("private_key", "PLANTED0123456789"), &["incomplete, or is not an RSA key"], &["PLANTED"]);
    is_said(&stand, &with("client_email", "nobody@example.org"), &["no such account"], &[]);
    is_said(&stand, &with("type", "external_account"), &["neither a service account's key nor a user's login"], &[]);
    let token = vec![("GOOGLE_OAUTH_ACCESS_TOKEN", "PLANTED0123456789".to_string())];
    is_said(&stand, &stand.options(token.clone()), &["set `project`", "GOOGLE_CLOUD_PROJECT"], &["PLANTED"]);
    let options = ProviderOptions { project: Some("project".into()), ..stand.options(token) };
    is_said(&stand, &options, &["Cloud DNS: authError: ", "get a new token"], &["PLANTED"]);
    let options = ProviderOptions { project: Some("other".into()), ..stand.options(stand.variables()) };
    is_said(&stand, &options, &["forbidden: ", "roles/dns.admin"], &[]);
    let login = stand.running.login().replace("not-a-refresh-token", "PLANTED0123456789");
    let options = stand.options(stand.in_file(&login));
    is_said(
        &stand,
        &options,
        &["invalid_grant", "log in again with `gcloud auth application-default login`"],
        &["PLANTED"],
    );
    // Credentials of a user's login are accepted as well.
    let hosted = stand.find(&stand.options(stand.in_file(&stand.running.login()))).unwrap();
    assert_eq!(hosted.address().unwrap(), format!("cloud-dns project Z1 {}", stand.running.url()));
    let stand = Stand::new(Interface::CloudDns, |plan| ProviderSpec { ahead_s: 7_230, ..plan });
    let words = ["no token", "iat and exp", "this machine's clock is 120 minutes behind the server's"];
    is_said(&stand, &stand.options(stand.variables()), &words, &[]);
}

#[test]
fn only_the_zone_that_is_meant_is_changed() {
    for interface in BOTH {
        let with = |change: fn(&mut Vec<HostedZone>)| {
            let stand = Stand::new(interface, |mut plan| {
                change(&mut plan.zones);
                plan
            });
            let options = stand.options(stand.variables());
            (stand, options)
        };
        let (stand, options) = with(|zones| zones[0].is_private = true);
        is_said(&stand, &options, &["example. is private", "not visible outside"], &[]);
        let (stand, options) = with(|zones| zones[0].name = "other.".into());
        is_said(&stand, &options, &["has no zone example. for these credentials"], &[]);
        let options = ProviderOptions { zone_id: Some("Z1".into()), ..options };
        is_said(&stand, &options, &["Z1 is other.", "and not example."], &[]);
        let options = ProviderOptions { zone_id: Some("Z9".into()), ..options };
        is_said(&stand, &options, &["Z9", "(404)", "zone_id"], &[]);
        // A private zone with the same name is ignored. If two public zones have the name, the user must choose.
        let twin = |zones: &mut Vec<HostedZone>| zones.push(HostedZone { id: "Z2".into(), ..zones[0].clone() });
        let (stand, options) = with(twin);
        is_said(&stand, &options, &["2 zones example.; set `zone_id` to Z1 or Z2"], &[]);
        let address =
            stand.find(&ProviderOptions { zone_id: Some("Z2".into()), ..options }).unwrap().address().unwrap();
        assert!(address.contains(" Z2 "), "{address}");
        let (stand, options) = with(|zones| {
            zones.push(HostedZone { id: "Z2".into(), ..zones[0].clone() });
            zones[0].is_private = true;
        });
        assert!(stand.find(&options).unwrap().address().unwrap().contains(" Z2 "));
    }
}

#[test]
fn what_others_have_put_there_stays() {
    for interface in BOTH {
        let stand = Stand::new(interface, |plan| plan);
        let hosted = stand.hosted();
        add(&hosted, &record("theirs")).unwrap();
        let failure = add(&hosted, &record("ours")).unwrap_err();
        assert!(failure.is_sure && failure.why.contains("already exists"), "{failure:?}");
        // The record does not exist, and another record with the same name must stay.
        hosted.remove(&record("ours")).unwrap();
        assert_eq!(stand.running.names(), ["_ascertain-1.example."]);
        hosted.remove(&record("theirs")).unwrap();
        hosted.remove(&record("theirs")).unwrap();
        assert!(stand.running.names().is_empty());
    }
}

/// If the provider refuses a change because of its rate limit, the client must repeat the request, after longer and
/// longer pauses. Before each request, the client must run the function `call`, which records the time. The last
/// recorded time is then the time of the accepted request.
#[test]
fn who_asks_too_often_waits() {
    for interface in BOTH {
        let stand = Stand::new(interface, |plan| ProviderSpec { throttled_changes: 2, ..plan });
        let hosted = stand.hosted();
        let calls = AtomicU64::new(0);
        hosted.add(&record("ours"), &|| _ = calls.fetch_add(1, Ordering::Relaxed), &Stop::default()).unwrap();
        assert_eq!((changes(&stand.running.seen()), calls.into_inner()), (3, 3));
        hosted.remove(&record("ours")).unwrap();
        assert!(stand.running.names().is_empty());
        // After a stop was requested, requests are not repeated.
        let stand = Stand::new(interface, |plan| ProviderSpec { requests_per_s: 0, ..plan });
        let options = stand.options(stand.variables());
        let options = ProviderOptions { zone_id: Some("Z1".into()), project: Some("project".into()), ..options };
        let hosted = match interface {
            Interface::Route53 => route53::open(&options),
            Interface::CloudDns => cloud_dns::open(&options),
        };
        let hosted = hosted.unwrap();
        let stop = Stop::new().unwrap();
        stop.request();
        let failure = hosted.add(&record("ours"), &|| (), &stop).unwrap_err();
        assert!(failure.is_sure && failure.why.to_lowercase().contains("rate"), "{failure:?}");
    }
}

#[test]
fn what_is_never_done_is_taken_away() {
    for interface in BOTH {
        let stand = Stand::new(interface, |plan| ProviderSpec { done_after: Duration::MAX, ..plan });
        let options = ProviderOptions { limit: Duration::from_secs(1), ..stand.options(stand.variables()) };
        let mut updates = stand.updates(stand.find(&options).unwrap());
        let error = updates.measure(0, &Trial { number: 0, seed: 7 }, &mut Samples::default()).unwrap_err().to_string();
        assert!(error.contains("not done after 1s; raise `limit_s`"), "{error}");
        assert!(stand.running.names().is_empty() && count(&stand.notes()) == 0);
    }
}

#[test]
fn a_change_whose_answer_is_lost_is_taken_away() {
    for interface in BOTH {
        // The answer to the first removal is lost, too.
        let stand = Stand::new(interface, |plan| ProviderSpec { lost_answers: 2, ..plan });
        // The provider makes a change even if its answer is lost.
        let mut updates = stand.updates(stand.settling(Duration::ZERO));
        updates.measure(0, &Trial { number: 0, seed: 7 }, &mut Samples::default()).unwrap_err();
        assert!(stand.running.names().is_empty() && count(&stand.notes()) == 0);
        assert_eq!(changes(&stand.running.seen()), 3);
    }
}

/// The provider may answer that a record does not exist, and add the record later. As long as this is possible, the
/// client must keep requesting the removal.
#[test]
fn a_change_that_is_made_late_is_taken_away() {
    for interface in BOTH {
        let stand = Stand::new(interface, |plan| ProviderSpec { late_changes: 1, ..plan });
        // This time is long enough for a busy machine.
        let mut updates = stand.updates(stand.settling(Duration::from_secs(50)));
        updates.measure(0, &Trial { number: 0, seed: 7 }, &mut Samples::default()).unwrap_err();
        let seen = stand.running.seen();
        let made: Vec<_> = seen.iter().filter(|(_, status)| *status == 200).cloned().collect();
        assert_eq!(changes(&made), 2, "the change and its removal: {seen:?}");
        assert!(stand.running.names().is_empty() && count(&stand.notes()) == 0);
    }
}

#[test]
fn a_token_that_is_taken_back_is_renewed_once() {
    let stand = Stand::new(Interface::CloudDns, |plan| plan);
    let hosted = stand.hosted();
    stand.running.revoke_tokens();
    add(&hosted, &record("ours")).unwrap();
    let tokens = stand.running.seen().iter().filter(|(what, _)| what.ends_with("/token")).count();
    assert_eq!(tokens, 2, "{:?}", stand.running.seen());
    // If the token cannot be renewed, the error reports that.
    let given = vec![("GOOGLE_OAUTH_ACCESS_TOKEN", "gone".to_string()), ("GOOGLE_CLOUD_PROJECT", "project".into())];
    let options = ProviderOptions { zone_id: Some("Z1".into()), ..stand.options(given) };
    is_said(&stand, &options, &["authError", "(401)"], &["gone"]);
    hosted.remove(&record("ours")).unwrap();
}

#[test]
fn an_endpoint_has_no_credentials() {
    for (variant, levels, says) in [
        (ROUTE53, vec![], "needs `zone="),
        (ROUTE53, vec![("zone", "example."), ("project", "p")], "`project` is only for `cloud-dns`"),
        (
            RFC2136,
            vec![("zone", "example."), ("server", "192.0.2.1:53"), ("zone_id", "Z1")],
            "`zone_id` is only for `route53`",
        ),
        (CLOUD_DNS, vec![("zone", "example."), ("zone_id", "a b")], "is not a valid zone_id"),
    ] {
        let error = is_available(&arm_with(variant, &levels)).unwrap_err().to_string();
        assert!(error.contains(says), "{levels:?}: {error}");
    }
    let endpoint = DnsPropagation.spec().factors.iter().find(|factor| factor.name == "endpoint").unwrap();
    for (text, is_one) in [
        (OURS, true),
        ("https://dns.example.org:8443", true),
        ("http://ann:secret@host", false),
        ("https://host/?key=secret", false),
        ("host", false),
    ] {
        assert_eq!(endpoint.accepts.admits(&text.into()), is_one, "{text}");
    }
    assert!(is_available(&arm_with(ROUTE53, &[("zone", "example."), ("zone_id", "/hostedzone/Z1")])).is_ok());
    let environment: Environment = [("AWS_SECRET_ACCESS_KEY", "secret")].into_iter().collect();
    assert!(!format!("{:?}", ProviderOptions { environment, ..ProviderOptions::default() }).contains("\"secret\""));
}
