//! `-transport`: TLS.

use std::path::PathBuf;

use super::{
    Credentials, SettingsError,
    grammar::{Alternative, Pattern, select, value},
    mode::Secret,
    number::null,
};

/// TLS. It is used if a truststore is given; a keystore without one is refused ([`crate::run`]).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transport {
    /// Certificates to verify the servers' with: PEM or PKCS#12.
    pub truststore: Option<PathBuf>,
    /// Its password.
    pub truststore_password: Option<Secret>,
    /// Our certificate and key, for servers that require one: PEM or PKCS#12.
    pub keystore: Option<PathBuf>,
    /// Its password.
    pub keystore_password: Option<Secret>,
    /// Format of both stores; `None`: detected from their content.
    pub store_type: Option<StoreType>,
    /// Oldest protocol allowed; `None`: what the TLS library allows, 1.2 and later.
    pub protocol: Option<TlsVersion>,
    /// Cipher suites by name; `None`: those of the TLS library.
    pub ciphers: Option<Vec<String>>,
    /// Whether a server's certificate must be valid for its address, or for the host name that the user gave for it.
    pub hostname_verification: bool,
    /// Its line in the block of settings.
    shown: String,
}

/// Format of a certificate store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreType {
    /// Texts between `-----BEGIN` and `-----END` lines.
    Pem,
    /// The default format of `keytool` since Java 9.
    Pkcs12,
}

/// A version of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TlsVersion {
    /// 1.2
    V12,
    /// 1.3
    V13,
}

const CIPHERS: &str = "TLS_AES_256_GCM_SHA384,TLS_AES_128_GCM_SHA256,TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,\
                       TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";

pub(super) fn alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("factory=", Pattern::Something, "accepted; Thrift is gone")
            .or("org.apache.cassandra.thrift.TFramedTransportFactory"),
        value("truststore=", Pattern::Something, "certificates that servers' are checked against: PEM or PKCS#12"),
        value("truststore-password=", Pattern::Anything, "its password"),
        value("keystore=", Pattern::Something, "our certificate and key: PEM or PKCS#12"),
        value("keystore-password=", Pattern::Anything, "its password"),
        value("ssl-protocol=", Pattern::Words("TLS|TLSv1.2|TLSv1.3"), "oldest protocol allowed").or("TLS"),
        value("ssl-alg=", Pattern::Something, "accepted; a matter of Java").or("SunX509"),
        value("store-type=", Pattern::Words("JKS|PKCS12|PEM"), "form of the stores (default: as they are)").or("JKS"),
        value("ssl-ciphers=", Pattern::Something, "names of cipher suites, separated by commas").or(CIPHERS),
        value("hostname-verification=", Pattern::Words("true|false"), "check names in certificates").or("false"),
    ])]
}

impl Transport {
    pub(super) fn parse(
        words: Option<&[String]>,
        credentials: &Credentials,
        notes: &mut Vec<String>,
    ) -> Result<Self, SettingsError> {
        let (_, taken) = select("-transport", words.unwrap_or_default(), alternatives())?;
        for gone in ["factory=", "ssl-alg="] {
            if taken.given(gone).is_some() {
                notes.push(format!("-transport {gone} has no effect: it names a class of Java"));
            }
        }
        let path = |name| taken.get(name).map(PathBuf::from);
        let secret = |name, other: &Option<Secret>| taken.get(name).map(Secret::new).or_else(|| other.clone());
        if taken.given("store-type=").is_some_and(|kind| kind.eq_ignore_ascii_case("jks")) {
            return Err(SettingsError::senseless(
                "-transport store-type=JKS cannot be read",
                "convert the store: keytool -importkeystore -srckeystore STORE -destkeystore STORE.p12 -deststoretype PKCS12",
            ));
        }
        // The passwords must not be shown.
        let shown: Vec<String> = taken
            .shown()
            .split_inclusive("; ")
            .map(|part| match part.split_once("password=") {
                Some((name, rest)) if rest != "null; " => format!("{name}password=*suppressed*; "),
                _ => part.to_owned(),
            })
            .collect();
        Ok(Transport {
            truststore: path("truststore="),
            truststore_password: secret("truststore-password=", &credentials.truststore_password),
            keystore: path("keystore="),
            keystore_password: secret("keystore-password=", &credentials.keystore_password),
            store_type: taken
                .given("store-type=")
                .map(|kind| if kind.eq_ignore_ascii_case("pem") { StoreType::Pem } else { StoreType::Pkcs12 }),
            protocol: match taken.text("ssl-protocol=").to_ascii_lowercase().as_str() {
                "tlsv1.2" => Some(TlsVersion::V12),
                "tlsv1.3" => Some(TlsVersion::V13),
                _ => None,
            },
            ciphers: taken.given("ssl-ciphers=").map(|text| text.split(',').map(str::to_owned).collect()),
            hostname_verification: taken.text("hostname-verification=").eq_ignore_ascii_case("true"),
            shown: shown.concat(),
        })
    }

    /// Whether connections are encrypted.
    pub fn is_on(&self) -> bool {
        self.truststore.is_some() || self.keystore.is_some()
    }

    pub(super) fn block(&self) -> String {
        format!("  {}\n", self.shown)
    }
}

impl Transport {
    /// What cassandra-stress's block cannot show.
    pub(super) fn ours(&self) -> Vec<(&'static str, String)> {
        if !self.is_on() {
            return Vec::new();
        }
        let store = |path: &Option<PathBuf>| null(path.as_ref().map(|path| path.display()));
        vec![("TLS", format!("truststore {}, keystore {}", store(&self.truststore), store(&self.keystore)))]
    }
}
