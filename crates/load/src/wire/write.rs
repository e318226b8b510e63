//! Writing the notations of section 3 to the end of a buffer.

use super::HEADER;

pub(crate) fn short(out: &mut Vec<u8>, value: u16) {
    out.extend_from_slice(&value.to_be_bytes());
}

pub(crate) fn int(out: &mut Vec<u8>, value: u32) {
    out.extend_from_slice(&value.to_be_bytes());
}

/// Texts longer than 65,535 bytes are none.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    short_bytes(out, text.as_bytes());
}

pub(crate) fn short_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    short(out, bytes.len() as u16);
    out.extend_from_slice(bytes);
}

pub(crate) fn long_string(out: &mut Vec<u8>, text: &str) {
    bytes(out, text.as_bytes());
}

pub(crate) fn bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    int(out, bytes.len() as u32);
    out.extend_from_slice(bytes);
}

/// `[bytes]`, or a null.
pub(crate) fn cell(out: &mut Vec<u8>, cell: Option<&[u8]>) {
    match cell {
        Some(cell) => bytes(out, cell),
        None => int(out, u32::MAX),
    }
}

/// A frame that begins with this byte and whose body `body` writes; the length is filled in afterwards.
pub(crate) fn frame(out: &mut Vec<u8>, first: u8, stream: i16, opcode: u8, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    let [high, low] = stream.to_be_bytes();
    out.extend_from_slice(&[first, 0, high, low, opcode, 0, 0, 0, 0]);
    body(out);
    let length = (out.len() - start - HEADER) as u32;
    out[start + 5..start + HEADER].copy_from_slice(&length.to_be_bytes());
}
