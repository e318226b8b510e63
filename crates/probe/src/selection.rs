//! Which links of a network are measured, and where each stands among them.

use brownout_base::{Link, Mesh};

use crate::error::ProbeError;

/// Some of the links of a network, in its own order, each once.
pub(crate) struct Selection {
    hosts: usize,
    links: Vec<Link>,
    /// Per link of the network, its index in `links`.
    indices: Vec<Option<u32>>,
}

impl Selection {
    /// Of a network of so many hosts.
    pub(crate) fn of(hosts: usize, links: &[Link]) -> Result<Selection, ProbeError> {
        let mut wanted = vec![false; hosts * hosts.saturating_sub(1)];
        for link in links {
            let Link { from, to } = *link;
            let unknown = ProbeError::NoSuchLink { from: from.0, to: to.0, hosts };
            wanted[link.position(hosts).ok_or(unknown)?] = true;
        }
        let (mut links, mut indices) = (Vec::new(), Vec::new());
        for (link, wanted) in Link::all(hosts).into_iter().zip(wanted) {
            indices.push(wanted.then_some(links.len() as u32));
            links.extend(wanted.then_some(link));
        }
        Ok(Selection { hosts, links, indices })
    }

    pub(crate) fn len(&self) -> usize {
        self.links.len()
    }

    pub(crate) fn links(&self) -> &[Link] {
        &self.links
    }

    /// The index of `link` among them; `None` if it is none of them.
    pub(crate) fn index(&self, link: Link) -> Option<usize> {
        self.indices[link.position(self.hosts)?].map(|index| index as usize)
    }
}

/// Whether all of these links begin on this machine.
pub(crate) fn from_here(network: &dyn Mesh, links: &[Link]) -> Result<(), ProbeError> {
    match links.iter().find(|link| network.elsewhere(link.from).is_some()) {
        Some(Link { from, to }) => Err(ProbeError::BeginsElsewhere { from: from.0, to: to.0 }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use brownout_base::HostId;

    use super::*;

    #[test]
    fn each_link_named_stands_once_where_its_index_says() {
        let link = |from, to| Link { from: HostId(from), to: HostId(to) };
        let selection = Selection::of(3, &[link(2, 0), link(0, 1), link(2, 0)]).unwrap();
        assert_eq!(selection.links(), [link(0, 1), link(2, 0)]);
        assert_eq!(selection.len(), 2);
        assert_eq!((selection.index(link(0, 1)), selection.index(link(2, 0))), (Some(0), Some(1)));
        assert_eq!([link(1, 0), link(3, 0), link(1, 1)].map(|link| selection.index(link)), [None; 3]);
        assert!(matches!(Selection::of(3, &[link(0, 3)]), Err(ProbeError::NoSuchLink { from: 0, to: 3, hosts: 3 })));
    }
}
