//! TLS settings that trust this crate's certificate, or certificates from the caller.

use std::io;
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use tokio_rustls::rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::server::ParsedCertificate;
use tokio_rustls::rustls::version::{TLS12, TLS13};
use tokio_rustls::rustls::{
    self, AlertDescription, CertificateError, CipherSuite, ClientConfig, CommonState, DigitallySignedStruct,
    HandshakeKind, ProtocolVersion, RootCertStore, ServerConfig, SignatureScheme, SupportedProtocolVersion,
    crypto::ring,
};

use super::Protocol;
use crate::Error;

/// The self-signed certificate of this crate's servers, for `localhost`, 127.0.0.1 and ::1. It is a constant, so that
/// all handshakes have the same size.
pub const CERTIFICATE_PEM: &str = include_str!("certificate.pem");

/// The private key of [`CERTIFICATE_PEM`]. It is published, so it protects nothing.
pub const KEY_PEM: &str = include_str!("key.pem");

/// A version of TLS that the servers and clients of this crate support.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TlsVersion {
    /// The version TLS 1.2, published in 2008.
    V1_2,
    /// The version TLS 1.3, published in 2018.
    V1_3,
}

/// The parameters that a client and a server negotiated in a TLS handshake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsSession {
    /// The negotiated version of TLS.
    pub version: TlsVersion,
    /// Official name of the negotiated cipher suite, such as `TLS13_AES_256_GCM_SHA384`.
    pub cipher: String,
    /// `true` if the session was resumed from an earlier connection.
    pub is_resumed: bool,
}

/// The TLS settings of a client: the certificates that it trusts, and the versions that it speaks. Each connection
/// starts a new session, unless [resumption](Self::resuming) is enabled.
#[derive(Clone, Debug)]
pub struct Tls {
    trusted: Vec<CertificateDer<'static>>,
    versions: Vec<TlsVersion>,
    config: Arc<ClientConfig>,
}

impl TlsSession {
    pub(super) fn from_state(state: &CommonState) -> Option<Self> {
        let version = match state.protocol_version()? {
            ProtocolVersion::TLSv1_2 => TlsVersion::V1_2,
            ProtocolVersion::TLSv1_3 => TlsVersion::V1_3,
            _ => return None,
        };
        let is_resumed = state.handshake_kind() == Some(HandshakeKind::Resumed);
        Some(Self { version, cipher: name(state.negotiated_cipher_suite()?.suite()), is_resumed })
    }
}

impl Tls {
    fn new(
        trusted: Vec<CertificateDer<'static>>,
        versions: Vec<TlsVersion>,
        cipher: Option<&str>,
    ) -> Result<Self, Error> {
        let mut provider = ring::default_provider();
        provider.cipher_suites.retain(|suite| cipher.is_none_or(|cipher| name(suite.suite()) == cipher));
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(Error::tls)?;
        }
        let provider = Arc::new(provider);
        let verifier = WebPkiServerVerifier::builder_with_provider(roots.into(), provider.clone()).build();
        let verifier = Verifier { by_authority: verifier.map_err(Error::tls)?, trusted: trusted.clone() };
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&supported(&versions))
            .map_err(Error::tls)?
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(verifier))
            .with_no_client_auth();
        config.resumption = Resumption::disabled();
        Ok(Self { trusted, versions, config: config.into() })
    }

    /// Enables session resumption. A connection then resumes the session of an earlier connection to the same server,
    /// if the server allows it. Browsers do so when a visitor returns. Clones of these settings share their sessions.
    #[must_use]
    pub fn resuming(self) -> Self {
        let mut config = ClientConfig::clone(&self.config);
        config.resumption = Resumption::in_memory_sessions(256);
        Self { config: config.into(), ..self }
    }

    /// Restricts the client to one cipher suite, named as in [`TlsSession::cipher`].
    ///
    /// # Errors
    /// Returns [`Error::Tls`] if the allowed versions of TLS have no such cipher suite.
    pub fn with_cipher(self, cipher: &str) -> Result<Self, Error> {
        Self::new(self.trusted, self.versions, Some(cipher))
    }

    /// Returns the configuration with which a client offers only this version of HTTP to the server.
    pub(super) fn asking_for(&self, protocol: Protocol) -> Arc<ClientConfig> {
        let mut config = ClientConfig::clone(&self.config);
        config.alpn_protocols = vec![protocol.id().to_vec()];
        config.into()
    }
}

fn name(cipher: CipherSuite) -> String {
    format!("{cipher:?}")
}

/// Returns the TLS settings of a client that trusts the servers of this crate, with these versions of TLS.
///
/// # Errors
/// Returns [`Error::Tls`] if the list of versions is empty.
pub fn trusting_ours(versions: &[TlsVersion]) -> Result<Tls, Error> {
    trusting(CERTIFICATE_PEM.as_bytes(), versions)
}

/// Returns the TLS settings of a client that trusts the certificates in `certificates_pem`, and certificates that were
/// signed with them.
///
/// # Errors
/// Returns [`Error::Tls`] if a certificate cannot be parsed, or if `certificates_pem` or `versions` is empty.
pub fn trusting(certificates_pem: &[u8], versions: &[TlsVersion]) -> Result<Tls, Error> {
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificates_pem).collect();
    Tls::new(certificates.map_err(Error::tls)?, versions.into(), None)
}

/// Accepts a server's certificate if a trusted authority signed it, or if it is itself one of the trusted certificates.
///
/// On its own, rustls refuses a server's certificate that is marked as the certificate of an authority, even if the
/// client trusts this certificate. `openssl req -x509` marks all its certificates in this way. This verifier accepts
/// such a certificate if it is trusted, but still checks the name, the validity period and the signature of the
/// handshake.
#[derive(Debug)]
struct Verifier {
    by_authority: Arc<WebPkiServerVerifier>,
    trusted: Vec<CertificateDer<'static>>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let by_authority =
            self.by_authority.verify_server_cert(certificate, intermediates, server_name, ocsp_response, now);
        match by_authority {
            // rustls checks the validity period before the certificate's purpose, so the period is valid here.
            Err(error) if is_authority(&error) && self.trusted.iter().any(|trusted| trusted == certificate) => {
                verify_server_name(&ParsedCertificate::try_from(certificate)?, server_name)?;
                Ok(ServerCertVerified::assertion())
            }
            other => other,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.by_authority.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.by_authority.supported_verify_schemes()
    }
}

/// Returns whether rustls refused a server's certificate because it is a CA certificate. rustls has no error variant
/// for this, so the text of the error is searched.
fn is_authority(error: &rustls::Error) -> bool {
    let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
    format!("{other:?}").contains("CaUsedAsEndEntity")
}

/// Converts an error of the handshake into an error with a readable message. rustls describes some errors only by the
/// name of an enum variant. For the common errors among these, this function writes a sentence instead.
pub(super) fn disagreement(error: io::Error) -> Error {
    let Some(of_rustls) = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) else {
        return Error::broken("during the TLS handshake", error);
    };
    let words = match of_rustls {
        rustls::Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "no trusted authority signed the server's certificate"
        }
        rustls::Error::InvalidCertificate(CertificateError::Expired | CertificateError::ExpiredContext { .. }) => {
            "the server's certificate has expired"
        }
        error if is_authority(error) => "the server sent a CA certificate that is not trusted",
        rustls::Error::AlertReceived(AlertDescription::ProtocolVersion) => {
            "the server does not speak the requested version of TLS"
        }
        rustls::Error::InvalidMessage(_) => "the server's answer is not TLS",
        _ => return Error::tls(error),
    };
    Error::tls(words)
}

/// Returns the TLS settings of this crate's servers. The servers accept the TLS versions in `versions`, and HTTP/2 as
/// well as HTTP/1.1.
pub(crate) fn serving(versions: &[TlsVersion]) -> Result<TlsAcceptor, Error> {
    let certificate = CertificateDer::from_pem_slice(CERTIFICATE_PEM.as_bytes()).map_err(Error::tls)?;
    let key = PrivateKeyDer::from_pem_slice(KEY_PEM.as_bytes()).map_err(Error::tls)?;
    let mut config = ServerConfig::builder_with_provider(ring::default_provider().into())
        .with_protocol_versions(&supported(versions))
        .map_err(Error::tls)?
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .map_err(Error::tls)?;
    config.alpn_protocols = [Protocol::Http2, Protocol::Http1].map(|protocol| protocol.id().to_vec()).into();
    // This allows passing the keys to the kernel.
    config.enable_secret_extraction = true;
    Ok(Arc::new(config).into())
}

fn supported(versions: &[TlsVersion]) -> Vec<&'static SupportedProtocolVersion> {
    let supported = |version: &TlsVersion| match version {
        TlsVersion::V1_2 => &TLS12,
        TlsVersion::V1_3 => &TLS13,
    };
    versions.iter().map(supported).collect()
}

#[cfg(test)]
mod tests {
    use tokio_rustls::rustls::{ClientConnection, ServerConnection};

    use super::*;

    /// A certificate as `openssl req -x509` creates it: it is marked as an authority.
    const AUTHORITY_PEM: &str = include_str!("testing/authority.pem");
    const EXPIRED_PEM: &str = include_str!("testing/expired.pem");
    /// The private key of both certificates above.
    const AUTHORITY_KEY_PEM: &str = include_str!("testing/authority-key.pem");

    fn server(certificate_pem: &str) -> Arc<ServerConfig> {
        let certificate = CertificateDer::from_pem_slice(certificate_pem.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(AUTHORITY_KEY_PEM.as_bytes()).unwrap();
        let config = ServerConfig::builder_with_provider(ring::default_provider().into());
        let config = config.with_safe_default_protocol_versions().unwrap().with_no_client_auth();
        Arc::new(config.with_single_cert(vec![certificate], key).unwrap())
    }

    /// Runs a handshake between a client and a server in memory. Returns the client's session, or its error.
    fn shake_hands(client: &Tls, server: &Arc<ServerConfig>, host: &'static str) -> Result<TlsSession, String> {
        let name = ServerName::try_from(host).unwrap();
        let mut client = ClientConnection::new(client.asking_for(Protocol::Http1), name).unwrap();
        let mut server = ServerConnection::new(server.clone()).unwrap();
        for _ in 0..10 {
            let mut bytes = Vec::new();
            while client.wants_write() {
                client.write_tls(&mut bytes).unwrap();
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                server.read_tls(&mut rest).unwrap();
                // If the client has refused the handshake, its own error is returned below.
                let _ = server.process_new_packets();
            }
            bytes.clear();
            while server.wants_write() {
                server.write_tls(&mut bytes).unwrap();
            }
            let mut rest = &bytes[..];
            while !rest.is_empty() {
                client.read_tls(&mut rest).unwrap();
                let processed = client.process_new_packets();
                processed.map_err(|error| disagreement(io::Error::other(error)).to_string())?;
            }
        }
        Ok(TlsSession::from_state(&client).unwrap())
    }

    #[test]
    fn a_certificate_of_openssl_is_trusted_where_it_is_named() {
        let named = |pem: &str| trusting(pem.as_bytes(), &[TlsVersion::V1_2, TlsVersion::V1_3]).unwrap();
        let client = named(AUTHORITY_PEM);
        let session = shake_hands(&client, &server(AUTHORITY_PEM), "localhost").unwrap();
        assert_eq!((session.version, session.is_resumed), (TlsVersion::V1_3, false));
        let older = trusting(AUTHORITY_PEM.as_bytes(), &[TlsVersion::V1_2]).unwrap();
        assert!(shake_hands(&older, &server(AUTHORITY_PEM), "localhost").is_ok());

        for (client, server_pem, host, says) in [
            (&client, AUTHORITY_PEM, "example.com", "example.com"),
            (&client, EXPIRED_PEM, "localhost", "TLS: the server's certificate has expired"),
            (&named(EXPIRED_PEM), EXPIRED_PEM, "localhost", "expired"),
            (&named(CERTIFICATE_PEM), AUTHORITY_PEM, "localhost", "a CA certificate that is not trusted"),
        ] {
            let error = shake_hands(client, &server(server_pem), host).unwrap_err();
            assert!(error.contains(says) && !error.contains("Other("), "{host}: {error}");
        }
    }

    /// Sessions are new unless the caller enables resumption.
    #[test]
    fn a_session_is_resumed_only_by_who_asks_for_it() {
        let server = server(AUTHORITY_PEM);
        for version in [TlsVersion::V1_2, TlsVersion::V1_3] {
            let client = trusting(AUTHORITY_PEM.as_bytes(), &[version]).unwrap();
            let resumed =
                |client: &Tls| [(); 3].map(|()| shake_hands(client, &server, "localhost").unwrap().is_resumed);
            assert_eq!(resumed(&client), [false; 3], "{version:?}");
            let returning = client.resuming();
            assert_eq!(resumed(&returning), [false, true, true], "{version:?}");
            assert!(resumed(&returning.clone())[0], "clones share what they remember: {version:?}");
        }
    }
}
