//! An ordinary user gets the same truth, by a user namespace, and leaves as little.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::{fs, path::Path, process::Output};

use common::{both, brownout, in_private_mounts, is_spoiled, json, only_run, require_root, unjudged::not_judged};

/// No account has it; a user is a number to the kernel.
const USER: u32 = 61_847;

/// One member, slow for as long as the proof takes: without real-time scheduling, three of them on two processors make the
/// instrument late. Cassandra in a user namespace is tested by hand (byhand_rootless.rs).
const FILE: &str = "\
cluster: { etcd: '3', nodes: 1 }
load: { mix: { put: 1, range: 1 }, population: 500, rate: 100/s }
phases: { warm-up: 16s, baseline: 5s, fault: 6s, recovery: 5s }
faults:
  - slow: { host: n1, delay: 100ms }
objective: { p95: 2s }
trials: 1
attempts: 1
";

/// The experiment as that user runs it, from a directory of its own.
fn run(home: &Path) -> Output {
    let place = home.display();
    // The experiment and the program too are copied: root's directories are not theirs to read.
    fs::copy(common::BROWNOUT, home.join("brownout")).unwrap();
    fs::write(home.join("slow-member.yaml"), FILE).unwrap();
    let root_cache = std::env::var_os("BROWNOUT_CACHE").map_or_else(
        || format!("{}/.cache/brownout", std::env::var("HOME").unwrap()),
        |cache| cache.into_string().unwrap(),
    );
    // The device is 0600 on some machines; here it is given to all, in mounts that only this script sees.
    let script = format!(
        "mkdir {place}/dev {place}/cache; mount -t tmpfs none {place}/dev; mknod -m 0666 {place}/dev/tun c 10 200
         mount --bind {place}/dev/tun /dev/net/tun
         if [ -d {root_cache} ]; then cp -r --preserve=timestamps {root_cache}/. {place}/cache; fi
         chown -R {USER}:{USER} {place}/cache; chown {USER}:{USER} {place}
         cd {place}
         code=0
         setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps=-all env HOME={place} \
             BROWNOUT_CACHE={place}/cache ./brownout run slow-member.yaml --json || code=$?
         umount {place}/dev
         exit $code"
    );
    in_private_mounts(&script)
}

#[test]
fn an_ordinary_user_runs_the_experiment_in_a_user_namespace() {
    require_root();
    let machine = common::Machine::now();
    let home = tempfile::tempdir().unwrap();
    let output = run(home.path());
    let findings = json(&output);
    assert_eq!(findings["environment"]["privilege"], "user namespace");
    assert_eq!(findings["environment"]["emulator_scheduling"], "SCHED_OTHER");
    // Without real-time scheduling a busy machine makes the instrument late sooner; the run has to say so then.
    if is_spoiled(&findings) {
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
        not_judged("the machine spoiled the run of an ordinary user");
    } else {
        assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "proven", "{}", findings["verdict"]);
        let missed = findings["verdict"]["objective_misses"].as_array().unwrap();
        assert_eq!(output.status.code(), Some(i32::from(!missed.is_empty())), "{}", both(&output));
    }
    assert_eq!(common::Machine::now(), machine);
    let shown = brownout(&["show", only_run(&home.path().join("runs")).to_str().unwrap(), "--json"]);
    assert_eq!(json(&shown), findings);
}
