//! The load of an etcd as an engine runs it.

use std::sync::Arc;

use super::{EtcdLoad, end_of, thread::EtcdThread, workload::APART};
use crate::{
    ThreadWorkload, Workload,
    workload::{FillProgress, WatchedRange},
};

/// An [`EtcdLoad`] with what an engine adds.
pub(crate) struct EtcdWork {
    pub(crate) load: EtcdLoad,
    pub(crate) seed: u64,
    pub(crate) progress: Arc<FillProgress>,
}

impl Workload for EtcdWork {
    fn operations(&self) -> Vec<String> {
        EtcdLoad::OPERATIONS.map(str::to_owned).to_vec()
    }

    fn statements(&self) -> Vec<String> {
        Vec::new()
    }

    fn flows(&self) -> usize {
        APART + EtcdLoad::OPERATIONS.len()
    }

    fn largest_answer(&self) -> usize {
        // What a watch tells of many writes at once comes in parts of about a request's length.
        self.load.value_size as usize + (8 << 20)
    }

    fn watched(&self) -> Option<WatchedRange> {
        let from = self.load.prefix.clone().into_bytes();
        let watchers = self.load.watchers;
        (watchers > 0).then(|| WatchedRange { end: end_of(&from), from, watchers })
    }

    fn thread(&self, thread: usize, threads: usize) -> Box<dyn ThreadWorkload> {
        let progress = Arc::clone(&self.progress);
        Box::new(EtcdThread::new(self.load.clone(), self.seed, progress, thread, threads))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Pace;

    #[test]
    fn each_operation_has_a_flow_of_its_own_beside_mix_and_filling() {
        let work = |load| EtcdWork { load, seed: 1, progress: Arc::default() };
        let load = EtcdLoad {
            prefix: "p".into(),
            put: 1,
            range: 0,
            serializable: 0,
            txn: 0,
            population: 10,
            value_size: 16,
            watchers: 0,
        };
        let paces = [1, 2, 3, 4].map(|threads| Pace::Closed { threads });
        let all = EtcdLoad::apart(paces.clone());
        assert_eq!(all.len(), work(load).flows());
        assert_eq!(all[..APART], [Pace::Idle, Pace::Idle]);
        assert_eq!(all[APART..], paces);
    }
}
