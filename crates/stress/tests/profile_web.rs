//! Profiles that a web server has.

#![allow(clippy::expect_used, clippy::panic, reason = "a test ends by them")]

use std::{
    io::{BufRead, BufReader, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    thread,
};

use brownout_stress::profile::Profile;

const HISTOGRAMS: &str = include_str!("profiles/histograms.txt");

/// A server on loopback that answers a path with a head and a body; it lives as long as the process.
fn serve(answers: &'static [(&'static str, &'static str, &'static str)]) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for stream in listener.incoming() {
            answer(stream.expect("a client"), answers);
        }
    });
    address
}

fn answer(mut stream: TcpStream, answers: &[(&str, &str, &str)]) {
    let mut lines = BufReader::new(stream.try_clone().expect("the same socket")).lines();
    let request = lines.next().expect("a request").expect("a line");
    while lines.next().is_some_and(|line| !line.expect("a line").is_empty()) {}
    let path = request.split(' ').nth(1).expect("a path");
    let path = path.split('?').next().expect("a path");
    let (head, body) = match answers.iter().find(|(known, ..)| *known == path) {
        Some((_, head, body)) => (*head, (*body).to_owned()),
        None if path == "/huge.yaml" => ("200 OK", "# ".repeat(1 << 20)),
        None => ("404 Not Found", String::new()),
    };
    let text = format!("HTTP/1.1 {head}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    // A client that has read enough may have closed the connection.
    let _ = stream.write_all(text.as_bytes());
}

#[test]
fn a_profile_may_be_a_servers_and_the_files_that_it_names_lie_beside_it() {
    let server = serve(&[
        ("/p/users.yaml", "200 OK", "keyspace: ks\ntable: t\npartition_sizes: histograms.txt\n"),
        ("/p/histograms.txt", "200 OK", HISTOGRAMS),
        ("/moved.yaml", "302 Found\r\nLocation: /p/users.yaml", ""),
        ("/wrong.yaml", "200 OK", "keyspace: ks\ntabel: t\n"),
    ]);
    for path in ["p/users.yaml", "p/users.yaml?ref=a/b"] {
        let profile = Profile::load(&format!("http://{server}/{path}")).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((profile.name.as_str(), profile.partition_sizes.is_some()), ("ks.t", true));
    }
    let wrong = format!("http://{server}/wrong.yaml");
    let error = Profile::load(&wrong).expect_err("a slip").to_string();
    assert!(error.starts_with(&format!("{wrong}:")), "{error}");
    let moved = Profile::load(&format!("http://{server}/moved.yaml")).expect_err("its file is not there").to_string();
    assert!(moved.contains("the server answers 404"), "{moved}");
}

#[test]
fn what_a_server_does_not_give_is_told_with_a_remedy() {
    let server = serve(&[("/private.yaml", "403 Forbidden", ""), ("/empty.yaml", "200 OK", " ")]);
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    for (place, parts) in [
        (format!("http://{server}/gone.yaml"), ["the server answers 404", "browser"]),
        (format!("http://{server}/private.yaml"), ["the server answers 403", "download it"]),
        (format!("http://{server}/empty.yaml"), ["Unable to load yaml file", "empty"]),
        (format!("http://{server}/huge.yaml"), ["larger than 1048576 bytes", "not a page"]),
        (format!("http://{closed}/u.yaml"), ["cannot be fetched", "check the address"]),
        (format!("https://{server}/u.yaml"), ["cannot be fetched", "; "]),
        ("http://no such host/u.yaml".to_owned(), ["is no URI", "https://host/path.yaml"]),
    ] {
        let error = Profile::load(&place).expect_err(&place).to_string();
        assert!(error.starts_with(&place), "{error}");
        assert!(parts.iter().all(|part| error.contains(part)), "{place}: {error}");
    }
}
