//! Certificates of authorities that nobody else knows.

use std::{fs, net::Ipv4Addr, path::Path};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};

/// As files in PEM: `ours` and `theirs`, authorities; `node`, of this address, and `client`, each with its key, signed by ours.
pub fn certificates(directory: &Path, node: Ipv4Addr) {
    let authority = |name: &str| {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        fs::write(directory.join(format!("{name}.pem")), authority.pem()).unwrap();
        authority
    };
    let ours = authority("ours");
    authority("theirs");
    for (file, name) in [("node", node.to_string()), ("client", "client".to_owned())] {
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(vec![name]).unwrap().signed_by(&key, &ours).unwrap();
        fs::write(directory.join(format!("{file}.pem")), key.serialize_pem() + &signed.pem()).unwrap();
    }
}
