//! Diverting what hosts send each other, from the beginning to the end.

use std::{
    fmt,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use brownout_base::HostId;

use super::{
    check,
    inside::inside,
    keeper::Keeper,
    open::open_all,
    opened::Opened,
    spec::AttachedSpec,
    state::{self, State},
};
use crate::{
    emulator::{Emulator, Port, Reach, Routes},
    error::NetworkError,
    host::Host,
    limits::{FILES_PER_HOST, allow_files},
    way::Way,
};

/// What an exit takes at most: by the third way a TUN, two pairs of raw sockets, and two that routes are asked by.
const FILES_PER_EXIT: u64 = 7;
/// What a host takes in which packets wait where they arrive: the queue, two raw sockets, and one that tables belong to.
const FILES_PER_ARRIVAL: u64 = 4;

/// Hosts that are entered, and in which nothing is diverted yet.
pub(crate) struct Prepared {
    pub(crate) hosts: Vec<Host>,
    pub(crate) ports: Vec<(HostId, Port)>,
    pub(crate) routes: Routes,
    /// The largest packet that all links carry, in bytes, if any tells.
    pub(crate) mtu: Option<u32>,
    pub(crate) attachment: Attachment,
}

/// What diverts packets.
pub(crate) struct Attachment {
    way: Way,
    state: Arc<Mutex<State>>,
    lapses: Arc<AtomicU64>,
    keeper: Option<Keeper>,
}

impl Attachment {
    /// Enters these hosts, and opens there what diverting by this way takes.
    pub(crate) fn prepare(way: Way, specs: Vec<AttachedSpec>) -> Result<Prepared, NetworkError> {
        check::check(&specs)?;
        if let (Way::Queue, Some(elsewhere)) = (way, specs.iter().find(|spec| spec.is_elsewhere())) {
            return Err(NetworkError::Spec(format!(
                "packets wait where they arrive by this way, and host {} is on another machine; it takes a kernel that can \
                 forward them where they leave (brownout doctor)",
                elsewhere.name
            )));
        }
        let exits: usize = specs.iter().map(|spec| spec.exits.len()).sum();
        let per_host = FILES_PER_HOST + FILES_PER_ARRIVAL;
        allow_files(specs.len(), per_host * specs.len() as u64 + FILES_PER_EXIT * exits as u64)?;
        let (mut hosts, mut ports, mut opened, mut mtu) = (Vec::new(), Vec::new(), Vec::new(), None::<u32>);
        for (id, spec) in (0..).map(HostId).zip(&specs) {
            let (host, of_host) = inside(&spec.name, &spec.namespace, || open_all(way, id, spec))?;
            let mut open: Vec<Opened> = Vec::new();
            for (mut one, port) in of_host {
                one.port = ports.len();
                mtu = Some(mtu.map_or(one.mtu, |least| least.min(one.mtu)));
                ports.push((id, port));
                open.push(one);
            }
            hosts.push(host);
            opened.push(open);
        }
        let state = State { way, specs, opened };
        let routes = state.routes();
        let (state, lapses) = (Arc::new(Mutex::new(state)), Arc::new(AtomicU64::new(0)));
        Ok(Prepared { hosts, ports, routes, mtu, attachment: Attachment { way, state, lapses, keeper: None } })
    }

    /// Begins to divert to this emulator.
    pub(crate) fn begin(&mut self, emulator: &Emulator, realtime: bool) -> Result<(), NetworkError> {
        let outside = {
            let mut state = lock(&self.state);
            state.begin()?;
            state::outside(&state.specs)
        };
        emulator.limit_to(Reach { way: self.way, outside });
        let (state, lapses) = (Arc::clone(&self.state), Arc::clone(&self.lapses));
        self.keeper = Some(Keeper::start(state, emulator.clone(), lapses, realtime)?);
        Ok(())
    }

    /// Has this host be where `spec` says.
    pub(crate) fn reattach(&self, host: &Host, spec: AttachedSpec, emulator: &Emulator) -> Result<(), NetworkError> {
        lock(&self.state).reattach(host, spec, emulator)
    }

    /// Whether a host stands for all that is outside.
    pub(crate) fn is_outside(&self, host: HostId) -> bool {
        state::outside(&lock(&self.state).specs) == Some(host)
    }

    /// In which way packets are diverted.
    pub(crate) fn way(&self) -> Way {
        self.way
    }

    /// How often packets may have passed by the emulator.
    pub(crate) fn lapses(&self) -> u64 {
        self.lapses.load(Ordering::Relaxed)
    }

    /// Lets go what is held, and then has packets take their own way again.
    pub(crate) fn end(self, emulator: &Emulator) {
        drop(self.keeper);
        // If the emulator has ended already, it holds nothing.
        let _ = emulator.let_go();
        lock(&self.state).opened.iter_mut().flatten().for_each(Opened::pass);
        // What was diverted until now.
        let _ = emulator.let_go();
        lock(&self.state).opened.iter_mut().flatten().for_each(Opened::end);
    }
}

impl fmt::Debug for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Attachment").field("way", &self.way).field("lapses", &self.lapses).finish_non_exhaustive()
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
