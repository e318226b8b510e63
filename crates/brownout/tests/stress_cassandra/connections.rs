//! Versions of the protocol, compression of frames, passwords.

use std::{fs, net::Ipv4Addr};

use super::{
    Section,
    common::cassandra::Cassandra,
    ran::{ends, good},
};

pub const SECTIONS: &[Section] = &[
    ("both versions of the protocol are spoken, plain and compressed", protocols),
    ("unprepared statements do the same", unprepared),
];

fn protocols(node: &Cassandra) {
    for (number, mode) in [
        &["protocolVersion=4"][..],
        &["protocolVersion=4", "compression=lz4"],
        &["protocolVersion=4", "compression=snappy"],
        &["protocolVersion=5"],
        &["protocolVersion=5", "compression=lz4"],
        &["protocolVersion=NEWEST_SUPPORTED"],
        &["compression=lz4"],
    ]
    .into_iter()
    .enumerate()
    {
        // Rows of their own, and large enough that their frames are worth compressing and fill segments of version 5.
        let pop = format!("seq={}..{}", number * 300 + 1, number * 300 + 300);
        let words = ["n=300", "no-warmup", "-col", "size=fixed(2000)", "-rate", "threads=8", "-pop", &pop];
        let mode = [&["-mode", "native"], mode].concat();
        for command in ["write", "read"] {
            let ran = good(node, &[&[command], &words[..], &mode].concat());
            assert_eq!(ran.balance("answered_ok"), 300, "{command} {mode:?}");
        }
    }
    node.cql(&["TRUNCATE keyspace1.standard1"]);
    // Version 5 compresses segments, and knows LZ4 only.
    let words = ["write", "n=10", "no-warmup", "-rate", "threads=1", "-mode", "native", "protocolVersion=5"];
    let ran = ends(node, &[&words[..], &["compression=snappy"]].concat(), 2);
    assert!(ran.err.contains("lz4"), "{}", ran.err);
}

fn unprepared(node: &Cassandra) {
    for command in ["write", "read"] {
        let words = [command, "n=200", "no-warmup", "-pop", "seq=1..200", "-rate", "threads=4"];
        let ran = good(node, &[&words[..], &["-mode", "native", "unprepared"]].concat());
        assert_eq!(ran.balance("answered_ok"), 200);
    }
}

/// On a node of its own.
pub fn a_password_is_asked_for(version: &str, address: Ipv4Addr) {
    let lines = "authenticator: PasswordAuthenticator";
    let node = Cassandra::start_with(version, address, lines, Some(("cassandra", "cassandra")));
    // The first login has to wait until the node has made its superuser.
    node.cql(&["CREATE ROLE load WITH PASSWORD = 'a secret, and =' AND LOGIN = true AND SUPERUSER = true"]);
    let words = ["write", "n=100", "no-warmup", "-rate", "threads=4"];
    let with = |login: &[&'static str]| [&words[..], &["-mode", "native"], login].concat();
    for version in ["protocolVersion=4", "protocolVersion=5"] {
        let ran = good(&node, &with(&[version, "user=cassandra", "password=cassandra"]));
        assert_eq!(ran.balance("answered_ok"), 100);
        assert!(!ran.json["command"].as_str().unwrap().contains("password=cassandra"), "{}", ran.json["command"]);
    }
    let file = node.directory().join("credentials");
    fs::write(&file, "cql.username=load\ncql.password=a secret, and =\n").unwrap();
    let ran = good(&node, &[&words[..], &["-credentials-file", file.to_str().unwrap()]].concat());
    assert_eq!(ran.balance("answered_ok"), 100);
    for (login, said) in [
        (&["user=cassandra", "password=wrong"][..], "incorrect"),
        (&["user=nobody", "password=cassandra"], "incorrect"),
        (&[], "user="),
    ] {
        let ran = ends(&node, &with(login), 1);
        assert!(ran.err.contains(said), "{login:?}: {}", ran.err);
        assert!(!ran.err.contains("wrong"), "passwords are not told: {}", ran.err);
    }
}
