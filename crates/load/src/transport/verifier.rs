//! Verifies the certificates of servers.

use std::{net::IpAddr, sync::Arc};

use rustls::{
    CertificateError, DigitallySignedStruct, Error, SignatureScheme,
    client::{
        WebPkiServerVerifier,
        danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
        verify_server_name,
    },
    pki_types::{CertificateDer, ServerName, UnixTime},
    server::ParsedCertificate,
};

/// Verifies as browsers do, with two relaxations that clusters need: names may be ignored, and a certificate that is
/// itself trusted is accepted even if it is also an authority's (as self-signed certificates of nodes are).
#[derive(Debug, Clone)]
pub(super) struct Verifier {
    pub(super) inner: Arc<WebPkiServerVerifier>,
    pub(super) trusted: Arc<[CertificateDer<'static>]>,
    pub(super) verify_hostname: bool,
    /// The server's name in the user's settings, besides its address.
    pub(super) name: Option<ServerName<'static>>,
    /// Names of servers, by their addresses.
    pub(super) names: Arc<[(IpAddr, ServerName<'static>)]>,
}

impl Verifier {
    fn verify_name(&self, certificate: &CertificateDer<'_>, server: &ServerName<'_>) -> Result<(), Error> {
        if !self.verify_hostname {
            return Ok(());
        }
        let certificate = ParsedCertificate::try_from(certificate)?;
        let called = self.names.iter().filter(|(address, _)| *server == ServerName::from(*address));
        let mut names = self.name.iter().chain(called.map(|(_, name)| name));
        verify_server_name(&certificate, server)
            .or_else(|error| names.find_map(|name| verify_server_name(&certificate, name).ok()).ok_or(error))
    }
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match self.inner.verify_server_cert(certificate, intermediates, server, ocsp, now) {
            // Names are checked last: everything else is correct.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {}
            Err(Error::InvalidCertificate(CertificateError::Other(_)))
                if self.trusted.iter().any(|trusted| trusted == certificate) => {}
            done => return done,
        }
        self.verify_name(certificate, server).map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls12_signature(message, certificate, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.inner.verify_tls13_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.inner.supported_verify_schemes()
    }
}
