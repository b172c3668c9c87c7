//! Tests of outages: the store vanishes, comes back, or accepts requests and never answers. The clock is simulated.

use std::fs;
use std::net::{SocketAddr, TcpListener};
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use ascertain_transfer::{
    Attempt, Error, Failure, Kind, Location, Observer, Options, Outage, PartBody, Progress, PutOptions, Selection,
    Settings, Stop, TransferManager, TransferStatus, Upload, open,
};
use tokio::time::{Instant, timeout};

use super::memory::{ANY, Call, Fault, Memory, Path};
use super::{file, manager, settings, simulate};

const MINUTE: Duration = Duration::from_secs(60);

/// Makes all requests that `is_meant` selects fail for the time `outage`. This time begins with the first of these
/// requests.
fn fail_for(store: &Memory, outage: Duration, is_meant: impl Fn(Call) -> bool + Send + 'static) {
    let mut end = None;
    store.script(move |call, _| {
        let is_over = is_meant(call) && Instant::now() > *end.get_or_insert_with(|| Instant::now() + outage);
        (is_meant(call) && !is_over).then_some(Fault::Fails(Kind::Transient(None)))
    });
}

#[test]
fn a_store_that_comes_back_in_time_gets_the_file() {
    let (_folder, path, content) = file(3_000_000);
    let put = |settings: Settings, outage| {
        let store = Memory::new(ANY);
        fail_for(&store, outage, |call| call != Call::Head && call != Call::Begin && call != Call::Part(0));
        simulate(manager(settings).put_file(&path, &store.place("a"))).map(|_| store.bytes("a").unwrap() == content)
    };
    assert!(put(settings(), MINUTE).unwrap());
    let error = put(settings(), 10 * MINUTE).unwrap_err();
    assert!(error.to_string().contains("no request has succeeded for 120 s"), "{error}");
    assert!(put(Settings { retry_for: 15 * MINUTE, ..settings() }, 10 * MINUTE).unwrap());
}

/// While other requests succeed, there is no outage. The failing request is repeated as long as other requests succeed,
/// and after that for the usual time for retries.
#[test]
fn any_success_ends_an_outage() {
    let (_folder, path, content) = file(3_000_000);
    let slow = Path { bytes_per_s: 10_000.0, round_trip: Duration::from_millis(10) };
    let limits = ascertain_transfer::Limits { max_part_bytes: 50_000, ..ANY };
    let store = Memory { path: Some(slow), ..Memory::new(limits) };
    fail_for(&store, 4 * MINUTE, |call| call == Call::Part(1));
    let settings = Settings { retry_for: MINUTE, max_concurrency: 4, ..settings() };
    simulate(manager(settings).put_file(&path, &store.place("a"))).unwrap();
    assert_eq!(store.bytes("a").unwrap(), content);
}

/// After the first file has failed because of an outage, the store gets no requests for the other files.
#[test]
fn an_outage_ends_all_transfers_of_a_command() {
    let folder = tempfile::tempdir().unwrap();
    for number in 0..40 {
        fs::write(folder.path().join(number.to_string()), "x").unwrap();
    }
    let store = Memory::new(ANY);
    store.script(|_, _| Some(Fault::Hangs));
    let manager = manager(Settings { max_concurrency: 4, ..settings() });
    let (from, to) = ([folder.path().to_path_buf()], store.place("all/"));
    let results = simulate(manager.put_many(&from, &to, &Selection::default())).unwrap();
    let (mut tried, mut not_sent) = (0, 0);
    for result in &results {
        match &result.status {
            TransferStatus::Failed(Error::Halted) => not_sent += 1,
            TransferStatus::Failed(error) if error.to_string().contains("no answer within") => tried += 1,
            status => panic!("{status:?}"),
        }
    }
    assert!(tried > 0 && tried <= 4 && tried + not_sent == 40, "{tried} {not_sent}");
    // Each of the four is sent once. Then two requests look whether it was stored although no answer came.
    assert!(store.count(|_| true) <= 4 * 3, "{:?}", store.lock().calls);
}

/// Starts a server that accepts connections, and never answers. Returns its address.
fn silent() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || listener.incoming().map_while(Result::ok).collect::<Vec<_>>());
    address
}

fn at(address: SocketAddr) -> Location {
    at_with(address, Options::default())
}

/// Opens an object at this server, with further options.
fn at_with(address: SocketAddr, options: Options) -> Location {
    let environment = [("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "key")].into_iter().collect();
    let (endpoint_url, timeout) = (Some(format!("http://{address}")), options.timeout.or(Some(MINUTE)));
    open("s3://bucket/name", &Options { environment, endpoint_url, timeout, ..options }).unwrap()
}

/// An outage: the server, the length of the silence in seconds, and the time that is left in seconds.
type Seen = (String, f64, Option<f64>);

/// Records the outages that it receives; `None` for the end of an outage.
#[derive(Clone, Default)]
struct Recorder(Arc<Mutex<Vec<Option<Seen>>>>);

impl Observer for Recorder {
    fn progress(&self, _progress: &Progress<'_>) {}

    fn outage(&self, outage: Option<&Outage<'_>>) {
        let record = outage.map(|outage| (outage.host.to_string(), outage.silent_s, outage.left_s));
        self.0.lock().unwrap().push(record);
    }
}

#[test]
fn a_server_that_accepts_and_never_answers_is_reported_and_given_up() {
    let (address, recorder) = (silent(), Recorder::default());
    let manager = TransferManager::new(settings(), Stop::default(), Box::new(recorder.clone()));
    // The limit is the sum of the time for retries and a timeout, and a little more for waits.
    let looked_up = simulate(async { timeout(2 * MINUTE + MINUTE + MINUTE / 4, manager.size(&at(address))).await });
    let error = looked_up.expect("it was given up too late").unwrap_err().to_string();
    assert!(error.contains("timed out without progress (tried 2 times; no request has succeeded for"), "{error}");
    let outages = recorder.0.lock().unwrap().clone();
    let all: Vec<_> = outages.iter().flatten().collect();
    assert!(all.len() > 100 && all.len() == outages.len(), "{outages:?}");
    for (index, (host, silent_s, left_s)) in all.iter().enumerate() {
        let left_s = left_s.unwrap();
        assert_eq!(host, &address.to_string());
        assert!(*silent_s >= 3.0 && left_s + silent_s <= 121.0, "{silent_s} {left_s}");
        assert!(index == 0 || (all[index - 1].1 < *silent_s && all[index - 1].2.unwrap() >= left_s), "{outages:?}");
    }
}

/// A request waits for the only connection for longer than its time limit. The time limit begins when the request gets
/// the connection.
#[test]
fn the_wait_for_a_connection_is_not_part_of_the_time_limit() {
    let options = Options { max_connections: Some(1), timeout: Some(10 * MINUTE), ..Options::default() };
    let location = at_with(silent(), options);
    let manager = manager(Settings { retries: 0, retry_for: 60 * MINUTE, ..settings() });
    let [mut earlier, mut attempt, mut other] = [(); 3].map(|()| Attempt::default());
    simulate(async {
        let mut both = pin!(async { tokio::join!(location.store.head("name", &mut earlier), manager.size(&location)) });
        assert!(timeout(11 * MINUTE, &mut both).await.is_err());
        let (first, second) = both.await;
        let error = second.unwrap_err().to_string();
        assert!(first.is_err() && error.contains("no answer within 85.0 s"), "{error}");
        let (first, second) =
            tokio::join!(location.store.head("name", &mut attempt), location.store.head("name", &mut other));
        assert!(first.is_err() && second.is_err());
    });
    let waited = other.began.unwrap().saturating_duration_since(attempt.began.unwrap());
    assert!(waited > Duration::ZERO, "the wait counts as a part of the request");
}

/// A request that must not be repeated has the usual timeout as well. Only a commit has a longer one, because the store
/// may be assembling the object.
#[test]
fn only_a_commit_may_be_silent_for_longer() {
    let location = at(silent());
    let unanswered = |error: Failure| error.kind == Kind::Unanswered && error.message.contains("without progress");
    simulate(async {
        let (store, options, mut attempt) = (&location.store, PutOptions::default(), Attempt::default());
        let body = PartBody { crc64: 0, bytes: "x".into() };
        let put = timeout(2 * MINUTE, store.put("name", body, &options, &mut attempt)).await;
        assert!(unanswered(put.expect("the timeout is longer").unwrap_err()));
        let upload = Upload { name: "name".into(), id: "1".into() };
        let tokens = ["1 AAAAAAAAAAA= x".to_string()];
        let mut commit = store.commit(&upload, &tokens, 0, &options, &mut attempt);
        assert!(timeout(2 * MINUTE, &mut commit).await.is_err(), "the commit has the timeout of other requests");
        assert!(unanswered(timeout(4 * MINUTE, commit).await.expect("the commit has no timeout").unwrap_err()));
    });
}

/// No server listens at the address. A limit on the number of retries ends the transfer before the time for retries is
/// over.
#[test]
fn retries_and_time_are_both_limits() {
    let (_folder, path, _) = file(1000);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    for (retries, message) in [(2, "(tried 3 times)"), (u64::MAX, "no request has succeeded for 120 s")] {
        let manager = manager(Settings { retries, ..settings() });
        let error = simulate(manager.put_file(&path, &at(address))).unwrap_err();
        assert!(matches!(&error, Error::Store(failure) if failure.message.contains(message)), "{error}");
    }
}
