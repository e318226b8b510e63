//! Slots for open operations, used again and again.

/// Slots for one kind of operation. A slot that was given back keeps its buffers for its next user.
#[derive(Debug, Default)]
pub struct Slab<T> {
    slots: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// None yet.
    pub fn new() -> Self {
        Slab { slots: Vec::new(), free: Vec::new() }
    }

    /// A slot, with whatever its last user left in it.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.slots.push(T::default());
            // 4 billion open operations do not fit in any memory.
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Gives it back.
    pub fn give(&mut self, slot: u32) {
        self.free.push(slot);
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, slot: u32) -> &T {
        &self.slots[slot as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, slot: u32) -> &mut T {
        &mut self.slots[slot as usize]
    }
}
