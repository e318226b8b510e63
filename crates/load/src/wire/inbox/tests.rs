use brownout_base::random::Random;

use super::*;
use crate::wire::{Compression, compression::compress_body};

fn frame(version: u8, stream: u8, body: &[u8]) -> Vec<u8> {
    [&[version, 0, 0, stream, 8][..], &(body.len() as u32).to_be_bytes(), body].concat()
}

/// Puts `bytes` in, in pieces of this size, and takes out the streams and bodies of all frames.
fn frames(inbox: &mut Inbox, bytes: &[u8], piece: usize) -> Result<Vec<(i16, Vec<u8>)>, Garbage> {
    let mut found = Vec::new();
    for piece in bytes.chunks(piece) {
        inbox.room()[..piece.len()].copy_from_slice(piece);
        inbox.filled(piece.len());
        while let Some((header, body)) = inbox.next()? {
            assert_eq!(inbox.body(&body).len(), header.length);
            found.push((header.stream, inbox.body(&body).to_vec()));
        }
    }
    Ok(found)
}

fn inbox(framing: Framing) -> Inbox {
    let mut inbox = Inbox::new(Sender::Server, 400_000);
    inbox.frame_as(framing);
    inbox
}

const LZ4: Framing = Framing::V5(Segments { lz4: true });
const SEGMENTS: Framing = Framing::V5(Segments { lz4: false });

#[test]
fn frames_are_found_however_they_are_framed_and_cut() {
    let bodies = [vec![1; 10], vec![], vec![2; 70_000], b"words ".repeat(50_000), vec![3; 5]];
    let all = |version| -> Vec<u8> {
        bodies.iter().enumerate().flat_map(|(stream, body)| frame(version, stream as u8, body)).collect()
    };
    let compressed = |compression| -> Vec<u8> {
        let mut out = Vec::new();
        for (stream, body) in bodies.iter().enumerate() {
            let start = out.len();
            out.extend_from_slice(&[0x84, 1, 0, stream as u8, 8, 0, 0, 0, 0]);
            if !compress_body(compression, body, &mut out) {
                out[start + 1] = 0;
                out.extend_from_slice(body);
            }
            let length = (out.len() - start - HEADER) as u32;
            out[start + 5..start + HEADER].copy_from_slice(&length.to_be_bytes());
        }
        out
    };
    let wrapped = |lz4| {
        let mut out = Vec::new();
        Segments { lz4 }.wrap(&all(0x85), &mut out, |_, _| ());
        out
    };
    let expected: Vec<_> = bodies.iter().enumerate().map(|(stream, body)| (stream as i16, body.clone())).collect();
    for (framing, bytes) in [
        (Framing::Handshake, all(0x84)),
        (Framing::Handshake, all(0x85)),
        (Framing::V4(None), all(0x84)),
        (Framing::V4(Some(Compression::Lz4)), compressed(Compression::Lz4)),
        (Framing::V4(Some(Compression::Snappy)), compressed(Compression::Snappy)),
        (SEGMENTS, wrapped(false)),
        (LZ4, wrapped(true)),
    ] {
        for piece in [60_000, 8191, 977] {
            assert_eq!(frames(&mut inbox(framing), &bytes, piece).as_ref(), Ok(&expected), "{framing:?} by {piece}");
        }
    }
}

#[test]
fn the_framing_can_change_between_two_frames_of_one_read() {
    let mut bytes = frame(0x85, 0, &[]);
    Segments { lz4: true }.wrap(&frame(0x85, 7, b"body"), &mut bytes, |_, _| ());
    let mut inbox = Inbox::new(Sender::Server, 1000);
    inbox.room()[..bytes.len()].copy_from_slice(&bytes);
    inbox.filled(bytes.len());
    assert_eq!(inbox.next().unwrap().unwrap().0.stream, 0);
    inbox.frame_as(LZ4);
    let (header, body) = inbox.next().unwrap().unwrap();
    assert_eq!((header.stream, inbox.body(&body)), (7, &b"body"[..]));
    assert!(inbox.next().unwrap().is_none());
}

#[test]
fn strangers_are_recognised_by_their_first_byte() {
    for framing in [Framing::Handshake, Framing::V4(None)] {
        assert!(frames(&mut inbox(framing), b"H", 1).is_err());
    }
    assert!(frames(&mut inbox(SEGMENTS), b"HTTP/1.1 400", 12).is_err(), "by its checksum");
}

#[test]
fn what_was_not_agreed_is_refused() {
    assert_eq!(frames(&mut inbox(Framing::V4(None)), &frame(0x85, 0, &[]), 9), Err(OTHER_VERSION));
    let mut inner = Vec::new();
    Segments { lz4: false }.wrap(&frame(0x84, 0, &[]), &mut inner, |_, _| ());
    assert_eq!(frames(&mut inbox(SEGMENTS), &inner, 100), Err(OTHER_VERSION));
    let mut compressed = frame(0x84, 0, &[0; 10]);
    compressed[1] = 1;
    assert!(frames(&mut inbox(Framing::V4(None)), &compressed, 100).is_err());
    assert!(frames(&mut inbox(Framing::Handshake), &compressed, 100).is_err());
    let long = [0x84, 0, 0, 0, 8, 0, 6, 0x1A, 0x81];
    assert!(frames(&mut inbox(Framing::V4(None)), &long, 9).is_err(), "400,001 bytes");
}

#[test]
fn no_bytes_make_it_panic_or_grow_without_bound() {
    let mut random = Random::new(3);
    let all = [
        Framing::Handshake,
        Framing::V4(Some(Compression::Lz4)),
        Framing::V4(Some(Compression::Snappy)),
        SEGMENTS,
        LZ4,
    ];
    for _ in 0..20_000 {
        let framing = all[random.below(all.len() as u64) as usize];
        let mut bytes = Vec::new();
        for _ in 0..random.below(4) {
            let body: Vec<u8> = (0..random.below(40)).map(|_| random.word() as u8).collect();
            let mut one = frame(0x84 | (random.below(2) as u8), random.word() as u8, &body);
            one[1] = random.below(2) as u8;
            match framing {
                // With correct checksums, so that the content is decoded.
                Framing::V5(segments) => segments.wrap(&one, &mut bytes, |_, _| ()),
                _ => bytes.extend_from_slice(&one),
            }
        }
        bytes.extend((0..random.below(12)).map(|_| random.word() as u8));
        let mut inbox = inbox(framing);
        let _ = frames(&mut inbox, &bytes, 1 + random.below(64) as usize);
        assert!(inbox.plain.len() <= 400_000 + 131_071);
    }
}
