//! `-transport`: a node that speaks TLS only and wants to know who comes.

use std::{fs, net::Ipv4Addr, path::Path, process::Command};

use brownout_cluster::java;

use super::{
    common::{cassandra::Cassandra, certificates::certificates},
    ran::{ends, good},
};

/// The kinds of keys that Java's own tool makes. It writes those of elliptic curves in a way of its own.
const KEYS: [(&str, &str); 3] = [("EC", "256"), ("EC", "384"), ("RSA", "2048")];

/// What users of cassandra-stress have: stores that Java's own tool has made, with certificates that sign themselves. The
/// node is told to trust those, too.
fn key_stores(directory: &Path) {
    let keytool = |words: &str| {
        let mut command = Command::new(java::find(11..=17).unwrap().home.join("bin/keytool"));
        command.args(words.split(' ')).args(["-storetype", "PKCS12", "-storepass", "changeit"]).current_dir(directory);
        let done = command.output().unwrap();
        assert!(done.status.success(), "keytool {words}: {}", String::from_utf8_lossy(&done.stdout));
    };
    let mut known = fs::read_to_string(directory.join("ours.pem")).unwrap();
    for (algorithm, bits) in KEYS {
        let store = format!("-alias me -keystore {algorithm}{bits}.p12");
        keytool(&format!("-genkeypair {store} -keyalg {algorithm} -keysize {bits} -dname CN={algorithm}{bits}"));
        keytool(&format!("-exportcert -rfc {store} -file me.pem"));
        known += &fs::read_to_string(directory.join("me.pem")).unwrap();
    }
    keytool("-importcert -noprompt -alias ours -file ours.pem -keystore trust.p12");
    fs::write(directory.join("known.pem"), known).unwrap();
}

pub fn only_the_right_certificates_come_in(version: &str, address: Ipv4Addr) {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path(), address);
    key_stores(files.path());
    let path = |name: &str| files.path().join(name).display().to_string();
    let lines = format!(
        "client_encryption_options: {{enabled: true, optional: false, require_client_auth: true, \
         ssl_context_factory: {{class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}}, \
         keystore: {}, truststore: {}}}",
        path("node.pem"),
        path("known.pem")
    );
    let node = Cassandra::start_with(version, address, &lines, None);
    let (trust, strange, own) = (path("ours.pem"), path("theirs.pem"), path("client.pem"));
    let (trust, strange) = (format!("truststore={trust}"), format!("truststore={strange}"));
    let own = format!("keystore={own}");
    let words = ["write", "n=200", "no-warmup", "-rate", "threads=4", "-transport"];
    // A closure could not say that all of them live as long.
    fn all<'a>(words: &[&'a str], options: &[&'a str], more: &[&'a str]) -> Vec<&'a str> {
        [words, options, more].concat()
    }
    let checked = [&trust, own.as_str(), "hostname-verification=true"];
    for mode in [&[][..], &["-mode", "native", "protocolVersion=5", "compression=lz4"], &["-mode", "driver"]] {
        let ran = good(&node, &all(&words, &checked, mode));
        assert_eq!(ran.balance("answered_ok"), 200, "{mode:?}");
    }
    let trusts = format!("truststore={}", path("trust.p12"));
    for (algorithm, bits) in KEYS {
        let store = format!("keystore={}", path(&format!("{algorithm}{bits}.p12")));
        let stores = [&trusts, "truststore-password=changeit", &store, "keystore-password=changeit"];
        assert_eq!(good(&node, &all(&words, &stores, &[])).balance("answered_ok"), 200, "{algorithm} {bits}");
    }
    for (options, said) in [
        (&[strange.as_str(), own.as_str()][..], "add who has signed it"),
        (&[trust.as_str()], "does it want a client's certificate"),
    ] {
        let ran = ends(&node, &all(&words, options, &[]), 1);
        assert!(ran.err.contains(said), "{options:?}: {}", ran.err);
    }
    let plain = ends(&node, &words[..words.len() - 1], 1);
    assert!(plain.err.contains("cannot connect"), "{}", plain.err);
    let missing = ends(&node, &all(&words, &["truststore=/nowhere.pem"], &[]), 2);
    assert!(missing.err.contains("/nowhere.pem"), "{}", missing.err);
    let lonely = ends(&node, &all(&words, &[own.as_str()], &[]), 2);
    assert!(lonely.err.contains("truststore="), "{}", lonely.err);
}

pub fn a_certificate_for_another_host_is_refused_if_names_are_verified(version: &str, address: Ipv4Addr) {
    let files = tempfile::tempdir().unwrap();
    certificates(files.path(), Ipv4Addr::new(127, 0, 0, 200));
    let path = |name: &str| files.path().join(name).display().to_string();
    let lines = format!(
        "client_encryption_options: {{enabled: true, optional: false, \
         ssl_context_factory: {{class_name: org.apache.cassandra.security.PEMBasedSslContextFactory}}, keystore: {}}}",
        path("node.pem")
    );
    let node = Cassandra::start_with(version, address, &lines, None);
    let trust = format!("truststore={}", path("ours.pem"));
    let words = ["write", "n=50", "no-warmup", "-rate", "threads=2", "-transport", &trust];
    good(&node, &words);
    let ran = ends(&node, &[&words[..], &["hostname-verification=true"]].concat(), 1);
    assert!(ran.err.contains("do not verify hostnames"), "{}", ran.err);
}
