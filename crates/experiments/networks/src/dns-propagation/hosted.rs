//! Zones at providers that are told by HTTP: asked at their pace, and waited for until they say that a change is done.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use ascertain_sys::interrupt::Stop;
use ascertain_transfer::{Environment, Failure as Unsent, Kind, Options, Reply, Service};
use tokio::runtime::{Builder, Runtime};

use super::providers::{Failure, Provider, Record};
use crate::links::wait;

/// How often it is asked whether a change is done: Route 53 takes five requests a second of a whole account.
const ASK: Duration = Duration::from_millis(400);
/// The longest that is waited before something is asked again that a provider takes later: who asks too often, say.
const MOST_WAIT: Duration = Duration::from_secs(10);
/// How long nothing may move before a request is given up.
const SILENCE: Duration = Duration::from_secs(10);
/// For how long taking away is tried.
const REMOVING: Duration = Duration::from_secs(60);
/// For how long a provider may still be at work on a change whose answer was lost.
const SETTLING: Duration = Duration::from_secs(10);
/// The most of a provider's words that are passed on.
const MOST_CHARS: usize = 300;

/// What is known of a zone beside its name.
#[derive(Clone, Debug, Default)]
pub struct Told {
    pub environment: Environment,
    /// The provider's own name of the zone.
    pub zone_id: Option<String>,
    pub project: Option<String>,
    pub endpoint: Option<String>,
    /// How long a change may take.
    pub limit: Duration,
}

impl Told {
    pub fn options(&self) -> Options {
        Options {
            environment: self.environment.clone(),
            endpoint_url: self.endpoint.clone(),
            patience: SILENCE,
            ..Options::default()
        }
    }
}

/// What a provider was asked for, as it is sent.
pub struct Ask {
    pub path: String,
    pub query: Vec<(&'static str, String)>,
    /// What kind of text it is, and the text.
    pub body: Option<(&'static str, String)>,
}

impl Ask {
    pub fn get(path: String) -> Self {
        Self { path, query: Vec::new(), body: None }
    }
}

/// A change as a provider sees it.
pub struct Change {
    pub id: String,
    pub is_done: bool,
}

/// Why a provider refuses, in its words.
#[derive(Default)]
pub struct Refusal {
    pub code: String,
    pub message: String,
}

/// How a provider is spoken to: all of it is texts.
pub trait Interface: Send + Sync {
    /// What the provider is called.
    fn name(&self) -> &'static str;
    /// How the zone is found again.
    fn address(&self) -> String;
    /// Adds a record that is not there, whatever it says, or takes away exactly this one.
    fn change(&self, record: &Record, is_added: bool) -> Ask;
    fn status(&self, id: &str) -> Ask;
    fn lookup(&self, record: &Record) -> Ask;
    /// None for what is no such answer; so the next one.
    fn changed(&self, text: &str) -> Option<Change>;
    fn is_there(&self, text: &str, record: &Record) -> Option<bool>;
    fn refusal(&self, text: &str) -> Refusal;
    /// What is to be done about it.
    fn way_out(&self, code: &str) -> Option<&'static str>;
}

/// Who asks.
pub struct Client {
    service: Service,
    // What keeps connections open runs beside.
    runtime: Runtime,
}

impl Client {
    pub fn new(service: Result<Service, Unsent>) -> Result<Self, String> {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        Ok(Self { service: service.map_err(|failure| failure.said)?, runtime })
    }

    pub fn project(&self) -> Option<&str> {
        self.service.project()
    }

    fn send(&self, ask: &Ask) -> Result<Reply, Unsent> {
        let query: Vec<(&str, &str)> = ask.query.iter().map(|(name, value)| (*name, &**value)).collect();
        self.runtime.block_on(async {
            match &ask.body {
                Some((kind, body)) => self.service.post(&ask.path, kind, body).await,
                None => self.service.get(&ask.path, &query).await,
            }
        })
    }

    /// Asks for something that changes nothing, again if the provider takes it later.
    pub fn read(&self, interface: &dyn Interface, ask: &Ask, stop: Option<&Stop>) -> Result<String, String> {
        let (mut pause, mut is_lost) = (Pause::new(MOST_WAIT * 3), false);
        loop {
            let reply = match self.send(ask) {
                Ok(reply) => reply,
                // A connection may break; where none can be made it does not get better.
                Err(Unsent { kind: Kind::Transient(_), .. }) if !is_lost && pause.wait(None, stop) => {
                    is_lost = true;
                    continue;
                }
                Err(failure) => return Err(format!("{}: {}", interface.name(), failure.said)),
            };
            match reply.status {
                200..=299 => return Ok(reply.text),
                _ if is_for_now(interface, &reply) && pause.wait(reply.retry_after, stop) => {}
                _ => return Err(refused(interface, &reply)),
            }
        }
    }
}

/// Whether a provider would say something else some time later.
fn is_for_now(interface: &dyn Interface, reply: &Reply) -> bool {
    const FOR_NOW: [&str; 6] = [
        "Throttling",
        "ThrottlingException",
        "PriorRequestNotComplete",
        "ServiceUnavailable",
        "rateLimitExceeded",
        "userRateLimitExceeded",
    ];
    [429, 503].contains(&reply.status) || FOR_NOW.contains(&&*interface.refusal(&reply.text).code)
}

/// What a refusal means, in the provider's words, and the way out.
fn refused(interface: &dyn Interface, reply: &Reply) -> String {
    let Refusal { code, message } = interface.refusal(&reply.text);
    let message = message.lines().next().unwrap_or_default().trim().trim_end_matches('.');
    let message: String = message.chars().filter(|letter| !letter.is_control()).take(MOST_CHARS).collect();
    let parts = [interface.name(), &code, &message].into_iter().filter(|part| !part.is_empty());
    // With another time than the server's nothing is right.
    let way_out = reply.clock.as_deref().filter(|_| reply.status < 500).or(interface.way_out(&code));
    let parts = parts.chain(way_out);
    format!("{} ({})", parts.collect::<Vec<_>>().join(": "), reply.status)
}

/// Waits twice as long each time, until it has been too long.
struct Pause {
    next: Duration,
    start: Instant,
    limit: Duration,
}

impl Pause {
    fn new(limit: Duration) -> Self {
        Self { next: ASK, start: Instant::now(), limit }
    }

    /// Whether there is any sense in asking again. What can't be stopped is taking away.
    fn wait(&mut self, retry_after: Option<Duration>, stop: Option<&Stop>) -> bool {
        let time = retry_after.unwrap_or(self.next).min(MOST_WAIT);
        self.next = (2 * self.next).min(MOST_WAIT);
        if self.start.elapsed() + time >= self.limit {
            return false;
        }
        match stop {
            Some(stop) => wait(time, stop).is_ok(),
            None => {
                thread::sleep(time);
                true
            }
        }
    }
}

/// A zone at a provider.
pub struct Hosted {
    client: Client,
    interface: Box<dyn Interface>,
    limit: Duration,
    pub settling: Duration,
    /// Since when it is not known what became of a change, if it is not. Of an earlier process's it is not.
    unsure_since: Mutex<Option<Instant>>,
}

impl Hosted {
    pub fn new(client: Client, interface: Box<dyn Interface>, limit: Duration) -> Self {
        let unsure_since = Mutex::new(Some(Instant::now()));
        Self { client, interface, limit, settling: SETTLING, unsure_since }
    }

    fn add_once(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure> {
        let ask = self.interface.change(record, true);
        let (mut pause, mut is_sure) = (Pause::new(self.limit), true);
        loop {
            call();
            let reply = self.client.send(&ask).map_err(|failure| Failure {
                // Otherwise there was an answer, or may have been.
                is_sure: is_sure && matches!(failure.kind, Kind::Transient(_) | Kind::Denied),
                why: format!("{}: {}", self.interface.name(), failure.said),
            })?;
            // It may have been made all the same.
            is_sure &= reply.status < 500;
            match reply.status {
                200..=299 => {
                    let no_number = || format!("{} does not say which change it is", self.interface.name());
                    let change = self.interface.changed(&reply.text);
                    return self.waited(change.ok_or_else(|| Failure { why: no_number(), is_sure: false })?, stop);
                }
                _ if is_for_now(&*self.interface, &reply) && pause.wait(reply.retry_after, Some(stop)) => {}
                _ => return Err(Failure { why: refused(&*self.interface, &reply), is_sure }),
            }
        }
    }

    /// Whether what is not there now does not come any more, either.
    fn is_settled(&self) -> bool {
        let unsure_since = *self.unsure_since.lock().unwrap_or_else(PoisonError::into_inner);
        unsure_since.is_none_or(|since| since.elapsed() >= self.settling)
    }

    fn waited(&self, change: Change, stop: &Stop) -> Result<(), Failure> {
        // What was taken is taken away again, whatever becomes of it.
        let failed = |why| Failure { why, is_sure: false };
        let name = self.interface.name();
        let (start, mut is_done) = (Instant::now(), change.is_done);
        while !is_done {
            if start.elapsed() > self.limit {
                let more = "give it longer by `limit_s`";
                return Err(failed(format!("{name}: the change is not done after {:?}: {more}", self.limit)));
            }
            wait(ASK, stop).map_err(|_| failed("stopped".into()))?;
            let text =
                self.client.read(&*self.interface, &self.interface.status(&change.id), Some(stop)).map_err(failed)?;
            let changed = self.interface.changed(&text);
            is_done = changed.ok_or_else(|| failed(format!("{name} says nothing of the change")))?.is_done;
        }
        Ok(())
    }

    /// Whether there is nothing to be taken away.
    fn is_gone(&self, record: &Record) -> bool {
        let text = self.client.read(&*self.interface, &self.interface.lookup(record), None);
        text.ok().and_then(|text| self.interface.is_there(&text, record)) == Some(false)
    }
}

impl Provider for Hosted {
    fn add(&self, record: &Record, call: &dyn Fn(), stop: &Stop) -> Result<(), Failure> {
        let added = self.add_once(record, call, stop);
        let is_unsure = added.as_ref().is_err_and(|failure| !failure.is_sure);
        *self.unsure_since.lock().unwrap_or_else(PoisonError::into_inner) = is_unsure.then(Instant::now);
        added
    }

    fn remove(&self, record: &Record) -> Result<(), Failure> {
        let ask = self.interface.change(record, false);
        let mut pause = Pause::new(REMOVING);
        loop {
            let is_settled = self.is_settled();
            // Exactly this record goes: that may be asked for more than once.
            let why = match self.client.send(&ask) {
                Ok(reply) if (200..300).contains(&reply.status) => return Ok(()),
                // What is still being worked on may come after all that says it is not there.
                Ok(reply) if is_for_now(&*self.interface, &reply) || reply.status >= 500 || !is_settled => {
                    if pause.wait(reply.retry_after, None) {
                        continue;
                    }
                    refused(&*self.interface, &reply)
                }
                Ok(_) if self.is_gone(record) => return Ok(()),
                Ok(reply) => refused(&*self.interface, &reply),
                Err(failure) => {
                    let is_lost = matches!(failure.kind, Kind::Unanswered | Kind::Transient(_));
                    if is_lost && pause.wait(None, None) {
                        continue;
                    }
                    format!("{}: {}", self.interface.name(), failure.said)
                }
            };
            return Err(Failure { why, is_sure: false });
        }
    }

    fn address(&self) -> Option<String> {
        Some(self.interface.address())
    }
}
