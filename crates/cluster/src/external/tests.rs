//! Against servers that say what a test has them say.

use std::{
    io::{Read, Write},
    net::{Ipv4Addr, TcpListener, TcpStream},
};

use super::*;
use crate::{AttachedNode, Cluster};

/// A server of CQL that answers every question with these rows of one, two or more values, until nobody asks any more.
fn cassandra(rows: &'static [&'static [&'static [u8]]], asks_for_login: bool) -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || serve(stream, rows, asks_for_login));
        }
    });
    address
}

/// Version 4 of the protocol: one answer for each request, on its stream.
fn serve(mut stream: TcpStream, rows: &[&[&[u8]]], asks_for_login: bool) -> Option<()> {
    loop {
        let mut header = [0; 9];
        stream.read_exact(&mut header).ok()?;
        let length = u32::from_be_bytes([header[5], header[6], header[7], header[8]]) as usize;
        let mut request = vec![0; length];
        stream.read_exact(&mut request).ok()?;
        let (opcode, body) = match header[4] {
            // STARTUP: AUTHENTICATE, or READY.
            0x01 if asks_for_login => (0x03, b"\0\x01x".to_vec()),
            0x01 => (0x02, Vec::new()),
            // AUTH_RESPONSE: AUTH_SUCCESS of the right one, else an error.
            0x0f if request.ends_with(b"\0app\0secret") => (0x10, Vec::new()),
            0x0f => (0x00, b"\0\0\x01\0\0\x05wrong".to_vec()),
            _ => (0x08, rows_body(rows)),
        };
        let mut answer = vec![0x84, 0, header[2], header[3], opcode];
        answer.extend((body.len() as u32).to_be_bytes());
        answer.extend(body);
        stream.write_all(&answer).ok()?;
    }
}

fn rows_body(rows: &[&[&[u8]]]) -> Vec<u8> {
    let columns = rows.first().map_or(0, |row| row.len());
    let mut body = b"\0\0\0\x02\0\0\0\x04".to_vec();
    body.extend((columns as u32).to_be_bytes());
    body.extend((rows.len() as u32).to_be_bytes());
    for value in rows.iter().flat_map(|row| row.iter()) {
        body.extend((value.len() as u32).to_be_bytes());
        body.extend(*value);
    }
    body
}

fn external(login: Option<(&str, &str)>) -> External {
    let known = |(user, password): (&str, &str)| Credentials { user: user.into(), password: password.into() };
    let credentials = login.map(known);
    External::new(DatabaseKind::Cassandra, Access { tls: None, credentials }).unwrap()
}

fn named(addresses: &[SocketAddr]) -> Vec<(String, SocketAddr)> {
    (1..).map(|number| format!("n{number}")).zip(addresses.iter().copied()).collect()
}

fn attached(nodes: &[(String, SocketAddr)]) -> Vec<AttachedNode> {
    let node = |(name, address): &(String, SocketAddr)| AttachedNode {
        name: name.clone(),
        address: *address,
        host: None,
        hands: None,
    };
    nodes.iter().map(node).collect()
}

#[test]
fn nodes_say_which_version_they_are_and_the_record_has_it_of_each() {
    let nodes = named(&[cassandra(&[&[b"5.0.9", b"\x01"]], false), cassandra(&[&[b"4.1.10", b"\x02"]], false)]);
    let survey = external(None).survey(&nodes, PATIENCE).unwrap();
    let versions = [("n1", "5.0.9"), ("n2", "4.1.10")].map(|(node, version)| (node.to_owned(), version.to_owned()));
    assert_eq!(survey.versions, BTreeMap::from(versions));
    let mut cluster = Cluster::attach(Box::new(external(None)), attached(&nodes)).unwrap();
    assert_eq!(cluster.settings_in_force().version, "5.0.9 (n1), 4.1.10 (n2)");
    assert_eq!(cluster.deaths().len(), 0);
}

#[test]
fn of_a_node_that_is_silent_meanwhile_the_record_has_an_unknown_version_and_those_of_the_others() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let nodes = named(&[cassandra(&[&[b"5.0.9", b"\x01"]], false), gone]);
    let cluster = Cluster::attach(Box::new(external(None)), attached(&nodes)).unwrap();
    assert_eq!(cluster.settings_in_force().version, "5.0.9 (n1), unknown (n2)");
}

#[test]
fn members_of_etcd_have_roles_and_nodes_of_cassandra_have_none() {
    let of = |kind| External::new(kind, Access { tls: None, credentials: None }).unwrap();
    assert!(of(DatabaseKind::Etcd).roles().is_some());
    assert!(of(DatabaseKind::Cassandra).roles().is_none());
}

#[test]
fn a_node_that_is_named_twice_is_refused_with_both_names() {
    let same = named(&[cassandra(&[&[b"5.0.9", b"\x01"]], false), cassandra(&[&[b"5.0.9", b"\x01"]], false)]);
    let error = external(None).survey(&same, PATIENCE).unwrap_err().to_string();
    assert!(error.contains("n1 and n2 are the same node"), "{error}");
}

#[test]
fn a_node_that_nobody_serves_is_named_with_its_address_and_a_remedy() {
    let gone = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap();
    let error = external(None).survey(&named(&[gone]), PATIENCE).unwrap_err().to_string();
    assert!(error.contains(&format!("n1 ({gone})")) && error.contains("cluster.external"), "{error}");
}

#[test]
fn a_login_is_given_where_it_is_asked_for_and_a_wrong_or_a_missing_one_is_told() {
    let nodes = named(&[cassandra(&[&[b"5.0.9", b"\x01"]], true)]);
    assert_eq!(external(Some(("app", "secret"))).survey(&nodes, PATIENCE).unwrap().versions["n1"], "5.0.9");
    let error = |login| external(login).survey(&nodes, PATIENCE).unwrap_err().to_string();
    assert!(error(Some(("app", "guess"))).contains("wrong"));
    assert!(error(None).contains("credentials"));
}

#[test]
fn an_attached_cluster_is_ready_when_all_answer_and_hold_one_schema_and_nothing_of_it_can_be_changed() {
    let nodes = named(&[cassandra(&[&[b"\x0a\x0b"]], false), cassandra(&[&[b"\x0a\x0b"]], false)]);
    let mut cluster = Cluster::attach(Box::new(external(None)), attached(&nodes)).unwrap();
    let ready = cluster.wait_ready(Duration::from_secs(60), &|| false, &mut |_| ()).unwrap();
    assert_eq!(ready.schema, "0a0b");
    let control = cluster.control();
    assert!(!control.is_ours() && control.pid("n1").ok().flatten().is_none());
    assert!(matches!(control.pause("n1"), Err(ClusterError::NotOurs { .. })));
    assert!(matches!(control.kill("n2", 9), Err(ClusterError::NotOurs { .. })));
    assert_eq!(cluster.deaths().len(), 0);
}

#[test]
fn what_a_cluster_holds_already_is_found_out() {
    let node = cassandra(&[&[b"brownout"]], false);
    assert_eq!(external(None).holds(node, "brownout"), Ok(true));
    assert_eq!(external(None).holds(cassandra(&[], false), "brownout"), Ok(false));
}

#[test]
fn the_settings_that_a_node_tells_are_kept_but_for_secrets() {
    static SETTINGS: [&[&[u8]]; 5] = [
        &[b"concurrent_reads", b"32"],
        &[b"client_encryption_options.keystore_password", b"cassandra"],
        &[b"client_encryption_options.ssl_context_factory", b"{}"],
        &[b"server_encryption_options.PRIVATE_KEY", b"MIIE"],
        &[b"authenticator.Parameters", b"{token=x}"],
    ];
    let node = cassandra(&SETTINGS, false);
    let Asked::Cassandra(entrance) = external(None).asked else { panic!("it is Cassandra") };
    let kept = [("concurrent_reads", "32"), ("client_encryption_options.ssl_context_factory", "{}")];
    let kept = kept.map(|(name, value)| (name.to_owned(), value.to_owned()));
    assert_eq!(entrance.settings(node), BTreeMap::from(kept));
}

/// What docs/adding-a-database.md says of the third implementation.
#[test]
fn a_database_takes_fewer_than_five_hundred_lines() {
    let lines = |text: &str| text.split("#[cfg(test)]").next().map_or(0, |code| code.lines().count());
    let all = lines(include_str!("mod.rs")) + lines(include_str!("../cassandra/external.rs"));
    assert!((300..500).contains(&all), "{all}");
}
