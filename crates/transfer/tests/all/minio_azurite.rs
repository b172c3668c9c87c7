//! Runs tests of stores against MinIO and Azurite, if they are installed, in addition to our own servers.

use std::time::{Duration, UNIX_EPOCH};

use crate::common::{block, bytes, media, one_of_each, opened, options_for, run, start};
use ascertain_netlab::installed::{AZURITE_KEY, azurite, make_container, minio, or_left_out};
use ascertain_netlab::store::{Fault, Kind as RequestKind, Misdeed, Store as Served};
use ascertain_transfer::{Attempt, Attributes, Environment, Kind, Location, Options, PartBody, PutOptions, open};

/// Tests objects, parts and wrong checksums in any store. `checks_whole` is `true` if the store verifies the checksum
/// of the whole object.
async fn suite(found: &Location, checks_whole: bool) {
    let (store, mut seen) = (&found.store, Attempt::default());
    let once = PutOptions { attributes: media("text/plain"), no_clobber: true };
    for name in ["plain", "a folder/with spaces & + signs/ümläut 文.txt", "q?x=1#2%41"] {
        let content = bytes(70_001);
        let put = store.put(name, block(content.clone()), &once, &mut seen).await.unwrap();
        let head = store.head(name, &mut seen).await.unwrap().unwrap();
        assert_eq!((head.bytes, &head.etag), (70_001, &put.etag));
        assert_eq!(store.get(&head, 7..60_000, &mut seen).await.unwrap().bytes, content[7..60_000]);
        let again = store.put(name, block("other"), &once, &mut seen).await.unwrap_err();
        assert_eq!(again.kind, Kind::Changed, "{again}");
        let listed = store.list(&name[..3], &mut seen).await.unwrap();
        assert_eq!((listed.len(), &*listed[0].name, &listed[0].etag), (1, name, &head.etag));
        store.put(name, block("other"), &PutOptions::default(), &mut seen).await.unwrap();
        let changed = store.get(&head, 0..1, &mut seen).await.unwrap_err();
        assert_eq!(changed.kind, Kind::Changed, "{changed}");
    }
    let wrong = PartBody { bytes: bytes(1000).into(), crc64: 7 };
    let failure = store.put("wrong", wrong.clone(), &once, &mut seen).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Corrupted, "{failure}");
    assert_eq!(store.head("wrong", &mut seen).await.unwrap(), None);

    let content = bytes((10 << 20) + 77);
    let crc64 = ascertain_transfer::crc64(&content);
    let upload = store.start_upload("whole", &once, &mut seen).await.unwrap();
    let failure = store.put_part(&upload, 0, wrong, &mut seen).await.unwrap_err();
    assert_eq!(failure.kind, Kind::Corrupted, "{failure}");
    let mut tokens = Vec::new();
    for index in [2, 0, 1] {
        let part = content[index * (5 << 20)..content.len().min((index + 1) * (5 << 20))].to_vec();
        tokens.push((index, store.put_part(&upload, index, block(part), &mut seen).await.unwrap()));
    }
    tokens.sort();
    let tokens: Vec<_> = tokens.into_iter().map(|(_, token)| token).collect();
    if checks_whole {
        let failure = store.commit(&upload, &tokens, crc64 ^ 1, &once, &mut seen).await.unwrap_err();
        assert_eq!(failure.kind, Kind::Corrupted, "{failure}");
    }
    let made = store.commit(&upload, &tokens, crc64, &once, &mut seen).await.unwrap();
    let head = store.head("whole", &mut seen).await.unwrap().unwrap();
    assert_eq!((made.bytes, made.etag), (head.bytes, head.etag.clone()));
    assert_eq!(store.get(&head, 0..head.bytes, &mut seen).await.unwrap().bytes, content);
    let given_up = store.start_upload("half", &once, &mut seen).await.unwrap();
    store.abort(&given_up, &mut seen).await.unwrap();
    assert_eq!(store.head("half", &mut seen).await.unwrap(), None);
}

/// Tests that the store accepts attributes and keeps the modification time: of an object that is stored with one
/// request, and of one in parts.
async fn keeps_metadata(found: &Location) {
    let (store, mut seen) = (&found.store, Attempt::default());
    let modified = UNIX_EPOCH + Duration::new(1_000_000_000, 123_456_789);
    let attributes = Attributes {
        cache_control: Some("max-age=60".into()),
        metadata: [("owner".into(), "Ann Example".into())].into(),
        modified: Some(modified),
        ..media("text/x-test")
    };
    let options = PutOptions { attributes, no_clobber: false };
    store.put("kept", block("x"), &options, &mut seen).await.unwrap();
    let upload = store.start_upload("kept/parts", &options, &mut seen).await.unwrap();
    let token = store.put_part(&upload, 0, block("x"), &mut seen).await.unwrap();
    store.commit(&upload, &[token], ascertain_transfer::crc64(b"x"), &options, &mut seen).await.unwrap();
    for name in ["kept", "kept/parts"] {
        let meta = store.head(name, &mut seen).await.unwrap().unwrap();
        assert_eq!(meta.file_modified, Some(modified), "{name}");
    }
}

/// Tests that the store keeps the checksums of the parts that [`suite`] has uploaded. They show which bytes of a
/// damaged download are wrong.
async fn keeps_part_sums(found: &Location) {
    let mut seen = Attempt::default();
    let head = found.store.head("whole", &mut seen).await.unwrap().unwrap();
    let content = bytes((10 << 20) + 77);
    let sums = content.chunks(5 << 20).map(|part| (part.len() as u64, ascertain_transfer::crc64(part)));
    assert_eq!(found.store.part_sums(&head, &mut seen).await.unwrap(), sums.collect::<Vec<_>>());
    let single = found.store.head("kept", &mut seen).await.unwrap().unwrap();
    assert!(found.store.part_sums(&single, &mut seen).await.unwrap().len() <= 1);
}

/// Checks that a wrong key, or a missing bucket, leads to a failure of this kind, which concerns the whole store.
async fn fails(found: &Location, kind: Kind) {
    let mut seen = Attempt::default();
    let failure = found.store.put("x", block("x"), &PutOptions::default(), &mut seen).await.unwrap_err();
    assert!(failure.kind == kind && failure.concerns_whole_store, "{failure}");
    let failure = found.store.list("", &mut seen).await.unwrap_err();
    assert!(failure.kind == kind && failure.concerns_whole_store, "{failure}");
    match found.store.head("x", &mut seen).await {
        Err(failure) => assert!(failure.kind == kind && failure.concerns_whole_store, "{failure}"),
        Ok(_) => panic!("{kind:?}: the answer to HEAD contains no code"),
    }
}

fn options(url: String, variables: [(&str, &str); 2]) -> Options {
    let environment: Environment = variables.into_iter().collect();
    Options { environment, endpoint_url: Some(url), ..Options::default() }
}

/// Returns the environment for stores that support only MD5.
fn old(variables: [(&str, &str); 2]) -> Environment {
    variables.into_iter().chain([("AWS_REQUEST_CHECKSUM_CALCULATION", "when_required")]).collect()
}

#[test]
fn the_emulated_stores_pass_the_suite() {
    for served in one_of_each() {
        let running = start(Served { smallest_part_bytes: 5 << 20, ..served });
        let found = opened(&running);
        run(suite(&found, found.address.starts_with("s3")));
        run(keeps_metadata(&found));
    }
    let running = start(Served::s3());
    let Served { account, secret, .. } = running.store();
    let environment = old([("AWS_ACCESS_KEY_ID", account), ("AWS_SECRET_ACCESS_KEY", secret)]);
    let found = open("s3://bucket/", &Options { environment, ..options_for(&running) }).unwrap();
    run(suite(&found, false));
    // These stores also detect a part that was corrupted on the way.
    let what = Misdeed::FlippedUpload { byte: 7 };
    running.add_fault(Fault { on: Some(RequestKind::PutObject), after: 0, times: 1, what });
    let (mut seen, once) = (Attempt::default(), PutOptions::default());
    let put = found.store.put("flipped", block("0123456789"), &once, &mut seen);
    assert_eq!(run(put).unwrap_err().kind, Kind::Corrupted);
}

#[test]
fn minio_passes_the_suite() {
    let Some(running) = or_left_out(minio) else { return };
    // MinIO treats each folder in its data folder as a bucket.
    for bucket in ["bucket", "old"] {
        std::fs::create_dir(running.folder().join("data").join(bucket)).unwrap();
    }
    let keys = |secret| [("AWS_ACCESS_KEY_ID", "minioadmin"), ("AWS_SECRET_ACCESS_KEY", secret)];
    let url = format!("http://{}", running.address());
    let found = open("s3://bucket/", &options(url.clone(), keys("minioadmin"))).unwrap();
    run(suite(&found, true));
    run(keeps_metadata(&found));
    run(keeps_part_sums(&found));
    let old = Options { environment: old(keys("minioadmin")), ..options(url.clone(), keys("")) };
    run(suite(&open("s3://old/", &old).unwrap(), false));
    run(fails(&open("s3://bucket/", &options(url.clone(), keys("another"))).unwrap(), Kind::Denied));
    // MinIO is its own STS, and checks the signature of the request for a role.
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".aws")).unwrap();
    let source = "aws_access_key_id = minioadmin\naws_secret_access_key = minioadmin\n";
    let profile = format!("[default]\nrole_arn = arn:minio:iam:::role/x\nsource_profile = default\n{source}");
    std::fs::write(folder.path().join(".aws/credentials"), profile).unwrap();
    let home = folder.path().to_str().unwrap();
    let variables = [("HOME", home), ("AWS_ENDPOINT_URL_STS", &url)];
    let found = open("s3://bucket/", &options(url.clone(), variables)).unwrap();
    let (mut seen, once) = (Attempt::default(), PutOptions::default());
    run(found.store.put("with a role", block("x"), &once, &mut seen)).unwrap();
    run(fails(&open("s3://missing/", &options(url, keys("minioadmin"))).unwrap(), Kind::Missing));
}

#[test]
fn azurite_passes_the_suite() {
    let Some(running) = or_left_out(azurite) else { return };
    make_container(running.address(), "bucket").unwrap();
    let url = format!("http://{}/devstoreaccount1", running.address());
    let keys = |secret| [("AZURE_STORAGE_ACCOUNT", "devstoreaccount1"), ("AZURE_STORAGE_KEY", secret)];
    let found = open("az://bucket/", &options(url.clone(), keys(AZURITE_KEY))).unwrap();
    run(suite(&found, false));
    run(keeps_metadata(&found));
    run(fails(&open("az://bucket/", &options(url.clone(), keys("YW5vdGhlcg=="))).unwrap(), Kind::Denied));
    run(fails(&open("az://missing/", &options(url, keys(AZURITE_KEY))).unwrap(), Kind::Missing));
}
