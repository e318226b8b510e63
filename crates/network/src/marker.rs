//! Looks for a marker in what packets carry: whether what somebody has written passes a link in clear text.
//!
//! A marker that is cut between two segments is not seen, and one that was compressed away neither: whoever looks has
//! it written many times, with bytes that nothing compresses. What a link does to a packet does not matter here: it was
//! sent.

/// Shorter ones could be seen by chance.
pub(crate) const SHORTEST: usize = 16;

/// What is looked for, and how often it was seen; lives in the emulator's thread.
pub(crate) struct Look {
    marker: Vec<u8>,
    /// By the links' positions.
    sightings: Vec<u64>,
}

impl Look {
    pub(crate) fn new(marker: &[u8], links: usize) -> Look {
        Look { marker: marker.to_owned(), sightings: vec![0; links] }
    }

    /// A frame is sent on a link.
    pub(crate) fn at(&mut self, link: usize, frame: &[u8]) {
        self.sightings[link] += count(frame, &self.marker);
    }

    pub(crate) fn sightings(&self) -> Vec<u64> {
        self.sightings.clone()
    }
}

/// How often `marker` is in `bytes`.
fn count(bytes: &[u8], marker: &[u8]) -> u64 {
    let (mut rest, mut found) = (bytes, 0);
    let is_there = |window: &[u8]| window[0] == marker[0] && window == marker;
    while let Some(place) = rest.windows(marker.len()).position(is_there) {
        found += 1;
        rest = &rest[place + marker.len()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_is_counted_wherever_it_is_and_halves_of_it_are_not() {
        let marker = b"0123456789abcdef";
        assert_eq!(count(b"", marker), 0);
        assert_eq!(count(&marker[1..], marker), 0);
        assert_eq!(count(marker, marker), 1);
        let twice = [b"head".as_slice(), marker, marker, b"tail"].concat();
        assert_eq!(count(&twice, marker), 2);
        let nearly = [&marker[..15], marker].concat();
        assert_eq!(count(&nearly, marker), 1);
    }

    #[test]
    fn sightings_are_of_the_link_that_a_frame_was_sent_on() {
        let marker = b"0123456789abcdef";
        let mut look = Look::new(marker, 3);
        look.at(1, marker);
        look.at(1, b"nothing of it");
        look.at(2, &[marker.as_slice(), marker].concat());
        assert_eq!(look.sightings(), [0, 1, 2]);
    }
}
