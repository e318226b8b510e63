//! Segments, the framing of version 5 (`native_protocol_v5.spec`, sections 2.1 and 2.2). All integers in them are
//! little-endian. The specification calls segments frames, and frames envelopes.

use super::{
    Garbage, HEADER,
    compression::{compress_block, decompress_block},
    crc::{crc24, crc32},
};

/// The longest payload.
pub(super) const LONGEST: usize = (1 << 17) - 1;
const TRAILER: usize = 4;

/// Segments with or without LZ4.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Segments {
    pub(crate) lz4: bool,
}

/// A segment's header: lengths of the payload.
struct Lengths {
    /// As it is sent.
    sent: usize,
    /// Decompressed; 0 if it is not compressed.
    whole: usize,
}

impl Segments {
    /// Without its checksum.
    fn header(self) -> usize {
        if self.lz4 { 5 } else { 3 }
    }

    /// Appends one segment with this payload, which is not longer than [`LONGEST`].
    fn append(self, payload: &[u8], self_contained: bool, out: &mut Vec<u8>) {
        let start = out.len();
        let size = self.header();
        out.resize(start + size + 3, 0);
        let begin = out.len();
        let contained = u64::from(self_contained);
        let header = if self.lz4 {
            let compressed = compress_block(payload, out).filter(|length| *length < payload.len());
            let lengths = match compressed {
                Some(length) => length as u64 | (payload.len() as u64) << 17,
                None => {
                    out.truncate(begin);
                    out.extend_from_slice(payload);
                    payload.len() as u64
                }
            };
            lengths | contained << 34
        } else {
            out.extend_from_slice(payload);
            payload.len() as u64 | contained << 17
        };
        out[start..start + size].copy_from_slice(&header.to_le_bytes()[..size]);
        let checksum = crc24(&out[start..start + size]);
        out[start + size..begin].copy_from_slice(&checksum.to_le_bytes()[..3]);
        let checksum = crc32(&out[begin..]);
        out.extend_from_slice(&checksum.to_le_bytes());
    }

    /// Appends whole frames in as few segments as possible, and reports after each segment which frames have ended:
    /// `ended` is given the position reached in `frames` and in `out`.
    pub(crate) fn wrap(self, frames: &[u8], out: &mut Vec<u8>, mut ended: impl FnMut(usize, usize)) {
        let mut start = 0;
        while start < frames.len() {
            let mut end = start;
            while end < frames.len() {
                let next = end + frame_length(&frames[end..]);
                if next - start > LONGEST {
                    break;
                }
                end = next;
            }
            if end > start {
                self.append(&frames[start..end], true, out);
            } else {
                // A single frame is too long for a segment.
                end = start + frame_length(&frames[start..]);
                frames[start..end].chunks(LONGEST).for_each(|part| self.append(part, false, out));
            }
            ended(end, out.len());
            start = end;
        }
    }

    fn read_header(self, bytes: &[u8]) -> Result<Option<Lengths>, Garbage> {
        let size = self.header();
        let Some((header, checksum)) = bytes.get(..size + 3).map(|bytes| bytes.split_at(size)) else {
            return Ok(None);
        };
        if crc24(header).to_le_bytes()[..3] != *checksum {
            return Err("a segment whose header does not have its checksum");
        }
        let mut wide = [0; 8];
        wide[..size].copy_from_slice(header);
        let header = u64::from_le_bytes(wide);
        let sent = (header & 0x1_FFFF) as usize;
        let whole = if self.lz4 { (header >> 17 & 0x1_FFFF) as usize } else { 0 };
        Ok(Some(Lengths { sent, whole }))
    }

    /// Appends the payload of the segment at the beginning of `bytes`, and returns the segment's length; `None` while
    /// it is incomplete. Whether it is self-contained does not matter: payloads form a stream of frames anyway.
    pub(super) fn unwrap(self, bytes: &[u8], out: &mut Vec<u8>) -> Result<Option<usize>, Garbage> {
        let Some(Lengths { sent, whole }) = self.read_header(bytes)? else { return Ok(None) };
        let begin = self.header() + 3;
        let Some((payload, checksum)) = bytes.get(begin..begin + sent + TRAILER).map(|bytes| bytes.split_at(sent))
        else {
            return Ok(None);
        };
        if crc32(payload).to_le_bytes() != *checksum {
            return Err("a segment whose payload does not have its checksum");
        }
        if whole > 0 {
            decompress_block(payload, whole, out)?;
        } else {
            out.extend_from_slice(payload);
        }
        Ok(Some(begin + sent + TRAILER))
    }
}

/// Length of the frame at the beginning of `bytes`, according to its header, at most all of them.
pub(super) fn frame_length(bytes: &[u8]) -> usize {
    let body = bytes.get(5..HEADER).and_then(|length| length.first_chunk()).map_or(0, |l| u32::from_be_bytes(*l));
    (HEADER + body as usize).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use brownout_base::random::Random;

    use super::*;

    const PLAIN: Segments = Segments { lz4: false };
    const LZ4: Segments = Segments { lz4: true };

    fn frame(stream: u8, body: usize) -> Vec<u8> {
        let mut frame = vec![0x05, 0, 0, stream, 0x0A];
        frame.extend_from_slice(&(body as u32).to_be_bytes());
        // Nothing in it is repeated: it does not compress.
        let mut random = Random::new(1);
        frame.extend((0..body).map(|_| random.word() as u8));
        frame
    }

    fn wrapped(segments: Segments, frames: &[u8]) -> (Vec<u8>, Vec<(usize, usize)>) {
        let (mut out, mut ends) = (Vec::new(), Vec::new());
        segments.wrap(frames, &mut out, |frames, out| ends.push((frames, out)));
        (out, ends)
    }

    #[test]
    fn a_segment_is_as_the_specification_says() {
        let ready = [0x85, 0, 0, 1, 2, 0, 0, 0, 0];
        #[rustfmt::skip]
        let plain = [
            0x09, 0x00, 0x02,                     // 9 bytes, self-contained
            0xA4, 0xC8, 0xC1,                     // CRC24
            0x85, 0, 0, 1, 2, 0, 0, 0, 0,
            0xEA, 0x89, 0x01, 0x52,               // CRC32
        ];
        assert_eq!(wrapped(PLAIN, &ready).0, plain);
        #[rustfmt::skip]
        let lz4 = [
            0x09, 0x00, 0x00, 0x00, 0x04,         // 9 bytes, not compressed, self-contained
            0xC2, 0xB8, 0x95,                     // CRC24
            0x85, 0, 0, 1, 2, 0, 0, 0, 0,
            0xEA, 0x89, 0x01, 0x52,               // CRC32
        ];
        assert_eq!(wrapped(LZ4, &ready).0, lz4);
        for (segments, bytes) in [(PLAIN, &plain[..]), (LZ4, &lz4)] {
            let mut out = Vec::new();
            for short in 0..bytes.len() {
                assert_eq!(segments.unwrap(&bytes[..short], &mut out), Ok(None), "{short} bytes of it");
            }
            assert_eq!(segments.unwrap(&[bytes, &[1, 2]].concat(), &mut out), Ok(Some(bytes.len())));
            assert_eq!(out, ready);
        }
    }

    #[test]
    fn small_frames_share_a_segment_and_long_ones_are_split() {
        let small = frame(1, 1000);
        let frames = [&small[..], &small, &frame(2, 130_000), &small, &frame(3, 300_000), &small].concat();
        for segments in [PLAIN, LZ4] {
            let (bytes, ends) = wrapped(segments, &frames);
            let whole: Vec<usize> = ends.iter().map(|(frames, _)| *frames).collect();
            let sizes = [2 * 1009, 130_009 + 1009, 300_009, 1009];
            let expected: Vec<usize> = sizes
                .iter()
                .scan(0, |sum, size| {
                    Some(
                        *{
                            *sum += size;
                            sum
                        }
                        .max(&mut 0),
                    )
                })
                .collect();
            assert_eq!(whole, expected);
            assert_eq!(ends.last().unwrap().1, bytes.len());
            let (mut out, mut at, mut count) = (Vec::new(), 0, 0);
            while let Some(length) = segments.unwrap(&bytes[at..], &mut out).unwrap() {
                at += length;
                count += 1;
            }
            assert_eq!((out == frames, count), (true, 6), "two, two, three parts, one");
        }
    }

    #[test]
    fn compressible_payloads_are_compressed() {
        let mut zeros = frame(1, 0);
        zeros[5..9].copy_from_slice(&50_000u32.to_be_bytes());
        zeros.resize(HEADER + 50_000, 0);
        let (bytes, _) = wrapped(LZ4, &zeros);
        assert!(bytes.len() < 1000, "{} bytes", bytes.len());
        let mut out = Vec::new();
        assert_eq!(LZ4.unwrap(&bytes, &mut out), Ok(Some(bytes.len())));
        assert_eq!(out, zeros);
    }

    #[test]
    fn a_changed_bit_is_found() {
        for segments in [PLAIN, LZ4] {
            let (bytes, _) = wrapped(segments, &frame(1, 20));
            for bit in 0..bytes.len() * 8 {
                let mut changed = bytes.clone();
                changed[bit / 8] ^= 1 << (bit % 8);
                assert!(segments.unwrap(&changed, &mut Vec::new()).is_err(), "bit {bit}");
            }
        }
    }
}
