use rustix::io::Errno;

/// What is to be done to one operation, decided when it arrives.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Decision {
    /// By which fault it has to wait how long, in nanoseconds.
    pub(crate) waits: Vec<(u64, u64)>,
    /// What it then fails with.
    pub(crate) error: Option<Errno>,
}

impl Decision {
    /// How long it waits in all.
    pub(crate) fn delay_ns(&self) -> u64 {
        self.waits.iter().map(|(_, ns)| ns).sum()
    }
}
