//! Three nodes of Cassandra on pods, and the experiment that is made for a Compose project: there, and in a lab.

use std::{fs, path::Path, process::Command};

use tempfile::TempDir;

use super::{
    cluster::{apply, kubectl, nothing_of_ours, permitted, run_as_jane, until},
    common::{BROWNOUT, both, brownout, json, only_run, packed, repository, text},
};

const SHORT: [&str; 6] = [
    "--set=phases={warm-up: 30s, baseline: 11s, fault: 11s, recovery: 11s}",
    "--set=trials=1",
    "--set=without-fault=0",
    "--set=attempts=1",
    "--set=load.population=1_000",
    "--set=load.rate=100/s",
];

/// A StatefulSet of them, until this is dropped.
struct Nodes {
    _files: TempDir,
}

impl Nodes {
    fn up() -> Nodes {
        let files = tempfile::tempdir().unwrap();
        let mounted = packed::write(files.path());
        let (mut volumes, mut mounts) = (String::new(), String::new());
        for (number, place) in mounted.iter().enumerate() {
            let place = place.display();
            volumes += &format!("      - {{ name: m{number}, hostPath: {{ path: {place} }} }}\n");
            mounts += &format!("        - {{ name: m{number}, mountPath: {place}, readOnly: true }}\n");
        }
        let version = text(&Command::new(BROWNOUT).arg("--version").output().unwrap().stdout);
        let version = version.split_whitespace().nth(1).unwrap();
        apply(&format!(
            "apiVersion: v1
kind: Namespace
metadata: {{ name: db }}
---
apiVersion: v1
kind: Service
metadata: {{ name: cassandra, namespace: db }}
spec: {{ clusterIP: None, publishNotReadyAddresses: true, selector: {{ app: cassandra }}, ports: [{{ name: cql, port: 9042 }}] }}
---
apiVersion: apps/v1
kind: StatefulSet
metadata: {{ name: cassandra, namespace: db }}
spec:
  serviceName: cassandra
  replicas: 3
  selector: {{ matchLabels: {{ app: cassandra }} }}
  template:
    metadata: {{ labels: {{ app: cassandra }} }}
    spec:
      terminationGracePeriodSeconds: 2
      topologySpreadConstraints:
      - {{ maxSkew: 1, topologyKey: kubernetes.io/hostname, whenUnsatisfiable: ScheduleAnyway, labelSelector: {{ matchLabels: {{ app: cassandra }} }} }}
      containers:
      - name: cassandra
        # Any that the nodes have: all that is started is mounted.
        image: brownout:{version}
        imagePullPolicy: IfNotPresent
        command: [/usr/bin/sh, -c, cp -r /files/cassandra/. /cassandra/ && exec sh /cassandra/start]
        env:
        - {{ name: PATH, value: /usr/bin }}
        - {{ name: CASSANDRA_CLUSTER_NAME, value: pods }}
        - {{ name: CASSANDRA_NUM_TOKENS, value: \"16\" }}
        - {{ name: CASSANDRA_SEEDS, value: cassandra-0.cassandra.db.svc.cluster.local }}
        - {{ name: MAX_HEAP_SIZE, value: 256M }}
        readinessProbe: {{ tcpSocket: {{ port: 9042 }}, periodSeconds: 1 }}
        volumeMounts:
        - {{ name: home, mountPath: /cassandra }}
        - {{ name: files, mountPath: /files, readOnly: true }}
{mounts}      volumes:
      - {{ name: home, emptyDir: {{}} }}
      - {{ name: files, hostPath: {{ path: {} }} }}
{volumes}",
            files.path().display()
        ));
        let made = Nodes { _files: files };
        let ready = || {
            kubectl(&["get", "statefulset", "cassandra", "--namespace=db", "--output=jsonpath={.status.readyReplicas}"])
        };
        // They join one after the other.
        for count in ["1", "2", "3"] {
            until(&format!("{count} nodes of Cassandra are ready"), || ready() == count);
        }
        made
    }
}

impl Drop for Nodes {
    fn drop(&mut self) {
        kubectl(&["delete", "statefulset,service", "cassandra", "--namespace=db"]);
        let pods = ["get", "pods", "--namespace=db", "--selector=app=cassandra", "--output=name"];
        until("nodes of Cassandra are gone", || kubectl(&pods).is_empty());
    }
}

/// What the tests need that no registry is asked for: there is no way to one beside the cluster.
#[test]
#[ignore = "before the others of make test-kubernetes, where there is a way to Maven's repository"]
fn jars_are_in_the_cache() {
    packed::cassandra();
}

#[test]
#[ignore = "needs a Kubernetes: make test-kubernetes"]
fn the_same_file_shows_a_slow_replica_on_pods_and_in_a_lab_and_both_are_compared() {
    permitted();
    let example = repository().join("examples/compose/slow-replica.yaml");
    let (on_pods, in_lab) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let nodes = Nodes::up();
    let ground = "--ground=kubernetes: { namespace: db, selector: app=cassandra, loads: 2 }";
    let out = |directory: &Path| directory.to_str().unwrap().to_owned();
    let words = ["run", example.to_str().unwrap(), "--json", "--out", &out(on_pods.path()), ground];
    let output = run_as_jane(&[&words[..], &SHORT].concat());
    // Kubernetes' own programs may disturb it: of its size nothing is asked here.
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", both(&output));
    let trial = &json(&output)["trials"][0];
    assert_eq!(trial["faults"][0]["verdict"], "proven", "{}", trial["faults"][0]);
    assert_eq!(trial["balance"]["balances"], true, "{}", trial["balance"]);
    nothing_of_ours();
    drop(nodes);

    let written = fs::read_to_string(&example).unwrap();
    let (before, after) = written.split_once("ground:\n  containers: { project: shop }\n").unwrap();
    let file = in_lab.path().join("slow-replica.yaml");
    fs::write(&file, format!("{before}{after}")).unwrap();
    let runs = in_lab.path().join("runs");
    let words = ["run", file.to_str().unwrap(), "--json", "--out", runs.to_str().unwrap()];
    let output = brownout(&[&words[..], &SHORT].concat());
    assert!(matches!(output.status.code(), Some(0 | 1 | 3)), "{}", both(&output));
    assert_eq!(json(&output)["trials"][0]["faults"][0]["verdict"], "proven");

    let both_runs = [runs.as_path(), on_pods.path()].map(|out| only_run(out).display().to_string());
    let printed = brownout(&["compare", &both_runs[0], &both_runs[1]]);
    let told = text(&printed.stdout);
    assert!(told.contains("ground differs: a lab → "), "{}", both(&printed));
    // What was asked is the same.
    for same in ["load differs", "consistency differs", "replication differs", "phases differ"] {
        assert!(!told.contains(same), "{told}");
    }
}
