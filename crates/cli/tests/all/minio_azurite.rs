//! `put` and `get` with the commands of the guide, against MinIO and Azurite if they are installed.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use ascertain_netlab::installed::{AZURITE_KEY, azurite, make_container, minio, or_left_out};
use ascertain_sys::testing::wait_until;

use crate::common::{Ran, command, kill, ran};

const KEYS: [(&str, &str); 2] = [("AWS_ACCESS_KEY_ID", "minioadmin"), ("AWS_SECRET_ACCESS_KEY", "minioadmin")];

/// Returns the commands in a section of the guide, without their comments.
fn typed() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/put-and-get.md");
    let page = fs::read_to_string(page).unwrap();
    let block = page.split("```").nth(1).unwrap().lines().skip(1);
    let commands = block.map(|line| line.split(" #").next().unwrap().trim_end());
    commands.filter(|line| !line.is_empty() && !line.starts_with('#')).map(Into::into).collect()
}

/// Runs a command line in a shell, with these environment variables. Removes variables that select another profile,
/// endpoint or proxy.
fn shell(state: &Path, line: &str, variables: &[(&str, &str)]) -> Output {
    let ascertain = Path::new(env!("CARGO_BIN_EXE_ascertain")).parent().unwrap();
    let path = format!("{}:{}", ascertain.display(), std::env::var("PATH").unwrap());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(state).env("PATH", path).env("HOME", state).env("XDG_STATE_HOME", state);
    for name in ["AWS_PROFILE", "AWS_ENDPOINT_URL", "http_proxy", "all_proxy"] {
        shell.env_remove(name);
    }
    shell.envs(variables.iter().copied()).output().unwrap()
}

/// Creates a folder with the files that the guide's commands transfer.
fn folder() -> (tempfile::TempDir, Vec<u8>) {
    let state = tempfile::tempdir().unwrap();
    let content: Vec<u8> = (0..30_000_000_u32).map(|at| (at.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
    fs::write(state.path().join("data.tar"), &content).unwrap();
    for name in ["photos/a b.jpg", "photos/ümläut.jpg", "photos/left.png", "folder/a"] {
        fs::create_dir_all(state.path().join(name).parent().unwrap()).unwrap();
        fs::write(state.path().join(name), name).unwrap();
    }
    (state, content)
}

/// Runs the commands of the guide that contain `with`, after replacing some words. There must be `count` such commands.
fn type_those(state: &Path, with: &str, count: usize, words: &[(&str, &str)], variables: &[(&str, &str)]) {
    let lines: Vec<String> = typed().into_iter().filter(|line| line.contains(with)).collect();
    assert_eq!(lines.len(), count, "{lines:?}");
    for line in lines {
        let line = words.iter().fold(line, |line, (word, instead)| line.replace(word, instead));
        let ran = ran(shell(state, &line, variables));
        assert_eq!(ran.code, Some(0), "{line}: {}{}", ran.stdout, ran.stderr);
    }
}

#[test]
fn minio_as_the_guide_has_it() {
    let Some(running) = or_left_out(minio) else { return };
    // For this store, a folder is a bucket.
    fs::create_dir(running.folder().join("data/bucket")).unwrap();
    let (state, content) = folder();
    let state = state.path();
    let url = format!("http://{}", running.address());
    let environment = [KEYS[0], KEYS[1], ("AWS_ENDPOINT_URL", &url)];
    let own = |arguments: &[&str]| -> Ran { ran(command(state, arguments).envs(environment).output().unwrap()) };

    type_those(state, " s3://BUCKET/", 6, &[("BUCKET", "bucket"), ("http://127.0.0.1:9000", &url)], &environment);
    assert!(fs::read(state.join("data.tar")).unwrap() == content);
    assert_eq!(own(&["get", "s3://bucket/photos/", "back"]).code, Some(0));
    let mut names: Vec<_> = fs::read_dir(state.join("back")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["a b.jpg", "ümläut.jpg"]);
    assert_eq!(fs::read(state.join("back/a b.jpg")).unwrap(), b"photos/a b.jpg");
    let listed = shell(state, "ascertain get s3://bucket/folder.tar - | tar t", &environment);
    assert_eq!(String::from_utf8_lossy(&listed.stdout), "folder/\nfolder/a\n");

    let put = own(&["put", "data.tar", "s3://bucket/again", "--verify", "--format", "json"]);
    assert_eq!(
        (put.code, put.json()["files"][0]["verified"].as_bool()),
        (Some(0), Some(true)),
        "{}{}",
        put.stdout,
        put.stderr
    );
    killed_and_gone_on_with(state, &["put", "data.tar", "s3://bucket/killed"], &environment);
    killed_and_gone_on_with(state, &["get", "s3://bucket/killed", "got"], &environment);
    assert!(fs::read(state.join("got")).unwrap() == content);
}

#[test]
fn azurite_as_the_guide_has_it() {
    let Some(running) = or_left_out(azurite) else { return };
    make_container(running.address(), "bucket").unwrap();
    let (state, content) = folder();
    let state = state.path();
    let account = format!("http://{}/devstoreaccount1", running.address());
    let keys = format!("AccountName=devstoreaccount1;AccountKey={AZURITE_KEY}");
    let connection = format!("DefaultEndpointsProtocol=http;{keys};BlobEndpoint={account};");
    let environment = [("AZURE_STORAGE_CONNECTION_STRING", &*connection)];
    type_those(state, " az://CONTAINER", 2, &[("CONTAINER", "bucket")], &environment);
    assert!(fs::read(state.join("back.tar")).unwrap() == content);
    let own = |arguments: &[&str]| -> Ran { ran(command(state, arguments).envs(environment).output().unwrap()) };
    let put = own(&["put", "data.tar", "az://bucket/again", "--verify", "--format", "json"]);
    assert_eq!(
        (put.code, put.json()["files"][0]["verified"].as_bool()),
        (Some(0), Some(true)),
        "{}{}",
        put.stdout,
        put.stderr
    );
    killed_and_gone_on_with(state, &["put", "data.tar", "az://bucket/killed"], &environment);
    killed_and_gone_on_with(state, &["get", "az://bucket/killed", "got"], &environment);
    assert!(fs::read(state.join("got")).unwrap() == content);
}

/// Kills a transfer after some parts have arrived, and checks that the next transfer does not send these parts again.
/// If the transfer ends before it is killed, tries again at a lower rate.
fn killed_and_gone_on_with(state: &Path, arguments: &[&str], environment: &[(&str, &str)]) {
    let journals = || {
        let journals = fs::read_dir(state.join("ascertain/transfers")).into_iter().flatten().flatten();
        journals.map(|journal| fs::read_to_string(journal.path()).unwrap_or_default()).collect::<String>()
    };
    let is_some_through = || journals().contains("{\"done\"");
    let mut limit_mb_s = 15.0;
    while !is_some_through() {
        let limit = format!("{limit_mb_s}MB/s");
        let slowly = [arguments, &["--limit", &limit, "--quiet"]].concat();
        let mut child = command(state, &slowly).envs(environment.iter().copied()).spawn().unwrap();
        wait_until("a part has arrived, or all of it", || is_some_through() || child.try_wait().unwrap().is_some());
        kill(child);
        limit_mb_s /= 2.0;
    }
    let rest = [arguments, &["--format", "json"]].concat();
    let rest = ran(command(state, &rest).envs(environment.iter().copied()).output().unwrap());
    assert_eq!(rest.code, Some(0), "{arguments:?}: {}{}", rest.stdout, rest.stderr);
    let resumed_bytes = rest.json()["files"][0]["resumed_bytes"].as_u64().unwrap();
    assert!((1..=30_000_000).contains(&resumed_bytes), "{arguments:?}: {resumed_bytes}");
}
