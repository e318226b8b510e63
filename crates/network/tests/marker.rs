//! What passes a link in clear is seen there, and nowhere else; what is not in clear is not seen.

// Helpers outside of a #[test] may fail it just as well.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common;

use std::{
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    time::Instant,
};

use brownout_network::{Cut, Impairment, Link, MarkerLook, Network};
use common::{PATIENCE, impair, link, network, udp_pair};

const MARKER: &[u8; 32] = b"a marker of thirty-two bytes ...";

/// The links that have seen it, with how often.
fn seen(look: &MarkerLook) -> Vec<(Link, u64)> {
    look.sightings().unwrap().into_iter().filter(|(_, count)| *count > 0).collect()
}

/// A message with the marker in its middle, `masked` as a cipher would.
fn message(masked: u8) -> Vec<u8> {
    [b"before".as_slice(), MARKER, b"after"].concat().into_iter().map(|byte| byte ^ masked).collect()
}

#[test]
fn a_marker_is_seen_on_the_link_that_it_is_sent_on_and_only_while_it_is_looked_for() {
    let network = network(3);
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    let send = |masked| {
        sender.send(&message(masked));
        assert_eq!(receiver.receive(PATIENCE), Some(message(masked)));
    };
    send(0);
    let look = network.control().look_for(MARKER).unwrap();
    assert_eq!(seen(&look), [], "what was sent before is not counted");
    send(0x5a);
    assert_eq!(seen(&look), [], "what is not in clear is not seen");
    (0..3).for_each(|_| send(0));
    assert_eq!(seen(&look), [(link(&network, "h0", "h1"), 3)]);
    assert_eq!(look.sightings().unwrap().len(), 6, "every link is told");

    let other = network.control().look_for(b"another marker, which nobody sends").unwrap();
    send(0);
    assert_eq!(seen(&other), []);
    drop(other);
    send(0);
    assert_eq!(seen(&look), [], "nothing is looked for any more");
}

#[test]
fn what_a_link_loses_was_sent_in_clear_all_the_same() {
    let network = network(2);
    let (sender, receiver) = udp_pair(&network, "h0", "h1");
    let guard =
        impair(&network, &[link(&network, "h0", "h1")], Impairment { cut: Some(Cut::Drop), ..Impairment::NONE });
    let look = network.control().look_for(MARKER).unwrap();
    sender.send(&message(0));
    let end = Instant::now() + PATIENCE;
    while seen(&look).is_empty() {
        assert!(Instant::now() < end, "it was never sent");
    }
    drop(guard);
    sender.send(b"the end");
    assert_eq!(receiver.receive(PATIENCE), Some(b"the end".to_vec()));
    assert_eq!(seen(&look), [(link(&network, "h0", "h1"), 1)]);
}

#[test]
fn a_marker_is_seen_in_the_segments_of_a_stream() {
    let network = network(2);
    let on = |network: &Network, host: &str| network.host(host).unwrap().clone();
    let (near, far) = (on(&network, "h0"), on(&network, "h1"));
    let listener = far.run(|| TcpListener::bind("10.77.0.2:7000").unwrap()).unwrap();
    let look = network.control().look_for(MARKER).unwrap();
    let mut stream = near.run(|| TcpStream::connect("10.77.0.2:7000").unwrap()).unwrap();
    let (mut other, _) = listener.accept().unwrap();
    // More than a segment holds: the kernel hands it over as GSO packets.
    let mut all = vec![b'.'; 40_000];
    let place = 20_000;
    all[place..place + MARKER.len()].copy_from_slice(MARKER);
    let mut read = vec![0; all.len()];
    for _ in 0..20 {
        stream.write_all(&all).unwrap();
        other.read_exact(&mut read).unwrap();
    }
    let seen = seen(&look);
    assert_eq!(seen.len(), 1, "answers hold nothing of it: {seen:?}");
    let (on_link, times) = seen[0];
    assert_eq!(on_link, link(&network, "h0", "h1"));
    // One that lies across two packets is not seen, and one that is sent again is seen again.
    assert!(times >= 5, "{times} of 20");
}

#[test]
fn a_marker_that_could_be_there_by_chance_is_refused() {
    let network = network(2);
    let error = network.control().look_for(b"short").unwrap_err().to_string();
    assert!(error.contains("5 bytes") && error.contains("at least 16"), "{error}");
}
