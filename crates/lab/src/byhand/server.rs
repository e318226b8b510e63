//! The lab's first process: builds the lab, reports progress, and then answers clients, each on a thread of its own.

use std::{
    os::{
        fd::{AsFd, FromRawFd, OwnedFd},
        unix::net::{UnixListener, UnixStream},
    },
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    thread,
    time::Duration,
};

use brownout_base::{Change, clock::monotonic_ns};
use brownout_clock::write_object;
use rustix::io::{FdFlags, fcntl_setfd};

use super::{
    Failure, LabFile,
    answers::answer,
    attached::{AttachedHosts, unasked},
    exec,
    lab::{Lab, TestbedRef},
    protocol::{Reply, Request, VERSION},
    wire::{self, wait_readable},
};
use crate::{
    LabError,
    containers::with_clocks,
    experiment::Source,
    faults::Needs,
    ground::Interrupts,
    plan::Layout,
    progress::{Progress, Tick},
    request::{AttachedLab, LabRequest},
    testbed::{READY_WITHIN, Testbed},
};

/// Between two looks at whether the lab shall end.
const LOOK: Duration = Duration::from_secs(1);
/// The same, of those who answer while the lab is made.
const EARLY_LOOK: Duration = Duration::from_millis(100);
const TAKE_EARLY_WITHIN: Duration = Duration::from_millis(500);
/// Who does not say what he wants by then wants nothing.
const ASK_WITHIN: Duration = Duration::from_secs(5);
/// Who does not take his answer by then does not get it.
const TAKE_WITHIN: Duration = Duration::from_secs(10);
/// More clients at once are a mistake.
const MOST_CLIENTS: usize = 64;
/// Between two looks at the processes of nodes, for the event log.
const WATCH: Duration = Duration::from_millis(500);
/// The exit code of what its user has ended.
const ENDED_BY_USER: i32 = 130;

/// Makes the lab and serves it to its end. Returns the exit code of the first process.
pub(crate) fn inside(request: LabRequest, interrupts: Interrupts) -> u8 {
    // SAFETY: the keeper handed these over to this process alone. They are for no program that is started here.
    let (birth, listener, _lock) = unsafe {
        let own = |descriptor| {
            let owned = OwnedFd::from_raw_fd(descriptor);
            let _ = fcntl_setfd(&owned, FdFlags::CLOEXEC);
            owned
        };
        (UnixStream::from(own(request.birth)), UnixListener::from(own(request.listener)), own(request.lock))
    };
    crate::ground::keep_request_from_children();
    let born = Arc::new(AtomicBool::new(false));
    let Ok(watched) = birth.try_clone() else { return 4 };
    let is_born = Arc::clone(&born);
    thread::spawn(move || {
        // `up` says nothing: when there is something to read, it has gone.
        while !is_born.load(Ordering::Acquire) {
            if wait_readable(watched.as_fd(), LOOK) && !is_born.load(Ordering::Acquire) {
                // The end of this process is the end of all.
                std::process::exit(ENDED_BY_USER);
            }
        }
    });
    if let Ok(early) = listener.try_clone() {
        let is_born = Arc::clone(&born);
        thread::spawn(move || answer_early(&early, &is_born));
    }
    let made = make(request, interrupts, &birth);
    born.store(true, Ordering::Release);
    match made {
        Ok(lab) => {
            let told = wire::send(&birth, &Reply::Done(0));
            drop(birth);
            // Nobody has waited for it: then nobody wants it.
            if told.is_err() {
                return ENDED_BY_USER as u8;
            }
            let lab = Arc::new(lab);
            let code = serve(&lab, &listener, interrupts);
            if lab.is_attached() {
                // Whoever has ended it with a signal waits for no answer.
                lab.let_go("the end of the lab").iter().for_each(|line| eprintln!("brownout: {line}"));
            }
            code
        }
        Err(failure) => {
            let code = failure.code;
            // Nobody left to tell.
            let _ = wire::send(&birth, &Reply::Failed(failure));
            code
        }
    }
}

/// Tells those who ask before there is a lab.
fn answer_early(listener: &UnixListener, is_born: &AtomicBool) {
    while !is_born.load(Ordering::Acquire) {
        // Who comes once it is born comes after this has looked.
        if wait_readable(listener.as_fd(), EARLY_LOOK)
            && !is_born.load(Ordering::Acquire)
            && let Ok((client, _)) = listener.accept()
        {
            // What is asked has to be taken off, or its end comes before the answer.
            let _ = client.set_read_timeout(Some(TAKE_EARLY_WITHIN));
            let _ = wire::receive_up_to::<Request>(&client, wire::LONGEST_REQUEST);
            let _ = wire::send(&client, &Reply::Starting);
        }
    }
}

/// What `up` shows.
struct Told<'a>(&'a UnixStream);

impl Progress for Told<'_> {
    // A lab by hand is alone.
    fn of_lab(&mut self, _: u32) {}

    fn step(&mut self, text: &str) {
        // If nobody listens, the watcher ends the lab.
        let _ = wire::send(self.0, &Reply::Step(text.to_owned()));
    }

    fn note(&mut self, text: &str) {
        let _ = wire::send(self.0, &Reply::Line(text.to_owned()));
    }

    fn hand_over(&mut self) {}

    fn tick(&mut self, _: &Tick) {}
}

fn make(request: LabRequest, interrupts: Interrupts, birth: &UnixStream) -> Result<Lab, Failure> {
    let mut progress = Told(birth);
    let mut source = Source::from_text(&request.file, request.text.clone())?;
    if request.attached.is_some() {
        source = source.with_attached(request.files.clone());
    }
    let LabFile { layout, seed, .. } = LabFile::of(source, &request.set)?;
    if let Some(attached) = &request.attached {
        return make_attached(&request, attached, layout, seed, &mut progress);
    }
    progress.step("making the lab's namespaces");
    let asked_ns = monotonic_ns();
    let mut spec = request.provided.furnish(&[&layout])?.remove(0);
    request.provided.provide_archive(&mut spec, interrupts, &mut progress)?;
    let nodes: Vec<String> = layout.hosts.nodes().map(|node| node.name.clone()).collect();
    let s = if nodes.len() == 1 { "" } else { "s" };
    progress.step(&format!("{} hosts, starting {} node{s}", layout.hosts.iter().count(), nodes.len()));
    let disks = if request.no_disk.is_none() { nodes.clone() } else { Vec::new() };
    let clocks = if layout.kind().fixed_clock().is_none() { nodes } else { Vec::new() };
    let needs = Needs { disks, clocks, ..Needs::default() };
    let mut testbed = Testbed::build(&spec, 1, seed, &needs)?;
    let ready = testbed
        .cluster
        .wait_ready(READY_WITHIN, &|| interrupts.any(), &mut |missing| progress.step(missing))
        .map_err(|error| if interrupts.any() { LabError::Interrupted } else { error.into() })?;
    progress.note(&format!("cluster ready after {:.1}s", ready.took.as_secs_f64()));
    let paths = spec.paths(1);
    let lab = Lab {
        name: request.name,
        system: request.provided.database_of(&layout.cluster),
        started_unix_ms: request.started_unix_ms,
        seed,
        layout,
        control: testbed.cluster.control(),
        testbed: TestbedRef::of(testbed),
        logs: (spec.logs.clone(), request.provided.directory.join("logs")),
        object: write_object(&paths.scratch).ok(),
        has_database: true,
        attached: None,
        no_disk: request.no_disk,
        ledger: Default::default(),
        events: Default::default(),
        timer: Default::default(),
        chaos: Default::default(),
        failed: Default::default(),
        drawn: Default::default(),
        listening: Default::default(),
        sessions: Default::default(),
    };
    let change = Change::between(asked_ns, monotonic_ns());
    lab.events.note(change, "up", &lab.name, &format!("{} is ready", lab.name), &request.who);
    Ok(lab)
}

/// A lab on containers that run already: nothing is started, and nothing has to become ready.
fn make_attached(
    request: &LabRequest,
    attached: &AttachedLab,
    layout: Layout,
    seed: u64,
    progress: &mut dyn Progress,
) -> Result<Lab, Failure> {
    let nodes = layout.hosts.nodes().count();
    let s = if nodes == 1 { "" } else { "s" };
    progress.step(&format!("attaching to {nodes} container{s}"));
    let asked_ns = monotonic_ns();
    let spec = request.provided.furnish(&[&layout])?.remove(0);
    let found = layout.containers.as_ref().filter(|_| layout.kind().fixed_clock().is_none());
    let needs = Needs { clocks: found.map(with_clocks).unwrap_or_default(), ..Needs::default() };
    let mut testbed = Testbed::build(&spec, 1, seed, &needs)?;
    if !attached.has_database {
        testbed.capabilities = unasked(&testbed.capabilities);
    }
    let hosts = AttachedHosts::new(&testbed.network, &testbed.controls.clocks, &spec.scratch)?;
    let lab = Lab {
        name: request.name.clone(),
        system: attached.system.clone(),
        started_unix_ms: request.started_unix_ms,
        seed,
        layout,
        control: testbed.cluster.control(),
        testbed: TestbedRef::of(testbed),
        logs: (spec.logs.clone(), request.provided.directory.join("logs")),
        object: None,
        has_database: attached.has_database,
        attached: Some(hosts),
        no_disk: request.no_disk.clone(),
        ledger: Default::default(),
        events: Default::default(),
        timer: Default::default(),
        chaos: Default::default(),
        failed: Default::default(),
        drawn: Default::default(),
        listening: Default::default(),
        sessions: Default::default(),
    };
    let change = Change::between(asked_ns, monotonic_ns());
    lab.events.note(change, "attach", &lab.name, &format!("attached to {}", lab.system), &request.who);
    Ok(lab)
}

/// Answers until the lab shall end.
fn serve(lab: &Arc<Lab>, listener: &UnixListener, interrupts: Interrupts) -> u8 {
    for (name, body) in [("timer", run_timer as fn(Arc<Lab>)), ("watch", watch)] {
        let lab = Arc::clone(lab);
        if thread::Builder::new().name(name.to_owned()).spawn(move || body(lab)).is_err() {
            return 4;
        }
    }
    let clients = Arc::new(AtomicUsize::new(0));
    while !interrupts.any() {
        if !wait_readable(listener.as_fd(), LOOK) {
            continue;
        }
        let Ok((client, _)) = listener.accept() else { continue };
        let _ = client.set_write_timeout(Some(TAKE_WITHIN));
        if clients.fetch_add(1, Ordering::AcqRel) >= MOST_CLIENTS {
            clients.fetch_sub(1, Ordering::AcqRel);
            refuse(&client, "too many commands are running in this lab; wait for some to finish");
            continue;
        }
        let (lab, counted) = (Arc::clone(lab), Arc::clone(&clients));
        let attended = thread::Builder::new().name("client".to_owned()).spawn(move || {
            let _counted = ClientCount(counted);
            attend(&lab, &client);
        });
        if attended.is_err() {
            clients.fetch_sub(1, Ordering::AcqRel);
        }
    }
    0
}

/// One client fewer, however its thread ends.
struct ClientCount(Arc<AtomicUsize>);

impl Drop for ClientCount {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

fn refuse(client: &UnixStream, message: &str) {
    let _ = wire::send(client, &Reply::Failed(Failure::failed(message)));
}

fn run_timer(lab: Arc<Lab>) {
    lab.timer.run(&lab)
}

/// Notes when a node's process is seen in another state, whoever brought it there.
fn watch(lab: Arc<Lab>) {
    let look = || -> Vec<String> {
        let state = |node: &String| lab.node_state(node).map_or_else(|_| "DOWN".to_owned(), |state| state.to_string());
        lab.control.names().iter().map(state).collect()
    };
    let (mut known, mut known_ns) = (look(), monotonic_ns());
    loop {
        thread::sleep(WATCH);
        exec::bury(&lab);
        lab.note_failed_hosts();
        lab.note_restarts();
        let (now, now_ns) = (look(), monotonic_ns());
        for ((node, before), after) in lab.control.names().iter().zip(&known).zip(&now) {
            if before != after {
                let text = format!("{node} was {before} and is {after}");
                lab.events.note(Change::between(known_ns, now_ns), "state", node, &text, "seen by the lab");
            }
        }
        (known, known_ns) = (now, now_ns);
    }
}

fn attend(lab: &Arc<Lab>, client: &UnixStream) {
    let ours = rustix::process::geteuid().as_raw();
    match wire::peer_user(client) {
        Ok(user) if user == ours || user == 0 => {}
        _ => return refuse(client, "this lab belongs to another user"),
    }
    let _ = client.set_read_timeout(Some(ASK_WITHIN));
    let (request, streams) = match wire::receive_up_to::<Request>(client, wire::LONGEST_REQUEST) {
        Ok(Some(asked)) => asked,
        Ok(None) => return,
        Err(error) => return refuse(client, &format!("this is not a brownout request: {error}")),
    };
    if request.version != VERSION {
        return refuse(
            client,
            "the lab was started by another version of brownout; use that, or end the lab: brownout destroy",
        );
    }
    let _ = client.set_read_timeout(None);
    let last = match answer(lab, request, streams, client) {
        Ok(code) => Reply::Done(code),
        Err(failure) => Reply::Failed(failure),
    };
    let _ = wire::send(client, &last);
}
