//! Tests of replayed races, and of complete races between a disk and a server behind a link.

use std::fs;

use ascertain_engine::experiment::{Experiment, Level};
use ascertain_netlab::http::{Misbehaviour, Server};
use ascertain_sys::testing::or_left_out;
use ascertain_transfer::race::Side;

use super::super::origin::{Origin, Serving};
use super::super::{CacheRace, DRAWN, LATE, RESIDENT, SERVERS, WARM};
use super::*;

const POLICIES: [&str; 5] = [NEVER, ALWAYS, AFTER, PERCENTILE, THROTTLED];

fn arm(variant: &str, levels: &[(&str, Level)]) -> Arm {
    let few: [(&str, Level); 4] =
        [("rtt_ms", 2.into()), ("requests", 40.into()), ("concurrency", 4.into()), ("bytes", 20_000.into())];
    let point = CacheRace.spec().default_point();
    let point = few.iter().chain(levels).fold(point, |point, (factor, level)| point.with(factor, level.clone()));
    CacheRace.trimmed(&Arm { variant: variant.into(), point })
}

fn measure(arm: Arm, seed: u64) -> Result<[Option<f64>; 10], TargetError> {
    let mut races = RaceSession::open(&[arm], &Setup::default())?;
    let mut out = Samples::default();
    races.verify(0)?;
    races.measure(0, &Trial { number: 0, seed }, &mut out)?;
    let mut seen = [None; 10];
    out.iter().for_each(|sample| seen[sample.metric] = Some(sample.value));
    Ok(seen)
}

/// There are 5,574 requests. Of these, 951 race, and the network wins 13 of the races.
#[test]
fn the_made_up_requests_have_the_sources_counts() {
    let ReplayResult { counts, .. } = replay(Policy::After(Duration::from_millis(2)), &traces::firefox()).unwrap();
    let [requests, cache_won, network_won] = traces::FIREFOX.map(|count| count as u64);
    assert_eq!((counts.requests, counts.cache_won, counts.network_won), (requests, cache_won, network_won));
    assert_eq!(counts.raced, 951);
}

/// All policies are replayed on the same requests, so their times can be compared. The time of `percentile` must be
/// between those of `never` and `always`.
#[test]
fn replays_of_a_trial_have_the_same_requests() {
    let seen = |variant, trace, seed| {
        let seen = measure(arm(variant, &[("trace", Level::from(trace))]), seed).unwrap();
        assert_eq!(seen[REQUESTS], Some(if trace == STALLS { 10_000.0 } else { 5_574.0 }));
        assert!(seen[RESIDENT].is_none(), "a replay uses no disk");
        [TIME, RACED, EXTRA, GAIN].map(|metric| seen[metric])
    };
    for seed in 0..3 {
        let [never, always] = [NEVER, ALWAYS].map(|variant| seen(variant, STALLS, seed));
        assert_eq!(never[1..], [Some(0.0), Some(0.0), Some(0.0)]);
        assert_eq!(always[1..], [Some(1.0), Some(1.0), Some(1.0)]);
        assert_eq!(seen(PERCENTILE, STALLS, seed), seen(PERCENTILE, STALLS, seed));
        assert_ne!(seen(NEVER, STALLS, seed), seen(NEVER, STALLS, seed + 1));
        let [time, _, extra, gain] = seen(PERCENTILE, STALLS, seed);
        assert!(always[0] <= time && time <= never[0] && gain > Some(0.5) && extra <= Some(0.05), "{seed}: {gain:?}");
        // About 17 % of the requests race, but the network wins only 13 of 951 races. So races gain nothing at the 99th
        // percentile.
        let [_, raced, _, gain] = seen(AFTER, FIREFOX, seed);
        assert!((0.14..0.2).contains(&raced.unwrap()) && gain.is_none(), "{raced:?}");
    }
}

/// The cache stalls for 4.5 % of the requests, and at most 5 % of the requests may also be sent to the origin. The
/// delay before such an extra request must therefore be longer than most requests, but shorter than the stalls. The
/// best possible gain is 0.97. If the delay were the 95th percentile of the last 1,000 durations, the gain would be
/// 0.83.
#[test]
fn a_budget_that_is_just_enough_is_spent_on_the_slow() {
    let gain = |seed| {
        let arm = arm(PERCENTILE, &[("trace", STALLS.into()), ("stalls_permille", 45.into())]);
        let seen = measure(arm, seed).unwrap();
        assert!(seen[EXTRA] <= Some(0.05), "{seen:?}");
        seen[GAIN].unwrap()
    };
    let mut gains: Vec<f64> = (0..15).map(gain).collect();
    gains.sort_unstable_by(f64::total_cmp);
    assert!((0.9..0.97).contains(&gains[7]), "{gains:?}");
}

#[test]
fn each_policy_is_measured_on_the_disk_and_with_each_server() {
    let mut cases = Vec::new();
    cases.extend(POLICIES.map(|variant| (variant, "own", "cold")));
    cases.extend(POLICIES.map(|variant| (variant, "own", WARM)));
    cases.extend(SERVERS.map(|server| (ALWAYS, server, "cold")));
    for (variant, server, page_cache) in cases {
        let arm = arm(variant, &[("server", server.into()), ("page_cache", page_cache.into())]);
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let seen = measure(arm, 0).unwrap();
        let named = format!("{variant} {server} {page_cache}: {seen:?}");
        assert_eq!(seen[REQUESTS], Some(40.0), "{named}");
        assert!(seen[TIME] > Some(0.0) && seen[GAIN].is_none() && seen[LATE + 1].is_some(), "{named}");
        // Other processes may have read a few of our files after they were made cold.
        let resident = seen[RESIDENT].unwrap();
        assert!(if page_cache == WARM { resident > 0.9 } else { resident < 0.1 }, "{named}");
        match variant {
            // On a busy machine, a file may have been read before the request polls the cache for the first time. Such
            // a request does not race.
            ALWAYS => assert!(seen[RACED] <= Some(1.0), "{named}"),
            NEVER | THROTTLED => assert_eq!(seen[RACED], Some(0.0), "{named}"),
            _ => assert!(seen[EXTRA] <= seen[RACED], "{named}"),
        }
    }
}

#[test]
fn each_server_has_what_the_cache_has_not() {
    for server in SERVERS {
        let arm = arm(ALWAYS, &[("server", server.into())]);
        if or_left_out(is_available(&arm)).is_none() {
            continue;
        }
        let mut races = RaceSession::open(&[arm], &Setup::default()).unwrap();
        races.verify(0).unwrap();
        let RaceTarget::Live(live) = &races.targets[0] else { panic!("it is live") };
        fs::remove_file(live.target.disk.path(3)).unwrap();
        within(&races.runtime, live.request(3)).unwrap();
        let counts = live.racer.counts();
        // The file of the cache is missing. The origin may have answered before the cache failed because of this.
        assert_eq!((counts.requests, counts.cache_won, counts.origin_failed), (1, 0, 0), "{server}");
        assert!(counts.cache_failed + counts.network_won >= 1, "{server}: {counts:?}");
    }
}

#[test]
fn what_is_recorded_is_replayed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let path_level = || Level::from(path.to_str().unwrap());
    let recording = arm(NEVER, &[("record", path_level())]);
    if or_left_out(is_available(&recording)).is_none() {
        return;
    }
    let mut races = RaceSession::open(&[recording], &Setup::default()).unwrap();
    let mut faithful = 0;
    for _ in 0..2 {
        let mut out = Samples::default();
        races.measure(0, &Trial { number: 0, seed: 0 }, &mut out).unwrap();
        faithful += out.iter().filter(|sample| sample.metric == LATE + 1 && sample.value == 0.0).count() as u64;
    }
    let RaceTarget::Live(live) = races.targets.remove(0) else { panic!("it is live") };
    let recorded = || if path.exists() { traces::read(&path).unwrap().len() as u64 } else { 0 };
    // On a busy machine, the link may be too inaccurate in each attempt. The trial then records nothing.
    let before = recorded();
    assert_eq!(before, faithful * 40);
    for (is_unfaithful, more) in [(1.0, 0), (0.0, 1), (1.0, 1)] {
        let mut out = Samples::default();
        out.push(LATE + 1, is_unfaithful);
        live.end(&[RequestTimes { cache: Duration::from_millis(1), origin: Duration::from_millis(2) }], &out).unwrap();
        assert_eq!(recorded() - before, more);
    }
    let times = traces::read(&path).unwrap();
    assert!(times.iter().all(|times| times.cache > Duration::ZERO && times.origin >= Duration::from_millis(2)));
    let seen = measure(arm(ALWAYS, &[("trace", path_level())]), 0).unwrap();
    assert!(seen[TIME] > Some(0.0) && seen[RACED] == Some(1.0), "{seen:?}");
}

/// If durations are recorded, requests to the origin begin only after all reads of the disk. Requests between the reads
/// would reduce the load of the disk, compared with a trial without a record. Because of this order, a failing origin
/// is noticed only after all reads.
#[test]
fn what_is_recorded_of_the_disk_does_not_wait_for_the_origin() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let recording = arm(NEVER, &[("record", path.to_str().unwrap().into())]);
    if or_left_out(is_available(&recording)).is_none() {
        return;
    }
    let mut races = RaceSession::open(&[recording], &Setup::default()).unwrap();
    let RaceTarget::Live(mut live) = races.targets.remove(0) else { panic!("it is live") };
    let link = live.target.link.clone();
    let server = Server::misbehaving(link.far().listen((link.far().address(), 1)).unwrap(), Misbehaviour::Closes);
    let (address, server) = server.map(|server| (server.address(), server)).unwrap();
    let origin = Origin::new(Serving::Own { _server: server }, link, address, "/".into(), 2);
    Rc::get_mut(&mut Rc::get_mut(&mut live).unwrap().target).unwrap().origin = Rc::new(origin);
    assert!(within(&races.runtime, live.measure(&mut Samples::default())).is_err());
    assert_eq!((live.racer.counts().requests, path.exists()), (40, false));
}

/// Each trial draws a new sample of a recorded trace, or replays the trace in its order.
#[test]
fn a_recorded_trace_is_replayed_as_it_is_where_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    let ms = Duration::from_millis;
    // The origin is the faster side for every second request. In a random sample, this is almost never so for exactly
    // half of the requests.
    let times: Vec<RequestTimes> =
        (0..1_000).map(|index| RequestTimes { cache: ms(1 + index % 2 * 99), origin: ms(10) }).collect();
    traces::append(&path, &times).unwrap();
    let seen = |order: &str, seed| {
        let levels = [("trace", Level::from(path.to_str().unwrap())), ("order", order.into())];
        measure(arm(ALWAYS, &levels), seed).unwrap()[WON].unwrap()
    };
    assert_eq!([1, 2, 3].map(|seed| seen(RECORDED, seed)), [0.5; 3]);
    let other: Vec<RequestTimes> = times.iter().copied().take(500).chain(vec![times[0]; 500]).collect();
    traces::append(&path, &other).unwrap();
    assert!((0..20).any(|seed| seen(DRAWN, seed) != seen(RECORDED, seed)));
}

#[test]
fn files_that_are_no_traces_say_where() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trace.csv");
    for (text, says) in [
        ("", "first line"),
        ("a,b\n1,2\n", "first line"),
        ("cache_ns,origin_ns\n", "no requests"),
        ("cache_ns,origin_ns\n1,2\n3\n", "line 3"),
        ("cache_ns,origin_ns\n1,2,3\n", "line 2"),
        ("cache_ns,origin_ns\n1,-2\n", "line 2"),
        ("cache_ns,origin_ns\n1,2\n\n", "line 3"),
        ("cache_ns,origin_ns\n18446744073709551616,2\n", "line 2"),
    ] {
        fs::write(&path, text).unwrap();
        let error = measure(arm(NEVER, &[("trace", path.to_str().unwrap().into())]), 0).unwrap_err().to_string();
        assert!(error.contains(says) && error.contains("trace.csv"), "{text:?}: {error}");
    }
    let missing = measure(arm(NEVER, &[("trace", "/nowhere/at all".into())]), 0).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/at all"), "{missing}");
    fs::write(&path, "cache_ns,origin_ns\r\n18446744073709551615,18446744073709551615\r\n").unwrap();
    let longest = measure(arm(PERCENTILE, &[("trace", path.to_str().unwrap().into())]), 0).unwrap();
    assert_eq!(longest[TIME], Some(u64::MAX as f64));
}

#[test]
fn what_cannot_be_is_unavailable_and_says_why() {
    let says = |variant, levels: &[(&str, Level)], why: &str| {
        let error = is_available(&arm(variant, levels)).unwrap_err().to_string();
        assert!(error.contains(why), "{error}");
    };
    says(THROTTLED, &[("trace", STALLS.into())], "fewer simultaneous reads");
    says(ALWAYS, &[("record", "x".into())], "only `never`");
    says(NEVER, &[("folder", "/nowhere".into())], "/nowhere");
    // The file system in `/dev/shm` is in memory, so it can't drop files from memory.
    let in_memory = "/dev/shm";
    let is_there = fs::metadata(in_memory).map_err(|error| format!("{in_memory}: {error}"));
    if or_left_out(is_there).is_some() {
        says(NEVER, &[("folder", in_memory.into())], "can't drop files from memory");
        assert!(fs::read_dir(in_memory).unwrap().all(|file| {
            !file.unwrap().file_name().to_string_lossy().contains(&format!("cache-{}", std::process::id()))
        }));
    }
}

/// First, the cache answers while the origin is down, slow or broken. Then the origin answers while the cache is
/// missing or wrong. Finally, both fail.
#[test]
fn one_side_is_enough_and_both_are_told_of() {
    let arm = arm(ALWAYS, &[]);
    if or_left_out(is_available(&arm)).is_none() {
        return;
    }
    let mut races = RaceSession::open(&[arm], &Setup::default()).unwrap();
    let RaceTarget::Live(live) = races.targets.remove(0) else { panic!("it is live") };
    let mut live = Rc::into_inner(live).unwrap();
    let path = live.target.disk.path(3);
    let right = fs::read(&path).unwrap();
    // Counts the requests that the origin answered, because the cache failed or the origin was faster.
    let failed = |live: &Live| live.racer.counts().cache_failed + live.racer.counts().network_won;
    let won = |live: &Live| {
        let before = failed(live);
        let asked = within(&races.runtime, live.request(3)).map_err(|error| error.to_string());
        asked.map(|_| if failed(live) == before { Side::Cache } else { Side::Origin })
    };

    fs::write(&path, vec![b'?'; right.len()]).unwrap();
    assert_eq!(won(&live), Ok(Side::Origin), "a cache that lies");
    fs::remove_file(&path).unwrap();
    assert_eq!(won(&live), Ok(Side::Origin), "a cache that has nothing");

    let (link, origin) = (live.target.link.clone(), live.target.origin.clone());
    let hows = [
        (Misbehaviour::Closes, "end of file"),
        (Misbehaviour::NotHttp, "end of file"),
        (Misbehaviour::SendsLess, "early eof"),
        (Misbehaviour::Resets, "reset"),
        (Misbehaviour::SendsMore, "checksum"),
    ];
    for (port, (how, says)) in (1..).zip(hows) {
        let listener = link.far().listen((link.far().address(), port)).unwrap();
        let server = Server::misbehaving(listener, how).unwrap();
        let address = server.address();
        let origin = Origin::new(Serving::Own { _server: server }, link.clone(), address, "/".into(), 2);
        Rc::get_mut(&mut live.target).unwrap().origin = Rc::new(origin);
        fs::write(&path, &right).unwrap();
        fs::File::open(&path).unwrap().sync_all().unwrap();
        assert_eq!(won(&live), Ok(Side::Cache), "{how:?}");
        fs::write(&path, b"lies").unwrap();
        let both = won(&live).unwrap_err();
        assert!(both.contains(says) || both.contains("longer"), "{how:?}: {both}");
        assert!(both.contains("neither side answered the request; cache: the checksum"), "{how:?}: {both}");
    }

    // A trial fails if the cache or the origin fails, even if the other one answers.
    let trial = |live: &Rc<Live>| within(&races.runtime, live.measure(&mut Samples::default())).map(drop);
    fs::write(&path, &right).unwrap();
    let mut live = Rc::new(live);
    assert!(trial(&live).is_err(), "the server is broken");
    Rc::get_mut(&mut Rc::get_mut(&mut live).unwrap().target).unwrap().origin = origin;
    assert_eq!(trial(&live), Ok(()));
    fs::write(&path, b"lies").unwrap();
    let said = trial(&live).unwrap_err().to_string();
    assert!(said.contains("failed during the trial"), "the cache lies: {said}");
}
