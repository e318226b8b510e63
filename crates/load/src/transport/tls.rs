//! TLS options and configuration.

use std::{fmt, net::IpAddr, path::PathBuf, sync::Arc};

use rustls::{
    ClientConfig, ClientConnection, RootCertStore, ServerConfig, SupportedProtocolVersion,
    client::{Resumption, WebPkiServerVerifier},
    crypto::{CryptoProvider, ring},
    pki_types::{CertificateDer, ServerName},
};

use super::{error::TlsError, keystore, verifier::Verifier};

/// The options of TLS.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// Which certificates are trusted.
    pub trust: TrustStore,
    /// This client's certificate, for servers that require one (`require_client_auth`).
    pub identity: Option<Identity>,
    /// The server's certificate must be valid for its address, or for one of its names here.
    pub verify_hostname: bool,
    /// Names of servers, with their addresses. A text that cannot be a name in a certificate is ignored.
    pub names: Vec<(IpAddr, String)>,
    /// `TLSv1.2`, `TLSv1.3`, or `TLS` for both, which an empty list also means.
    pub protocols: Vec<String>,
    /// Cipher suites by their IANA names (`TLS_AES_128_GCM_SHA256`); empty for all that are known.
    pub ciphers: Vec<String>,
}

/// Certificates of authorities, or of servers themselves: PEM, or PKCS#12 with its password.
#[derive(Clone)]
pub struct TrustStore {
    /// The file.
    pub file: PathBuf,
    /// For PKCS#12.
    pub password: Option<String>,
}

/// A certificate with its chain, and its key.
#[derive(Clone)]
pub struct Identity {
    /// PEM, or PKCS#12 with its password and the key.
    pub file: PathBuf,
    /// The key in PEM, unless it is in the same file.
    pub key: Option<PathBuf>,
    /// For PKCS#12.
    pub password: Option<String>,
}

/// Without the password.
impl fmt::Debug for TrustStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TrustStore").field("file", &self.file).finish_non_exhaustive()
    }
}

/// Without the password.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity").field("file", &self.file).field("key", &self.key).finish_non_exhaustive()
    }
}

/// The configuration of a TLS client. Cheap to clone.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    verifier: Verifier,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls").field("verifier", &self.verifier).finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads the files and configures TLS.
    ///
    /// # Errors
    /// A file is missing or does not hold what it should, or names are unknown.
    pub fn new(options: &TlsOptions) -> Result<Tls, TlsError> {
        let provider = Arc::new(provider(&options.ciphers)?);
        let versions = versions(&options.protocols)?;
        let TrustStore { file, password } = &options.trust;
        let trusted = keystore::certificates(file, password.as_deref())?;
        let mut roots = RootCertStore::empty();
        for certificate in &trusted {
            roots.add(certificate.clone()).map_err(|error| TlsError::Content {
                path: file.clone(),
                what: format!("a certificate in it cannot be trusted: {error}"),
                remedy: "take it out of the file".to_owned(),
            })?;
        }
        let inner = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&provider));
        let inner = inner.build().map_err(contradiction)?;
        let named = |(address, name): &(IpAddr, String)| Some((*address, ServerName::try_from(name.clone()).ok()?));
        let verifier = Verifier {
            inner,
            trusted: trusted.into(),
            verify_hostname: options.verify_hostname,
            name: None,
            names: options.names.iter().filter_map(named).collect(),
        };
        let builder = ClientConfig::builder_with_provider(provider).with_protocol_versions(&versions);
        let builder = builder.map_err(contradiction)?.dangerous();
        let builder = builder.with_custom_certificate_verifier(Arc::new(verifier.clone()));
        let mut config = match &options.identity {
            None => builder.with_no_client_auth(),
            Some(Identity { file, key, password }) => {
                let (chain, key) = keystore::identity(file, key.as_deref(), password.as_deref())?;
                builder.with_client_auth_cert(chain, key).map_err(contradiction)?
            }
        };
        // Every connection must cost the server as much as a new one, whatever came before.
        config.resumption = Resumption::disabled();
        Ok(Tls { config: Arc::new(config), verifier })
    }

    /// The same for connections on which this protocol is spoken, which servers of several ask for (ALPN, RFC 7301).
    pub(crate) fn speaking(&self, protocol: &str) -> Tls {
        let mut config = (*self.config).clone();
        config.alpn_protocols = vec![protocol.as_bytes().to_vec()];
        Tls { config: Arc::new(config), verifier: self.verifier.clone() }
    }

    /// A new session with a server.
    pub(super) fn session(&self, address: IpAddr, name: &str) -> Result<ClientConnection, rustls::Error> {
        let mut config = (*self.config).clone();
        let name = ServerName::try_from(name.to_owned()).ok();
        let verifier = Verifier { name, ..self.verifier.clone() };
        config.dangerous().set_certificate_verifier(Arc::new(verifier));
        ClientConnection::new(Arc::new(config), ServerName::from(address))
    }

    /// The same configuration for other clients that use `rustls`. They know servers by their addresses and by
    /// [`TlsOptions::names`].
    pub fn client_config(&self) -> Arc<ClientConfig> {
        Arc::clone(&self.config)
    }
}

/// TLS of a server, for the stub.
#[derive(Debug, Clone)]
pub struct ServerTls(pub(super) Arc<ServerConfig>);

impl ServerTls {
    /// Reads the server's certificate and key. With `clients`, only clients with a certificate that these vouch for are
    /// accepted.
    ///
    /// # Errors
    /// A file is missing or does not hold what it should.
    pub fn new(identity: &Identity, clients: Option<&TrustStore>) -> Result<ServerTls, TlsError> {
        let provider = Arc::new(ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider)).with_safe_default_protocol_versions();
        let builder = builder.map_err(contradiction)?;
        let builder = match clients {
            None => builder.with_no_client_auth(),
            Some(TrustStore { file, password }) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(keystore::certificates(file, password.as_deref())?);
                let verifier =
                    rustls::server::WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
                builder.with_client_cert_verifier(verifier.map_err(|error| TlsError::Contradiction(error.to_string()))?)
            }
        };
        let Identity { file, key, password } = identity;
        let (chain, key): (Vec<CertificateDer<'static>>, _) =
            keystore::identity(file, key.as_deref(), password.as_deref())?;
        builder.with_single_cert(chain, key).map(|config| ServerTls(Arc::new(config))).map_err(contradiction)
    }
}

fn contradiction(error: impl fmt::Display) -> TlsError {
    TlsError::Contradiction(error.to_string())
}

fn versions(names: &[String]) -> Result<Vec<&'static SupportedProtocolVersion>, TlsError> {
    let mut versions = Vec::new();
    for name in names {
        match name.trim().to_ascii_lowercase().as_str() {
            "tls" => versions.extend_from_slice(rustls::ALL_VERSIONS),
            "tlsv1.2" => versions.push(&rustls::version::TLS12),
            "tlsv1.3" => versions.push(&rustls::version::TLS13),
            _ => return Err(TlsError::Protocol(name.clone())),
        }
    }
    Ok(if versions.is_empty() { rustls::ALL_VERSIONS.to_vec() } else { versions })
}

fn provider(ciphers: &[String]) -> Result<CryptoProvider, TlsError> {
    // The library names suites of TLS 1.3 its own way.
    let name = |suite: &rustls::SupportedCipherSuite| format!("{:?}", suite.suite()).replacen("TLS13_", "TLS_", 1);
    let mut provider = ring::default_provider();
    if ciphers.is_empty() {
        return Ok(provider);
    }
    let mut chosen = Vec::new();
    for wanted in ciphers {
        let found = provider.cipher_suites.iter().find(|suite| name(suite).eq_ignore_ascii_case(wanted.trim()));
        chosen.push(*found.ok_or_else(|| TlsError::Cipher {
            name: wanted.clone(),
            known: provider.cipher_suites.iter().map(name).collect::<Vec<_>>().join(", "),
        })?);
    }
    provider.cipher_suites = chosen;
    Ok(provider)
}

/// What to do about a server's alert.
pub(super) const ALERT_REMEDY: &str = "; the server's log says more (does it want a client's certificate?)";

/// A TLS error as text, with what to do about it.
pub(super) fn explain(error: &rustls::Error) -> String {
    use rustls::{CertificateError as Certificate, Error};
    let remedy = match error {
        Error::InvalidCertificate(Certificate::UnknownIssuer | Certificate::BadSignature) => {
            "; add who has signed it to the trusted certificates"
        }
        Error::InvalidCertificate(Certificate::NotValidForName | Certificate::NotValidForNameContext { .. }) => {
            "; name the server as its certificate does, or do not verify hostnames"
        }
        Error::InvalidMessage(_) => "; does this port speak TLS?",
        Error::AlertReceived(_) => ALERT_REMEDY,
        _ => "",
    };
    format!("TLS: {error}{remedy}")
}
