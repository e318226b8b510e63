//! Tests that run apart from the machine: in network, mount and PID namespaces of their own, which stand for it. Whatever they
//! leave goes with these, and what others do to the machine's interfaces is not seen.

use std::{
    any::type_name_of_val,
    env,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use super::common::{both, repository, require_root, text};

/// Set where a test runs apart.
const APART: &str = "BROWNOUT_TEST_APART";

/// `/sys` shows the interfaces of the namespace that mounted it; control groups lie below it, and stay where they are.
const OWN_MOUNTS: &str = "\
    mount --rbind /sys/fs/cgroup \"$0\"; mount -t sysfs sysfs /sys; mount --rbind \"$0\" /sys/fs/cgroup; umount -l \"$0\"
    mount -t tmpfs tmpfs /run; ip link set lo up; exec \"$@\"";

/// Does `body` in namespaces of its own; `test` is the test that asks for it.
pub fn apart<T: Fn()>(test: &T, body: impl FnOnce()) {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "--net", "--pid", "--fork", "--kill-child", "--mount-proc"]);
    command.args(["sh", "-euc", OWN_MOUNTS]).arg(directory.path());
    again_by(command, test, body);
}

/// The same, with a Docker or a podman of its own.
pub fn beside_engine<T: Fn()>(engine: &str, test: &T, body: impl FnOnce()) {
    let mut command = Command::new(repository().join("scripts/engine-in-namespace"));
    command.arg(engine);
    again_by(command, test, body);
}

/// Runs this test once more, by `command`, and `body` there.
fn again_by<T: Fn()>(mut command: Command, test: &T, body: impl FnOnce()) {
    require_root();
    // `containers::runs::a_test` is the test `runs::a_test`.
    let name = type_name_of_val(test).split_once("::").unwrap().1;
    if env::var(APART).is_ok_and(|one| one == name) {
        return body();
    }
    command.arg(env::current_exe().unwrap());
    command.args(["--exact", name, "--include-ignored", "--nocapture", "--test-threads=1"]);
    let output = command.env(APART, name).stdin(Stdio::null()).output().unwrap();
    assert!(output.status.success(), "{}", both(&output));
    // A name that is no test's would be none that fails.
    assert!(text(&output.stdout).contains("1 passed"), "{}", both(&output));
}

/// Where a network namespace of a process can be entered.
pub fn network_of(pid: u32) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join("ns/net")
}
