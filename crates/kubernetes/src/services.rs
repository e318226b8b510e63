//! Addresses of services.

use std::net::IpAddr;

use k8s_openapi::api::core::v1;
use kube::{Api, api::ListParams};

use crate::{Kubernetes, KubernetesError, Pod};

impl Kubernetes {
    /// The addresses of the services of a namespace behind which there is one pod alone, each with its name: what is sent to such an
    /// address is sent to that pod. (Behind others it is whose turn it is, and no packet says whose.)
    ///
    /// # Errors
    /// The API server refuses.
    pub fn services_of_one(&self, namespace: &str) -> Result<Vec<(IpAddr, String)>, KubernetesError> {
        let services: Api<v1::Service> = Api::namespaced(self.client.clone(), namespace);
        let pods: Api<v1::Pod> = Api::namespaced(self.client.clone(), namespace);
        let all = ListParams::default();
        let services = self.wait(format!("list the services of namespace {namespace}"), services.list(&all))?;
        let pods = self.wait(format!("list the pods of namespace {namespace}"), pods.list(&all))?;
        Ok(of_one(&services.items, &pods.items))
    }
}

fn of_one(services: &[v1::Service], pods: &[v1::Pod]) -> Vec<(IpAddr, String)> {
    let mut all = Vec::new();
    for spec in services.iter().filter_map(|service| service.spec.as_ref()) {
        // One without a selector goes where somebody says by hand.
        let Some(selector) = spec.selector.as_ref().filter(|selector| !selector.is_empty()) else { continue };
        let is_behind = |pod: &&v1::Pod| {
            let labels = pod.metadata.labels.as_ref();
            selector.iter().all(|(key, value)| labels.and_then(|labels| labels.get(key)) == Some(value))
        };
        let mut behind = pods.iter().filter(is_behind).filter_map(Pod::running);
        let (Some(only), None) = (behind.next(), behind.next()) else { continue };
        // "None" is no address.
        let addresses = spec.cluster_ips.iter().flatten().chain(spec.external_ips.iter().flatten());
        all.extend(addresses.filter_map(|address| Some((address.parse().ok()?, only.name.clone()))));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_means_a_pod_if_it_is_the_only_one_behind_it() {
        let service = |text: &str| -> v1::Service { serde_saphyr::from_str(&format!("spec: {text}")).unwrap() };
        let pod = |name: &str, phase: &str| -> v1::Pod {
            serde_saphyr::from_str(&format!(
                "metadata: {{ name: {name}, labels: {{ app: db, pod: {name} }} }}
spec: {{ nodeName: node1, containers: [] }}
status: {{ phase: {phase} }}"
            ))
            .unwrap()
        };
        let pods = [pod("db-0", "Running"), pod("db-1", "Running"), pod("old", "Succeeded")];
        let services = [
            service("{ selector: { app: db }, clusterIPs: ['10.96.0.1'] }"),
            service("{ selector: { pod: db-1 }, clusterIPs: ['10.96.0.2', 'fd00::2'] }"),
            service("{ selector: { pod: db-0 }, clusterIPs: ['None'] }"),
            service("{ selector: { pod: old }, clusterIPs: ['10.96.0.3'] }"),
            service("{ clusterIPs: ['10.96.0.4'] }"),
        ];
        let db_1 = |address: &str| (address.parse().unwrap(), "db-1".to_owned());
        assert_eq!(of_one(&services, &pods), [db_1("10.96.0.2"), db_1("fd00::2")]);
    }
}
