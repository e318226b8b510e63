//! The cells of a row, in one buffer that is used again for every row.

/// One cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cell<'a> {
    /// The bytes of a value, without a length before them.
    Value(&'a [u8]),
    /// Null: written as a tombstone.
    Null,
    /// Not set: nothing is written.
    Unset,
}

impl<'a> Cell<'a> {
    /// The bytes, if there are any.
    pub fn value(self) -> Option<&'a [u8]> {
        match self {
            Cell::Value(bytes) => Some(bytes),
            Cell::Null | Cell::Unset => None,
        }
    }
}

/// Cells one after the other; see [`super::PartitionLayout`] for which is which.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Cells {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Span {
    start: u32,
    end: u32,
    kind: Present,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Present {
    Value,
    Null,
    Unset,
}

impl Cells {
    /// No cells.
    pub fn new() -> Self {
        Cells::default()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The cell at `index`; unset beyond the last.
    #[inline]
    pub fn get(&self, index: usize) -> Cell<'_> {
        match self.spans.get(index) {
            Some(Span { start, end, kind: Present::Value }) => Cell::Value(&self.bytes[*start as usize..*end as usize]),
            Some(Span { kind: Present::Null, .. }) => Cell::Null,
            _ => Cell::Unset,
        }
    }

    /// All of them.
    pub fn iter(&self) -> impl Iterator<Item = Cell<'_>> {
        (0..self.len()).map(|index| self.get(index))
    }

    /// Append the cell at `index` to a request: its length in four bytes (−1 null, −2 not set), then its bytes.
    #[inline]
    pub fn put(&self, index: usize, out: &mut Vec<u8>) {
        match self.get(index) {
            Cell::Value(bytes) => {
                out.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                out.extend_from_slice(bytes);
            }
            Cell::Null => out.extend_from_slice(&(-1i32).to_be_bytes()),
            Cell::Unset => out.extend_from_slice(&(-2i32).to_be_bytes()),
        }
    }

    /// Keep the first `count` cells.
    pub(super) fn truncate(&mut self, count: usize) {
        self.spans.truncate(count);
        self.bytes.truncate(self.spans.last().map_or(0, |span| span.end as usize));
    }

    /// Add a cell whose bytes `write` appends.
    #[inline]
    pub(super) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let start = self.bytes.len() as u32;
        write(&mut self.bytes);
        self.spans.push(Span { start, end: self.bytes.len() as u32, kind: Present::Value });
    }

    pub(super) fn push_null(&mut self) {
        self.push_absent(Present::Null);
    }

    pub(super) fn push_unset(&mut self) {
        self.push_absent(Present::Unset);
    }

    fn push_absent(&mut self, kind: Present) {
        let at = self.bytes.len() as u32;
        self.spans.push(Span { start: at, end: at, kind });
    }

    /// Add a copy of another's cell.
    pub(super) fn push_cell(&mut self, cell: Cell<'_>) {
        match cell {
            Cell::Value(bytes) => self.push(|out| out.extend_from_slice(bytes)),
            Cell::Null => self.push_null(),
            Cell::Unset => self.push_unset(),
        }
    }
}
