//! Opening the places where packets of a host are diverted.

use std::{
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
};

use brownout_base::HostId;

use super::{
    forward,
    opened::Opened,
    queue, route,
    spec::{AttachedSpec, Exit},
};
use crate::{
    emulator::Port,
    error::NetworkError,
    host::{Found, Host},
    way::Way,
};

/// The places that have to be open for a host; `None`: where packets arrive.
pub(super) fn wanted(way: Way, spec: &AttachedSpec) -> Vec<Option<Exit>> {
    match way {
        _ if spec.is_elsewhere() => Vec::new(),
        Way::Queue => vec![None],
        // Routes of this machine are not ours to lead elsewhere.
        Way::Route if spec.is_outside() => Vec::new(),
        Way::Forward | Way::Route => spec.exits.iter().cloned().map(Some).collect(),
    }
}

/// Opens one of them, in the namespace of the calling thread.
pub(super) fn open(way: Way, spec: &AttachedSpec, wanted: Option<&Exit>) -> Result<(Opened, Port), NetworkError> {
    match (way, wanted) {
        (Way::Forward, Some(exit)) => forward::open(&spec.name, exit),
        (Way::Route, Some(exit)) => route::open(&spec.name, exit),
        (Way::Queue, _) | (_, None) => queue::open(spec),
    }
}

/// Opens all of them, in the namespace of the calling thread, and says what is known of the host.
pub(super) fn open_all(way: Way, id: HostId, spec: &AttachedSpec) -> Result<(Host, Vec<(Opened, Port)>), NetworkError> {
    let opened = wanted(way, spec).iter().map(|one| open(way, spec, one.as_ref())).collect::<Result<Vec<_>, _>>()?;
    let failed = |source| NetworkError::Configure {
        host: spec.name.clone(),
        action: "read its TCP congestion control".to_owned(),
        source,
    };
    let found = found_in(way, spec, opened.iter().map(|(one, _)| one));
    Ok((found.into_host(id, spec.name.clone()).map_err(failed)?, opened))
}

/// What is known of a host in which these are open.
pub(super) fn found_in<'a>(way: Way, host: &AttachedSpec, opened: impl Iterator<Item = &'a Opened>) -> Found {
    let v4 = host.addresses.iter().find_map(|address| match address {
        IpAddr::V4(address) => Some(*address),
        IpAddr::V6(_) => None,
    });
    let v6 = host.addresses.iter().find_map(|address| match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(*address),
    });
    Found {
        // It has been checked that there is one.
        address: v4.unwrap_or(Ipv4Addr::UNSPECIFIED),
        address6: v6,
        namespace: Arc::clone(&host.namespace),
        interfaces: opened.filter_map(|one| one.device.clone()).collect(),
        holds_arrived: way == Way::Queue,
        is_elsewhere: host.is_elsewhere(),
    }
}
