//! A host that is somewhere else now.

use super::{
    AttachedSpec, State, check,
    exit::{self, Opened, found_in},
    inside, routes, selection,
};
use crate::{control::Emulator, emulator::Port, error::NetworkError, host::Host, sys};

/// The exits of a host that has moved.
struct Moved {
    /// Those that are as they were.
    kept: Vec<Opened>,
    /// Those that are no more.
    gone: Vec<Opened>,
    opened: Vec<(Opened, Port)>,
    /// Why there are not more of them.
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
        if was.is_outside != spec.is_outside {
            return Err(NetworkError::Spec(format!(
                "host {} cannot become another's place while it is attached",
                spec.name
            )));
        }
        let is_same_namespace = check::namespace_of(was)? == check::namespace_of(&spec)?;
        let mut specs = self.specs.clone();
        specs[number] = spec.clone();
        check::check(&specs)?;

        let old = std::mem::take(&mut self.exits[number]);
        let old_ports: Vec<usize> = old.iter().map(|exit| exit.port).collect();
        let moved = inside(&spec.name, &spec.namespace, || Ok(Moved::to(host, &spec, old, is_same_namespace)));
        let Moved { mut kept, gone, opened, mut failure } = match moved {
            Ok(moved) => moved,
            Err(error) => {
                // With them what diverted has gone already.
                old_ports.into_iter().try_for_each(|port| emulator.close(port))?;
                return Err(error);
            }
        };
        let before = std::mem::replace(&mut self.specs, specs);
        emulator.route(routes(&self.specs))?;
        for (mut exit, port) in opened {
            exit.port = emulator.open(host.id(), port)?;
            match exit.divert(&spec.name, &selection::of(&self.specs, number, &exit.spec)) {
                Ok(()) => kept.push(exit),
                Err(error) => {
                    failure.get_or_insert(error);
                    emulator.close(exit.port)?;
                }
            }
        }
        self.exits[number] = kept;
        gone.into_iter().try_for_each(|exit| emulator.close(exit.port))?;
        let changed = self.divert_others(&before);
        failure.map_or(changed, Err)
    }

    /// Has all exits divert what is on a link now.
    fn divert_others(&self, before: &[AttachedSpec]) -> Result<(), NetworkError> {
        for (number, (spec, exits)) in self.specs.iter().zip(&self.exits).enumerate() {
            for exit in exits {
                let diverted = selection::of(&self.specs, number, &exit.spec);
                if diverted != selection::of(before, number, &exit.spec) {
                    exit.change(&spec.name, &diverted)?;
                }
            }
        }
        Ok(())
    }
}

impl Moved {
    /// Runs on a thread in the host's namespace.
    fn to(host: &Host, spec: &AttachedSpec, old: Vec<Opened>, is_same_namespace: bool) -> Moved {
        let is_as_it_was = |exit: &Opened| {
            let is_wanted = is_same_namespace && spec.exits.contains(&exit.spec);
            is_wanted && sys::interface_index(&exit.spec.interface).is_ok_and(|index| index == exit.index)
        };
        let (kept, mut gone): (Vec<Opened>, Vec<Opened>) = old.into_iter().partition(is_as_it_was);
        // Before another of the same name can take its place.
        gone.iter_mut().for_each(Opened::divert_no_more);
        let (mut opened, mut failure) = (Vec::new(), None);
        for wanted in &spec.exits {
            if kept.iter().any(|exit| exit.spec == *wanted) {
                continue;
            }
            match exit::open(&spec.name, wanted) {
                Ok(exit) => opened.push(exit),
                Err(error) => {
                    failure.get_or_insert(error);
                }
            }
        }
        found_in(spec, kept.iter().chain(opened.iter().map(|(exit, _)| exit))).replaces(host);
        Moved { kept, gone, opened, failure }
    }
}
