//! Places for open operations, used again and again.

/// Places of one kind of operation. A place that was given back keeps its buffers for the next user.
#[derive(Debug, Default)]
pub struct Slab<T> {
    places: Vec<T>,
    free: Vec<u32>,
}

impl<T: Default> Slab<T> {
    /// None yet.
    pub fn new() -> Self {
        Slab { places: Vec::new(), free: Vec::new() }
    }

    /// A place, with whatever its last user left in it.
    pub fn take(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            self.places.push(T::default());
            // 4 billion open operations do not fit in any memory.
            u32::try_from(self.places.len() - 1).unwrap_or(u32::MAX)
        })
    }

    /// Gives it back.
    pub fn give(&mut self, place: u32) {
        self.free.push(place);
    }
}

impl<T> std::ops::Index<u32> for Slab<T> {
    type Output = T;

    fn index(&self, place: u32) -> &T {
        &self.places[place as usize]
    }
}

impl<T> std::ops::IndexMut<u32> for Slab<T> {
    fn index_mut(&mut self, place: u32) -> &mut T {
        &mut self.places[place as usize]
    }
}
