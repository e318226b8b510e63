//! The Kubernetes that `scripts/kubernetes-in-namespaces` has made, with three members of etcd on it.

use std::{
    env, fs,
    io::{BufRead, BufReader, Lines},
    os::unix::process::CommandExt,
    path::PathBuf,
    process::{Child, ChildStderr, Command, Output, Stdio},
    sync::Once,
    thread,
    time::{Duration, Instant},
};

use super::common::{BROWNOUT, both, repository, text};

/// What pods take to run, or to be gone.
const WITHIN: Duration = Duration::from_secs(120);

pub fn kubectl(words: &[&str]) -> String {
    let output = Command::new("kubectl").args(words).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "kubectl {words:?}: {}", both(&output));
    text(&output.stdout)
}

pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < WITHIN, "{what}: not within {} s", WITHIN.as_secs());
        thread::sleep(Duration::from_millis(300));
    }
}

/// Gives what a manifest says.
pub fn apply(manifest: &str) {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("manifest.yaml");
    fs::write(&file, manifest).unwrap();
    kubectl(&["apply", "--filename", file.to_str().unwrap()]);
}

/// Somebody without rights, but those that `manifests` gives.
pub fn jane() -> PathBuf {
    let admin = env::var("KUBECONFIG")
        .unwrap_or_else(|_| panic!("there is no Kubernetes here: make test-kubernetes makes one"));
    PathBuf::from(admin).with_file_name("jane")
}

/// The example's members of etcd, ready; made by the first who asks.
pub fn etcd() {
    static MADE: Once = Once::new();
    MADE.call_once(|| {
        // A member that is deleted comes back with its data: on a volume, which here is a directory that goes with the cluster.
        let data = jane().with_file_name("data-of-etcd");
        let volume = format!(
            "      volumes: [{{ name: data, hostPath: {{ path: {}, type: DirectoryOrCreate }} }}]\n",
            data.display()
        );
        let mount = "        volumeMounts: [{ name: data, mountPath: /data }]\n";
        let text = fs::read_to_string(repository().join("examples/kubernetes/etcd.yaml")).unwrap();
        let kept = text.replace("--data-dir=/tmp/etcd", "--data-dir=/data/$(NAME)");
        assert_ne!(kept, text);
        apply(&(kept.trim_end().to_owned() + "\n" + mount + &volume));
        until("members of etcd are ready", || {
            kubectl(&["get", "statefulset", "etcd", "--namespace=db", "--output=jsonpath={.status.readyReplicas}"])
                == "3"
        });
    });
}

/// Gives Jane the rights to run experiments.
pub fn permitted() {
    let output = Command::new(BROWNOUT).args(["manifests", "--user=jane", "--namespace=db"]).output().unwrap();
    assert!(output.status.success(), "{}", both(&output));
    // Of the namespaces that it names only the experiments' own is made by it.
    apply("{ apiVersion: v1, kind: Namespace, metadata: { name: db } }");
    apply(&text(&output.stdout));
}

/// This program, as Jane types it.
pub fn as_jane(words: &[&str]) -> Command {
    let mut command = Command::new(BROWNOUT);
    command.args(words).env("KUBECONFIG", jane()).stdin(Stdio::null());
    command
}

pub fn run_as_jane(words: &[&str]) -> Output {
    as_jane(words).output().unwrap()
}

/// What there is of ours, by kind and name.
pub fn ours() -> Vec<String> {
    let kinds = "daemonsets,statefulsets,jobs,services,persistentvolumeclaims,pods";
    let all = kubectl(&["get", kinds, "--namespace=brownout", "--output=name", "--ignore-not-found"]);
    all.lines().map(str::to_owned).collect()
}

/// Nothing is there any more; pods may take their time.
pub fn nothing_of_ours() {
    until("nothing is left of an experiment", || ours().is_empty());
}

/// The example's experiment.
pub fn slow_follower() -> PathBuf {
    repository().join("examples/kubernetes/slow-follower.yaml")
}

/// A run of Jane's, followed by what it says.
pub struct Following {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
    told: String,
}

impl Following {
    pub fn start(words: &[&str]) -> Following {
        let mut command = as_jane(words);
        let mut child = command.process_group(0).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        Following { child, lines, told: String::new() }
    }

    /// Waits until its fault is in force.
    pub fn until_in_fault(&mut self) {
        loop {
            let line = self.lines.next().unwrap_or_else(|| panic!("it ended before its fault: {}", self.told)).unwrap();
            self.told += &format!("{line}\n");
            if line.contains("  fault  ") && !line.contains("fault none") {
                return;
            }
        }
    }

    /// Ends it and all that it has started here, without a word.
    pub fn kill(&mut self) {
        // SAFETY: kill has no memory effects; the group is that of the command, which has not been waited for.
        assert_eq!(unsafe { libc::kill(-self.child.id().cast_signed(), libc::SIGKILL) }, 0);
        self.child.wait().unwrap();
    }

    /// Its end: the exit code, and all that it said.
    pub fn end(mut self) -> (Option<i32>, String) {
        for line in self.lines.by_ref() {
            self.told += &format!("{}\n", line.unwrap());
        }
        (self.child.wait().unwrap().code(), self.told)
    }
}
