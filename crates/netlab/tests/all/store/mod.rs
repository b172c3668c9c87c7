//! Tests of our object stores. The same requests are also sent to third-party stores (MinIO and Azurite).

mod azure;
mod client;
mod faults;
mod interop;
mod s3;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use ascertain_netlab::installed::{Program, RunningProgram, azurite, minio, or_left_out};
use ascertain_netlab::store::{RunningStore, Store};

use client::Client;

fn started(store: Store) -> (RunningStore, Client) {
    let running = store.start(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(), None).unwrap();
    let Store { account, secret, .. } = running.store().clone();
    let client = Client { address: running.address(), account, secret };
    (running, client)
}

/// Starts an installed store; `None` if it is not installed.
fn installed(program: fn(SocketAddr) -> Program, account: &str, secret: &str) -> Option<(RunningProgram, Client)> {
    let running = or_left_out(program)?;
    let client = Client { address: running.address(), account: account.into(), secret: secret.into() };
    Some((running, client))
}

#[test]
fn ours_is_an_s3() {
    let (_running, client) = started(Store::s3());
    s3::suite(&client, false);
}

#[test]
fn minio_is_an_s3() {
    let Some((_running, client)) = installed(minio, "minioadmin", "minioadmin") else { return };
    s3::suite(&client, true);
}

#[test]
fn ours_has_azures_blobs() {
    let (_running, client) = started(Store::azure());
    azure::suite(&client, false);
}

#[test]
fn azurite_has_azures_blobs() {
    // The published key of the account.
    let secret = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    let Some((_running, client)) = installed(azurite, "devstoreaccount1", secret) else { return };
    azure::suite(&client, true);
}
