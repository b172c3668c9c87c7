//! TLS with a certificate of ours, or with those that a caller trusts.

use std::sync::Arc;

use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    CipherSuite, ClientConfig, CommonState, ProtocolVersion, RootCertStore, ServerConfig, SupportedProtocolVersion,
    crypto::ring,
};

use super::Protocol;
use crate::Error;

/// The certificate of our servers, for `localhost`, 127.0.0.1 and ::1. It is the same at every start, so that
/// handshakes are of one size, and signed by itself.
pub const CERTIFICATE_PEM: &str = include_str!("certificate.pem");

/// Its key, which everybody has: it protects nothing.
pub const KEY_PEM: &str = include_str!("key.pem");

/// A version of TLS.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsVersion {
    /// TLS 1.2, of 2008.
    V1_2,
    /// TLS 1.3, of 2018.
    V1_3,
}

/// What two sides agreed upon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Session {
    /// The version.
    pub version: TlsVersion,
    /// What encrypts, by its official name: `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
}

/// Whom a client trusts, and which versions of TLS it speaks.
#[derive(Clone, Debug)]
pub struct Tls {
    roots: Arc<RootCertStore>,
    versions: Vec<TlsVersion>,
    config: Arc<ClientConfig>,
}

impl TlsVersion {
    fn supported(self) -> &'static SupportedProtocolVersion {
        match self {
            Self::V1_2 => &TLS12,
            Self::V1_3 => &TLS13,
        }
    }
}

impl Session {
    pub(super) fn of(state: &CommonState) -> Option<Self> {
        let version = match state.protocol_version()? {
            ProtocolVersion::TLSv1_2 => TlsVersion::V1_2,
            ProtocolVersion::TLSv1_3 => TlsVersion::V1_3,
            _ => return None,
        };
        Some(Self { version, cipher: name(state.negotiated_cipher_suite()?.suite()) })
    }
}

impl Tls {
    fn new(roots: Arc<RootCertStore>, versions: Vec<TlsVersion>, cipher: Option<&str>) -> Result<Self, Error> {
        let mut provider = ring::default_provider();
        provider.cipher_suites.retain(|suite| cipher.is_none_or(|cipher| name(suite.suite()) == cipher));
        let config = ClientConfig::builder_with_provider(provider.into())
            .with_protocol_versions(&supported(&versions))
            .map_err(Error::tls)?
            .with_root_certificates(roots.clone())
            .with_no_client_auth();
        Ok(Self { roots, versions, config: config.into() })
    }

    /// The same, but with this cipher alone, by its name in a [`Session`].
    ///
    /// # Errors
    /// [`Error::Tls`] where there is none of that name in these versions.
    pub fn with_cipher(self, cipher: &str) -> Result<Self, Error> {
        Self::new(self.roots, self.versions, Some(cipher))
    }

    /// What a client says that wants this protocol and no other.
    pub(super) fn asking_for(&self, protocol: Protocol) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.id().to_vec()];
        config.into()
    }
}

fn name(cipher: CipherSuite) -> String {
    format!("{cipher:?}")
}

/// A client that trusts our servers.
///
/// # Errors
/// [`Error::Tls`] without a version.
pub fn trusting_ours(versions: &[TlsVersion]) -> Result<Tls, Error> {
    trusting(CERTIFICATE_PEM.as_bytes(), versions)
}

/// A client that trusts these certificates (PEM), and those that were signed with them.
///
/// # Errors
/// [`Error::Tls`] for what is no certificate, and without a version.
pub fn trusting(certificates_pem: &[u8], versions: &[TlsVersion]) -> Result<Tls, Error> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(certificates_pem) {
        roots.add(certificate.map_err(Error::tls)?).map_err(Error::tls)?;
    }
    Tls::new(roots.into(), versions.into(), None)
}

/// Our servers' side: HTTP/2 and HTTP/1.1, as the client likes.
pub(crate) fn serving(versions: &[TlsVersion]) -> Result<Arc<ServerConfig>, Error> {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE_PEM.as_bytes()).map_err(Error::tls)?;
    let key = PrivateKeyDer::from_pem_slice(KEY_PEM.as_bytes()).map_err(Error::tls)?;
    let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&supported(versions))
        .map_err(Error::tls)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(Error::tls)?;
    config.alpn_protocols = [Protocol::Http2, Protocol::Http1].map(|protocol| protocol.id().to_vec()).into();
    // For the kernel, where it is to encrypt.
    config.enable_secret_extraction = true;
    Ok(config.into())
}

fn supported(versions: &[TlsVersion]) -> Vec<&'static SupportedProtocolVersion> {
    versions.iter().map(|version| version.supported()).collect()
}
