use std::{
    net::{Ipv4Addr, TcpListener},
    os::fd::AsRawFd,
    path::PathBuf,
    thread::{self, JoinHandle, sleep},
    time::{Duration, Instant},
};

use p12_keystore::{Certificate, KeyStore, KeyStoreEntry, PrivateKey, PrivateKeyChain};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustix::{io::ioctl_fionread, net::sockopt};
use tempfile::TempDir;

use super::*;

/// An authority, a server and a client, as files.
struct Files {
    directory: TempDir,
    authority: CertifiedIssuer<'static, KeyPair>,
}

impl Files {
    fn new() -> Self {
        let directory = TempDir::new().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, directory.path().display().to_string());
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let files = Files { directory, authority };
        files.write("ca.pem", files.authority.pem().as_bytes());
        files
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn write(&self, name: &str, content: &[u8]) -> PathBuf {
        std::fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// A certificate for these names with its key, signed by the authority, in one file.
    fn identity(&self, names: &[&str]) -> Identity {
        let key = KeyPair::generate().unwrap();
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names.clone()).unwrap();
        let certificate = params.signed_by(&key, &self.authority).unwrap();
        let file = format!("{}.pem", names.join("-"));
        let file = self.write(&file, (certificate.pem() + &key.serialize_pem()).as_bytes());
        Identity { file, key: None, password: None }
    }

    fn trust(&self) -> TrustStore {
        TrustStore { file: self.path("ca.pem"), password: None }
    }

    fn options(&self) -> TlsOptions {
        TlsOptions {
            trust: self.trust(),
            identity: None,
            verify_hostname: true,
            names: Vec::new(),
            protocols: Vec::new(),
            ciphers: Vec::new(),
        }
    }
}

/// Sends back what comes on one connection, until it ends.
fn echo(tls: ServerTls) -> (SocketAddr, JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        let mut session = rustls::ServerConnection::new(tls.0).unwrap();
        let mut stream = rustls::Stream::new(&mut session, &mut socket);
        let mut buffer = vec![0; 100_000];
        while let Ok(count @ 1..) = stream.read(&mut buffer) {
            if stream.write_all(&buffer[..count]).is_err() {
                break;
            }
        }
    });
    (address, thread)
}

/// Sends this many bytes to an echo server and receives them back; or returns why not.
fn talk(tls: &Tls, server: ServerTls, name: &str, size: usize) -> io::Result<()> {
    let (address, thread) = echo(server);
    let mut transport = Transport::connect(address, Some(tls), name)?;
    let sent: Vec<u8> = (0..size).map(|place| (place % 251) as u8).collect();
    let (mut written, mut came) = (0, Vec::new());
    let mut room = vec![0; LEAST_ROOM];
    let start = Instant::now();
    let mut result = transport.connected();
    while result.is_ok() && came.len() < size {
        assert!(start.elapsed() < Duration::from_secs(30), "{written} written, {} came back", came.len());
        let mut still = true;
        match transport.write(&sent[written..]) {
            Ok(count) => {
                still = count == 0;
                written += count;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => {}
            Err(error) => result = Err(error),
        }
        match transport.receive(&mut room) {
            Ok((0, _)) => result = Err(io::ErrorKind::UnexpectedEof.into()),
            Ok((count, _)) => {
                assert!(transport.is_open());
                came.extend_from_slice(&room[..count]);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && still => sleep(Duration::from_micros(200)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => result = Err(error),
        }
    }
    drop(transport);
    thread.join().unwrap();
    result.map(|()| assert_eq!(came, sent))
}

#[test]
fn bytes_go_to_a_trusted_server_and_come_back_in_either_version() {
    let files = Files::new();
    let server = ServerTls::new(&files.identity(&["127.0.0.1"]), None).unwrap();
    for protocol in ["TLSv1.2", "TLSv1.3", "TLS"] {
        let tls = Tls::new(&TlsOptions { protocols: vec![protocol.into()], ..files.options() }).unwrap();
        talk(&tls, server.clone(), "n1", 3_000_000).unwrap();
    }
}

/// At least as many bytes as the kernel has taken at one end and not given away at the other: those that are not
/// acknowledged, and those that are there and not read. What arrives without being acknowledged yet is in both.
fn in_kernel(from: &Transport, to: &Transport) -> usize {
    let mut unacknowledged: libc::c_int = 0;
    // rustix has no name for this question (SIOCOUTQ, which is the same number).
    // SAFETY: the kernel writes an int, which lives across the call.
    let result = unsafe { libc::ioctl(from.as_fd().as_raw_fd(), libc::TIOCOUTQ, &raw mut unacknowledged) };
    assert_eq!(result, 0, "{}", io::Error::last_os_error());
    usize::try_from(unacknowledged).unwrap() + ioctl_fionread(to).unwrap() as usize
}

#[test]
fn what_is_told_to_be_sent_is_what_the_kernel_has_taken() {
    let files = Files::new();
    let server = ServerTls::new(&files.identity(&["127.0.0.1"]), None).unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let tls = Tls::new(&files.options()).unwrap();
    let mut client = Transport::connect(listener.local_addr().unwrap(), Some(&tls), "n1").unwrap();
    let (socket, _) = listener.accept().unwrap();
    let mut server = Transport::accepted(socket, Some(&server)).unwrap();
    let passing = |error: &io::Error| matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected);
    let mut room = vec![0; LEAST_ROOM];
    let begun = Instant::now();
    while !(client.is_open() && server.is_open()) {
        assert!(begun.elapsed() < Duration::from_secs(30));
        for end in [&mut client, &mut server] {
            let _ = end.write(&[]).map_err(|error| assert!(passing(&error), "{error}"));
            let _ = end.receive(&mut room).map_err(|error| assert!(passing(&error), "{error}"));
        }
    }
    // Buffers that hold far less than is to be sent, and so are full again and again.
    sockopt::set_socket_send_buffer_size(&client, 200_000).unwrap();
    sockopt::set_socket_recv_buffer_size(&server, 200_000).unwrap();
    let bytes = vec![7; 8_000_000];
    let (mut sent, mut came) = (0, 0);
    let fill = |client: &mut Transport, sent: &mut usize| loop {
        match client.write(&bytes[*sent..]) {
            Ok(0) => {
                assert_eq!(*sent, bytes.len());
                break;
            }
            Ok(count) => *sent += count,
            Err(error) => {
                assert!(passing(&error), "{error}");
                break;
            }
        }
    };
    // As long as the server reads nothing, all that is sent is in the kernel. It acknowledges some of it only after a
    // while, and then has room for more.
    for _ in 0..60 {
        fill(&mut client, &mut sent);
        sleep(Duration::from_millis(5));
        let taken = in_kernel(&client, &server);
        assert!(sent <= taken, "{sent} bytes are told to be on their way, and the kernel has only {taken}");
    }
    assert!((1..bytes.len() / 2).contains(&sent), "{sent} bytes are sent to a server that reads nothing");
    // Whenever the kernel takes no more, the server reads what is there.
    while came < bytes.len() {
        fill(&mut client, &mut sent);
        // Of a record that has not come whole it has read a part.
        let taken = came + RECORD + in_kernel(&client, &server);
        assert!(sent <= taken, "{sent} bytes are told to be on their way, and only {taken} can be");
        loop {
            match server.receive(&mut room) {
                Ok((count, _)) => came += count,
                Err(error) => {
                    assert!(passing(&error), "{error}");
                    break;
                }
            }
            assert!(came <= sent, "the server has {came} bytes, and only {sent} are told to be on their way");
        }
    }
    assert_eq!(sent, bytes.len());
}

#[test]
fn a_server_that_others_vouch_for_is_refused() {
    let (ours, theirs) = (Files::new(), Files::new());
    let server = ServerTls::new(&theirs.identity(&["127.0.0.1"]), None).unwrap();
    for verify_hostname in [true, false] {
        let tls = Tls::new(&TlsOptions { verify_hostname, ..ours.options() }).unwrap();
        let refusal = talk(&tls, server.clone(), "n1", 10).unwrap_err().to_string();
        assert!(refusal.contains("UnknownIssuer") && refusal.contains("add who has signed it"), "{refusal}");
    }
}

#[test]
fn certificates_are_for_the_address_or_for_the_name_unless_that_does_not_matter() {
    let files = Files::new();
    let server = ServerTls::new(&files.identity(&["db.example"]), None).unwrap();
    let strict = Tls::new(&files.options()).unwrap();
    talk(&strict, server.clone(), "db.example", 10).unwrap();
    let local = || Ipv4Addr::LOCALHOST.into();
    let names = vec![(local(), "a b".to_owned()), (local(), "other".to_owned()), (local(), "db.example".to_owned())];
    let told = Tls::new(&TlsOptions { names, ..files.options() }).unwrap();
    talk(&told, server.clone(), "n1", 10).unwrap();
    let names = vec![(Ipv4Addr::new(127, 0, 0, 2).into(), "db.example".to_owned())];
    let elsewhere = Tls::new(&TlsOptions { names, ..files.options() }).unwrap();
    talk(&elsewhere, server.clone(), "n1", 10).unwrap_err();
    let refusal = talk(&strict, server.clone(), "n1", 10).unwrap_err().to_string();
    assert!(refusal.contains("do not verify hostnames"), "{refusal}");
    let lax = Tls::new(&TlsOptions { verify_hostname: false, ..files.options() }).unwrap();
    talk(&lax, server, "n1", 10).unwrap();
}

#[test]
fn a_certificate_that_a_node_signs_for_itself_can_be_trusted() {
    let files = Files::new();
    for is_ca in [IsCa::NoCa, IsCa::Ca(BasicConstraints::Unconstrained)] {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        params.is_ca = is_ca;
        let certificate = params.self_signed(&key).unwrap();
        let file = files.write("own.pem", (certificate.pem() + &key.serialize_pem()).as_bytes());
        let server = ServerTls::new(&Identity { file: file.clone(), key: None, password: None }, None).unwrap();
        let trust = TrustStore { file, password: None };
        let tls = Tls::new(&TlsOptions { trust, ..files.options() }).unwrap();
        talk(&tls, server, "n1", 10).unwrap();
    }
}

#[test]
fn servers_that_ask_who_a_client_is_are_told() {
    let files = Files::new();
    let server = ServerTls::new(&files.identity(&["127.0.0.1"]), Some(&files.trust())).unwrap();
    let known = TlsOptions { identity: Some(files.identity(&["client"])), ..files.options() };
    talk(&Tls::new(&known).unwrap(), server.clone(), "n1", 10).unwrap();
    talk(&Tls::new(&files.options()).unwrap(), server, "n1", 10).unwrap_err();
}

#[test]
fn key_stores_in_pkcs12_are_read_with_their_password() {
    let files = Files::new();
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
    let certificate = params.signed_by(&key, &files.authority).unwrap();
    let certificates = [certificate.der(), files.authority.der()].map(|der| Certificate::from_der(der).unwrap());
    let mut store = KeyStore::new();
    let chain = PrivateKeyChain::new("1", PrivateKey::from_der(&key.serialize_der()).unwrap(), certificates.clone());
    store.add_entry("node", KeyStoreEntry::PrivateKeyChain(chain));
    let file = files.write("keys.p12", &store.writer("changeit").write().unwrap());
    let mut store = KeyStore::new();
    store.add_entry("ca", KeyStoreEntry::Certificate(certificates[1].clone()));
    let trust = files.write("trust.p12", &store.writer("changeit").write().unwrap());

    let password = Some("changeit".to_owned());
    let identity = Identity { file: file.clone(), key: None, password: password.clone() };
    let server = ServerTls::new(&identity, None).unwrap();
    let trust = TrustStore { file: trust, password };
    let tls = Tls::new(&TlsOptions { trust, identity: Some(identity), ..files.options() }).unwrap();
    talk(&tls, server, "n1", 10).unwrap();

    let trust = TrustStore { file, password: Some("wrong".into()) };
    let refusal = Tls::new(&TlsOptions { trust, ..files.options() }).unwrap_err().to_string();
    assert!(refusal.contains("check its password"), "{refusal}");
}

#[test]
fn what_cannot_be_used_says_what_to_do() {
    let files = Files::new();
    let refused = |options: TlsOptions| Tls::new(&options).unwrap_err().to_string();
    let trust = |file: PathBuf| TlsOptions { trust: TrustStore { file, password: None }, ..files.options() };
    let says = |refusal: String, words: &str| assert!(refusal.contains(words), "{refusal}");
    says(refused(trust(files.path("nothing.pem"))), "cannot read");
    says(refused(trust(files.write("empty.pem", b"hello"))), "no certificate");
    says(refused(trust(files.write("java.jks", &[0xFE, 0xED, 0xFE, 0xED, 0, 0]))), "keytool -importkeystore");
    let encrypted = b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n";
    let key = Some(files.write("key.pem", encrypted));
    let identity = Some(Identity { key, ..files.identity(&["client"]) });
    says(refused(TlsOptions { identity, ..files.options() }), "openssl pkcs8");
    says(refused(TlsOptions { protocols: vec!["TLSv1.1".into()], ..files.options() }), "TLSv1.3");
    let ciphers = vec!["TLS_RSA_WITH_AES_128_CBC_SHA".to_owned()];
    says(refused(TlsOptions { ciphers, ..files.options() }), "TLS_AES_128_GCM_SHA256");
    let (protocols, ciphers) = (vec!["TLSv1.2".to_owned()], vec!["TLS_AES_128_GCM_SHA256".to_owned()]);
    says(refused(TlsOptions { protocols, ciphers, ..files.options() }), "cannot be set up");
}

#[test]
fn only_the_chosen_cipher_suite_is_spoken() {
    let files = Files::new();
    let ciphers = vec!["tls_chacha20_poly1305_sha256".to_owned()];
    let tls = Tls::new(&TlsOptions { ciphers, ..files.options() }).unwrap();
    assert_eq!(tls.client_config().crypto_provider().cipher_suites.len(), 1);
    talk(&tls, ServerTls::new(&files.identity(&["127.0.0.1"]), None).unwrap(), "n1", 10).unwrap();
}

#[test]
fn a_port_without_tls_is_recognized() {
    let files = Files::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let thread = thread::spawn(move || {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"\x84\0\0\0\0\0\0\0\x06\0\0\0\x0a\0\0").unwrap();
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let tls = Tls::new(&files.options()).unwrap();
    let mut transport = Transport::connect(address, Some(&tls), "n1").unwrap();
    let mut room = vec![0; LEAST_ROOM];
    let refusal = loop {
        match transport.receive(&mut room) {
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::NotConnected) => {
                sleep(Duration::from_millis(1));
            }
            other => break other.unwrap_err().to_string(),
        }
    };
    assert!(refusal.contains("does this port speak TLS?"), "{refusal}");
    drop(transport);
    thread.join().unwrap();
}
