//! Tests against MinIO and Azurite, if they are installed.

use ascertain_netlab::installed::{AZURITE_KEY, azurite, make_container, minio, or_left_out};

use super::super::*;
use super::*;

/// Measures every operation, then a crossover of the store with itself, and checks that no journal stays.
fn suite(url: &str, environment: &Environment) {
    let with = |levels: &[(&str, Level)]| {
        let levels: Vec<(&str, Level)> = levels.iter().cloned().chain([("url", url.into())]).collect();
        arm(URL, &levels)
    };
    for (operation, object, connection) in [
        (DOWNLOAD, "warm", "kept"),
        (DOWNLOAD, "cold", "fresh"),
        (RANGED, "warm", "fresh"),
        (UPLOAD, "warm", "kept"),
        (UPLOAD, "warm", "fresh"),
    ] {
        let levels = [("operation", operation.into()), ("object", object.into()), ("connection", connection.into())];
        let mut opened = open_with(&with(&levels), environment).unwrap();
        let out = opened.measure(3).unwrap();
        assert_eq!((values(&out, TIME).len(), values(&out, INCOMPLETE)), (3, vec![0.0; 3]), "{operation}");
        let folder = opened.folder.path().to_path_buf();
        drop(opened.session);
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0, "{operation}");
    }
    let streams = [("concurrency", Level::from(4)), ("requests", 20.into()), ("placement", "many".into())];
    assert_eq!(values(&open_with(&with(&streams), environment).unwrap().measure(1).unwrap(), TIME).len(), 20);
    let pair = format!("{url},{url}/other");
    let levels = [("pair", (&*pair).into()), ("largest", Level::from(64_000))];
    let mut opened = open_with(&arm(CROSSOVER, &levels), environment).unwrap();
    opened.measure(1).unwrap();
    assert!(matches!(opened.remark(|_| true), Some(Remark::Crossover { is_same_store: true, .. })));
    assert_eq!(opened.journals(), 2);
}

#[test]
fn minio_is_measured_and_left_empty() {
    let Some(running) = or_left_out(minio) else { return };
    let bucket = running.folder().join("data").join("bucket");
    std::fs::create_dir(&bucket).unwrap();
    let keys = [("AWS_ACCESS_KEY_ID", "minioadmin"), ("AWS_SECRET_ACCESS_KEY", "minioadmin")];
    suite(&format!("s3+http://{}/bucket/mine", running.address()), &keys.into_iter().collect());
    let left: Vec<_> = std::fs::read_dir(&bucket).unwrap().flatten().map(|entry| entry.path()).collect();
    assert!(left.is_empty(), "{left:?}");
    let parts = [("operation", UPLOAD.into()), ("size", Level::from(12 << 20)), ("part", (5 << 20).into())];
    let url = format!("s3+http://{}/bucket", running.address());
    let levels: Vec<(&str, Level)> = parts.into_iter().chain([("url", (&*url).into())]).collect();
    let out = open_with(&arm(URL, &levels), &keys.into_iter().collect()).unwrap().measure(1).unwrap();
    assert_eq!(values(&out, ANSWERED).len(), 1);
}

#[test]
fn azurite_is_measured_and_left_empty() {
    let Some(running) = or_left_out(azurite) else { return };
    make_container(running.address(), "bucket").unwrap();
    let keys = [("AZURE_STORAGE_ACCOUNT", "devstoreaccount1"), ("AZURE_STORAGE_KEY", AZURITE_KEY)];
    let (url, environment) =
        (format!("az+http://{}/devstoreaccount1/bucket/mine", running.address()), keys.into_iter().collect());
    suite(&url, &environment);
    purges_blocks(&url, &environment);
}

/// A clean-up removes the entry of an upload that was not completed. Azurite keeps its blocks, unlike Azure.
fn purges_blocks(url: &str, environment: &Environment) {
    let store = stores::TargetStore::at_address(url, environment).unwrap().store;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let (attempt, options) =
            (&mut ascertain_transfer::Attempt::default(), ascertain_transfer::PutOptions::default());
        let body = objects::Content::new(bytes::Bytes::from_static(b"block"), 0).whole;
        let upload = store.start_upload("mine/left", &options, attempt).await.unwrap();
        store.put_part(&upload, 0, body, attempt).await.unwrap();
        store.purge("mine/left", attempt).await.unwrap();
        assert!(store.head("mine/left", attempt).await.unwrap().is_none());
        assert!(store.list("mine/", attempt).await.unwrap().is_empty());
    });
}
