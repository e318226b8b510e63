use super::*;
use crate::{
    Consistency,
    wire::{Inbox, Parameters, Sender, Version, segment::Segments},
};

const ALL: [(Version, Framing); 5] = [
    (Version::V4, Framing::V4(None)),
    (Version::V4, Framing::V4(Some(Compression::Lz4))),
    (Version::V4, Framing::V4(Some(Compression::Snappy))),
    (Version::V5, Framing::V5(Segments { lz4: false })),
    (Version::V5, Framing::V5(Segments { lz4: true })),
];

/// Adds a query of this length on a stream.
fn add(outbox: &mut Outbox, version: Version, stream: u16, length: usize) {
    let statements = Statements::new(version);
    let text = "x".repeat(length);
    let parameters = Parameters::new(Consistency::One);
    outbox.request(stream, &statements, |request| drop(request.query(&text, &parameters))).unwrap();
}

#[test]
fn requests_come_out_as_they_went_in_however_they_are_framed() {
    for (version, framing) in ALL {
        let mut outbox = Outbox::new();
        outbox.frame_as(framing);
        let lengths = [10, 200_000, 0, 140_000, 3];
        for (stream, length) in lengths.iter().enumerate() {
            add(&mut outbox, version, stream as u16, *length);
        }
        outbox.seal();
        let mut bytes = outbox.unwritten().to_vec();
        // An inbox reads answers; only the version's highest bit tells them from requests.
        let mut inbox = Inbox::new(Sender::Server, 1 << 20);
        inbox.frame_as(framing);
        if let Framing::V5(segments) = framing {
            let (mut frames, mut at) = (Vec::new(), 0);
            while let Some(length) = segments.unwrap(&bytes[at..], &mut frames).unwrap() {
                at += length;
            }
            assert_eq!(at, bytes.len());
            mark(&mut frames);
            bytes.clear();
            segments.wrap(&frames, &mut bytes, |_, _| ());
        } else {
            mark(&mut bytes);
        }
        let mut found = Vec::new();
        for piece in bytes.chunks(50_000) {
            inbox.room()[..piece.len()].copy_from_slice(piece);
            inbox.filled(piece.len());
            while let Some((header, body)) = inbox.next().unwrap() {
                let length = u32::from_be_bytes(*inbox.body(&body).first_chunk().unwrap());
                found.push((header.stream as usize, length as usize));
            }
        }
        assert_eq!(found, lengths.into_iter().enumerate().collect::<Vec<_>>(), "{framing:?}");
    }
}

/// Turns requests into answers.
fn mark(frames: &mut [u8]) {
    let mut start = 0;
    while start < frames.len() {
        frames[start] |= 0x80;
        start += frame_length(&frames[start..]);
    }
}

#[test]
fn a_request_is_told_as_sent_when_its_last_byte_is() {
    for (version, framing) in ALL {
        let mut outbox = Outbox::new();
        outbox.frame_as(framing);
        let mut sent = Vec::new();
        for stream in 0..3 {
            // Each is sealed separately, so each ends at its own byte.
            add(&mut outbox, version, stream, 300_000);
            outbox.seal();
        }
        assert!(!outbox.is_empty());
        let total = outbox.unwritten().len();
        assert_eq!(total % 3, 0, "alike requests are packed alike");
        let mut done = 0;
        while !outbox.is_empty() {
            let step = outbox.unwritten().len().min(1009);
            outbox.wrote(step, |stream| sent.push(stream));
            done += step;
            assert_eq!(sent.len(), done / (total / 3), "{framing:?} after {done} of {total} bytes");
        }
        assert_eq!(sent, [0, 1, 2]);
    }
}

#[test]
fn the_end_of_a_request_that_is_forgotten_is_not_told() {
    for (version, framing) in ALL {
        let mut outbox = Outbox::new();
        outbox.frame_as(framing);
        add(&mut outbox, version, 1, 10);
        add(&mut outbox, version, 2, 10);
        outbox.forget(1);
        outbox.seal();
        add(&mut outbox, version, 1, 10);
        outbox.seal();
        outbox.forget(2);
        let mut sent = Vec::new();
        outbox.wrote(outbox.unwritten().len(), |stream| sent.push(stream));
        assert_eq!((sent, outbox.is_empty()), (vec![1], true), "{framing:?}");
    }
}

#[test]
fn control_frames_are_packed_and_not_told() {
    let mut outbox = Outbox::new();
    outbox.frame_as(Framing::V5(Segments { lz4: false }));
    add(&mut outbox, Version::V5, 1, 10);
    outbox.control(|out| out.extend_from_slice(&[5, 0, 0, 0, 9, 0, 0, 0, 1, 7]));
    add(&mut outbox, Version::V5, 2, 10);
    outbox.seal();
    let mut frames = Vec::new();
    Segments { lz4: false }.unwrap(outbox.unwritten(), &mut frames).unwrap();
    assert_eq!(frames.len(), 2 * (HEADER + 4 + 10 + 2 + 4) + 10);
    let mut sent = Vec::new();
    outbox.wrote(outbox.unwritten().len(), |stream| sent.push(stream));
    assert_eq!(sent, [1, 2]);
    assert!(outbox.is_empty());
}

#[test]
fn what_was_added_before_a_change_of_framing_goes_out_in_the_old_one() {
    let mut outbox = Outbox::new();
    outbox.control(|out| out.extend_from_slice(&[5, 0, 0, 0, 5, 0, 0, 0, 0]));
    outbox.frame_as(Framing::V5(Segments { lz4: true }));
    assert_eq!(outbox.unwritten(), [5, 0, 0, 0, 5, 0, 0, 0, 0]);
}

#[test]
fn a_request_that_cannot_be_written_leaves_nothing() {
    for (version, framing) in ALL {
        let mut outbox = Outbox::new();
        outbox.frame_as(framing);
        let statements = Statements::new(version);
        assert!(outbox.request(1, &statements, |_| ()).is_err());
        outbox.seal();
        assert!(outbox.is_empty());
    }
}
