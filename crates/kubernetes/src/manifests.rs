//! What an experiment makes in a cluster, as texts that people read: with the reason beside each right.

use crate::{LABEL, NAMESPACE};

/// The image of this program, where nobody names another.
pub const IMAGE: &str = concat!("brownout:", env!("CARGO_PKG_VERSION"));
/// The name of the DaemonSet of agents, and of their container.
pub const AGENT: &str = "agent";
/// The name of the container of a pod that sends operations.
pub const LOAD: &str = "load";
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
metadata: {{ name: brownout-targets, namespace: {namespace}, labels: {{ {LABEL}: brownout }} }}
rules:
# Which pods are the database's, and where they run.
- {{ apiGroups: [''], resources: [pods], verbs: [list] }}
# The addresses of services behind which there is one pod alone: what is sent there is sent to it.
- {{ apiGroups: [''], resources: [services], verbs: [list] }}
# What Kubernetes itself did meanwhile: restarts, evictions, probes that failed.
- {{ apiGroups: [''], resources: [events], verbs: [list] }}
{}",
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
metadata: {{ name: {role}, namespace: {namespace}, labels: {{ {LABEL}: brownout }} }}
roleRef: {{ apiGroup: rbac.authorization.k8s.io, kind: Role, name: {role} }}
subjects: [{{ apiGroup: rbac.authorization.k8s.io, kind: {kind}, name: '{name}' }}]
"
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
        image: '{image}'
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
"
    )
}

/// The name of the Job of a run.
pub fn job(run: &str) -> String {
    format!("{LOAD}-{run}")
}

/// The Job of a run whose pods send operations: `count` of them, which wait for what they are told.
pub fn loads(run: &str, image: &str, count: u32) -> String {
    format!(
        "apiVersion: batch/v1
kind: Job
metadata: {{ name: '{}', namespace: {NAMESPACE}, labels: {{ {LABEL}: brownout }} }}
spec:
  completions: {count}
  parallelism: {count}
  completionMode: Indexed
  backoffLimit: 0
  # Whatever became of whoever made it.
  activeDeadlineSeconds: 86400
  ttlSecondsAfterFinished: 300
  template:
    metadata: {{ labels: {{ app: brownout-{LOAD}, {RUN}: '{run}', {LABEL}: brownout }} }}
    spec:
      automountServiceAccountToken: false
      restartPolicy: Never
      terminationGracePeriodSeconds: 5
      # On different nodes, as far as there are so many.
      topologySpreadConstraints:
      - maxSkew: 1
        topologyKey: kubernetes.io/hostname
        whenUnsatisfiable: ScheduleAnyway
        labelSelector: {{ matchLabels: {{ {RUN}: '{run}' }} }}
      containers:
      - name: {LOAD}
        image: '{image}'
        imagePullPolicy: IfNotPresent
        command: [/bin/brownout, {IDLE}]
        securityContext:
          capabilities:
            drop: [ALL]
            add: [SYS_NICE]  # sends on time: SCHED_FIFO
",
        job(run)
    )
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::{apps::v1::DaemonSet, batch::v1::Job, rbac::v1::Role};

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
    fn rights_are_bound_to_whom_they_are_for_in_every_namespace() {
        let subject = Subject { kind: "User", name: "jane".to_owned() };
        let text = rights(&subject, &["db".to_owned(), "shop".to_owned()]);
        let documents: Vec<&str> = text.split("---\n").collect();
        assert_eq!(documents.len(), 7);
        assert_eq!(documents.iter().filter(|document| document.contains("kind: User, name: 'jane'")).count(), 3);
        let roles: Vec<Role> =
            documents.iter().filter(|one| one.contains("kind: Role\n")).map(|text| parsed(text).unwrap()).collect();
        let namespaces: Vec<_> = roles.iter().map(|role| role.metadata.namespace.clone().unwrap()).collect();
        assert_eq!(namespaces, [NAMESPACE, "db", "shop"]);
        assert!(
            roles.iter().flat_map(|role| role.rules.iter().flatten()).all(|rule| !rule.verbs.contains(&"*".to_owned()))
        );
    }
}
