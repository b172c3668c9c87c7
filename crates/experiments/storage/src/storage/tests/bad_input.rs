//! Tests of input and answers that are wrong: each gives a clear error, and leaves nothing behind.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU64, Ordering};

use ascertain_netlab::store::Store as Serving;

use super::super::*;
use super::stub::{Answer, Stub};
use super::*;

fn upload(url: &str) -> Arm {
    arm(URL, &[("url", url.into()), ("operation", UPLOAD.into()), ("size", 1_000.into())])
}

fn download(url: &str) -> Arm {
    arm(URL, &[("url", url.into()), ("size", 1_000.into())])
}

#[test]
fn wrong_credentials_and_buckets_are_named() {
    let running = Serving::s3().start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    let url = |bucket: &str| format!("s3+http://{}/{bucket}/mine", running.address());
    let with = |secret: &str, bucket: &str| {
        let environment = [("AWS_ACCESS_KEY_ID", "ascertain"), ("AWS_SECRET_ACCESS_KEY", secret)].into_iter().collect();
        let mut opened = open_with(&upload(&url(bucket)), &environment)?;
        let measured = opened.measure(1).map(drop);
        let folder = opened.folder.path().to_path_buf();
        drop(opened.session);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "no journal stays");
        measured
    };
    assert_eq!(with("not-a-secret-at-all", "bucket"), Ok(()));
    let error = with("another", "bucket").unwrap_err().to_string();
    assert!(error.contains("AWS_SECRET_ACCESS_KEY") && !error.contains("another"), "{error}");
    let error = with("not-a-secret-at-all", "nowhere").unwrap_err().to_string();
    assert!(error.contains("nowhere") && error.to_lowercase().contains("bucket"), "{error}");
    let error = open_with(&upload(&url("bucket")), &Environment::default()).err().unwrap().to_string();
    assert!(error.contains("AWS_ACCESS_KEY_ID"), "{error}");
    // Objects of failed runs do not stay.
    assert!(
        running
            .seen()
            .iter()
            .filter(|seen| !seen.key.is_empty())
            .all(|seen| running.object("bucket", &seen.key).is_none())
    );
}

#[test]
fn a_web_page_is_not_a_store() {
    let stub = Stub::new(|_| Answer { headers: Vec::new(), ..Answer::new(200, "<html>Welcome</html>") });
    let error = refusal(&upload(&stub.url()));
    assert!(error.contains("does not look like a store"), "{error}");
}

#[test]
fn a_bucket_that_must_not_be_written_to_is_named() {
    let denied = "<Error><Code>AccessDenied</Code><Message>no</Message></Error>";
    let stub = Stub::store(move |request, answer| match &*request.method {
        "PUT" => Answer::new(403, denied),
        _ => answer,
    });
    for arm in [upload(&stub.url()), download(&stub.url())] {
        let error = refusal(&arm);
        assert!(error.contains("AccessDenied") || error.contains("denied"), "{error}");
    }
}

/// A quota that is reached in the middle of a run ends it with an error. The objects so far are deleted.
#[test]
fn a_full_store_ends_the_run() {
    let puts = AtomicU64::new(0);
    let stub = Stub::store(move |request, answer| match &*request.method {
        "PUT" if puts.fetch_add(1, Ordering::Relaxed) >= 3 => {
            Answer::new(403, "<Error><Code>QuotaExceeded</Code><Message>full</Message></Error>")
        }
        _ => answer,
    });
    let mut opened = open(&upload(&stub.url())).unwrap();
    let error = opened.measure(5).unwrap_err().to_string();
    assert!(error.contains("QuotaExceeded") || error.contains("full"), "{error}");
    let folder = opened.folder.path().to_path_buf();
    drop(opened.session);
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

#[test]
fn an_object_that_changes_is_a_wrong_answer() {
    let reads = AtomicU64::new(0);
    let stub = Stub::new(move |request| match &*request.method {
        "GET" => Answer::new(200, vec![u8::from(reads.fetch_add(1, Ordering::Relaxed) >= 2); 500]),
        _ => Answer::new(200, vec![0; 500]),
    });
    let arm = arm(URL, &[("url", (&*stub.url()).into()), ("key", "mine/k".into())]);
    let error = open(&arm).unwrap().measure(3).unwrap_err();
    assert!(matches!(&error, TargetError::WrongAnswer(why) if why.contains("mine/k has changed")), "{error}");
    let missing = Stub::store(|_, answer| answer);
    let arm = super::arm(URL, &[("url", (&*missing.url()).into()), ("key", "k".into())]);
    assert!(refusal(&arm).contains("there is no object k"));
}

/// Two addresses of one store are reported and not refused. They test that no store is called faster than itself.
#[test]
fn two_addresses_of_one_store_are_reported() {
    let stub = Stub::store(|_, answer| answer);
    let pair = format!("{0},{0}/other", stub.url());
    let levels = [("pair", (&*pair).into()), ("smallest", Level::from(100)), ("largest", 100.into())];
    let mut opened = open(&arm(CROSSOVER, &levels)).unwrap();
    opened.measure(1).unwrap();
    let Some(Remark::Crossover { is_same_store, .. }) = opened.remark(|_| true) else { panic!() };
    assert!(is_same_store);
}

#[test]
fn a_proxy_is_refused() {
    let stub = Stub::store(|_, answer| answer);
    let variables = [
        ("AWS_ACCESS_KEY_ID", "a"),
        ("AWS_SECRET_ACCESS_KEY", "b"),
        ("http_proxy", "http://user:secret@proxy.example:3128"),
    ];
    let environment = variables.into_iter().collect();
    let error = open_with(&download(&stub.url()), &environment).unwrap().measure(1).unwrap_err().to_string();
    assert!(error.contains("proxy.example") && error.contains("NO_PROXY") && !error.contains("secret"), "{error}");
    let exempt = variables.into_iter().chain([("no_proxy", "127.0.0.1")]).collect();
    assert!(open_with(&download(&stub.url()), &exempt).unwrap().measure(1).is_ok());
}

#[test]
fn levels_that_do_not_fit_are_explained() {
    let url = Level::from("s3://bucket/x");
    for (variant, levels, words) in [
        (CROSSOVER, vec![("pair", "google".into())], "needs two stores"),
        (CROSSOVER, vec![("pair", "google,elsewhere".into())], "no store `elsewhere`"),
        (CROSSOVER, vec![("pair", "google,s3://u:secret@b/x".into())], "must not contain a user"),
        (CROSSOVER, vec![("smallest", 9.into()), ("largest", 8.into())], "larger than `largest`"),
        (URL, vec![("url", url.clone()), ("max_cost", "2USD".into())], "needs `prices`"),
        (URL, vec![("url", url.clone()), ("prices", "/none".into())], "/none"),
        (URL, vec![("url", url.clone()), ("key", "k".into()), ("operation", UPLOAD.into())], "writes no objects"),
        (URL, vec![("url", url), ("operation", UPLOAD.into()), ("part", 5.into())], "at least 5 MiB"),
        (URL, vec![("url", "file:///tmp/x".into())], "name an object store"),
        (URL, vec![("url", "s3+http://host".into())], "expected s3+http://HOST/BUCKET/PREFIX"),
    ] {
        let error = levels::check(&arm(variant, &levels)).unwrap_err();
        assert!(error.contains(words), "{words}: {error}");
    }
}

/// A store in another region than the configured one names its region, and the client uses it.
#[test]
fn a_redirect_across_regions_is_followed_or_named() {
    let serving = Serving { region: "eu-west-1".into(), ..Serving::s3() };
    let running = serving.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap();
    let out = open(&upload(&format!("s3+http://{}/bucket/mine", running.address()))).unwrap().measure(2).unwrap();
    assert_eq!(values(&out, INCOMPLETE), [0.0; 2]);
    // A redirect that leads nowhere ends the arm, and names the region.
    let stub = Stub::store(|_, _| {
        Answer::new(301, "<Error><Code>PermanentRedirect</Code></Error>").header("x-amz-bucket-region", "eu-west-1")
    });
    let error = refusal(&upload(&stub.url()));
    assert!(error.contains("eu-west-1"), "{error}");
}

/// Prices without an entry for the store are an error, because the bill would lack an amount.
#[test]
fn prices_of_other_stores_are_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prices.toml");
    let prices = "source = 'x'\ndate = 'y'\n[[store]]\naddress = 'az://'\ncurrency = 'USD'\nper_gb_read = 1\n";
    std::fs::write(&path, prices).unwrap();
    let levels = [("url", "s3://bucket/x".into()), ("prices", path.to_str().unwrap().into())];
    let error = levels::bills(&[arm(URL, &levels)], 1).unwrap_err();
    assert!(error.contains("no entry for s3://bucket/x"), "{error}");
}

/// Arms share the content and the buffers, so that objects of 1 GB need twice their size, whatever the number of arms.
#[test]
fn large_objects_share_their_memory() {
    let large = |url: &str| arm(URL, &[("url", url.into()), ("size", Level::from(1_000_000_000))]);
    let streams = arm(URL, &[("url", "s3://b".into()), ("size", 1_000.into()), ("concurrency", 50.into())]);
    let pair = [("pair", "s3://a,s3://b".into()), ("largest", Level::from(1_000_000_000))];
    let arms = [large("s3://a"), large("s3://b"), arm(CROSSOVER, &pair), streams];
    assert_eq!(levels::memory_bytes(&arms), 2_000_000_000 + 49 * 1_000);
}

/// The budget ends a run with an error, and the objects so far are deleted.
#[test]
fn a_budget_ends_the_run() {
    let stub = Stub::store(|_, answer| answer);
    let arm = arm(URL, &[("url", (&*stub.url()).into()), ("size", 1_000.into()), ("max_requests", 9.into())]);
    let mut opened = open(&arm).unwrap();
    let error = opened.measure(20).unwrap_err().to_string();
    assert!(error.contains("`max_requests` of 9"), "{error}");
    drop(opened.session);
    let of_objects = stub.seen().iter().filter(|request| !request.path.starts_with("/bucket?")).count();
    assert!(of_objects <= 9, "{of_objects}");
}
