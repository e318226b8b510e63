//! Keys and certificates of a cluster: an authority of its own, which lives as long as the cluster, and what it has
//! signed.

use std::{
    fs::{self, Permissions},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use p12_keystore::{
    Certificate, EncryptionAlgorithm, KeyStore, KeyStoreEntry, MacAlgorithm, PrivateKey, PrivateKeyChain,
};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

use super::{dialect::Series, scalar::quoted};
use crate::{ClusterError, database::Member};

/// What everybody trusts, in PEM. Clients need no more.
pub(super) const AUTHORITY: &str = "ca.pem";
/// A node's key with its certificate: in PEM, or for older series as a key store.
const NODE_PEM: &str = "node.pem";
const NODE_STORE: &str = "node.p12";
/// What older series trust.
const TRUST_STORE: &str = "trust.p12";
/// Of the key stores, which have to have one: the keys in them live as long as the lab, in directories that are its
/// own.
const PASSWORD: &str = "brownout";
/// Suites of TLS 1.2 for keys of elliptic curves: of those that 3.11 would offer by itself, some Javas have none left.
const SUITES: &str = "[TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384]";

/// An authority with its key, which is never written anywhere.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

fn failed(error: impl std::fmt::Display) -> ClusterError {
    ClusterError::Certificates(error.to_string())
}

impl Authority {
    /// A new one: a key on the curve P-256, which all versions understand.
    pub(super) fn new(cluster: &str) -> Result<Authority, ClusterError> {
        let mut params = CertificateParams::new(Vec::<String>::new()).map_err(failed)?;
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        params.distinguished_name.push(DnType::CommonName, format!("the authority of {cluster}"));
        let key = KeyPair::generate().map_err(failed)?;
        CertifiedIssuer::self_signed(params, key).map(Authority).map_err(failed)
    }

    /// Its certificate, in PEM.
    pub(super) fn pem(&self) -> String {
        self.0.pem()
    }

    /// The files of a member, by name: its key with its certificate in the form that its series reads, and what it
    /// trusts. The certificate is valid for its name and its address, at any time (clocks may be wrong on purpose), for
    /// either end of a connection.
    pub(super) fn files(&self, member: &Member, series: Series) -> Result<Vec<(&'static str, Vec<u8>)>, ClusterError> {
        let key = KeyPair::generate().map_err(failed)?;
        let names = vec![member.name.clone(), member.address.to_string()];
        let mut params = CertificateParams::new(names).map_err(failed)?;
        params.distinguished_name.push(DnType::CommonName, member.name.clone());
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let signed = params.signed_by(&key, &self.0).map_err(failed)?;
        let mut files = vec![(AUTHORITY, self.pem().into_bytes())];
        if series.reads_pem() {
            let all = format!("{}{}{}", key.serialize_pem(), signed.pem(), self.pem());
            files.push((NODE_PEM, all.into_bytes()));
        } else {
            let authority = Certificate::from_der(self.0.der()).map_err(failed)?;
            let own = Certificate::from_der(signed.der()).map_err(failed)?;
            let private = PrivateKey::from_der(&key.serialize_der()).map_err(failed)?;
            let chain = PrivateKeyChain::new(member.name.as_str(), private, [own, authority.clone()]);
            files.push((NODE_STORE, store(&member.name, KeyStoreEntry::PrivateKeyChain(chain))?));
            files.push((TRUST_STORE, store("authority", KeyStoreEntry::Certificate(authority))?));
        }
        Ok(files)
    }

    /// Writes them into `conf`, where the node reads them as nobody: whoever may enter the directories of a lab may
    /// read them.
    pub(super) fn write(&self, member: &Member, series: Series, conf: &Path) -> Result<(), ClusterError> {
        for (name, content) in self.files(member, series)? {
            let path: PathBuf = conf.join(name);
            fs::write(&path, content).map_err(ClusterError::files("write", &path))?;
            fs::set_permissions(&path, Permissions::from_mode(0o644)).map_err(ClusterError::files("open up", &path))?;
        }
        Ok(())
    }
}

/// A key store with one entry, in PKCS#12, enciphered as every Java since 8 can read it (RFC 7292, appendix C).
fn store(alias: &str, entry: KeyStoreEntry) -> Result<Vec<u8>, ClusterError> {
    let mut store = KeyStore::new();
    store.add_entry(alias, entry);
    let writer = store.writer(PASSWORD).encryption_algorithm(EncryptionAlgorithm::PbeWithShaAnd3KeyTripleDesCbc);
    writer.mac_algorithm(MacAlgorithm::HmacSha1).write().map_err(failed)
}

/// Where a node finds its key and what it trusts, as entries of its options of encryption.
pub(super) fn stores(series: Series, conf: &Path) -> String {
    let file = |name: &str| quoted(&conf.join(name).to_string_lossy());
    if series.reads_pem() {
        return format!(
            "ssl_context_factory: {{class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}}, \
             keystore: {}, truststore: {}, accepted_protocols: [TLSv1.3, TLSv1.2]",
            file(NODE_PEM),
            file(AUTHORITY)
        );
    }
    let suites = if series == Series::V3_11 { format!(", cipher_suites: {SUITES}") } else { String::new() };
    format!(
        "keystore: {}, keystore_password: {PASSWORD}, truststore: {}, truststore_password: {PASSWORD}, store_type: \
         PKCS12{suites}",
        file(NODE_STORE),
        file(TRUST_STORE)
    )
}

#[cfg(test)]
mod tests {
    use brownout_load::{Identity, ServerTls, Tls, TlsOptions, TrustStore};

    use super::*;

    fn member() -> Member {
        Member {
            name: "n1".to_owned(),
            address: [10, 77, 0, 1].into(),
            client: ([10, 77, 0, 1], 9042).into(),
            home: "/".into(),
            logs: "/".into(),
        }
    }

    #[test]
    fn what_a_node_is_given_serves_and_what_clients_are_given_trusts_it() {
        let authority = Authority::new("brownout").unwrap();
        let forms = [(Series::V5_0, NODE_PEM, None), (Series::V3_11, NODE_STORE, Some(PASSWORD))];
        for (series, key_file, password) in forms {
            let directory = tempfile::tempdir().unwrap();
            authority.write(&member(), series, directory.path()).unwrap();
            let password = password.map(str::to_owned);
            let file = directory.path().join(key_file);
            let identity = Identity { file, key: None, password: password.clone() };
            assert!(ServerTls::new(&identity, None).is_ok(), "{series:?}");
            let options = |file: &str, password: Option<String>| TlsOptions {
                trust: TrustStore { file: directory.path().join(file), password },
                identity: None,
                verify_hostname: true,
                names: Vec::new(),
                protocols: Vec::new(),
                ciphers: Vec::new(),
            };
            assert!(Tls::new(&options(AUTHORITY, None)).is_ok(), "{series:?}");
            if password.is_some() {
                assert!(Tls::new(&options(TRUST_STORE, password)).is_ok(), "{series:?}");
            }
        }
    }

    #[test]
    fn the_authoritys_key_is_in_no_file() {
        let authority = Authority::new("brownout").unwrap();
        let secret = authority.0.key().serialize_pem();
        for series in [Series::V5_0, Series::V4_0] {
            for (name, content) in authority.files(&member(), series).unwrap() {
                assert!(!String::from_utf8_lossy(&content).contains(secret.lines().nth(1).unwrap()), "{name}");
            }
        }
        assert!(authority.pem().contains("BEGIN CERTIFICATE"));
    }
}
