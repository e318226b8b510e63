//! Random faults in a lab by hand: an experiment's `chaos`, round after round, until it is stopped.

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::{Duration, Instant},
};

use brownout_base::random::derive;
use brownout_units::Delay;
use serde_json::Value;

use super::{Failure, chaos::Chaos, lab::Lab};
use crate::{
    LabError,
    experiment::ChaosFault,
    faults::{self, Drawn, Healing, together},
    plan::limits_packets,
};

/// How many of the longest rounds are drawn at a time.
const ROUNDS: u64 = 20;

impl Lab {
    /// Begins.
    pub(super) fn chaos_start(
        self: &Arc<Self>,
        entry: &Value,
        seed: Option<u64>,
        by: &str,
    ) -> Result<Vec<String>, Failure> {
        let chaos: ChaosFault =
            serde_json::from_value(entry.clone()).map_err(|error| Failure::wrong(format!("chaos: {error}")))?;
        let seed = seed.unwrap_or_else(|| self.draw());
        let most = chaos.pause.most.ns().saturating_add(chaos.run.most.ns());
        let stretch = Delay::from_ns(most.saturating_mul(ROUNDS));
        // Every mistake shows now: each kind is drawn at some time, but only if it is in the list alone for sure.
        for kind in &chaos.faults {
            let alone = ChaosFault { faults: vec![kind.clone()], ..chaos.clone() };
            let drawn = faults::draw(&alone, &self.layout.hosts, stretch, seed)?;
            let most = self.layout.network.mtu;
            drawn.iter().try_for_each(|one| limits_packets(one.fault.as_ref(), most))?;
            drawn.iter().try_for_each(|one| self.refuse_impossible(one.fault.as_ref()))?;
        }
        let mut on = self.chaos.lock().unwrap_or_else(PoisonError::into_inner);
        if on.is_some() {
            return Err(Failure::failed("chaos is already on; stop it with: brownout chaos stop"));
        }
        let (stop, stopped) = mpsc::channel();
        let doing = Arc::new(Mutex::new(String::new()));
        let (lab, told, who) = (Arc::clone(self), Arc::clone(&doing), format!("chaos, seed {seed}"));
        let body = move || {
            for number in 0.. {
                let drawn = faults::draw(&chaos, &lab.layout.hosts, stretch, derive(seed, number)).unwrap_or_default();
                let began = Instant::now();
                for one in drawn {
                    if !lab.round(&one, began, &stopped, &told, &who) {
                        return;
                    }
                }
            }
        };
        let thread = thread::Builder::new().name("chaos".to_owned()).spawn(body)?;
        let asked = entry.to_string();
        self.events.note(together([]), "chaos", "", &format!("chaos begins, seed {seed}: {asked}"), by);
        *on = Some(Chaos { seed, asked, doing, stop: Some(stop), thread: Some(thread) });
        Ok(vec![format!("chaos is on; --seed {seed} repeats it. Stop it with: brownout chaos stop")])
    }

    /// Ends it; returns when all is healed.
    pub(super) fn chaos_stop(&self, by: &str) -> Result<Vec<String>, Failure> {
        // Outside of the lock: a node may have to start again.
        let ended = self.chaos.lock().unwrap_or_else(PoisonError::into_inner).take();
        match ended {
            None => Err(Failure::failed("chaos is not on; start it with: brownout chaos start --faults slow:100ms")),
            Some(chaos) => {
                drop(chaos);
                self.events.note(together([]), "chaos", "", "chaos stopped; all of its faults are healed", by);
                Ok(vec!["chaos stopped; all of its faults are healed".to_owned()])
            }
        }
    }

    /// What it does, if it is on.
    pub(super) fn chaos_words(&self) -> Option<String> {
        let on = self.chaos.lock().unwrap_or_else(PoisonError::into_inner);
        let chaos = on.as_ref()?;
        let doing = chaos.doing.lock().unwrap_or_else(PoisonError::into_inner);
        let doing = if doing.is_empty() { "between two faults" } else { &*doing };
        Some(format!("seed {}, {}: {doing}", chaos.seed, chaos.asked))
    }

    /// One fault, from its start to its end. False: chaos was stopped.
    fn round(
        &self,
        one: &Drawn,
        began: Instant,
        stopped: &mpsc::Receiver<()>,
        doing: &Mutex<String>,
        who: &str,
    ) -> bool {
        let wait = |until: Delay| {
            let left = (began + Duration::from_nanos(until.ns())).saturating_duration_since(Instant::now());
            matches!(stopped.recv_timeout(left), Err(RecvTimeoutError::Timeout))
        };
        if !wait(one.starts) {
            return false;
        }
        let (kind, subject, text) = (one.fault.kind(), one.fault.subject(), one.fault.text());
        let failed = |what: &str, error: LabError| {
            self.events.note(together([]), "failed", &subject, &format!("{what} {kind}: {error}"), who);
        };
        let in_force = match one.fault.inject(self.testbed.capabilities) {
            Ok(in_force) => in_force,
            Err(error) => {
                // Somebody has paused the node that was to be paused: the next round will do.
                failed("injecting", error);
                return true;
            }
        };
        self.events.note(in_force.change(), kind, &subject, &text, who);
        *doing.lock().unwrap_or_else(PoisonError::into_inner) = text;
        let goes_on = wait(one.ends);
        let healed = in_force.heal().and_then(Healing::wait);
        doing.lock().unwrap_or_else(PoisonError::into_inner).clear();
        match healed {
            Ok(change) => self.events.note(change, "heal", &subject, &format!("{kind} healed"), who),
            Err(error) => failed("healing", error),
        }
        goes_on
    }
}
