//! The files that a probe works on, and what it does to them.

use std::{
    fs::{self, File, OpenOptions},
    io,
    os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt},
    path::Path,
};

use rustix::{
    fs::{Advice, FallocateFlags, OFlags, fadvise, fallocate},
    io::Errno,
};

use crate::operation::Operation;

/// The name of the file.
pub(super) const FILE: &str = ".brownout-probe";

const WRITTEN: u64 = 512;
const READ: usize = 4096;

/// Memory aligned as `O_DIRECT` demands.
#[repr(align(4096))]
struct Page([u8; READ]);

/// The files of a probe.
pub(super) struct Subject {
    file: File,
    /// The same file opened with `O_DIRECT`, where the filesystem allows it.
    direct: Option<File>,
    /// Whether the filesystem supports `fallocate`.
    allocates: bool,
    page: Box<Page>,
}

impl Subject {
    /// Makes them in `directory`, which is made, too.
    ///
    /// # Errors
    /// What could not be done, and why.
    pub(super) fn open(directory: &Path) -> Result<Subject, (&'static str, io::Error)> {
        match fs::create_dir(directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(("make the directory of its files", error));
            }
            _ => {}
        }
        // A database that walks its directories when it starts must be able to look into this one, whoever it runs as.
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755))
            .map_err(|error| ("open the directory of its files to all", error))?;
        let path = directory.join(FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(true).mode(0o600);
        let file = options.open(&path).map_err(|error| ("make its file", error))?;
        let page = Box::new(Page([0; READ]));
        file.write_all_at(&page.0, 0).and_then(|()| file.sync_all()).map_err(|error| ("write its file", error))?;
        let direct = OpenOptions::new().read(true).custom_flags(OFlags::DIRECT.bits() as i32).open(&path).ok();
        let allocates = allocate(&file).is_ok();
        Ok(Subject { file, direct, allocates, page })
    }

    /// What has to be done before `operation`, and is not to be timed with it. If it fails, so will what is timed.
    pub(super) fn prepare(&mut self, operation: Operation) {
        match operation {
            Operation::Sync => drop(self.write()),
            Operation::Read if self.direct.is_none() => drop(fadvise(&self.file, 0, None, Advice::DontNeed)),
            Operation::Read | Operation::Write | Operation::Metadata => {}
        }
    }

    /// Carries out `operation`.
    ///
    /// # Errors
    /// The `errno` with which it failed.
    pub(super) fn operate(&mut self, operation: Operation) -> Result<(), i32> {
        let done = match operation {
            Operation::Write => self.write(),
            Operation::Sync => self.file.sync_data(),
            Operation::Read => self.direct.as_ref().unwrap_or(&self.file).read_exact_at(&mut self.page.0, 0),
            // No names come and go: a database that walks its directories meanwhile would trip over them.
            Operation::Metadata if self.allocates => allocate(&self.file),
            Operation::Metadata => self.file.set_len(READ as u64),
        };
        done.map_err(|error| error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()))
    }

    fn write(&self) -> io::Result<()> {
        self.file.write_all_at(&self.page.0[..WRITTEN as usize], 0)
    }
}

/// Allocates the space that the reads cover.
fn allocate(file: &File) -> io::Result<()> {
    Ok(fallocate(file, FallocateFlags::empty(), 0, READ as u64)?)
}
