//! A lab by hand of an ordinary user, in a user namespace.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test ends by panicking")]

mod common;

use std::fs;

use common::{both, in_private_mounts, require_root, text};

/// No account has it; a user is a number to the kernel.
const USER: u32 = 61_848;

#[test]
fn an_ordinary_user_has_labs_of_his_own() {
    require_root();
    let home = tempfile::Builder::new().prefix("bh-user-").tempdir_in("/tmp").unwrap();
    let place = home.path().display();
    // The program too is copied: root's directories are not theirs to read.
    fs::copy(common::BROWNOUT, home.path().join("brownout")).unwrap();
    let cache = std::env::var("BROWNOUT_CACHE")
        .unwrap_or_else(|_| format!("{}/.cache/brownout", std::env::var("HOME").unwrap()));
    // The devices are 0600 on some machines; here they are given to all, in mounts that only this script sees.
    let script = format!(
        "mkdir {place}/dev {place}/cache; mount -t tmpfs none {place}/dev; mknod -m 0666 {place}/dev/tun c 10 200
         mount --bind {place}/dev/tun /dev/net/tun
         if [ -d {cache} ]; then cp -r --preserve=timestamps {cache}/. {place}/cache; rm -rf {place}/cache/labs; fi
         chown -R {USER}:{USER} {place}/cache; chown {USER}:{USER} {place}; cd {place}
         code=0
         setpriv --reuid {USER} --regid {USER} --clear-groups --inh-caps=-all env -u XDG_RUNTIME_DIR HOME={place} \
             BROWNOUT_CACHE={place}/cache sh -euc '
             ./brownout up --nodes 1 --no-disk
             stat -c \"%a %U %n\" .local/state/brownout .local/state/brownout/lab/lab.sock
             ./brownout slow n1 100ms
             ./brownout ping load n1 --count 3
             ./brownout clock n1 +5s
             ./brownout exec n1 -- id -u
             ./brownout nodetool n1 status
             ./brownout cql \"SELECT key FROM system.local\"
             ./brownout status
             ./brownout destroy
             ./brownout ls
             ls cache/labs' || code=$?
         umount {place}/dev
         exit $code"
    );
    let output = in_private_mounts(&script);
    let said = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{}", both(&output));
    for words in [
        "700 ",
        "600 ",
        "n1: SLOW 100ms out",
        "3 received",
        "clock +5.00s",
        "UN ",
        "(1 row)",
        "lab is gone",
        "no lab is running",
    ] {
        assert!(said.contains(words), "'{words}' is missing: {}", both(&output));
    }
    assert!(said.lines().any(|line| line == "0"), "in a lab its owner is root: {said}");
    assert!(said.ends_with("no lab is running\n"), "nothing is left in the cache: {said}");
}
