//! Buffers for frames in flight, used again and again: the packet path allocates nothing once it
//! has seen its peak.

use std::ops::{Deref, DerefMut};

use super::frame::LONGEST;

/// Sizes that buffers come in: acknowledgements and small requests, one MTU, a few, a superframe.
const CLASSES: [usize; 4] = [256, 2_048, 16_384, LONGEST];

/// Idle bytes kept per class; what a burst needed beyond is given back.
const KEPT_BYTES: usize = 32 << 20;

/// A frame of its own. The default has no room at all.
#[derive(Default)]
pub(super) struct Buffer {
    bytes: Box<[u8]>,
    length: usize,
}

impl Buffer {
    /// All bytes that there is room for.
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// How many these are.
    pub(super) fn capacity(&self) -> usize {
        self.bytes.len()
    }

    /// Says how many of them are the frame.
    pub(super) fn set_length(&mut self, length: usize) {
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

/// Idle buffers by class.
#[derive(Default)]
pub(super) struct Pool([Vec<Box<[u8]>>; CLASSES.len()]);

impl Pool {
    /// The capacity of a buffer of `length` bytes.
    pub(super) fn capacity_for(length: usize) -> usize {
        CLASSES[class_of(length)]
    }

    /// A buffer of `length` bytes, at most [`LONGEST`], with whatever content it had.
    pub(super) fn take(&mut self, length: usize) -> Buffer {
        let class = class_of(length);
        let bytes = self.0[class].pop().unwrap_or_else(|| vec![0; CLASSES[class]].into_boxed_slice());
        Buffer { length: length.min(bytes.len()), bytes }
    }

    /// Takes a buffer back.
    pub(super) fn give(&mut self, buffer: Buffer) {
        let size = buffer.bytes.len();
        if let Some(class) = CLASSES.iter().position(|class| *class == size)
            && self.0[class].len() < KEPT_BYTES / size
        {
            self.0[class].push(buffer.bytes);
        }
    }

    /// Whether a frame of `length` bytes is better kept in the buffer it was read into than copied.
    pub(super) fn is_large(length: usize) -> bool {
        length > CLASSES[CLASSES.len() - 2]
    }
}

fn class_of(length: usize) -> usize {
    CLASSES.iter().position(|size| length <= *size).unwrap_or(CLASSES.len() - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_has_the_length_asked_for_and_is_used_again() {
        let mut pool = Pool::default();
        for length in [0, 1, 256, 257, 2_048, 16_384, 16_385, LONGEST] {
            let buffer = pool.take(length);
            assert_eq!((buffer.len(), buffer.capacity()), (length, Pool::capacity_for(length)));
            let address = buffer.bytes.as_ptr();
            pool.give(buffer);
            assert_eq!(pool.take(length).bytes.as_ptr(), address, "{length}");
        }
    }
}
