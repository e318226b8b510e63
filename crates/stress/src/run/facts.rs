//! What a run file says of its run.

use super::{connect, execution::Run, plan, search::bucket};
use crate::{
    output::RunPlan,
    settings::{Length, Rate},
};

impl Run<'_> {
    pub(super) fn run_plan(&self) -> RunPlan {
        let settings = self.settings;
        let (warm_up_ns, length_ns) = match settings.command.length {
            Length::Time(time) => (settings.command.warmup.then_some(0), time.as_nanos() as u64),
            _ => (settings.command.warmup.then_some(0), 0),
        };
        let interval = match &settings.rate {
            Rate::Search(search) => bucket(search),
            _ => settings.log.interval,
        };
        RunPlan {
            profiles: self.source.profiles(),
            name: settings.command.kind.name().to_owned(),
            command: settings.words.join(" "),
            nodes: connect::named(&self.members)
                .into_iter()
                .map(|node| (node.name, node.address.to_string()))
                .collect(),
            system: self.control.cluster_name(),
            encrypted: settings.transport.truststore.is_some(),
            load: plan::words(settings),
            rate: match &settings.rate {
                Rate::Open(open) => open.shape.base().map(|rate| rate.get()),
                _ => None,
            },
            threads: plan::users(settings),
            consistency: settings.command.consistency.to_string(),
            timeout_ns: settings.mode.request_timeout.as_nanos() as u64,
            warm_up_ns,
            length_ns,
            interval_ns: interval.as_nanos() as u64,
            seed: plan::seed(settings) as u64,
            ..RunPlan::default()
        }
    }
}
