//! Keys and certificates for one lab: made when it starts, never written to a disk.

use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, Error, ExtendedKeyUsagePurpose, IsCa, KeyPair,
    KeyUsagePurpose,
};

/// Who signs the certificates of one lab.
pub(super) struct Authority(CertifiedIssuer<'static, KeyPair>);

/// A private key and the certificate of it, as PEM.
pub(super) struct Identity {
    pub(super) key: String,
    pub(super) certificate: String,
}

impl Authority {
    /// A new one, which nobody knows.
    pub(super) fn new() -> Result<Authority, Error> {
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.distinguished_name.push(DnType::CommonName, "brownout lab");
        parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        parameters.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        Ok(Authority(CertifiedIssuer::self_signed(parameters, KeyPair::generate()?)?))
    }

    /// Its own certificate, as PEM.
    pub(super) fn certificate(&self) -> String {
        self.0.pem()
    }

    /// A new key for `name`, signed for one side of a connection.
    pub(super) fn identity(&self, name: &str, side: ExtendedKeyUsagePurpose) -> Result<Identity, Error> {
        let key = KeyPair::generate()?;
        let mut parameters = CertificateParams::new(Vec::new())?;
        parameters.distinguished_name.push(DnType::CommonName, name);
        parameters.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyAgreement];
        parameters.extended_key_usages = vec![side];
        let certificate = parameters.signed_by(&key, &self.0)?;
        Ok(Identity { key: key.serialize_pem(), certificate: certificate.pem() })
    }
}
