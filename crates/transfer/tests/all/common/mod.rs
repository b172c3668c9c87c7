//! Helper functions for the tests of stores.

pub mod counted;

use std::net::TcpListener;
use std::sync::Once;

use ascertain_netlab::http::CERTIFICATE_PEM;
use ascertain_netlab::store::{RunningStore, Store as Served};
use ascertain_transfer::{Attributes, Environment, Location, Options, PartBody, open};
use bytes::Bytes;

pub use crate::parsers::targets::web;

/// Runs a future on a runtime.
pub fn run<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

pub fn start(store: Served) -> RunningStore {
    store.start(TcpListener::bind("127.0.0.1:0").unwrap(), None).unwrap()
}

/// Returns the configuration of one store of each kind.
pub fn one_of_each() -> [Served; 3] {
    [Served::s3(), Served::azure(), Served::gcs()]
}

/// Returns the environment variables with the credentials for this store.
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

/// Returns the path of a certificate bundle that contains a single certificate. It loads much faster than those of the
/// system.
pub fn one_certificate() -> &'static str {
    const PATH: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/one-certificate.pem");
    static WRITTEN: Once = Once::new();
    WRITTEN.call_once(|| {
        if std::fs::read_to_string(PATH).is_ok_and(|text| text == CERTIFICATE_PEM) {
            return;
        }
        // The file is written under another name and renamed, because another process may read it at this moment.
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

/// Returns the address of an object in this store's bucket.
pub fn address(store: &RunningStore, name: &str) -> String {
    use ascertain_netlab::store::Dialect::{Azure, Gcs, S3};
    let scheme = match store.store().dialect {
        S3 => "s3",
        Azure => "az",
        Gcs => "gs",
    };
    format!("{scheme}://bucket/{name}")
}

pub fn opened(store: &RunningStore) -> Location {
    open(&address(store, ""), &options_for(store)).unwrap()
}

/// Returns the attributes of an object with this media type.
pub fn media(content_type: &str) -> Attributes {
    Attributes { content_type: Some(content_type.into()), ..Attributes::default() }
}

pub fn block(bytes: impl Into<Bytes>) -> PartBody {
    let bytes = bytes.into();
    PartBody { crc64: ascertain_transfer::crc64(&bytes), bytes }
}

/// Returns `length` pseudorandom bytes, which are always the same.
pub fn bytes(length: usize) -> Vec<u8> {
    let mut state = 1_u64;
    let next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    std::iter::repeat_with(next).take(length).collect()
}
