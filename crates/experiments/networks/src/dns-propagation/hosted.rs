//! Zones at providers with an HTTP API. Requests are sent no faster than the provider allows, and repeated until a
//! change is done.

use std::cell::Cell;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{mem, thread};

use ascertain_netlab::dns::Name;
use ascertain_sys::interrupt::Stop;
use ascertain_transfer::{Environment, Failure as Unsent, Kind, Options, Reply, Service};
use tokio::runtime::{Builder, Runtime};

use super::providers::{Failure, Provider, Record};
use crate::links::wait;

/// Interval between requests for the status of a change. Route 53 accepts only five requests per second for a whole
/// account.
const INTERVAL: Duration = Duration::from_millis(400);
/// Longest pause before a request is sent again after the provider has refused it temporarily.
const MOST_WAIT: Duration = Duration::from_secs(10);
/// Time without received data after which a request is aborted.
const SILENCE: Duration = Duration::from_secs(10);
/// Time limit for repeating a failed removal of a record.
const REMOVING: Duration = Duration::from_secs(60);
/// Time for which the provider may still be working on a change whose answer was lost.
const SETTLING: Duration = Duration::from_secs(10);
/// Maximum number of characters that an error quotes from a provider's message.
const MOST_CHARS: usize = 300;

/// The factors and environment variables that describe a zone at a provider.
#[derive(Clone, Debug, Default)]
pub struct ProviderOptions {
    pub environment: Environment,
    /// The provider's id of the zone; `None` to find the zone by its name.
    pub zone_id: Option<String>,
    pub project: Option<String>,
    pub endpoint: Option<String>,
    /// Time limit for the provider to report a change as done.
    pub limit: Duration,
}

impl ProviderOptions {
    pub fn service_options(&self) -> Options {
        Options {
            environment: self.environment.clone(),
            endpoint_url: self.endpoint.clone(),
            timeout: Some(SILENCE),
            ..Options::default()
        }
    }
}

/// A request to a provider: a POST if it has a body, otherwise a GET.
pub struct ApiRequest {
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    /// Media type and text of the body.
    pub body: Option<(&'static str, String)>,
}

impl ApiRequest {
    pub fn get(path: String, query: Vec<(&'static str, String)>) -> Self {
        Self { path, query, body: None }
    }

    pub fn post(path: String, kind: &'static str, body: String) -> Self {
        Self { path, query: Vec::new(), body: Some((kind, body)) }
    }
}

/// A zone that a provider's answer lists.
pub struct ListedZone {
    pub id: String,
    pub name: String,
    pub is_private: bool,
}

/// The id of a change, and whether the provider reports it as done.
pub struct ChangeStatus {
    pub id: String,
    pub is_done: bool,
}

/// The reason that a provider gives for refusing a request: a code and a message. Both are empty if the provider's
/// answer has an unknown form.
#[derive(Default)]
pub struct Refusal {
    pub code: String,
    pub message: String,
}

/// The API of a provider: its requests, and the meaning of its answers.
pub trait Interface: Send + Sync {
    /// Returns the provider's name.
    fn name(&self) -> &'static str;
    /// Returns the text that identifies the zone in a [`Note`](super::providers::Note), without the endpoint.
    fn address(&self, zone_id: &str) -> String;
    /// Returns a request for the zone with this id.
    fn zone_request(&self, zone_id: &str) -> ApiRequest;
    /// Returns a request for the zones with this name.
    fn zones_request(&self, name: &Name) -> ApiRequest;
    /// Returns a request for a change. If `is_added` is `true`, the request adds the record to a name that has no
    /// records of this type. Otherwise the request removes exactly this record.
    fn change_request(&self, zone_id: &str, record: &Record, is_added: bool) -> ApiRequest;
    /// Returns a request for the status of a change.
    fn status_request(&self, zone_id: &str, change_id: &str) -> ApiRequest;
    /// Returns a request for the records with the name of `record`.
    fn record_request(&self, zone_id: &str, record: &Record) -> ApiRequest;
    /// Returns the zones in an answer to a request for a zone or for zones; `None` if the answer has an unknown form.
    fn zones(&self, text: &str) -> Option<Vec<ListedZone>>;
    /// Reads the status of a change from an answer of the provider; `None` if the answer has an unknown form.
    fn change(&self, text: &str) -> Option<ChangeStatus>;
    /// Returns whether the record is in an answer to a request for records; `None` if the answer has an unknown form.
    fn is_there(&self, text: &str, record: &Record) -> Option<bool>;
    fn refusal(&self, text: &str) -> Refusal;
    /// Returns what the user can do about a refusal with this code; `None` if no advice is known.
    fn remedy(&self, code: &str) -> Option<&'static str>;
}

/// A zone at a provider with an HTTP API.
pub struct Hosted {
    service: Service,
    interface: Box<dyn Interface>,
    zone_id: String,
    endpoint: Option<String>,
    limit: Duration,
    pub settling: Duration,
    /// The moment at which the latest attempt to add a record ended, if its result is unknown; otherwise `None`.
    /// Initially this is the moment at which the client was created, because an earlier process may have left an
    /// unknown result.
    unsure_since: Mutex<Option<Instant>>,
    // Runs in its own thread, so that connections stay open between requests.
    runtime: Runtime,
}

impl Hosted {
    /// Creates a client for the zone with the id in `options`. Without an id, call [`find`](Self::find) before the
    /// first change.
    pub fn new(service: Service, interface: Box<dyn Interface>, options: &ProviderOptions) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self {
            service,
            interface,
            zone_id: options.zone_id.as_deref().map(bare_id).unwrap_or_default().into(),
            endpoint: options.endpoint.clone(),
            limit: options.limit,
            settling: SETTLING,
            unsure_since: Mutex::new(Some(Instant::now())),
            runtime: runtime.map_err(|error| error.to_string())?,
        })
    }

    /// Finds the public zone with this name, which must be unique. If the options contain an id, finds the zone by this
    /// id instead, and checks its name.
    pub fn find(mut self, zone: &Name, stop: &Stop) -> Result<Self, String> {
        let (is_named, provider) = (!self.zone_id.is_empty(), self.interface.name());
        let request = match is_named {
            true => self.interface.zone_request(&self.zone_id),
            false => self.interface.zones_request(zone),
        };
        let zones = self.interface.zones(&self.read(&request, Some(stop))?).ok_or_else(|| {
            let genitive = if provider.ends_with('S') { "'" } else { "'s" };
            format!("the answer is not from {provider}{genitive} API; check the endpoint")
        })?;
        let has_name = |listed: &ListedZone| Name::from_ascii(&listed.name).is_ok_and(|name| name == *zone);
        let (of_name, others): (Vec<_>, Vec<_>) = zones.into_iter().partition(has_name);
        let public: Vec<&str> = of_name.iter().filter(|zone| !zone.is_private).map(|zone| bare_id(&zone.id)).collect();
        self.zone_id = match public[..] {
            [id] => id.into(),
            [] if !of_name.is_empty() => {
                return Err(format!(
                    "{zone} is private at {provider}, so it is not visible outside of its networks; use a public zone"
                ));
            }
            [] => match others.first().filter(|_| is_named) {
                Some(ListedZone { id, name, .. }) => {
                    return Err(format!("`zone_id` {} is {name} at {provider}, and not {zone}", bare_id(id)));
                }
                None => return Err(format!("{provider} has no zone {zone} for these credentials")),
            },
            _ => {
                let (count, ids) = (public.len(), public.join(" or "));
                return Err(format!("{provider} has {count} zones {zone}; set `zone_id` to {ids}"));
            }
        };
        Ok(self)
    }

    fn send(&self, request: &ApiRequest) -> Result<Reply, Unsent> {
        let query: Vec<(&str, &str)> = request.query.iter().map(|(name, value)| (*name, &**value)).collect();
        self.runtime.block_on(async {
            match &request.body {
                Some((kind, body)) => self.service.post(&request.path, kind, body).await,
                None => self.service.get(&request.path, &query).await,
            }
        })
    }

    /// Sends a request, and repeats it while `is_worth_repeating` returns `true` for the result. Stops repeating when
    /// `limit` has passed or `stop` is requested. The pause between two requests doubles each time, unless the provider
    /// names a pause. Calls `call` before each request.
    fn send_repeatedly(
        &self,
        request: &ApiRequest,
        limit: Duration,
        stop: Option<&Stop>,
        call: &dyn Fn(),
        is_worth_repeating: &mut dyn FnMut(&Result<Reply, Unsent>) -> bool,
    ) -> Result<Reply, Unsent> {
        let (start, mut next) = (Instant::now(), INTERVAL);
        loop {
            call();
            let sent = self.send(request);
            let retry_after = sent.as_ref().ok().and_then(|reply| reply.retry_after);
            let pause = retry_after.unwrap_or(next).min(MOST_WAIT);
            next = (2 * next).min(MOST_WAIT);
            if !is_worth_repeating(&sent) || start.elapsed() + pause >= limit {
                return sent;
            }
            match stop {
                Some(stop) if wait(pause, stop).is_err() => return sent,
                Some(_) => {}
                None => thread::sleep(pause),
            }
        }
    }

    /// Sends a request that changes nothing, and returns the text of the answer. Repeats the request after temporary
    /// failures.
    fn read(&self, request: &ApiRequest, stop: Option<&Stop>) -> Result<String, String> {
        let mut is_lost = false;
        let sent = self.send_repeatedly(request, MOST_WAIT * 3, stop, &|| (), &mut |sent| match sent {
            Ok(reply) => self.is_for_now(reply),
            // After a broken connection the request is repeated once. A second such failure counts as permanent.
            Err(failure) => matches!(failure.kind, Kind::Transient(_)) && !mem::replace(&mut is_lost, true),
        });
        match sent {
            Ok(reply) if is_success(&reply) => Ok(reply.text),
            Ok(reply) => Err(self.refused(&reply)),
            Err(failure) => Err(self.unsent(&failure)),
        }
    }

    /// Returns whether the provider refused the request only temporarily. The request may then be repeated.
    fn is_for_now(&self, reply: &Reply) -> bool {
        const FOR_NOW: [&str; 6] = [
            "Throttling",
            "ThrottlingException",
            "PriorRequestNotComplete",
            "ServiceUnavailable",
            "rateLimitExceeded",
            "userRateLimitExceeded",
        ];
        [429, 503].contains(&reply.status) || FOR_NOW.contains(&&*self.interface.refusal(&reply.text).code)
    }

    fn unsent(&self, failure: &Unsent) -> String {
        format!("{}: {}", self.interface.name(), failure.message)
    }

    /// Returns an error text with the provider's message for a refusal, and advice for the user.
    fn refused(&self, reply: &Reply) -> String {
        let Refusal { code, message } = self.interface.refusal(&reply.text);
        let message = message.lines().next().unwrap_or_default().trim().trim_end_matches('.');
        let message: String = message.chars().filter(|letter| !letter.is_control()).take(MOST_CHARS).collect();
        let parts = [self.interface.name(), &code, &message].into_iter().filter(|part| !part.is_empty());
        // A wrong clock makes every signature invalid, so the advice to set the clock replaces any other advice.
        let remedy = reply.clock.as_deref().filter(|_| reply.status < 500).or(self.interface.remedy(&code));
        format!("{} ({})", parts.chain(remedy).collect::<Vec<_>>().join(": "), reply.status)
    }

    fn add_once(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure> {
        let request = self.interface.change_request(&self.zone_id, record, true);
        let mut is_sure = true;
        let sent = self.send_repeatedly(&request, self.limit, Some(stop), call, &mut |sent| {
            // A refusal, or a request that never reached the provider, has certainly changed nothing. After any other
            // failure, the provider may have made the change.
            is_sure &= sent.as_ref().is_ok_and(|reply| reply.status < 500) || is_never_sent(sent);
            sent.as_ref().is_ok_and(|reply| self.is_for_now(reply))
        });
        match sent {
            // The provider has accepted the change. If the wait fails, the record may exist, so the caller must remove
            // it.
            Ok(reply) if is_success(&reply) => {
                self.wait_until_done(&reply.text, stop).map_err(|why| Failure { why, is_sure: false })
            }
            Ok(reply) => Err(Failure { why: self.refused(&reply), is_sure }),
            Err(failure) => Err(Failure { why: self.unsent(&failure), is_sure }),
        }
    }

    /// Returns whether the provider can no longer carry out an earlier change. If the result of a request is unknown,
    /// the provider may carry out the change until the time `settling` has passed.
    fn is_settled(&self) -> bool {
        let unsure_since = *self.unsure_since.lock().unwrap_or_else(PoisonError::into_inner);
        unsure_since.is_none_or(|since| since.elapsed() >= self.settling)
    }

    /// Waits until a change is done. `text` is the provider's answer to the request that made the change.
    fn wait_until_done(&self, text: &str, stop: &Stop) -> Result<(), String> {
        let (name, start) = (self.interface.name(), Instant::now());
        let change = self.interface.change(text);
        let mut change = change.ok_or_else(|| format!("the answer from {name} does not include the change's id"))?;
        while !change.is_done {
            if start.elapsed() > self.limit {
                let more = "raise `limit_s`";
                return Err(format!("{name}: the change is not done after {:?}; {more}", self.limit));
            }
            wait(INTERVAL, stop).map_err(|_| "stopped")?;
            let text = self.read(&self.interface.status_request(&self.zone_id, &change.id), Some(stop))?;
            change = self
                .interface
                .change(&text)
                .ok_or_else(|| format!("the answer from {name} does not include the change's status"))?;
        }
        Ok(())
    }

    /// Returns whether the provider reports that the record does not exist.
    fn is_gone(&self, record: &Record) -> bool {
        let text = self.read(&self.interface.record_request(&self.zone_id, record), None);
        text.ok().and_then(|text| self.interface.is_there(&text, record)) == Some(false)
    }
}

fn is_success(reply: &Reply) -> bool {
    (200..300).contains(&reply.status)
}

/// Returns whether a request has certainly not reached the provider.
fn is_never_sent(sent: &Result<Reply, Unsent>) -> bool {
    sent.as_ref().is_err_and(|failure| matches!(failure.kind, Kind::Transient(_) | Kind::Denied))
}

/// Returns an id without a path before it: `Z1` for `/hostedzone/Z1`.
pub fn bare_id(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

impl Provider for Hosted {
    fn add(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure> {
        let added = self.add_once(record, call, stop);
        let is_unsure = added.as_ref().is_err_and(|failure| !failure.is_sure);
        *self.unsure_since.lock().unwrap_or_else(PoisonError::into_inner) = is_unsure.then(Instant::now);
        added
    }

    fn remove(&self, record: &Record) -> Result<(), Failure> {
        let request = self.interface.change_request(&self.zone_id, record, false);
        let (is_settled, mut is_final) = (Cell::new(false), false);
        let note_settled = || is_settled.set(self.is_settled());
        // The request removes exactly this record, so it may be repeated. An answer that the record does not exist is
        // not final as long as the provider may still add it.
        let sent = self.send_repeatedly(&request, REMOVING, None, &note_settled, &mut |sent| {
            let is_unfinished = match sent {
                Ok(reply) if is_success(reply) => false,
                Ok(reply) => self.is_for_now(reply) || reply.status >= 500 || !is_settled.get(),
                Err(failure) => matches!(failure.kind, Kind::Unanswered | Kind::Transient(_)),
            };
            is_final = !is_unfinished;
            is_unfinished
        });
        let why = match sent {
            Ok(reply) if is_success(&reply) || is_final && self.is_gone(record) => return Ok(()),
            Ok(reply) => self.refused(&reply),
            Err(failure) => self.unsent(&failure),
        };
        Err(Failure { why, is_sure: false })
    }

    fn address(&self) -> Option<String> {
        let endpoint = self.endpoint.as_ref().map(|endpoint| format!(" {endpoint}")).unwrap_or_default();
        Some(self.interface.address(&self.zone_id) + &endpoint)
    }
}
