//! Buffers for frames in flight, used again and again: the packet path allocates nothing once it
//! has seen its peak.

use std::ops::{Deref, DerefMut};

use super::frame::{LONGEST, VNET};

/// Sizes that buffers come in. From 1 KiB on a frame takes at most half as much again: what a link may hold is counted
/// in buffers, so a loose fit would make it drop packets that there is room for.
const CLASSES: [usize; 19] = [
    128, 256, 512, 1_024, 1_536, 2_048, 3_072, 4_096, 6_144, 8_192, 10_240, 12_288, 16_384, 20_480, 24_576, 32_768,
    40_960, 49_152, LONGEST,
];

/// Idle bytes kept; what a burst needed beyond is given back.
const KEPT_BYTES: usize = 64 << 20;

/// A frame of its own. The default has no room at all.
#[derive(Default)]
pub(in crate::emulator) struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
}

impl Buffer {
    /// All bytes that there is room for.
    pub(in crate::emulator) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// How many these are.
    pub(in crate::emulator) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Says how many of them are the frame.
    pub(in crate::emulator) fn set_length(&mut self, length: usize) {
        self.length = length.min(self.bytes.len());
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[..self.length]
    }
}

/// Idle buffers.
#[derive(Default)]
pub(in crate::emulator) struct Pool {
    by_class: [Vec<Box<[u8]>>; CLASSES.len()],
    idle_bytes: usize,
}

impl Pool {
    /// The capacity of a buffer of `length` bytes.
    pub(in crate::emulator) fn capacity_for(length: usize) -> usize {
        CLASSES[class_of(length)]
    }

    /// A buffer of `length` bytes, at most [`LONGEST`], with whatever content it had.
    pub(in crate::emulator) fn take(&mut self, length: usize) -> Buffer {
        let class = class_of(length);
        let bytes = match self.by_class[class].pop() {
            Some(bytes) => {
                self.idle_bytes -= bytes.len();
                bytes
            }
            None => vec![0; CLASSES[class]].into_boxed_slice(),
        };
        Buffer { length: length.min(bytes.len()), bytes }
    }

    /// Takes a buffer back.
    pub(in crate::emulator) fn give(&mut self, buffer: Buffer) {
        let size = buffer.bytes.len();
        let Some(class) = CLASSES.iter().position(|class| *class == size) else { return };
        self.by_class[class].push(buffer.bytes);
        self.idle_bytes += size;
        if self.idle_bytes > KEPT_BYTES {
            // Of the size of which most lies idle, so that those of another traffic do not stay for ever.
            let sizes = CLASSES.iter().zip(&mut self.by_class);
            if let Some((size, idle)) = sizes.max_by_key(|(size, idle)| *size * idle.len())
                && idle.pop().is_some()
            {
                self.idle_bytes -= size;
            }
        }
    }

    /// Whether a frame of `length` bytes fits no smaller buffer than the one it was read into.
    pub(in crate::emulator) fn needs_longest(length: usize) -> bool {
        Pool::capacity_for(length) == LONGEST
    }
}

fn class_of(length: usize) -> usize {
    CLASSES.partition_point(|size| *size < length).min(CLASSES.len() - 1)
}

/// A frame of which only the packet is to be filled in.
pub(in crate::emulator) struct Whole(pub(in crate::emulator) Buffer);

impl Whole {
    /// One with the header of another, in which nothing is left to be done.
    pub(in crate::emulator) fn new(mut frame: Buffer, header: &[u8]) -> Whole {
        frame[..VNET].copy_from_slice(&header[..VNET]);
        Whole(frame)
    }
}

impl AsMut<[u8]> for Whole {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0[VNET..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_length_asked_for_and_is_used_again() {
        let mut pool = Pool::default();
        for length in [0, 1, 128, 129, 2_048, 16_384, 16_385, LONGEST] {
            let buffer = pool.take(length);
            assert_eq!((buffer.len(), buffer.capacity()), (length, Pool::capacity_for(length)));
            let address = buffer.bytes.as_ptr();
            pool.give(buffer);
            assert_eq!(pool.take(length).bytes.as_ptr(), address, "{length}");
        }
    }
    #[test]
    fn a_buffer_fits_its_frame() {
        assert_eq!(Pool::capacity_for(17_000), 20_480);
        for length in 1_024..=LONGEST {
            let capacity = Pool::capacity_for(length);
            assert!((length..=length * 3 / 2).contains(&capacity), "{length}: {capacity}");
        }
    }

    #[test]
    fn idle_buffers_of_one_size_make_room_for_those_of_another() {
        let mut pool = Pool::default();
        let fill = |pool: &mut Pool, length: usize| {
            let all: Vec<_> = (0..2 * KEPT_BYTES / length).map(|_| pool.take(length)).collect();
            all.into_iter().for_each(|buffer| pool.give(buffer));
            assert!(pool.idle_bytes <= KEPT_BYTES);
        };
        [LONGEST, 16_384].into_iter().for_each(|length| fill(&mut pool, length));
        let held: usize = pool.by_class.iter().flatten().map(|bytes| bytes.len()).sum();
        assert_eq!(held, pool.idle_bytes);
        let of_small = pool.by_class[class_of(16_384)].len() * 16_384;
        assert!(of_small >= KEPT_BYTES / 3, "{of_small}");
    }
}
