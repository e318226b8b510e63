//! What the kernel can ask, and of which kind it is.

use crate::operation::Operation;

/// What a request asks. Those that are not here are answered `ENOSYS`, after which the kernel does without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are those of the system calls")]
pub(crate) enum Opcode {
    Lookup,
    Forget,
    GetAttributes,
    SetAttributes,
    ReadLink,
    Symlink,
    MakeNode,
    MakeDirectory,
    Unlink,
    RemoveDirectory,
    Rename,
    Link,
    Open,
    Read,
    Write,
    StatFilesystem,
    Release,
    Sync,
    Init,
    OpenDirectory,
    ReadDirectory,
    ReleaseDirectory,
    SyncDirectory,
    Create,
    Interrupt,
    Destroy,
    ForgetMany,
    Allocate,
    Rename2,
    Seek,
    CopyRange,
}

impl Opcode {
    /// From the number of `enum fuse_opcode`.
    ///
    /// Left out on purpose: extended attributes and ACLs (the kernel would ask for `security.capability` before each
    /// write), locks (the kernel keeps them itself, and nobody else has the directory), `FLUSH` and `ACCESS` (it need not
    /// ask), `READDIRPLUS`, `STATX`, `TMPFILE`, `SYNCFS`, ioctls and what belongs to other kinds of filesystems.
    pub(crate) fn from_number(number: u32) -> Option<Opcode> {
        Some(match number {
            1 => Opcode::Lookup,
            2 => Opcode::Forget,
            3 => Opcode::GetAttributes,
            4 => Opcode::SetAttributes,
            5 => Opcode::ReadLink,
            6 => Opcode::Symlink,
            8 => Opcode::MakeNode,
            9 => Opcode::MakeDirectory,
            10 => Opcode::Unlink,
            11 => Opcode::RemoveDirectory,
            12 => Opcode::Rename,
            13 => Opcode::Link,
            14 => Opcode::Open,
            15 => Opcode::Read,
            16 => Opcode::Write,
            17 => Opcode::StatFilesystem,
            18 => Opcode::Release,
            20 => Opcode::Sync,
            26 => Opcode::Init,
            27 => Opcode::OpenDirectory,
            28 => Opcode::ReadDirectory,
            29 => Opcode::ReleaseDirectory,
            30 => Opcode::SyncDirectory,
            35 => Opcode::Create,
            36 => Opcode::Interrupt,
            38 => Opcode::Destroy,
            42 => Opcode::ForgetMany,
            43 => Opcode::Allocate,
            45 => Opcode::Rename2,
            46 => Opcode::Seek,
            47 => Opcode::CopyRange,
            _ => return None,
        })
    }

    /// Of which kind it is, if a fault can hit it.
    pub(crate) fn operation(self) -> Option<Operation> {
        match self {
            Opcode::Read => Some(Operation::Read),
            Opcode::Write | Opcode::CopyRange => Some(Operation::Write),
            Opcode::Sync | Opcode::SyncDirectory => Some(Operation::Sync),
            Opcode::SetAttributes
            | Opcode::Symlink
            | Opcode::MakeNode
            | Opcode::MakeDirectory
            | Opcode::Unlink
            | Opcode::RemoveDirectory
            | Opcode::Rename
            | Opcode::Rename2
            | Opcode::Link
            | Opcode::Create
            | Opcode::Allocate => Some(Operation::Metadata),
            _ => None,
        }
    }

    /// Whether it needs space, so that a full disk refuses it.
    pub(crate) fn allocates(self) -> bool {
        matches!(
            self,
            Opcode::Write
                | Opcode::CopyRange
                | Opcode::Sync
                | Opcode::SyncDirectory
                | Opcode::Symlink
                | Opcode::MakeNode
                | Opcode::MakeDirectory
                | Opcode::Link
                | Opcode::Create
                | Opcode::Allocate
        )
    }
}
