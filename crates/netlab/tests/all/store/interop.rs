//! Third-party clients upload files to our S3 store and download them again.

use std::path::Path;
use std::process::{Command, Output};

use ascertain_netlab::store::{Kind, RunningStore, Store};
use ascertain_sys::testing::left_out;

use super::s3::bytes;
use super::started;

const LENGTH: usize = PARTS << 23;
/// Number of parts of the file that the tests transfer. Each part has 8 MiB.
const PARTS: usize = 3;

/// Runs a client without the user's environment. Returns `None` if it is not installed.
fn run(program: &str, install: &str, folder: &Path, store: &RunningStore, arguments: &[&str]) -> Option<Output> {
    let Store { account, secret, region, .. } = store.store();
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .envs([("AWS_ACCESS_KEY_ID", account), ("AWS_SECRET_ACCESS_KEY", secret), ("AWS_DEFAULT_REGION", region)])
        .envs([("AWS_ENDPOINT_URL", &*store.url()), ("AWS_EC2_METADATA_DISABLED", "true")])
        .output();
    output.map_err(|error| left_out(format!("{program} can't be started ({error}): `{install}`"))).ok()
}

/// Checks that an object is complete, that each part was sent once, and that no upload is in progress.
fn assert_whole(store: &RunningStore, key: &str, whole: &[u8], parts: usize) {
    assert!(store.object("bucket", key).unwrap() == whole, "{key}");
    let seen = store.seen();
    let mut blocks: Vec<_> = seen.iter().filter(|seen| seen.kind == Kind::PutBlock && seen.key == key).collect();
    assert!(blocks.iter().all(|seen| seen.status == Some(200)), "{blocks:?}");
    blocks.sort_by_key(|seen| &seen.block);
    blocks.dedup_by_key(|seen| &seen.block);
    assert_eq!((blocks.len(), store.uploads("bucket")), (parts, 0));
    assert_eq!(seen.iter().filter(|seen| seen.kind == Kind::PutBlock && seen.key == key).count(), parts);
}

#[test]
fn awscli_puts_and_gets() {
    let (store, _) = started(Store::s3());
    let (folder, body) = (tempfile::tempdir().unwrap(), bytes(LENGTH));
    std::fs::write(folder.path().join("file"), &body).unwrap();
    let aws = |arguments: &[&str]| run("aws", "pip install awscli botocore[crt]", folder.path(), &store, arguments);
    let copy = |from: &str, to: &str, more: &[&str]| aws(&[&["s3", "cp", "--no-progress", from, to], more].concat());
    // By default, the client sends files from 8 MiB on in parts of 8 MiB, with checksums of its own choice.
    for (key, more) in [
        ("by itself", &[][..]),
        ("with CRC64-NVME", &["--checksum-algorithm", "CRC64NVME"]),
        ("with SHA-256", &["--checksum-algorithm", "SHA256"]),
    ] {
        let Some(output) = copy("file", &format!("s3://bucket/{key}"), more) else { return };
        let said = String::from_utf8_lossy(&output.stderr);
        if said.contains("Missing Dependency") {
            left_out("awscli without CRC64-NVME: `pip install botocore[crt]`");
            continue;
        }
        assert!(output.status.success(), "{key}: {said}");
        assert_whole(&store, key, &body, PARTS);
    }
    let whole = ["s3api", "put-object", "--bucket", "bucket", "--key", "in one", "--body", "file"];
    let get = ["s3api", "get-object", "--bucket", "bucket", "--key", "in one", "--range", "bytes=5-9", "part"];
    let list = ["s3", "ls", "--recursive", "s3://bucket/with SHA"];
    for arguments in [&whole[..], &get, &list, &["s3", "cp", "--no-progress", "s3://bucket/by itself", "back"]] {
        let output = aws(arguments).unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        assert!(
            arguments != list || String::from_utf8_lossy(&output.stdout).contains(&format!("{LENGTH} with SHA-256"))
        );
    }
    assert_whole(&store, "in one", &body, 0);
    assert!(std::fs::read(folder.path().join("back")).unwrap() == body);
    assert_eq!(std::fs::read(folder.path().join("part")).unwrap(), body[5..10]);
    assert!(store.seen().iter().all(|seen| seen.status.is_some_and(|status| status < 300)));
}

#[test]
fn rclone_puts_and_gets() {
    let (store, _) = started(Store::s3());
    let (folder, body) = (tempfile::tempdir().unwrap(), bytes(LENGTH));
    std::fs::write(folder.path().join("file"), &body).unwrap();
    let Store { account, secret, .. } = store.store();
    let url = store.url();
    let access = ["--s3-access-key-id", account, "--s3-secret-access-key", secret, "--s3-endpoint", &url];
    let about = ["--config", "/dev/null", "--s3-provider", "Minio", "--s3-region", "us-east-1"];
    let rclone = |arguments: &[&str]| {
        let arguments = [arguments, &access, &about].concat();
        let output = run("rclone", "apt-get install rclone", folder.path(), &store, &arguments)?;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let in_parts = ["copyto", "--s3-upload-cutoff", "5M", "--s3-chunk-size", "8M", "file", ":s3:bucket/in parts"];
    if rclone(&in_parts).is_none() {
        return;
    }
    assert_whole(&store, "in parts", &body, PARTS);
    rclone(&["copyto", "file", ":s3:bucket/in one"]).unwrap();
    assert_whole(&store, "in one", &body, 0);
    rclone(&["copyto", ":s3:bucket/in parts", "back"]).unwrap();
    assert!(std::fs::read(folder.path().join("back")).unwrap() == body);
    assert_eq!(rclone(&["lsf", ":s3:bucket"]).unwrap(), "in one\nin parts\n");
}
