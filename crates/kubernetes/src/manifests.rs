//! What an experiment makes in a cluster, as texts that people read: with the reason beside each right.

use crate::{LABEL, Members, NAMESPACE};

/// The image of this program, where nobody names another.
pub const IMAGE: &str = concat!("brownout:", env!("CARGO_PKG_VERSION"));
/// The name of the DaemonSet of agents, and of their container.
pub const AGENT: &str = "agent";
/// The name of the container of a pod that sends operations.
pub const LOAD: &str = "load";
/// What a member of a cluster is that was made for an experiment, and the name of its container.
pub const MEMBER: &str = "member";
/// The label of such a member: of which cluster.
pub const CLUSTER: &str = "brownout-cluster";
/// The label of a pod that sends operations: of which run.
pub const RUN: &str = "brownout-run";
/// The command that agents, and pods that send operations, wait with.
pub const IDLE: &str = "agent";

/// Who runs experiments, as RBAC names it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Subject {
    /// `User` or `Group`.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
}

/// What an administrator makes once: the namespace, and who may run experiments from it on pods of the namespaces `targets`.
pub fn rights(subject: &Subject, targets: &[String]) -> String {
    let own = format!(
        "# Who may run experiments, and what that takes. Each right has its reason beside it.
apiVersion: v1
kind: Namespace
metadata:
  name: {NAMESPACE}
  labels:
    {LABEL}: brownout
    # Agents enter the networks of other pods, which no weaker level allows.
    pod-security.kubernetes.io/enforce: privileged
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{ name: brownout-experiments, namespace: {NAMESPACE}, labels: {{ {LABEL}: brownout }} }}
rules:
# The agents: made where there are none, removed at the end, or by `brownout destroy --ground kubernetes`.
- {{ apiGroups: [apps], resources: [daemonsets], verbs: [get, list, create, delete] }}
# The pods that send operations: made for a run, and removed after it.
- {{ apiGroups: [batch], resources: [jobs], verbs: [list, create, delete] }}
# Which of both run, and on which node.
- {{ apiGroups: [''], resources: [pods], verbs: [list] }}
# A cluster of an experiment's own (`ground: {{ kubernetes: {{ own: … }} }}`), made and removed with its names and its data.
- {{ apiGroups: [apps], resources: [statefulsets], verbs: [get, list, create, delete] }}
- {{ apiGroups: [''], resources: [services], verbs: [list, create, delete] }}
- {{ apiGroups: [''], resources: [persistentvolumeclaims], verbs: [list, delete] }}
# What Kubernetes itself does to it meanwhile.
- {{ apiGroups: [''], resources: [events], verbs: [list] }}
# The only way by which a run speaks to them: commands in their containers. (A websocket needs get; since 1.35, create as well.)
- {{ apiGroups: [''], resources: [pods/exec], verbs: [get, create] }}
"
    );
    let binding = |role: &str, namespace: &str| bound(subject, role, namespace);
    let target = |namespace: &String| {
        format!(
            "---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{ name: brownout-targets, namespace: {}, labels: {{ {LABEL}: brownout }} }}
rules:
# Which pods are the database's, and where they run.
- {{ apiGroups: [''], resources: [pods], verbs: [list] }}
# The addresses of services behind which there is one pod alone: what is sent there is sent to it.
- {{ apiGroups: [''], resources: [services], verbs: [list] }}
# What Kubernetes itself did meanwhile: restarts, evictions, probes that failed.
- {{ apiGroups: [''], resources: [events], verbs: [list] }}
{}",
            quoted(namespace),
            binding("brownout-targets", namespace)
        )
    };
    own + &binding("brownout-experiments", NAMESPACE) + &targets.iter().map(target).collect::<String>()
}

fn bound(Subject { kind, name }: &Subject, role: &str, namespace: &str) -> String {
    format!(
        "---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{ name: {role}, namespace: {}, labels: {{ {LABEL}: brownout }} }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: Role, name: {role} }}
subjects: [{{ apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: {} }}]
",
        quoted(namespace),
        quoted(name)
    )
}

/// The DaemonSet of agents. They run this program, and nothing else; they have no rights in Kubernetes.
pub fn agents(image: &str) -> String {
    format!(
        "apiVersion: apps/v1
kind: DaemonSet
metadata: {{ name: {AGENT}, namespace: {NAMESPACE}, labels: {{ {LABEL}: brownout }} }}
spec:
  selector: {{ matchLabels: {{ app: brownout-{AGENT} }} }}
  template:
    metadata: {{ labels: {{ app: brownout-{AGENT}, {LABEL}: brownout }} }}
    spec:
      automountServiceAccountToken: false
      # The other ends of the pods' interfaces are in the node's network, and their processes in its PID namespace.
      hostNetwork: true
      hostPID: true
      tolerations: [{{ operator: Exists }}]
      terminationGracePeriodSeconds: 15
      containers:
      - name: {AGENT}
        image: {}
        imagePullPolicy: IfNotPresent
        command: [/bin/brownout, {IDLE}]
        securityContext:
          capabilities:
            drop: [ALL]
            add:
            - SYS_ADMIN     # enters the network namespaces of pods
            - SYS_PTRACE    # finds them by their processes
            - NET_ADMIN     # diverts what they send: nf_tables, TAP devices
            - NET_RAW       # sends it on: packet sockets
            - KILL          # pauses and limits their processes
            - SYS_NICE      # carries packets on time: SCHED_FIFO
            - DAC_OVERRIDE  # their processes and control groups are other users'
        volumeMounts:
        - {{ name: tun, mountPath: /dev/net/tun }}
        - {{ name: run, mountPath: /run }}
        - {{ name: cgroup, mountPath: /sys/fs/cgroup }}
      volumes:
      # The device that TAPs are made with.
      - {{ name: tun, hostPath: {{ path: /dev/net/tun, type: CharDevice }} }}
      # The runtime's socket, by which containers are found.
      - {{ name: run, hostPath: {{ path: /run, type: Directory }} }}
      # Freezers of control groups, by which processes are paused.
      - {{ name: cgroup, hostPath: {{ path: /sys/fs/cgroup, type: Directory }} }}
",
        quoted(image)
    )
}

/// The Job of a run whose pods send operations: `count` of them, which wait for what they are told.
pub fn loads(run: &str, image: &str, count: u32) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{ name: '{LOAD}-{run}', namespace: {NAMESPACE}, labels: {{ {LABEL}: brownout, {RUN}: '{run}' }} }}
spec:
  completions: {count}
  parallelism: {count}
  completionMode: Indexed
  # A pod that is lost is replaced by another of its number.
  backoffLimit: 1000
  # Whatever became of whoever made it.
  activeDeadlineSeconds: 86400
  ttlSecondsAfterFinished: 300
  template:
    metadata: {{ labels: {{ app: brownout-{LOAD}, {RUN}: '{run}', {LABEL}: brownout }} }}
    spec:
      automountServiceAccountToken: false
      restartPolicy: Never
      terminationGracePeriodSeconds: 15
      # On different nodes, as far as there are so many.
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {{ matchLabels: {{ {RUN}: '{run}' }} }}
      containers:
      - name: {LOAD}
        image: {}
        imagePullPolicy: IfNotPresent
        command: [/bin/brownout, {IDLE}]
        securityContext:
          capabilities:
            drop: [ALL]
            add: [SYS_NICE]  # sends on time: SCHED_FIFO
",
        quoted(image)
    )
}

/// A text as YAML has it, whatever is in it: JSON is YAML.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// The Service by which members of a cluster find each other, also before they are ready.
pub(crate) fn names_of(cluster: &str) -> String {
    format!(
        "apiVersion: v1
kind: Service
metadata: {{ name: '{cluster}', namespace: {NAMESPACE}, labels: {{ {LABEL}: brownout, app: brownout-{MEMBER} }} }}
spec:
  clusterIP: None
  publishNotReadyAddresses: true
  selector: {{ {CLUSTER}: '{cluster}' }}
"
    )
}

/// The StatefulSet of a cluster that is made for an experiment.
pub(crate) fn members(members: &Members) -> String {
    let Members { name, count, image, port, data, .. } = members;
    let list = |texts: Vec<String>| format!("[{}]", texts.join(", "));
    let command = match members.command.is_empty() {
        true => String::new(),
        false => format!("\n        command: {}", list(members.command.iter().map(|word| quoted(word)).collect())),
    };
    let own = "{ name: POD, valueFrom: { fieldRef: { fieldPath: metadata.name } } }".to_owned();
    let said =
        members.environment.iter().map(|(key, value)| format!("{{ name: {}, value: {} }}", quoted(key), quoted(value)));
    let environment = list(std::iter::once(own).chain(said).collect());
    let amounts: Vec<String> = [("memory", &members.memory), ("cpu", &members.cpu)]
        .into_iter()
        .filter_map(|(what, amount)| Some(format!("{what}: {}", quoted(amount.as_ref()?))))
        .collect();
    let amounts = amounts.join(", ");
    let policy = if members.in_order { "OrderedReady" } else { "Parallel" };
    let labels = format!("{{ app: brownout-{MEMBER}, {CLUSTER}: '{name}', {LABEL}: brownout }}");
    let (volume, claim) = match &members.storage {
        None => ("\n      volumes: [{ name: data, emptyDir: {} }]".to_owned(), String::new()),
        Some(size) => {
            let class =
                members.storage_class.as_ref().map(|class| format!("\n      storageClassName: {}", quoted(class)));
            let claim = format!(
                "
  volumeClaimTemplates:
  - metadata: {{ name: data, labels: {labels} }}
    spec:
      accessModes: [ReadWriteOnce]{}
      resources: {{ requests: {{ storage: {} }} }}",
                class.unwrap_or_default(),
                quoted(size)
            );
            (String::new(), claim)
        }
    };
    format!(
        "apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: '{name}', namespace: {NAMESPACE}, labels: {labels} }}
spec:
  serviceName: '{name}'
  replicas: {count}
  podManagementPolicy: {policy}
  selector: {{ matchLabels: {{ {CLUSTER}: '{name}' }} }}
  template:
    metadata: {{ labels: {labels} }}
    spec:
      automountServiceAccountToken: false
      # On different nodes, as far as there are so many.
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {{ matchLabels: {{ {CLUSTER}: '{name}' }} }}{volume}
      containers:
      - name: {MEMBER}
        image: {}
        imagePullPolicy: IfNotPresent{command}
        env: {environment}
        resources: {{ requests: {{ {amounts} }}, limits: {{ {amounts} }} }}
        readinessProbe: {{ tcpSocket: {{ port: {port} }}, periodSeconds: 2 }}
        volumeMounts: [{{ name: data, mountPath: {data} }}]{claim}
",
        quoted(image)
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{
        apps::v1::{DaemonSet, StatefulSet},
        batch::v1::Job,
        core::v1::Service,
        rbac::v1::{Role, RoleBinding},
    };

    use super::*;
    use crate::agents::parsed;

    #[test]
    fn what_is_made_is_what_its_text_says() {
        let agents: DaemonSet = parsed(&agents("registry/brownout:1")).unwrap();
        let pod = agents.spec.unwrap().template.spec.unwrap();
        assert_eq!((pod.host_network, pod.host_pid), (Some(true), Some(true)));
        assert_eq!(pod.containers[0].image.as_deref(), Some("registry/brownout:1"));
        let context = pod.containers[0].security_context.clone().unwrap();
        assert_eq!(context.privileged, None);
        let added = context.capabilities.unwrap().add.unwrap();
        assert!(added.contains(&"NET_ADMIN".to_owned()) && added.len() == 7, "{added:?}");

        let loads: Job = parsed(&loads("slow-replica-1", "b", 3)).unwrap();
        assert_eq!(loads.metadata.name.as_deref(), Some("load-slow-replica-1"));
        let spec = loads.spec.unwrap();
        assert_eq!((spec.parallelism, spec.completions), (Some(3), Some(3)));
        assert_eq!(spec.template.metadata.unwrap().labels.unwrap()[RUN], "slow-replica-1");
    }

    #[test]
    fn members_of_a_cluster_are_what_was_asked() {
        let plain = Members {
            name: "db-1".to_owned(),
            count: 3,
            image: "cassandra:5.0".to_owned(),
            command: Vec::new(),
            environment: [("ON".to_owned(), "db-1-0 \"x\" 'y' ü\n\tz".to_owned())].into(),
            port: 9042,
            data: "/var/lib/cassandra",
            in_order: true,
            memory: None,
            cpu: None,
            storage: None,
            storage_class: None,
        };
        let set: StatefulSet = parsed(&members(&plain)).unwrap();
        let spec = set.spec.unwrap();
        assert_eq!((spec.replicas, spec.pod_management_policy.as_deref()), (Some(3), Some("OrderedReady")));
        assert_eq!(spec.volume_claim_templates, None);
        let pod = spec.template.spec.unwrap();
        assert_eq!(pod.volumes.map(|volumes| volumes.len()), Some(1));
        let environment = pod.containers[0].env.clone().unwrap();
        assert_eq!((&*environment[1].name, environment[1].value.as_deref()), ("ON", Some("db-1-0 \"x\" 'y' ü\n\tz")));
        assert_eq!(pod.containers[0].command, None);

        let words = ["/usr/local/bin/etcd".to_owned(), "--name=$(POD)".to_owned()];
        let (memory, storage) = (Some("1Gi".to_owned()), Some("2Gi".to_owned()));
        let storage_class = Some("fast".to_owned());
        let full = Members { command: words.to_vec(), memory, storage, storage_class, in_order: false, ..plain };
        let set: StatefulSet = parsed(&members(&full)).unwrap();
        let spec = set.spec.unwrap();
        let claim = spec.volume_claim_templates.unwrap()[0].spec.clone().unwrap();
        assert_eq!(claim.storage_class_name.as_deref(), Some("fast"));
        let pod = spec.template.spec.unwrap();
        assert_eq!(pod.containers[0].command.as_deref(), Some(&words[..]));
        assert_eq!(pod.containers[0].resources.clone().unwrap().limits.unwrap()["memory"].0, "1Gi");
        let names: Service = parsed(&names_of("db-1")).unwrap();
        assert_eq!(names.spec.unwrap().publish_not_ready_addresses, Some(true));
    }

    #[test]
    fn rights_are_bound_to_whom_they_are_for_in_every_namespace() {
        let odd = rights(&Subject { kind: "User", name: "o'b: rien".to_owned() }, &["123".to_owned()]);
        let bindings = odd.split("---\n").filter(|one| one.contains("kind: RoleBinding"));
        let bindings: Vec<RoleBinding> = bindings.map(|text| parsed(text).unwrap()).collect();
        assert!(bindings.iter().all(|one| one.subjects.as_ref().unwrap()[0].name == "o'b: rien"));
        assert_eq!(bindings[1].metadata.namespace.as_deref(), Some("123"));
        let subject = Subject { kind: "User", name: "jane".to_owned() };
        let text = rights(&subject, &["db".to_owned(), "shop".to_owned()]);
        let documents: Vec<&str> = text.split("---\n").collect();
        assert_eq!(documents.len(), 7);
        assert_eq!(documents.iter().filter(|document| document.contains("kind: User, name: \"jane\"")).count(), 3);
        let roles: Vec<Role> =
            documents.iter().filter(|one| one.contains("kind: Role\n")).map(|text| parsed(text).unwrap()).collect();
        let namespaces: Vec<_> = roles.iter().map(|role| role.metadata.namespace.clone().unwrap()).collect();
        assert_eq!(namespaces, [NAMESPACE, "db", "shop"]);
        assert!(
            roles.iter().flat_map(|role| role.rules.iter().flatten()).all(|rule| !rule.verbs.contains(&"*".to_owned()))
        );
    }
}
