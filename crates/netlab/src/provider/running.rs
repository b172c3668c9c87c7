//! A provider at work.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use ascertain_sys::clock::now_ns;
use httpdate::fmt_http_date;
use hyper::Response;
use hyper::body::{Body, Incoming};

use super::records::Records;
use super::tokens::Tokens;
use super::{HostedZone, Interface, Provider, cloud_dns, route53};
use crate::Error;
use crate::http::{Server, serve_requests};
use crate::store::{Answer, Content, Head};

/// The most that a request says.
const MOST_BYTES: usize = 1 << 20;

/// How long after its answer was lost a late change is made.
const LATE: Duration = Duration::from_secs(1);

/// A provider that answers. It ends when dropped; its zones are elsewhere.
pub struct RunningProvider {
    server: Server,
    state: Arc<State>,
}

pub(super) struct State {
    pub provider: Provider,
    /// Where it listens.
    pub url: String,
    shared: Mutex<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    pub records: Records,
    /// When each change was taken, by its number.
    pub changes: BTreeMap<String, u64>,
    pub tokens: Tokens,
    recent_ns: VecDeque<u64>,
    throttled_changes: usize,
    lost_answers: usize,
    late_changes: usize,
    seen: Vec<(String, u16)>,
}

/// A request, all of it.
pub(super) struct Request {
    pub head: Head,
    pub body: Vec<u8>,
}

impl Request {
    fn is_change(&self) -> bool {
        let Head { method, raw_path, .. } = &self.head;
        method == "POST" && ["/rrset", "/rrset/", "/changes"].iter().any(|end| raw_path.ends_with(end))
    }
}

impl Provider {
    /// Starts it, for whoever connects to this socket.
    ///
    /// # Errors
    /// As for [`Server::start`].
    pub fn start(self, listener: TcpListener) -> Result<RunningProvider, Error> {
        let url = format!("http://{}", listener.local_addr().map_err(Error::Server)?);
        let Self { throttled_changes, lost_answers, late_changes, .. } = self;
        let shared = Shared { throttled_changes, lost_answers, late_changes, ..Shared::default() };
        let state = Arc::new(State { provider: self, url, shared: Mutex::new(shared) });
        let of_server = state.clone();
        let server = Server::run(listener, move |stream, _| {
            let state = of_server.clone();
            async move { serve_requests(Box::new(stream), None, move |request| respond(request, state.clone())).await }
        })?;
        Ok(RunningProvider { server, state })
    }
}

impl RunningProvider {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// What clients call its end point.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.state.url
    }

    /// What it was made of.
    #[must_use]
    pub fn provider(&self) -> &Provider {
        &self.state.provider
    }

    /// A service account's key, as Google hands it out, whose tokens come from here.
    #[must_use]
    pub fn service_account(&self) -> String {
        super::tokens::service_account(&self.state)
    }

    /// A user's login, as gcloud keeps it, whose tokens come from here.
    #[must_use]
    pub fn login(&self) -> String {
        super::tokens::login(&self.state)
    }

    /// Takes back all tokens that were given.
    pub fn revoke_tokens(&self) {
        self.state.lock().tokens.revoke();
    }

    /// The names of what it was told to add and not to remove.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        let shared = self.state.lock();
        let zones = self.state.provider.zones.iter();
        zones.flat_map(|zone| shared.records.of(zone).map(|set| set.name.clone())).collect()
    }

    /// Method and path of each request so far, and the status that it was answered with.
    #[must_use]
    pub fn seen(&self) -> Vec<(String, u16)> {
        self.state.lock().seen.clone()
    }
}

impl State {
    pub fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn zone(&self, id: &str) -> Option<&HostedZone> {
        self.provider.zones.iter().find(|zone| zone.id == id)
    }

    /// By the provider's clock.
    pub fn now(&self) -> SystemTime {
        let ahead = Duration::from_secs(self.provider.ahead_s.unsigned_abs().into());
        let now = SystemTime::now();
        let moment = if self.provider.ahead_s < 0 { now - ahead } else { now + ahead };
        // Dates in HTTP begin in 1970.
        moment.max(UNIX_EPOCH)
    }

    pub fn is_done(&self, since_ns: u64) -> bool {
        now_ns().saturating_sub(since_ns) >= self.provider.done_after.as_nanos() as u64
    }

    /// Whether there have been too many requests within a second. Those that are refused count, too.
    pub fn is_too_often(&self, request: &Request) -> bool {
        let (now_ns, mut shared) = (now_ns(), self.lock());
        if request.is_change() && shared.throttled_changes > 0 {
            shared.throttled_changes -= 1;
            return true;
        }
        shared.recent_ns.retain(|at_ns| now_ns.saturating_sub(*at_ns) < 1_000_000_000);
        shared.recent_ns.push_back(now_ns);
        shared.recent_ns.len() > self.provider.requests_per_s
    }

    /// Whether this one is to be made when nobody waits for it any more.
    fn is_late(&self, request: &Request) -> bool {
        let mut shared = self.lock();
        let is_late = request.is_change() && shared.late_changes > 0;
        shared.late_changes -= usize::from(is_late);
        is_late
    }

    fn answer(&self, request: &Request) -> io::Result<Answer> {
        let answer = match self.provider.interface {
            Interface::Route53 => route53::answer(self, request),
            Interface::CloudDns => cloud_dns::answer(self, request),
        };
        let mut shared = self.lock();
        let Head { method, raw_path, .. } = &request.head;
        shared.seen.push((format!("{method} {raw_path}"), answer.status));
        if request.is_change() && answer.status == 200 && shared.lost_answers > 0 {
            shared.lost_answers -= 1;
            return Err(io::ErrorKind::ConnectionReset.into());
        }
        Ok(answer.header("date", fmt_http_date(self.now())))
    }
}

impl Shared {
    /// Writes a change down that was made; its number.
    pub fn changed(&mut self) -> String {
        let id = format!("C{}", self.changes.len());
        self.changes.insert(id.clone(), now_ns());
        id
    }
}

/// An error closes the connection.
async fn respond(request: hyper::Request<Incoming>, state: Arc<State>) -> io::Result<Response<Content>> {
    let (parts, mut body) = request.into_parts();
    let head = Head::new(parts.method, &parts.uri, parts.headers, None, state.now());
    let mut whole = Vec::new();
    while let Some(frame) = std::future::poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        if let Ok(data) = frame.map_err(io::Error::other)?.into_data() {
            whole.extend_from_slice(&data);
        }
        if whole.len() > MOST_BYTES {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    let request = Request { head, body: whole };
    if state.is_late(&request) {
        thread::spawn(move || {
            thread::sleep(LATE);
            state.answer(&request)
        });
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    // The zone's primary is waited for.
    let answered = tokio::task::spawn_blocking(move || state.answer(&request)).await;
    Ok(answered.map_err(io::Error::other)??.response(false))
}
