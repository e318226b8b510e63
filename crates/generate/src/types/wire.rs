//! The pieces that values are made of on the wire: lengths and variable-length integers.
//!
//! Formats: native protocol v4/v5, section 6 ("Data Type Serialization Formats"), and for vints section 3.

/// Append a value with its length before it ([bytes]: 4-byte length, then the bytes), as collections, tuples and
/// user-defined types hold their parts. The length is filled in after `write` has appended the bytes.
pub fn put_bytes(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let at = out.len();
    out.extend_from_slice(&[0; 4]);
    write(out);
    let length = (out.len() - at - 4) as u32;
    out[at..at + 4].copy_from_slice(&length.to_be_bytes());
}

/// Append a null part: a length of −1.
pub fn put_null(out: &mut Vec<u8>) {
    out.extend_from_slice(&(-1i32).to_be_bytes());
}

/// Append the number of a collection's elements.
pub fn put_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_be_bytes());
}

/// Append an unsigned vint: the number of leading ones of the first byte is the number of bytes that follow it.
pub fn put_unsigned_vint(out: &mut Vec<u8>, value: u64) {
    let length = unsigned_vint_length(value);
    if length == 9 {
        out.push(0xff);
        out.extend_from_slice(&value.to_be_bytes());
        return;
    }
    let bytes = value.to_be_bytes();
    let at = out.len();
    out.extend_from_slice(&bytes[8 - length..]);
    // The ones that say how many bytes follow.
    out[at] |= !(0xffu16 >> (length - 1)) as u8;
}

/// The bytes of an unsigned vint, 1 to 9: seven bits of value per byte, all 64 in nine.
pub fn unsigned_vint_length(value: u64) -> usize {
    let bits = 64 - (value | 1).leading_zeros() as usize;
    bits.div_ceil(7).min(9)
}

/// Append a signed vint (zig-zag, then unsigned).
pub fn put_vint(out: &mut Vec<u8>, value: i64) {
    put_unsigned_vint(out, ((value << 1) ^ (value >> 63)) as u64);
}

/// Take an unsigned vint from the start of `bytes`.
pub fn take_unsigned_vint(bytes: &mut &[u8]) -> Option<u64> {
    let (first, rest) = bytes.split_first()?;
    let more = first.leading_ones() as usize;
    let (tail, rest) = rest.split_at_checked(more)?;
    let head = if more >= 7 { 0 } else { u64::from(first & (0xff >> (more + 1))) };
    *bytes = rest;
    Some(tail.iter().fold(head, |value, byte| value << 8 | u64::from(*byte)))
}

/// Take a signed vint from the start of `bytes`.
pub fn take_vint(bytes: &mut &[u8]) -> Option<i64> {
    let value = take_unsigned_vint(bytes)?;
    Some((value >> 1) as i64 ^ -((value & 1) as i64))
}

/// Take a 4-byte integer.
pub fn take_i32(bytes: &mut &[u8]) -> Option<i32> {
    let (head, rest) = bytes.split_first_chunk::<4>()?;
    *bytes = rest;
    Some(i32::from_be_bytes(*head))
}

/// Take a value with its length before it; `Some(None)` is null.
pub fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
    let length = take_i32(bytes)?;
    if length < 0 {
        return Some(None);
    }
    let (value, rest) = bytes.split_at_checked(length as usize)?;
    *bytes = rest;
    Some(Some(value))
}

/// Append a `varint`: two's complement, big-endian, as short as it can be.
pub fn put_varint(out: &mut Vec<u8>, value: i128) {
    let bytes = value.to_be_bytes();
    out.extend_from_slice(minimal(&bytes));
}

/// The shortest two's complement form of the same number.
pub fn minimal(bytes: &[u8]) -> &[u8] {
    let mut bytes = bytes;
    while let [first, rest @ ..] = bytes
        && let Some(next) = rest.first()
        && ((*first == 0 && *next < 0x80) || (*first == 0xff && *next >= 0x80))
    {
        bytes = rest;
    }
    bytes
}
