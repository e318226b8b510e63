//! Runs over several machines, each of which makes a part of every trial. Here they are network namespaces with bridges of their own,
//! and the clocks of some of them began hours before the others'.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
    process::Output,
    time::Duration,
};

use brownout_record::{MachineRole, Run, TrialState};

use super::{
    apart::{apart, network_of},
    common::{Running, both, brownout, descendants, json, kill, require_root, undisturbed},
    findings::{LINK_FAULTS, LINK_KINDS, LINK_PHASES, assert_all_are, named, pairs},
    hosts::{MACHINES, Shop, etcd, on_machines},
    look::Setup,
    runs::{assert_all_end, assert_goes_on},
};

const PHASES: &str = "{ warm-up: 16s, baseline: 8s, fault: 11s, recovery: 8s }";
const SLOW: &str = "  - slow: { host: n3, delay: 40ms }\n";
/// By how many seconds the monotonic clock of the second machine, and of the second that sends, is ahead.
const AHEAD: [i64; 2] = [5_000, 90_000];

/// An experiment on the hosts of two machines, with operations sent from two others.
fn file(directory: &Path, shop: &Shop, phases: &str, faults: &str) -> PathBuf {
    let pids: Vec<String> = shop.pids().iter().map(u32::to_string).collect();
    let [in_second, in_fourth] =
        AHEAD.map(|seconds| format!("unshare --time --fork --kill-child --monotonic {seconds} --"));
    let machine = |at: usize, more: &str, containers: &str| {
        let (name, program) = (MACHINES[at], env!("CARGO_BIN_EXE_brownout"));
        format!(
            "    {name}: {{ via: 'nsenter --net=/run/netns/{name} -- {more}', program: '{program}'{containers} }}\n"
        )
    };
    let [first, second] =
        [&pids[..2], &pids[2..]].map(|pids| format!(", containers: {{ pids: [{}] }}", pids.join(", ")));
    let machines =
        [machine(0, "", &first), machine(1, &in_second, &second), machine(2, "", ""), machine(3, &in_fourth, "")];
    let path = directory.join("machines.yaml");
    let text = format!(
        "ground:\n  machines:\n{}\
         cluster: {{ etcd: '3', nodes: 3 }}\n\
         load: {{ mix: {{ put: 1, range: 1 }}, population: 500, rate: 200/s, timeout: 2s }}\n\
         phases: {phases}\n\
         faults:\n{faults}\
         trials: 1\nwithout-fault: 0\nattempts: 1\nobjective: {{ p95: 2s }}\n",
        machines.concat()
    );
    fs::write(&path, text).unwrap();
    path
}

fn run(out: &Path, shop: &Shop, phases: &str, faults: &str, more: &[&str]) -> Output {
    let file = file(out, shop, phases, faults);
    let (file, out) = (file.to_str().unwrap().to_owned(), out.join("runs"));
    let mut arguments = vec!["run", file.as_str(), "--json", "--out", out.to_str().unwrap()];
    arguments.extend(more);
    brownout(&arguments)
}

/// What is set up on all machines and in all hosts.
fn setup(shop: &Shop) -> Setup {
    let machines = MACHINES.map(|machine| Path::new("/run/netns").join(machine));
    let hosts = shop.hosts.iter().map(|host| host.namespace.clone());
    Setup::of(&hosts.chain(machines).chain([network_of(std::process::id())]).collect::<Vec<_>>())
}

/// The file of the only run below a directory.
fn record(out: &Path) -> PathBuf {
    let runs = fs::read_dir(out.join("runs")).unwrap();
    let mut files: Vec<PathBuf> = runs.map(|run| run.unwrap().path().join("run.db")).collect();
    assert_eq!(files.len(), 1, "{files:?}");
    files.remove(0)
}

#[test]
fn a_slow_host_is_proven_over_machines_whose_clocks_began_hours_apart() {
    require_root();
    etcd();
    apart(&a_slow_host_is_proven_over_machines_whose_clocks_began_hours_apart, || {
        let mut shop = Shop::on(on_machines());
        let mut connection = shop.connection(2, 0);
        connection.assert_fast();
        let before = setup(&shop);
        let Some((out, output, findings)) = undisturbed(|out| run(out, &shop, PHASES, SLOW, &[])) else { return };
        assert_eq!(output.status.code(), Some(0), "{}", both(&output));
        assert_eq!(findings["verdict"]["validity"], "valid", "{}", findings["verdict"]);
        let fault = &findings["trials"][0]["faults"][0];
        assert_eq!(fault["verdict"], "proven", "{fault}");
        // The third host is alone on the second machine: two of its links end on the first.
        let third = named(&findings, shop.hosts[2].address);
        let hit = pairs(fault, "one-way-delay", true);
        assert!(hit.len() == 3 && hit.iter().all(|(from, _)| *from == third), "{third}: {hit:?}");
        assert_eq!(pairs(fault, "one-way-delay", false).len(), 9, "{fault}");
        let balance = &findings["trials"][0]["balance"];
        assert!(balance["balances"] == true && balance["scheduled"].as_u64() > Some(27 * 200), "{balance}");

        let run = Run::open(&record(out.path())).unwrap();
        let machines = run.machines(1).unwrap();
        let told: Vec<(&str, MachineRole, usize)> =
            machines.iter().map(|one| (one.machine.as_str(), one.role, one.hosts.len())).collect();
        let (agent, load) = (MachineRole::Agent, MachineRole::Load);
        assert_eq!(told, [("m1", agent, 2), ("m2", agent, 1), ("m3", load, 0), ("m4", load, 0)]);
        // By how much the first one's clock is ahead of the others', whose time namespaces are ahead of it.
        let clocks = run.machine_clocks(1).unwrap();
        for (machine, ahead) in [("m2", -AHEAD[0]), ("m3", 0), ("m4", -AHEAD[1])] {
            let known: Vec<_> = clocks.iter().filter(|row| row.machine == machine && row.other == "m1").collect();
            assert!(known.len() > 20, "{machine}: {known:?}");
            for row in known {
                let off = row.ahead_ns.abs_diff(ahead * 1_000_000_000);
                assert!(off <= row.error_ns, "{machine}: {row:?} is off by {off} ns");
            }
        }
        // What was sent in a second was sent by both, each its half.
        let loads: Vec<u64> = run.load(1).unwrap().iter().map(|row| row.scheduled).collect();
        assert!(loads.iter().filter(|scheduled| **scheduled == 200).count() > 20, "{loads:?}");

        connection.assert_fast();
        before.assert_is_back();
        shop.assert_all_live();
        shop.assert_holds_nothing_of_ours();
    });
}

/// The process on a machine that makes its part.
fn part_on(running: &Running, machine: &str) -> u32 {
    let network = fs::metadata(Path::new("/run/netns").join(machine)).unwrap().ino();
    let is_there = |pid: &u32| fs::metadata(network_of(*pid)).is_ok_and(|own| own.ino() == network);
    let all = descendants(running.child.id());
    let there: Vec<u32> = all.into_iter().map(|(pid, _)| pid).filter(is_there).collect();
    assert_eq!(there.len(), 1, "{machine}");
    there[0]
}

#[test]
#[ignore = "a minute; what is counted of a lost load is tested in lab and record, and on pods: make test-long"]
fn what_a_load_was_still_to_send_when_it_was_lost_is_never_sent_and_the_trial_goes_on_without_it() {
    require_root();
    etcd();
    apart(&what_a_load_was_still_to_send_when_it_was_lost_is_never_sent_and_the_trial_goes_on_without_it, || {
        let mut shop = Shop::on(on_machines());
        let before = setup(&shop);
        let out = tempfile::tempdir().unwrap();
        let file = file(out.path(), &shop, PHASES, SLOW);
        let runs = out.path().join("runs");
        let mut running = Running::start(&[file.to_str().unwrap(), "--out", runs.to_str().unwrap()]);
        running.wait_for("fault  ");
        // The first of both: it has made what is written to, and was to drop it.
        kill(part_on(&running, "m3"), libc::SIGKILL);
        let (code, told) = running.finish();
        assert_eq!(code, Some(3), "half of the load is missing:\n{told}");
        assert!(told.contains("m3 was lost at"), "{told}");

        let run = Run::open(&record(out.path())).unwrap();
        assert_eq!(run.trials().unwrap()[0].state, TrialState::Done, "it went on: {told}");
        let events = run.events_of(1).unwrap();
        let lost = events.iter().find(|event| event.kind == "load-lost").unwrap();
        assert_eq!(lost.subject, "m3");
        let baseline = run.phases(1).unwrap().into_iter().find(|phase| phase.name == "baseline").unwrap();
        let load = run.load(1).unwrap();
        let since = |from_ns: u64| load.iter().filter(move |row| row.starts_ns >= from_ns);
        // From the baseline to the end all that was due is in the account, whoever was to send it.
        let scheduled: Vec<u64> = since(baseline.starts_ns).map(|row| row.scheduled).collect();
        let whole = scheduled.iter().filter(|scheduled| **scheduled == 200).count();
        assert!(whole >= 26 && whole + 1 >= scheduled.len(), "{scheduled:?}");
        let after = since(lost.at_ns + lost.error_ns);
        assert!(after.clone().count() >= 15 && after.clone().all(|row| row.never_sent == 100), "{load:?}");
        let by_then: Vec<_> = load.iter().filter(|row| row.starts_ns + 2 * row.length_ns < lost.at_ns).collect();
        assert!(by_then.len() > 15 && by_then.iter().all(|row| row.never_sent == 0), "{load:?}");

        let found = json(&brownout(&["show", record(out.path()).to_str().unwrap(), "--json"]));
        let trial = &found["trials"][0];
        assert_eq!(trial["balance"]["balances"], true, "{}", trial["balance"]);
        let reasons = trial["invalid"].to_string();
        assert!(reasons.contains("m3 is lost, which has made what operations are sent to"), "{reasons}");
        let machine = trial["machines"].as_array().unwrap().iter().find(|one| one["machine"] == "m3").unwrap();
        let share = |phase: &str| machine["lost"]["shares"][phase].as_f64().unwrap();
        assert!(share("baseline") == 0.0 && share("fault") > 0.3 && share("recovery") == 0.5, "{machine}");
        assert_eq!(trial["faults"][0]["verdict"], "proven", "{trial}");

        before.assert_is_back();
        shop.assert_all_live();
        // The other one has dropped it.
        shop.assert_holds_nothing_of_ours();
    });
}

#[test]
fn machines_heal_by_themselves_when_their_controller_is_gone() {
    require_root();
    etcd();
    apart(&machines_heal_by_themselves_when_their_controller_is_gone, || {
        let mut shop = Shop::on(on_machines());
        let mut connection = shop.connection(2, 0);
        connection.assert_fast();
        let before = setup(&shop);
        let out = tempfile::tempdir().unwrap();
        let phases = "{ warm-up: 16s, baseline: 5s, fault: 60s, recovery: 6s }";
        let faults = "
  - slow: { host: n3, delay: 200ms }
  - pause: { host: n2 }
";
        let file = file(out.path(), &shop, phases, faults);
        let runs = out.path().join("runs");
        let mut running = Running::start(&[file.to_str().unwrap(), "--out", runs.to_str().unwrap()]);
        running.wait_for("fault  ");
        connection.assert_slow(Duration::from_millis(190));
        before.assert_is_changed();
        let processes = descendants(running.child.id());
        running.signal(libc::SIGKILL);
        running.child.wait().unwrap();
        // For as long as their lease lasts, all goes on as it was told ahead.
        std::thread::sleep(Duration::from_secs(11));
        connection.assert_fast();
        before.assert_is_back();
        shop.pids().into_iter().for_each(assert_goes_on);
        assert_all_end(&processes);
        shop.assert_all_live();
        shop.assert_holds_nothing_of_ours();
    });
}

#[test]
#[ignore = "two minutes: every fault of links over machines: make test-long"]
fn every_fault_of_links_is_proven_over_machines() {
    require_root();
    etcd();
    apart(&every_fault_of_links_is_proven_over_machines, || {
        let shop = Shop::on(on_machines());
        let before = setup(&shop);
        let Some((_, output, findings)) = undisturbed(|out| run(out, &shop, LINK_PHASES, LINK_FAULTS, &[])) else {
            return;
        };
        assert_all_are("proven", &LINK_KINDS, &findings);
        assert!(matches!(output.status.code(), Some(0 | 1)), "{}", both(&output));
        before.assert_is_back();
    });
}

#[test]
#[ignore = "two minutes: every fault of links over machines that was not put in force: make test-long"]
fn every_fault_of_links_is_refuted_over_machines_when_it_was_not_put_in_force() {
    require_root();
    etcd();
    apart(&every_fault_of_links_is_refuted_over_machines_when_it_was_not_put_in_force, || {
        let shop = Shop::on(on_machines());
        let sabotaged = |out: &Path| run(out, &shop, LINK_PHASES, LINK_FAULTS, &["--sabotage"]);
        let Some((_, output, findings)) = undisturbed(sabotaged) else { return };
        assert_all_are("refuted", &LINK_KINDS, &findings);
        assert_eq!(output.status.code(), Some(3), "{}", both(&output));
    });
}
