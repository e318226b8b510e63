//! Values bound to the markers of a statement.

use brownout_load::Values;

/// Values in the order of their markers, kept in wire format (a length of 4 bytes, then the content), so that every
/// attempt sends the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    bytes: Vec<u8>,
}

impl Bound {
    /// Drops all values but keeps the memory.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
    }

    /// Adds a value that `write` appends to the given buffer; returns where it lies.
    #[inline]
    pub fn value_with(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> std::ops::Range<usize> {
        self.bytes.extend_from_slice(&[0; 4]);
        let start = self.bytes.len();
        write(&mut self.bytes);
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start - 4..start].copy_from_slice(&length.to_be_bytes());
        start..self.bytes.len()
    }

    /// Adds a value.
    #[inline]
    pub fn value(&mut self, value: &[u8]) -> std::ops::Range<usize> {
        self.value_with(|out| out.extend_from_slice(value))
    }

    /// Adds a null.
    #[inline]
    pub fn null(&mut self) {
        self.bytes.extend_from_slice(&(-1i32).to_be_bytes());
    }

    /// Adds an unset value: the stored value of the column stays as it is.
    #[inline]
    pub fn unset(&mut self) {
        self.bytes.extend_from_slice(&(-2i32).to_be_bytes());
    }

    /// Bytes at a place that was returned before.
    #[inline]
    pub fn at(&self, place: &std::ops::Range<usize>) -> &[u8] {
        &self.bytes[place.clone()]
    }

    /// How many bytes all of them take.
    #[inline]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// There is no value.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The values, one after the other.
    pub fn cells(&self) -> Cells<'_> {
        Cells(&self.bytes)
    }

    /// The values between two lengths returned by [`Bound::len`].
    pub fn between(&self, from: usize, to: usize) -> Cells<'_> {
        Cells(&self.bytes[from..to])
    }
}

/// Values, one after another; `None` for a null or unset one.
#[derive(Debug, Clone)]
pub struct Cells<'a>(&'a [u8]);

impl<'a> Cells<'a> {
    /// Writes them to a request.
    #[inline]
    pub fn write(mut self, values: &mut Values<'_>) {
        while let Some((length, cell)) = self.split() {
            match (cell, length) {
                (Some(value), _) => values.value(value),
                (None, -2) => values.unset(),
                (None, _) => values.null(),
            };
        }
    }

    #[inline]
    fn split(&mut self) -> Option<(i32, Option<&'a [u8]>)> {
        let (length, rest) = self.0.split_first_chunk::<4>()?;
        let length = i32::from_be_bytes(*length);
        let (value, rest) = match usize::try_from(length) {
            Ok(length) => rest.split_at_checked(length).map(|(value, rest)| (Some(value), rest))?,
            Err(_) => (None, rest),
        };
        self.0 = rest;
        Some((length, value))
    }
}

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    #[inline]
    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        self.split().map(|(_, cell)| cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_back_in_their_order_nulls_and_empty_ones_too() {
        let mut bound = Bound::default();
        let place = bound.value(b"key");
        bound.null();
        bound.value(b"");
        bound.value_with(|out| out.extend_from_slice(&[1, 2]));
        assert_eq!(bound.at(&place), b"key");
        let cells: Vec<_> = bound.cells().collect();
        assert_eq!(cells, [Some(&b"key"[..]), None, Some(&b""[..]), Some(&[1u8, 2][..])]);
        bound.clear();
        assert!(bound.is_empty() && bound.cells().next().is_none());
    }
}
