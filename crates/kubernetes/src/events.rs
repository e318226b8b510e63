//! What Kubernetes itself did while an experiment ran.

use k8s_openapi::api::core::v1;
use kube::{Api, api::ListParams};

use crate::{Kubernetes, KubernetesError};

/// Something that happened to a pod.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Happened {
    /// The pod.
    pub pod: String,
    /// When it was last seen, ms since 1970, by the clock of who saw it.
    pub unix_ms: i64,
    /// How exactly that is told, ms: many are told in whole seconds, rounded down.
    pub error_ms: u32,
    /// `Unhealthy`, `Killing`, `BackOff`, `Evicted`, …
    pub reason: String,
    /// In words.
    pub message: String,
    /// How often it was seen, in all.
    pub count: u32,
}

impl Kubernetes {
    /// What was last seen to happen to pods of a namespace since then (ms since 1970), in order of time.
    ///
    /// # Errors
    /// The API server refuses.
    pub fn happened(&self, namespace: &str, since_unix_ms: i64) -> Result<Vec<Happened>, KubernetesError> {
        let api: Api<v1::Event> = Api::namespaced(self.client.clone(), namespace);
        let parameters = ListParams::default().fields("involvedObject.kind=Pod");
        let list = self.wait(format!("list the events of namespace {namespace}"), api.list(&parameters))?;
        let mut all: Vec<Happened> = list.items.iter().filter_map(told).collect();
        all.retain(|one| one.unix_ms + i64::from(one.error_ms) >= since_unix_ms);
        all.sort_by_key(|one| one.unix_ms);
        Ok(all)
    }
}

fn told(event: &v1::Event) -> Option<Happened> {
    // Those of a series say when it was last seen; newer ones have a time of microseconds, older ones of seconds.
    let series = event.series.as_ref().and_then(|series| series.last_observed_time.as_ref());
    let (unix_ms, error_ms) = match (series.or(event.event_time.as_ref()), &event.last_timestamp) {
        (Some(exact), _) => (exact.0.as_millisecond(), 1),
        (None, Some(last)) => (last.0.as_millisecond(), 1_000),
        (None, None) => return None,
    };
    let count = event.series.as_ref().and_then(|series| series.count).or(event.count);
    Some(Happened {
        pod: event.involved_object.name.clone()?,
        unix_ms,
        error_ms,
        reason: event.reason.clone().unwrap_or_default(),
        message: event.message.clone().unwrap_or_default(),
        count: count.and_then(|count| u32::try_from(count).ok()).unwrap_or(1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_told_with_how_exactly_their_time_is_known() {
        let event = |times: &str| -> v1::Event {
            serde_saphyr::from_str(&format!(
                "metadata: {{ name: e }}
involvedObject: {{ kind: Pod, name: db-1 }}
reason: Unhealthy
message: 'Liveness probe failed: timeout'
{times}"
            ))
            .unwrap()
        };
        let old = told(&event("count: 3\nlastTimestamp: '2026-01-02T03:04:05Z'")).unwrap();
        assert_eq!((old.unix_ms, old.error_ms, old.count), (1_767_323_045_000, 1_000, 3));
        let new = told(&event("eventTime: '2026-01-02T03:04:05.250000Z'")).unwrap();
        assert_eq!((new.unix_ms, new.error_ms, new.count), (1_767_323_045_250, 1, 1));
        let again = "eventTime: '2026-01-02T03:04:05.250000Z'\nseries: { count: 7, lastObservedTime: '2026-01-02T03:04:09.000000Z' }";
        let again = told(&event(again)).unwrap();
        assert_eq!((again.unix_ms, again.count), (1_767_323_049_000, 7));
        assert_eq!(told(&event("")), None);
    }
}
