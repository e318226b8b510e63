//! Called by the fuzz target in `fuzz/` and by the tests with its corpus: arbitrary bytes that a server may send.

use crate::wire::{Answer, Compression, Framing, Inbox, Segments, Sender, Version, answer::answer, write};

/// The longest answer accepted here.
const LONGEST: usize = 1 << 20;

/// Parses `data` as bytes received on a connection: its first byte chooses the framing, its second the size of the
/// pieces in which it arrives. Whatever the bytes are, they are frames or garbage, and the lengths read add up.
///
/// # Panics
/// When that does not hold.
pub fn frames(data: &[u8]) {
    let [choice, size, data @ ..] = data else { return };
    let framing = match choice % 7 {
        0 => Framing::Handshake,
        1 => Framing::of(Version::V4, Some(Compression::Lz4)),
        2 => Framing::of(Version::V4, Some(Compression::Snappy)),
        3 | 5 => Framing::of(Version::V5, None),
        _ => Framing::of(Version::V5, Some(Compression::Lz4)),
    };
    let mut bytes = Vec::new();
    match framing {
        // With correct checksums, which random bytes would never have; lengths and bodies are still arbitrary.
        Framing::V5(segments) if choice % 7 > 4 => wrap(segments, data, &mut bytes),
        _ => bytes.extend_from_slice(data),
    }
    let mut inbox = Inbox::new(Sender::Server, LONGEST);
    inbox.frame_as(framing);
    for piece in bytes.chunks(usize::from(*size) + 1) {
        inbox.room()[..piece.len()].copy_from_slice(piece);
        inbox.filled(piece.len());
        loop {
            match inbox.next() {
                Ok(Some((header, body))) => {
                    let body = inbox.body(&body);
                    assert_eq!(body.len(), header.length);
                    assert!(body.len() <= LONGEST);
                    if let Ok(answer) = answer(header, body) {
                        look(&answer);
                    }
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
}

/// The first two bytes of every part are its length.
fn wrap(segments: Segments, mut data: &[u8], out: &mut Vec<u8>) {
    while let Some((length, rest)) = data.split_first_chunk() {
        let (part, rest) = rest.split_at(usize::from(u16::from_be_bytes(*length)).min(rest.len()));
        let mut frame = Vec::new();
        let (head, body) = part.split_at(part.len().min(3));
        let &[flags, stream, opcode] = head else { return };
        write::frame(&mut frame, 0x85, i16::from(stream), opcode, |out| out.extend_from_slice(body));
        frame[1] = flags;
        segments.wrap(&frame, out, |_, _| ());
        data = rest;
    }
}

/// Reads everything in an answer.
fn look(answer: &Answer<'_>) {
    match answer {
        Answer::Rows(rows) => {
            let by_row: usize = rows.iter().map(|row| row.cells().count()).sum();
            assert_eq!(by_row, rows.cells().count());
            assert_eq!(by_row, rows.len() * rows.column_count());
            assert!(rows.columns().is_none_or(|columns| columns.len() == rows.column_count()));
            let _ = (rows.applied(), rows.first(), rows.paging_state());
        }
        Answer::Prepared(prepared) => {
            for column in prepared.bound().iter().chain(&prepared.result()) {
                let mut kind = Vec::new();
                column.kind.append(&mut kind);
                assert!(kind.len() >= 2 && !column.kind.to_string().is_empty());
            }
            let _ = prepared.partition_key().count();
        }
        Answer::Supported(supported) => {
            let _ = supported.values("COMPRESSION").count();
        }
        Answer::Error(failure) => {
            let _ = failure.class();
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    #[test]
    fn the_corpus_and_what_is_near_it_is_read() {
        corpus_and_what_is_near_it(50, 7);
    }

    #[test]
    #[ignore = "more of the same: make test-long"]
    fn the_corpus_and_more_that_is_near_it_is_read() {
        corpus_and_what_is_near_it(500, 8);
    }

    /// Each file, and so many that differ from it in up to four places.
    fn corpus_and_what_is_near_it(each: u32, seed: u64) {
        let directory = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz/corpus/frames");
        let mut random = Random::new(seed);
        let mut count = 0;
        for entry in std::fs::read_dir(directory).unwrap() {
            let seed = std::fs::read(entry.unwrap().path()).unwrap();
            super::frames(&seed);
            count += 1;
            for _ in 0..each {
                let mut near = seed.clone();
                for _ in 0..=random.below(4) {
                    let place = random.below(near.len() as u64) as usize;
                    match random.below(3) {
                        0 => near[place] = random.word() as u8,
                        1 => near[place] ^= 1 << random.below(8),
                        _ => near.truncate(place.max(2)),
                    }
                }
                super::frames(&near);
            }
        }
        assert!(count >= 200, "{count} files in {directory}");
    }
}
