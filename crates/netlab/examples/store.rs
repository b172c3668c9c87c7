//! Serves an object store on this machine until Ctrl-C:
//! `cargo run --features stores --example store -- s3 127.0.0.1:9000`.
#![allow(clippy::print_stdout)]

use std::net::TcpListener;

use ascertain_netlab::store::Store;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let store = match arguments.next().as_deref() {
        Some("azure") => Store::azure(),
        Some("gcs") => Store::gcs(),
        _ => Store::s3(),
    };
    let address = arguments.next().unwrap_or_else(|| "127.0.0.1:0".into());
    let running = store.start(TcpListener::bind(address)?, None)?;
    let Store { account, secret, region, buckets, .. } = running.store();
    println!("{} account {account} secret {secret} region {region} buckets {buckets:?}", running.url());
    loop {
        std::thread::park();
    }
}
