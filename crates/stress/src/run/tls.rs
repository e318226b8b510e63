//! `-transport`: from settings to TLS.

use std::{fs, net::IpAddr, path::Path};

use brownout_load::{Identity, Tls, TlsOptions, TrustStore};

use super::RunError;
use crate::{
    schema::Contact,
    settings::{Secret, Settings, StoreType, TlsVersion},
};

/// The TLS configuration of all connections; `None`: no encryption.
///
/// # Errors
/// Those of [`check`]; a host without an address.
pub fn tls(settings: &Settings) -> Result<Option<Tls>, RunError> {
    let mut names = Vec::new();
    if settings.transport.truststore.is_some() {
        for host in &settings.node.hosts {
            let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
            let found = Contact::resolve(std::slice::from_ref(host), settings.port.native)?;
            names.extend(found.nodes.iter().map(|node| (node.ip(), name.to_owned())));
        }
    }
    with_names(settings, names)
}

/// Checks that connections can be encrypted as requested. No host name is looked up.
///
/// # Errors
/// A key store without a trust store; a store that cannot be read, or has another format than stated; unknown names of
/// cipher suites.
pub fn check(settings: &Settings) -> Result<(), RunError> {
    with_names(settings, Vec::new()).map(drop)
}

/// `names`: what the servers' certificates must contain.
fn with_names(settings: &Settings, names: Vec<(IpAddr, String)>) -> Result<Option<Tls>, RunError> {
    let transport = &settings.transport;
    let Some(truststore) = &transport.truststore else {
        return match &transport.keystore {
            None => Ok(None),
            Some(_) => Err(RunError::Unfit {
                what: "-transport keystore= without truststore=: nobody would vouch for the servers".to_owned(),
                remedy: "give truststore= as well, or take keystore= away for connections without encryption",
            }),
        };
    };
    for store in [Some(truststore), transport.keystore.as_ref()].into_iter().flatten() {
        check_form(store, transport.store_type)?;
    }
    let password = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.reveal().to_owned());
    let options = TlsOptions {
        trust: TrustStore { file: truststore.clone(), password: password(&transport.truststore_password) },
        identity: transport.keystore.as_ref().map(|file| Identity {
            file: file.clone(),
            key: None,
            password: password(&transport.keystore_password),
        }),
        verify_hostname: transport.hostname_verification,
        names,
        protocols: match transport.protocol {
            None => Vec::new(),
            Some(TlsVersion::V12) => vec!["TLSv1.2".to_owned(), "TLSv1.3".to_owned()],
            Some(TlsVersion::V13) => vec!["TLSv1.3".to_owned()],
        },
        ciphers: transport.ciphers.clone().unwrap_or_default(),
    };
    Ok(Some(Tls::new(&options)?))
}

/// Checks that a store has the format that `store-type=` states. If it cannot be read, whoever reads it reports that.
fn check_form(store: &Path, said: Option<StoreType>) -> Result<(), RunError> {
    let (Some(said), Ok(content)) = (said, fs::read(store)) else { return Ok(()) };
    // PKCS#12 is DER, which begins with the tag of a sequence; PEM is text.
    let found = if content.first() == Some(&0x30) { StoreType::Pkcs12 } else { StoreType::Pem };
    if found == said {
        return Ok(());
    }
    let name = |form| match form {
        StoreType::Pem => "PEM",
        StoreType::Pkcs12 => "PKCS12",
    };
    Err(RunError::Unfit {
        what: format!("-transport store-type={}: {} is no such store", name(said), store.display()),
        remedy: "leave store-type= out: the form is seen from the content",
    })
}
