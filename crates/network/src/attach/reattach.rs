//! A host that is somewhere else now.

use super::{
    check,
    diversion::Place,
    inside::inside,
    open::{found_in, open, wanted},
    opened::Opened,
    spec::AttachedSpec,
    state::{State, devices},
};
use crate::{
    emulator::{Emulator, Port},
    error::NetworkError,
    host::Host,
    way::Way,
};

/// What is open in a host that has moved.
struct Moved {
    /// What is as it was.
    kept: Vec<Opened>,
    /// What is no more.
    gone: Vec<Opened>,
    opened: Vec<(Opened, Port)>,
    /// Why there is not more.
    failure: Option<NetworkError>,
}

impl State {
    /// Has the host of this name be where `spec` says.
    pub(super) fn reattach(
        &mut self,
        host: &Host,
        spec: AttachedSpec,
        emulator: &Emulator,
    ) -> Result<(), NetworkError> {
        let number = host.id().index();
        let was = &self.specs[number];
        if was.kind != spec.kind {
            return Err(NetworkError::Spec(format!(
                "host {} cannot become another's place while it is attached",
                spec.name
            )));
        }
        let is_same_namespace = was.is_elsewhere() || check::namespace_of(was)? == check::namespace_of(&spec)?;
        let mut specs = self.specs.clone();
        specs[number] = spec.clone();
        check::check(&specs)?;

        let old = std::mem::take(&mut self.opened[number]);
        let old_ports: Vec<usize> = old.iter().map(|one| one.port).collect();
        let way = self.way;
        let moved = inside(&spec.name, &spec.namespace, || Ok(Moved::to(way, host, &spec, old, is_same_namespace)));
        let Moved { kept, gone, opened, mut failure } = match moved {
            Ok(moved) => moved,
            Err(error) => {
                // With them what diverted has gone already.
                old_ports.into_iter().try_for_each(|port| emulator.close(port))?;
                return Err(error);
            }
        };
        let before = std::mem::replace(&mut self.specs, specs);
        emulator.route(self.routes())?;
        self.opened[number] = kept;
        // What was there before has to know; what is new begins with what it knows.
        let changed = self.change(&before);
        let ours = devices(self.opened[number].iter().chain(opened.iter().map(|(one, _)| one)));
        for (mut one, port) in opened {
            one.port = emulator.open(host.id(), port)?;
            match one.begin(&Place { hosts: &self.specs, number, devices: &ours }) {
                Ok(()) => self.opened[number].push(one),
                Err(error) => {
                    failure.get_or_insert(error);
                    emulator.close(one.port)?;
                }
            }
        }
        gone.into_iter().try_for_each(|one| emulator.close(one.port))?;
        failure.map_or(changed, Err)
    }
}

impl Moved {
    /// Runs on a thread in the host's namespace.
    fn to(way: Way, host: &Host, spec: &AttachedSpec, old: Vec<Opened>, is_same_namespace: bool) -> Moved {
        let wanted = wanted(way, spec);
        let is_as_it_was = |one: &Opened| is_same_namespace && wanted.contains(&one.exit) && one.is_in_place();
        let (kept, mut gone): (Vec<Opened>, Vec<Opened>) = old.into_iter().partition(is_as_it_was);
        // Before another of the same name can take its place.
        gone.iter_mut().for_each(Opened::end);
        let (mut opened, mut failure) = (Vec::new(), None);
        for exit in wanted.iter().filter(|exit| !kept.iter().any(|one| one.exit == **exit)) {
            match open(way, spec, exit.as_ref()) {
                Ok(one) => opened.push(one),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        found_in(way, spec, kept.iter().chain(opened.iter().map(|(one, _)| one))).replaces(host);
        Moved { kept, gone, opened, failure }
    }
}
