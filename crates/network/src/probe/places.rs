//! Which links of a network are measured, and where each stands among them.

use crate::{error::NetworkError, link::Link};

/// Some of the links of a network, in its own order, each once.
pub(super) struct Places {
    hosts: usize,
    links: Vec<Link>,
    /// Per link of the network, its place in `links`.
    places: Vec<Option<u32>>,
}

impl Places {
    /// Of a network of so many hosts.
    pub(super) fn of(hosts: usize, links: &[Link]) -> Result<Places, NetworkError> {
        let mut wanted = vec![false; hosts * hosts.saturating_sub(1)];
        for link in links {
            let Link { from, to } = *link;
            let unknown = NetworkError::NoSuchLink { from: from.0, to: to.0, hosts };
            wanted[link.position(hosts).ok_or(unknown)?] = true;
        }
        let (mut links, mut places) = (Vec::new(), Vec::new());
        for (link, wanted) in Link::all(hosts).into_iter().zip(wanted) {
            places.push(wanted.then_some(links.len() as u32));
            links.extend(wanted.then_some(link));
        }
        Ok(Places { hosts, links, places })
    }

    pub(super) fn len(&self) -> usize {
        self.links.len()
    }

    pub(super) fn links(&self) -> &[Link] {
        &self.links
    }

    /// Where `link` stands among them; `None` if it is none of them.
    pub(super) fn place(&self, link: Link) -> Option<usize> {
        self.places[link.position(self.hosts)?].map(|place| place as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::HostId;

    #[test]
    fn each_link_named_stands_once_where_its_place_says() {
        let link = |from, to| Link { from: HostId(from), to: HostId(to) };
        let places = Places::of(3, &[link(2, 0), link(0, 1), link(2, 0)]).unwrap();
        assert_eq!(places.links(), [link(0, 1), link(2, 0)]);
        assert_eq!(places.len(), 2);
        assert_eq!((places.place(link(0, 1)), places.place(link(2, 0))), (Some(0), Some(1)));
        assert_eq!([link(1, 0), link(3, 0), link(1, 1)].map(|link| places.place(link)), [None; 3]);
        assert!(matches!(Places::of(3, &[link(0, 3)]), Err(NetworkError::NoSuchLink { from: 0, to: 3, hosts: 3 })));
    }
}
