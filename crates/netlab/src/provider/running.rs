//! Runs an emulated DNS provider: receives its requests, and applies its limits and faults.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, SystemTime};

use ascertain_sys::clock::now_ns;
use http_body_util::{BodyExt, Limited};
use httpdate::fmt_http_date;
use hyper::Response;
use hyper::body::{Bytes, Incoming};

use super::records::Records;
use super::tokens::Tokens;
use super::{HostedZone, Interface, Provider, cloud_dns, route53};
use crate::Error;
use crate::http::{Server, serve_requests};
use crate::store::{Answer, Content, Head, time_ahead};
use crate::threads::lock;

/// Maximum size of a request's body, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// Time from the loss of an answer until the provider makes the requested change, for [`Provider::late_changes`].
const LATE: Duration = Duration::from_secs(1);

/// An emulated DNS provider that is running. Dropping it stops the provider, but not the servers of its zones.
pub struct RunningProvider {
    server: Server,
    pub(super) state: Arc<State>,
}

pub(super) struct State {
    pub provider: Provider,
    /// URL on which the provider listens.
    pub url: String,
    pub shared: Mutex<Shared>,
}

#[derive(Default)]
pub(super) struct Shared {
    pub records: Records,
    /// For the id of each change so far, the time at which the change was accepted, in nanoseconds.
    pub changes: BTreeMap<String, u64>,
    pub tokens: Tokens,
    recent_ns: VecDeque<u64>,
    throttled_changes: usize,
    lost_answers: usize,
    late_changes: usize,
    seen: Vec<(String, u16)>,
}

/// A request whose body has arrived completely.
pub(super) struct ProviderRequest {
    pub head: Head,
    pub body: Bytes,
}

impl ProviderRequest {
    fn is_change(&self) -> bool {
        let Head { method, raw_path, .. } = &self.head;
        method == "POST" && ["/rrset", "/rrset/", "/changes"].iter().any(|end| raw_path.ends_with(end))
    }
}

impl Provider {
    /// Starts the provider on this listening socket.
    ///
    /// # Errors
    /// Returns the errors of [`Server::start`].
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
    /// Returns the address on which the provider listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Returns the URL that clients use as the endpoint.
    pub fn url(&self) -> &str {
        &self.state.url
    }

    /// Returns the settings with which the provider was started.
    pub fn provider(&self) -> &Provider {
        &self.state.provider
    }

    /// Revokes all tokens that were issued.
    pub fn revoke_tokens(&self) {
        lock(&self.state.shared).tokens.revoke();
    }

    /// Returns the names of the records that clients added and that still exist.
    pub fn names(&self) -> Vec<String> {
        let shared = lock(&self.state.shared);
        let zones = self.state.provider.zones.iter();
        zones.flat_map(|zone| shared.records.in_zone(zone).map(|set| set.name.clone())).collect()
    }

    /// Returns the requests so far, each as its method and path in one text, and the status of its answer.
    pub fn seen(&self) -> Vec<(String, u16)> {
        lock(&self.state.shared).seen.clone()
    }
}

impl State {
    pub fn zone(&self, id: &str) -> Option<&HostedZone> {
        self.provider.zones.iter().find(|zone| zone.id == id)
    }

    /// Returns the current time on the provider's clock.
    pub fn now(&self) -> SystemTime {
        time_ahead(self.provider.ahead_s)
    }

    pub fn is_done(&self, since_ns: u64) -> bool {
        now_ns().saturating_sub(since_ns) >= self.provider.done_after.as_nanos() as u64
    }

    /// Returns whether to refuse a request because there were too many requests. The reason is the rate limit, or a
    /// simulated refusal according to [`Provider::throttled_changes`]. A request that the rate limit refuses counts
    /// towards the limit as well.
    pub fn is_too_often(&self, request: &ProviderRequest) -> bool {
        let (now_ns, mut shared) = (now_ns(), lock(&self.shared));
        if request.is_change() && shared.throttled_changes > 0 {
            shared.throttled_changes -= 1;
            return true;
        }
        shared.recent_ns.retain(|at_ns| now_ns.saturating_sub(*at_ns) < 1_000_000_000);
        shared.recent_ns.push_back(now_ns);
        shared.recent_ns.len() > self.provider.requests_per_s
    }

    /// Returns whether the provider loses the answer to this request, and makes the requested change only later.
    fn is_late(&self, request: &ProviderRequest) -> bool {
        let mut shared = lock(&self.shared);
        let is_late = request.is_change() && shared.late_changes > 0;
        shared.late_changes -= usize::from(is_late);
        is_late
    }

    fn answer(&self, request: &ProviderRequest) -> io::Result<Answer> {
        let answer = match self.provider.interface {
            Interface::Route53 => route53::answer(self, request),
            Interface::CloudDns => cloud_dns::answer(self, request),
        };
        let mut shared = lock(&self.shared);
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
    /// Records that a change was made now, and returns the id that it gets.
    pub fn changed(&mut self) -> String {
        let id = format!("C{}", self.changes.len());
        self.changes.insert(id.clone(), now_ns());
        id
    }
}

/// Answers a request. An error closes the connection.
async fn respond(request: hyper::Request<Incoming>, state: Arc<State>) -> io::Result<Response<Content>> {
    let (parts, body) = request.into_parts();
    let head = Head::new(parts.method, &parts.uri, parts.headers, None, state.now());
    let body = Limited::new(body, MOST_BYTES).collect().await.map_err(io::Error::other)?;
    let request = ProviderRequest { head, body: body.to_bytes() };
    if state.is_late(&request) {
        thread::spawn(move || {
            thread::sleep(LATE);
            state.answer(&request)
        });
        return Err(io::ErrorKind::ConnectionReset.into());
    }
    // The answer may have to wait for the zone's primary, so another thread computes it.
    let answered = tokio::task::spawn_blocking(move || state.answer(&request)).await;
    Ok(answered.map_err(io::Error::other)??.response(false))
}
