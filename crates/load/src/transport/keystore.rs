//! Certificates and keys from files: PEM and PKCS#12, distinguished by their first bytes.

use std::path::Path;

use p12_keystore::{KeyStore, KeyStoreEntry, Pkcs12ImportPolicy};
use p256::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, pem::PemObject};

use super::error::{TlsError, read};

enum Content {
    Pem(Vec<u8>),
    Pkcs12(KeyStore),
}

/// The magic numbers of Java's own key store formats: JKS and JCEKS.
const JAVA: [[u8; 4]; 2] = [[0xFE, 0xED, 0xFE, 0xED], [0xCE, 0xCE, 0xCE, 0xCE]];

fn open(path: &Path, password: Option<&str>) -> Result<Content, TlsError> {
    let bytes = read(path)?;
    if JAVA.iter().any(|magic| bytes.starts_with(magic)) {
        let (from, to) = (path.display(), path.with_extension("p12"));
        return Err(wrong(
            path,
            "it is a key store of Java's own kind (JKS)",
            format!(
                "turn it into PKCS#12: keytool -importkeystore -srckeystore {from} -destkeystore {} -deststoretype PKCS12",
                to.display()
            ),
        ));
    }
    // DER begins with the tag of a sequence.
    if bytes.first() != Some(&0x30) {
        return Ok(Content::Pem(bytes));
    }
    let store = KeyStore::from_pkcs12(&bytes, password.unwrap_or_default(), Pkcs12ImportPolicy::Relaxed);
    store.map(Content::Pkcs12).map_err(|error| {
        let remedy = match password {
            Some(_) => "check its password, and that it is PKCS#12",
            None => "give its password, if it is PKCS#12",
        };
        wrong(path, format!("it cannot be read as PKCS#12 ({error})"), remedy)
    })
}

fn wrong(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> TlsError {
    TlsError::Content { path: path.to_owned(), what: what.into(), remedy: remedy.into() }
}

/// All certificates of a file, at least one.
pub(super) fn certificates(path: &Path, password: Option<&str>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let owned = |certificate: &p12_keystore::Certificate| CertificateDer::from(certificate.as_der().to_vec());
    let found: Vec<_> = match open(path, password)? {
        Content::Pem(bytes) => pem_certificates(path, &bytes)?,
        Content::Pkcs12(store) => store
            .entries()
            .flat_map(|(_, entry)| match entry {
                KeyStoreEntry::Certificate(certificate) => vec![owned(certificate)],
                KeyStoreEntry::PrivateKeyChain(chain) => chain.certs().iter().map(owned).collect(),
                KeyStoreEntry::Secret(_) => Vec::new(),
            })
            .collect(),
    };
    if found.is_empty() {
        return Err(wrong(path, "it holds no certificate", "give a file in PEM or PKCS#12 that does"));
    }
    Ok(found)
}

fn pem_certificates(path: &Path, bytes: &[u8]) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(bytes).collect();
    all.map_err(|error| wrong(path, format!("a certificate in it is not PEM ({error})"), "write it anew"))
}

/// A certificate with its chain, and its key.
pub(super) fn identity(
    path: &Path,
    key: Option<&Path>,
    password: Option<&str>,
) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), TlsError> {
    match open(path, password)? {
        Content::Pem(bytes) => {
            let chain = pem_certificates(path, &bytes)?;
            if chain.is_empty() {
                return Err(wrong(path, "it holds no certificate", "give the file of the certificate"));
            }
            match key {
                None => Ok((chain, pem_key(path, &bytes)?)),
                Some(key) => Ok((chain, pem_key(key, &read(key)?)?)),
            }
        }
        Content::Pkcs12(store) => {
            let Some((_, chain)) = store.private_key_chain() else {
                return Err(wrong(path, "it holds no private key", "give the key store, not the trust store"));
            };
            let key = PrivatePkcs8KeyDer::from(with_public_half(chain.key().as_der()));
            let certificates = chain.certs().iter().map(|one| CertificateDer::from(one.as_der().to_vec()));
            Ok((certificates.collect(), PrivateKeyDer::Pkcs8(key)))
        }
    }
}

/// A key in PKCS#8 as the TLS library requires it. Java's keytool omits the public half of elliptic-curve keys, and
/// without it they are rejected. All other keys stay unchanged.
fn with_public_half(key: &[u8]) -> Vec<u8> {
    let on_256 = || p256::SecretKey::from_pkcs8_der(key).ok()?.to_pkcs8_der().ok();
    let on_384 = || p384::SecretKey::from_pkcs8_der(key).ok()?.to_pkcs8_der().ok();
    on_256().or_else(on_384).map_or_else(|| key.to_vec(), |whole| whole.as_bytes().to_vec())
}

fn pem_key(path: &Path, bytes: &[u8]) -> Result<PrivateKeyDer<'static>, TlsError> {
    PrivateKeyDer::from_pem_slice(bytes).map_err(|error| {
        let encrypted = b"ENCRYPTED PRIVATE KEY";
        if bytes.windows(encrypted.len()).any(|window| window == encrypted) {
            let remedy = format!("decrypt it: openssl pkcs8 -in {} -out key.pem", path.display());
            return wrong(path, "its private key is encrypted", remedy);
        }
        wrong(path, format!("it holds no private key in PEM ({error})"), "give the file of the key")
    })
}
