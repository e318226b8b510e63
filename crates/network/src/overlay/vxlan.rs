//! The kernel's VXLAN from each host to each other. Every end is told all others, so that nothing is looked for by packets to
//! all, which a lossy network would lose.

use std::{io, net::Ipv4Addr, thread};

use crate::sys::{self, Vxlan};

/// IANA's.
const PORT: u16 = 4_789;
/// Any number of 24 bits.
const ID: u32 = 42;

/// A host, as the others find it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Endpoint {
    /// Its address inside.
    pub(super) inside: Ipv4Addr,
    /// Its address on the network that carries the VXLAN.
    pub(super) below: Ipv4Addr,
}

/// Makes the interface `name` of the host at `own` in the calling thread's namespace, over the interface `carrier`, and
/// answers with its number. It has no address yet, and is not up.
pub(super) fn make(name: &str, carrier: &str, mtu: u16, own: Endpoint, others: &[Endpoint]) -> io::Result<u32> {
    let link = sys::interface_index(carrier)?;
    let hardware = hardware_of(own.inside);
    sys::add_vxlan(&Vxlan { name, id: ID, link, local: own.below, port: PORT, hardware, mtu })?;
    let index = sys::interface_index(name)?;
    // Nobody asked for packets to routers. A kernel without IPv6 refuses, and sends none.
    let _ = sys::forbid_link_local(index);
    for other in others {
        sys::add_neighbour(index, other.inside, hardware_of(other.inside), other.below)?;
    }
    Ok(index)
}

/// Makes a VXLAN's interface in a network namespace that is gone at once.
///
/// # Errors
/// The kernel's, where it has no such driver, or the caller may not make namespaces.
pub fn try_vxlan() -> io::Result<()> {
    let own = Endpoint { inside: Ipv4Addr::new(10, 78, 0, 1), below: Ipv4Addr::LOCALHOST };
    thread::scope(|scope| {
        // The caller's own namespace is not touched.
        let work = || sys::unshare_network().and_then(|()| make("vxlan0", "lo", 1_450, own, &[]).map(drop));
        thread::Builder::new()
            .name("try-vxlan".to_owned())
            .spawn_scoped(scope, work)?
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// A locally administered hardware address (IEEE 802) of which the end is the IP address.
fn hardware_of(address: Ipv4Addr) -> [u8; 6] {
    let [a, b, c, d] = address.octets();
    [0x02, 0x62, a, b, c, d]
}
