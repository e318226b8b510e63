//! Rows (section 4.2.5.2).

use super::{
    Garbage, Version,
    column::{Column, Columns},
    metadata,
    reader::Reader,
};

/// Rows of an answer. All lengths in it have been checked, so reading them cannot fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rows<'a> {
    columns: u32,
    rows: u32,
    paging_state: Option<&'a [u8]>,
    metadata_id: Option<&'a [u8]>,
    specs: Option<Columns<'a>>,
    content: &'a [u8],
}

/// What precedes rows, and describes the rows of a prepared statement.
pub(super) struct Metadata<'a> {
    pub(super) columns: u32,
    pub(super) paging_state: Option<&'a [u8]>,
    pub(super) id: Option<&'a [u8]>,
    pub(super) specs: Option<Columns<'a>>,
}

impl<'a> Metadata<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, Garbage> {
        let flags = reader.int()?;
        let columns = reader.int()?;
        let has = |flag| flags & flag != 0;
        let paging_state = if has(metadata::MORE_PAGES) { reader.bytes()? } else { None };
        let changed = version >= Version::V5 && has(metadata::CHANGED);
        let id = if changed { Some(reader.short_bytes()?) } else { None };
        let specs = if has(metadata::NO_METADATA) {
            None
        } else {
            Some(Columns::read(reader, columns, has(metadata::GLOBAL_TABLE))?)
        };
        Ok(Metadata { columns, paging_state, id, specs })
    }
}

impl<'a> Rows<'a> {
    pub(super) fn read(reader: &mut Reader<'a>, version: Version) -> Result<Self, Garbage> {
        let Metadata { columns, paging_state, id: metadata_id, specs } = Metadata::read(reader, version)?;
        let rows = reader.int()?;
        if rows > 0 && columns == 0 {
            return Err("a row without columns");
        }
        let content = reader.span(|reader| {
            let cells = u64::from(rows) * u64::from(columns);
            (0..cells).try_for_each(|_| reader.bytes().map(drop))
        })?;
        Ok(Rows { columns, rows, paging_state, metadata_id, specs, content })
    }

    /// How many rows.
    pub fn len(&self) -> usize {
        self.rows as usize
    }

    /// There is no row.
    pub fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// How many columns a row has.
    pub fn column_count(&self) -> usize {
        self.columns as usize
    }

    /// Where the next page begins; `None`: this is the last one.
    pub fn paging_state(&self) -> Option<&'a [u8]> {
        self.paging_state
    }

    /// The id of the new columns if they have changed since the statement was prepared. Version 5 only.
    pub fn changed_metadata_id(&self) -> Option<&'a [u8]> {
        self.metadata_id
    }

    /// Names and types of the columns, unless the request said that they are known. This allocates.
    pub fn columns(&self) -> Option<Vec<Column>> {
        self.specs.map(Columns::to_vec)
    }

    /// The rows in order.
    pub fn iter(&self) -> RowIter<'a> {
        RowIter { reader: Reader(self.content), columns: self.columns, left: self.rows }
    }

    /// The first row.
    pub fn first(&self) -> Option<Row<'a>> {
        self.iter().next()
    }

    /// Every row's cells, one row after the other.
    pub fn cells(&self) -> Cells<'a> {
        Cells(Reader(self.content))
    }

    /// For the answer to a conditional write (LWT): whether it was applied. `None`: any other answer.
    ///
    /// If the request said that the columns are known, any first cell of one byte is taken for the column `[applied]`.
    pub fn applied(&self) -> Option<bool> {
        if let Some(specs) = self.specs
            && specs.first_name() != Some("[applied]")
        {
            return None;
        }
        match self.cells().next()?? {
            [byte] => Some(*byte != 0),
            _ => None,
        }
    }
}

impl<'a> IntoIterator for &Rows<'a> {
    type Item = Row<'a>;
    type IntoIter = RowIter<'a>;

    fn into_iter(self) -> RowIter<'a> {
        self.iter()
    }
}

/// See [`Rows::iter`].
#[derive(Debug, Clone)]
pub struct RowIter<'a> {
    reader: Reader<'a>,
    columns: u32,
    left: u32,
}

impl<'a> Iterator for RowIter<'a> {
    type Item = Row<'a>;

    fn next(&mut self) -> Option<Row<'a>> {
        self.left = self.left.checked_sub(1)?;
        let columns = self.columns;
        let cells = self.reader.span(|reader| (0..columns).try_for_each(|_| reader.bytes().map(drop)));
        cells.ok().map(Row)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left as usize, Some(self.left as usize))
    }
}

/// One row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a>(&'a [u8]);

impl<'a> Row<'a> {
    /// Its cells in order of the columns.
    pub fn cells(&self) -> Cells<'a> {
        Cells(Reader(self.0))
    }

    /// The cell of this column, counted from 0. Outer `None`: there is no such column; inner: it is null.
    pub fn cell(&self, column: usize) -> Option<Option<&'a [u8]>> {
        self.cells().nth(column)
    }
}

/// Cells, as the protocol serializes their types (section 6); `None` for a null.
#[derive(Debug, Clone)]
pub struct Cells<'a>(Reader<'a>);

impl<'a> Iterator for Cells<'a> {
    type Item = Option<&'a [u8]>;

    fn next(&mut self) -> Option<Option<&'a [u8]>> {
        if self.0.0.is_empty() { None } else { self.0.bytes().ok() }
    }
}
