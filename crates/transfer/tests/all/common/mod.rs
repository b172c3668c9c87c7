//! What the tests of stores share.

use std::net::TcpListener;
use std::sync::Once;

use ascertain_netlab::http::CERTIFICATE_PEM;
use ascertain_netlab::store::{RunningStore, Store as Served};
use ascertain_transfer::{Block, Environment, Found, Options, open};
use bytes::Bytes;

pub use crate::parsers::targets::web;

/// Runs to its end what needs a runtime.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub fn start(store: Served) -> RunningStore {
    store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap()
}

/// One store of each kind.
pub fn one_of_each() -> [Served; 3] {
    [Served::s3(), Served::azure(), Served::gcs()]
}

/// What the environment of one who may use this store is like.
pub fn environment_for(store: &Served) -> [(&'static str, String); 6] {
    let Served { account, secret, .. } = store;
    [
        ("AWS_ACCESS_KEY_ID", &**account),
        ("AWS_SECRET_ACCESS_KEY", secret),
        ("AZURE_STORAGE_ACCOUNT", account),
        ("AZURE_STORAGE_KEY", secret),
        ("GOOGLE_OAUTH_ACCESS_TOKEN", secret),
        ("SSL_CERT_FILE", one_certificate()),
    ]
    .map(|(name, value)| (name, value.into()))
}

/// The path of a bundle of one certificate, which is read much faster than a system's.
pub fn one_certificate() -> &'static str {
    const PATH: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/one-certificate.pem");
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        if std::fs::read_to_string(PATH).is_ok_and(|text| text == CERTIFICATE_PEM) {
            return;
        }
        // Another process may read it now.
        let whole = format!("{PATH}.{}", std::process::id());
        std::fs::write(&whole, CERTIFICATE_PEM).unwrap();
        std::fs::rename(whole, PATH).unwrap();
    });
    PATH
}

pub fn options_for(store: &RunningStore) -> Options {
    let environment: Environment = environment_for(store.store()).into_iter().collect();
    Options { environment, endpoint_url: Some(store.url()), ..Options::default() }
}

/// An address in this store's bucket.
pub fn address(store: &RunningStore, name: &str) -> String {
    use ascertain_netlab::store::Dialect::{Azure, Gcs, S3};
    let scheme = match store.store().dialect {
        S3 => "s3",
        Azure => "az",
        Gcs => "gs",
    };
    format!("{scheme}://bucket/{name}")
}

pub fn opened(store: &RunningStore) -> Found {
    open(&address(store, ""), &options_for(store)).unwrap()
}

pub fn block(bytes: impl Into<Bytes>) -> Block {
    let bytes = bytes.into();
    Block { crc64: ascertain_transfer::crc64(&bytes), bytes }
}

/// Bytes that differ everywhere.
pub fn bytes(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
