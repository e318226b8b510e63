//! An ordinary user gets the same truth, by a user namespace, and leaves as little.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::fs;

use common::{SHORT, both, brownout, experiment, in_private_mounts, json, only_run, require_root};

/// No account has it; a user is a number to the kernel.
const USER: u32 = 61_847;

#[test]
fn an_ordinary_user_runs_the_experiment_in_a_user_namespace() {
    require_root();
    let machine = common::Machine::now();
    let home = tempfile::Builder::new().prefix("brownout-rootless-").tempdir_in("/tmp").unwrap();
    let place = home.path().display();
    // The experiment and the program too are copied: root's folders are not theirs to read.
    fs::copy(common::BROWNOUT, home.path().join("brownout")).unwrap();
    fs::copy(experiment("slow-replica.yaml"), home.path().join("slow-replica.yaml")).unwrap();
    let root_cache = std::env::var_os("BROWNOUT_CACHE").map_or_else(
        || format!("{}/.cache/brownout", std::env::var("HOME").unwrap()),
        |cache| cache.into_string().unwrap(),
    );
    let sets: Vec<String> = SHORT.iter().map(|set| format!("'{set}'")).collect();
    // The device is 0600 on some machines; here it is given to all, in mounts that only this script sees.
    let script = format!(
        "mkdir {place}/dev {place}/cache; mount -t tmpfs none {place}/dev; mknod -m 0666 {place}/dev/tun c 10 200
         mount --bind {place}/dev/tun /dev/net/tun
         if [ -d {root_cache} ]; then cp -r --preserve=timestamps {root_cache}/. {place}/cache; fi
         chown -R {USER}:{USER} {place}/cache; chown {USER}:{USER} {place}
         cd {place}
         code=0
         setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps=-all env HOME={place} \
             BROWNOUT_CACHE={place}/cache ./brownout run slow-replica.yaml --json {} || code=$?
         umount {place}/dev
         exit $code",
        sets.join(" ")
    );
    let output = in_private_mounts(&script);
    let findings = json(&output);
    assert_eq!(findings["environment"]["privilege"], "user namespace");
    assert_eq!(findings["environment"]["emulator_scheduling"], "SCHED_OTHER");
    assert_eq!(findings["trials"][0]["faults"][0]["verdict"], "proven", "{}", findings["trials"][0]["faults"]);
    // Without real-time scheduling a busy machine may make the instrument late; the run has to say so then, and only then.
    let too_late = findings["trials"][0]["instrument"]["too_late"].as_bool().unwrap();
    assert_eq!(output.status.code(), Some(if too_late { 3 } else { 0 }), "{}", both(&output));
    assert_eq!(common::Machine::now(), machine);
    let shown = brownout(&["show", only_run(&home.path().join("runs")).to_str().unwrap(), "--json"]);
    assert_eq!(json(&shown), findings);
}
