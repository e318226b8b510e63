//! Reading the notations of section 3 from the front of a body.

use super::Garbage;

const SHORT: Garbage = "a body that ends too early";

/// Reads from the front of a body.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) fn take(&mut self, count: usize) -> Result<&'a [u8], Garbage> {
        let (taken, rest) = self.0.split_at_checked(count).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Garbage> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(SHORT)?;
        self.0 = rest;
        Ok(*bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8, Garbage> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(crate) fn short(&mut self) -> Result<u16, Garbage> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn int(&mut self) -> Result<u32, Garbage> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn string(&mut self) -> Result<&'a str, Garbage> {
        text(self.short_bytes()?)
    }

    pub(crate) fn long_string(&mut self) -> Result<&'a str, Garbage> {
        let length = self.int()?;
        text(self.take(length as usize)?)
    }

    pub(crate) fn short_bytes(&mut self) -> Result<&'a [u8], Garbage> {
        let length = self.short()?;
        self.take(usize::from(length))
    }

    /// `[bytes]`: a negative length is a null.
    pub(crate) fn bytes(&mut self) -> Result<Option<&'a [u8]>, Garbage> {
        let length = self.int()? as i32;
        if length < 0 { Ok(None) } else { self.take(length as usize).map(Some) }
    }

    /// The bytes of the body that `read` has consumed.
    pub(crate) fn span(
        &mut self,
        read: impl FnOnce(&mut Reader<'a>) -> Result<(), Garbage>,
    ) -> Result<&'a [u8], Garbage> {
        let whole = self.0;
        read(self)?;
        Ok(&whole[..whole.len() - self.0.len()])
    }
}

fn text(bytes: &[u8]) -> Result<&str, Garbage> {
    std::str::from_utf8(bytes).map_err(|_| "a text that is not UTF-8")
}
