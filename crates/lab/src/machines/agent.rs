//! The part that is attached to the hosts of its machine: it carries what they send, puts faults in force, and measures.

use std::{
    collections::BTreeMap,
    net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket},
    path::Path,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use brownout_base::{Mesh, clock::monotonic_ns};
use brownout_clock::offset::Server;
use brownout_machine::Scheduling;
use brownout_network::{AttachedKind, AttachedSpec, Host, HostId, Network};
use brownout_probe::{FarArrival, FarEnd, Probes, Tell, Trains};
use brownout_record::{Arm, Recorder};

use super::{
    line::{Line, Teller},
    mesh::MachinesMesh,
    message::{FarHost, FromPart, Peer, Ready, ToPart},
    part::{Axis, Left, TRIAL, Task, recorder, tick_of},
    relay::{AllTold, Clocks, Relay, Stream},
};
use crate::{
    LabError,
    containers::Follower,
    evidence::DatabaseEvidence,
    experiment::ContainersFound,
    faults::{Fault, Needs, here, sabotage::sabotaged},
    hosts::Hosts,
    observer::{Observer, Sources},
    plan::{PlannedFault, probe_interval},
    schedule::Schedule,
    spec::Runs,
    testbed::{READY_WITHIN, Testbed},
    timeline::TimeLine,
    witness::Witnesses,
};

/// Between two messages of a controller that sets a trial up.
const SET_UP_WITHIN: Duration = Duration::from_secs(180);
/// Between two looks at what was told, while a trial goes on.
const LOOK: Duration = Duration::from_millis(50);
/// What a look takes at most, nearly always: what is due soon after it comes first.
const LOOK_TAKES_NS: u64 = 100_000_000;

/// Makes the part; what came of it, and what it leaves beside its record.
pub(super) fn agent(task: &Task, line: &Line, path: &Path) -> Result<(Result<(), LabError>, Left), LabError> {
    let machines = machines(task)?;
    let is_here = |host: &str| machines.get(host).is_some_and(|machine| *machine == task.machine);
    let needs = task.plan.needs().of_hosts(&is_here);
    let mut testbed = Testbed::build(&task.spec, 1, task.seed, &needs)?;
    testbed.cluster.wait_ready(READY_WITHIN, &|| task.interrupts.any(), &mut |_| {})?;
    let network = Arc::clone(&testbed.network);
    let realtime = Mesh::is_realtime(&*network);

    // What others need to reach this machine.
    let failed = |source| LabError::Ground { doing: "open what other machines speak to", source };
    let own = own_address(&network);
    let clock = UdpSocket::bind((own, 0)).map_err(failed)?;
    let clock_address = clock.local_addr().map_err(failed)?;
    let _server = Server::start(clock, realtime)?;
    let (told, clocks) = (Arc::<AllTold>::default(), Arc::<Mutex<Clocks>>::default());
    let listener = TcpListener::bind((own, 0)).map_err(failed)?;
    let mut relay = Relay::listen(listener, Arc::clone(&told), Arc::clone(&clocks))?;
    let later: Arc<Mutex<Option<Box<Tell>>>> = Arc::default();
    let tell_later = Arc::clone(&later);
    // Nobody is there to be told until all others are known.
    let tell = move |arrivals: Vec<FarArrival>| {
        if let Some(tell) = tell_later.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            tell(arrivals);
        }
    };
    let streams = MachinesMesh { network: &network, told: &told, stream: Stream::Probes };
    // Of hosts elsewhere nothing is known yet, and nothing is opened there.
    let nowhere: SocketAddr = (Ipv4Addr::UNSPECIFIED, 0).into();
    for host in network.hosts().iter().filter(|host| host.is_elsewhere()) {
        told.are_at(host.id(), &[nowhere; Stream::COUNT as usize]);
    }
    let far_end = FarEnd::start(&streams, Stream::COUNT, Box::new(tell))?;
    let far = Arc::new(Mutex::new(far_end));
    let far_hosts = || network.hosts().iter().filter_map(|host| far_host(host, &task.machine, &far)).collect();
    let ready = Ready {
        clock: Some(clock_address),
        relay: Some(relay.address()),
        far: far_hosts(),
        boot: boot(),
        pids: testbed.cluster.nodes().iter().filter(|node| node.alive()).map(|node| node.pid()).collect(),
    };
    line.tell(&FromPart::Ready(Box::new(ready)));

    let peers = peers(line)?;
    let beside = peers.iter().filter(|peer| peer.boot == boot()).flat_map(|peer| peer.pids.clone()).collect();
    let axis = Axis::among(&task.machine, &peers, |_| true, realtime, &clocks)?;
    let relays = peers.iter().filter(|peer| peer.machine != task.machine);
    let relays = relays.map(|Peer { machine, relay, .. }| (machine.clone(), *relay)).collect();
    let machine_of = network.hosts().iter().filter_map(|host| Some((host.id(), machines.get(host.name())?.clone())));
    let teller = relay.teller(&task.machine, relays, machine_of.collect())?;
    *later.lock().unwrap_or_else(PoisonError::into_inner) = Some(teller);
    line.tell(&FromPart::Synchronised { error_ns: axis.wait(task.interrupts)? });

    let mut running = Running {
        task,
        line,
        axis: &axis,
        network: &network,
        told: &told,
        far: &far,
        relay: &relay,
        beside,
        epoch_ns: 0,
    };
    running.epoch_ns = running.until_begin()?;
    let mut recorder = recorder(path, running.epoch_ns, task.seed, arm_of(&task.plan.faults))?;
    let left = Left { exchanges: Vec::new(), zero_ns: running.epoch_ns };
    let result = running.trial(&mut testbed, &needs, &is_here, &mut recorder);
    recorder.finish()?;
    Ok((result, Left { exchanges: axis.exchanges(), ..left }))
}

/// The hosts of all machines.
fn found(task: &Task) -> Result<&ContainersFound, LabError> {
    match &task.spec.runs {
        Runs::External { ground: Some(found), .. } => Ok(found),
        _ => Err(LabError::Machine("the experiment has no hosts that run already".to_owned())),
    }
}

/// On which machine each of them is.
fn machines(task: &Task) -> Result<BTreeMap<String, String>, LabError> {
    Ok(found(task)?.containers.iter().filter_map(|one| Some((one.name.clone(), one.machine.clone()?))).collect())
}

/// Which machine this is, as long as it is up; empty where the kernel does not tell.
fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned()
}

/// From which this machine speaks to others: the address by which its own hosts know it.
fn own_address(network: &Network) -> IpAddr {
    network.host(Hosts::LOAD).map_or(Ipv4Addr::UNSPECIFIED, Host::address).into()
}

fn arm_of(faults: &[PlannedFault]) -> Arm {
    if faults.is_empty() { Arm::None } else { Arm::Fault }
}

/// Where a host is measured from other machines; none if it is not here.
fn far_host(host: &Host, machine: &str, far: &Mutex<FarEnd>) -> Option<FarHost> {
    if host.name() == Hosts::LOAD || host.is_elsewhere() {
        return None;
    }
    let far = far.lock().unwrap_or_else(PoisonError::into_inner);
    let addresses = (0..Stream::COUNT).map(|stream| far.address(host.id(), stream)).collect::<Option<Vec<_>>>()?;
    let own = [Some(host.address().into()), host.address6().map(IpAddr::from)];
    let own = own.into_iter().flatten().collect();
    Some(FarHost { host: host.name().to_owned(), machine: machine.to_owned(), own, addresses })
}

/// All machines that take part.
pub(super) fn peers(line: &Line) -> Result<Vec<Peer>, LabError> {
    loop {
        match line.wait(SET_UP_WITHIN)? {
            Some(ToPart::Peers(peers)) => return Ok(peers),
            Some(ToPart::Stop) => return Err(LabError::Interrupted),
            Some(_) => {}
            None => return Err(silent()),
        }
    }
}

pub(super) fn silent() -> LabError {
    LabError::Trial("the controller has not said what is next".to_owned())
}

/// A part that knows all others.
struct Running<'a> {
    task: &'a Task,
    line: &'a Line,
    axis: &'a Axis,
    network: &'a Arc<Network>,
    told: &'a AllTold,
    far: &'a Arc<Mutex<FarEnd>>,
    relay: &'a Relay,
    /// Processes of hosts of other parts that are on this machine, too.
    beside: Vec<u32>,
    /// When intervals begin, by this machine's clock.
    epoch_ns: u64,
}

/// Who measures links, and has to know where hosts are.
#[derive(Clone, Copy)]
struct Senders<'a> {
    probes: &'a Probes,
    trains: Option<&'a Trains>,
}

impl Running<'_> {
    fn until_begin(&self) -> Result<u64, LabError> {
        loop {
            match self.line.wait(SET_UP_WITHIN)? {
                Some(ToPart::Begin { epoch_ns }) => return self.axis.on_own(epoch_ns),
                Some(ToPart::Far(hosts)) => self.are_at(&hosts)?,
                Some(ToPart::Stop) => return Err(LabError::Interrupted),
                Some(ToPart::Now) => self.line.tell(&FromPart::Now { axis_ns: self.axis.now()?.0 }),
                Some(_) => {}
                None => return Err(silent()),
            }
        }
    }

    /// Hosts of other machines are there from now on.
    fn are_at(&self, hosts: &[FarHost]) -> Result<(), LabError> {
        for FarHost { host, machine, own, addresses } in hosts {
            let Some(known) = self.network.host(host).filter(|_| *machine != self.task.machine) else { continue };
            self.told.are_at(known.id(), addresses);
            let is_moved = own.first().is_some_and(|first| *first != IpAddr::from(known.address()));
            if is_moved {
                // What is sent there is carried, wherever it is.
                let namespace = crate::containers::own_network()?;
                let found = found(self.task)?.container(host);
                let services = found.iter().flat_map(|container| &container.services);
                let (name, addresses) = (host.clone(), own.iter().chain(services).copied().collect());
                let kind = AttachedKind::Elsewhere;
                let spec = AttachedSpec { name, addresses, namespace: Arc::new(namespace), exits: Vec::new(), kind };
                self.network.reattach(spec)?;
            }
        }
        Ok(())
    }

    fn trial(
        &self,
        testbed: &mut Testbed,
        needs: &Needs,
        is_here: &dyn Fn(&str) -> bool,
        recorder: &mut Recorder,
    ) -> Result<(), LabError> {
        let Task { plan, seed, sabotage, interrupts, spec, .. } = self.task;
        let time_line = TimeLine::from(self.epoch_ns, *interrupts);
        time_line.wait_until(self.epoch_ns)?;
        let hosts = &plan.layout.hosts;
        let Testbed { network, cluster, capabilities, controls, attached, .. } = testbed;
        let network: &Network = network;
        let measured_ns = monotonic_ns();
        let mesh = |stream| MachinesMesh { network, told: self.told, stream };
        let links = controls.watched(hosts);
        let probes = Arc::new(Probes::start_on(&mesh(Stream::Probes), &links, probe_interval(hosts))?);
        let witnesses = Witnesses::start(needs, network, &mesh(Stream::Trains), network.mtu(), controls)?;
        let trains = witnesses.trains();
        let mut followers = witnesses.followers();
        followers.push(Arc::<Probes>::clone(&probes));
        followers.push(Arc::new(Elsewhere {
            machine: self.task.machine.clone(),
            far: Arc::clone(self.far),
            controller: self.line.teller(),
            network: Arc::clone(self.network),
            axis: self.axis.clone(),
        }));
        let _following = attached.as_ref().map(|attached| attached.followed_by(followers, measured_ns)).transpose()?;
        let evidence = DatabaseEvidence::start(&controls.nodes, needs, time_line.epoch_ns)?;
        let sources = Sources {
            network,
            probes: &probes,
            overlay_probes: None,
            witnesses: &witnesses,
            evidence: &evidence,
            attached: attached.as_ref(),
            proc: &spec.proc,
            has_neighbours: false,
            beside: &self.beside,
        };
        let mut observer = Observer::new(TRIAL, recorder, cluster, sources, time_line.epoch_ns)?;
        let capabilities =
            here::on_these(capabilities, hosts.nodes().map(|node| node.name.clone()).filter(|node| is_here(node)));
        let capabilities = if *sabotage { sabotaged(&capabilities) } else { capabilities };
        // Of faults that touch nobody here others tell.
        let touches = |fault: &PlannedFault| fault.fault().is_some_and(|fault| touches(fault, hosts, is_here));
        let mut schedule = Schedule::of(&plan.faults, &touches, hosts, &capabilities, *seed);
        self.line.tell(&FromPart::Done);

        let senders = Senders { probes: &probes, trains: trains.as_deref() };
        let result = self.until_end(&time_line, &mut schedule, &mut observer, senders);
        // Whatever happened: heal, and keep what was seen.
        let at_once = || result.is_err() || interrupts.any();
        let healed = schedule.heal_all(&at_once, TRIAL, &mut observer);
        let settled = match result.is_ok() {
            true => time_line.wait_until(monotonic_ns() + observer.probes_settle_within().as_nanos() as u64),
            false => Ok(()),
        };
        let looked = observer.look(None);
        observer.last_probes()?;
        observer.own_faults()?;
        if network.realtime() == Scheduling::Default {
            let text = format!(
                "the emulator of {} waits its turn among other programs (it has no SCHED_FIFO there): what it holds may be late \
                 while the machine is busy",
                self.task.machine
            );
            observer.event("warning", "network", &text, monotonic_ns(), 0)?;
        }
        let untold = self.relay.untold();
        if untold > 0 {
            let text = format!(
                "{} could not tell other machines of {untold} packets that had arrived here: they count as lost there",
                self.task.machine
            );
            observer.event("warning", "network", &text, monotonic_ns(), 0)?;
        }
        result.and(healed).and(settled).and(looked.map(drop))
    }

    /// Until the last phase is over.
    fn until_end(
        &self,
        time_line: &TimeLine,
        schedule: &mut Schedule<'_>,
        observer: &mut Observer<'_>,
        senders: Senders<'_>,
    ) -> Result<(), LabError> {
        let mut ends_ns = u64::MAX;
        loop {
            let mark = time_line.next_mark(monotonic_ns());
            let before_look = if mark >= ends_ns { mark } else { mark + LOOK_TAKES_NS };
            loop {
                while let Some(message) = self.line.next() {
                    self.hear(message, schedule, &mut ends_ns, senders)?;
                }
                let due = schedule.next_action().filter(|at| *at <= before_look);
                // What is told meanwhile may be due before that.
                let until = due.unwrap_or(mark).min(monotonic_ns() + LOOK.as_nanos() as u64);
                time_line.wait_until(until)?;
                if due.is_some_and(|due| due <= monotonic_ns()) {
                    self.act(schedule, observer)?;
                } else if due.is_none() && monotonic_ns() >= mark {
                    break;
                }
            }
            self.act(schedule, observer)?;
            let seen = observer.look(None)?;
            seen.deaths.into_iter().for_each(|text| self.line.tell(&FromPart::Note { text }));
            let rows = self.axis.rows(&self.task.machine, observer.recorder());
            observer.recorder().batch(|recorder| rows.iter().try_for_each(|row| recorder.machine_clock(TRIAL, row)))?;
            let error_ns = self.axis.now().ok().map(|(_, error_ns)| error_ns);
            self.line.tell(&tick_of(schedule.in_force(), seen.busy, seen.seconds, error_ns));
            if mark >= ends_ns {
                return Ok(());
            }
        }
    }

    fn act(&self, schedule: &mut Schedule<'_>, observer: &mut Observer<'_>) -> Result<(), LabError> {
        let told = schedule.act(TRIAL, observer)?;
        told.into_iter().for_each(|text| self.line.tell(&FromPart::Note { text }));
        Ok(())
    }

    fn hear(
        &self,
        message: ToPart,
        schedule: &mut Schedule<'_>,
        ends_ns: &mut u64,
        Senders { probes, trains }: Senders<'_>,
    ) -> Result<(), LabError> {
        match message {
            ToPart::Faults { from_ns } => schedule.begin(self.axis.on_own(from_ns)?),
            ToPart::End { at_ns } => *ends_ns = self.axis.on_own(at_ns)?,
            ToPart::Left { host, since_ns } => {
                if let Some(host) = self.network.host(&host) {
                    let since_ns = self.axis.on_own(since_ns)?;
                    probes.left(host.id(), since_ns);
                    trains.into_iter().for_each(|trains| trains.left(host.id(), since_ns));
                }
            }
            ToPart::Far(hosts) => {
                self.are_at(&hosts)?;
                for FarHost { host, machine, .. } in hosts {
                    if let Some(host) = self.network.host(&host).filter(|_| machine != self.task.machine) {
                        probes.back(host.id());
                        trains.into_iter().for_each(|trains| trains.back(host.id()));
                    }
                }
            }
            ToPart::Stop => return Err(LabError::Interrupted),
            // What only loads are told.
            _ => {}
        }
        Ok(())
    }
}

/// Whether a fault hits something that is put in force on this machine. One that follows a role may.
fn touches(fault: &dyn Fault, hosts: &Hosts, is_here: &dyn Fn(&str) -> bool) -> bool {
    use brownout_record::Subject;
    let is_carried_here = |(from, to): &(String, String)| is_here(if from == Hosts::LOAD { to } else { from });
    let hit = fault.expectations(hosts).into_iter().filter(|one| one.hit);
    let is_struck_here = |one: brownout_record::Expectation| match one.subject {
        Subject::Host { host } | Subject::Directory { host, .. } => is_here(&host),
        // Of many pairs not all are measured: what is hit, the fault itself says.
        Subject::Pair { .. } | Subject::Overlay { .. } => false,
    };
    fault.role().is_some() || fault.links().iter().any(is_carried_here) || hit.into_iter().any(is_struck_here)
}

/// Tells the controller, and so all other machines, where the hosts of this one are.
struct Elsewhere {
    machine: String,
    far: Arc<Mutex<FarEnd>>,
    controller: Teller,
    network: Arc<Network>,
    axis: Axis,
}

impl Elsewhere {
    fn name(&self, host: HostId) -> String {
        self.network.name(host).unwrap_or_default().to_owned()
    }
}

impl Follower for Elsewhere {
    fn left(&self, host: HostId, since_ns: u64) {
        // Where that cannot be told, nobody could use it.
        if let Ok((since_ns, _)) = self.axis.on_axis(since_ns) {
            self.controller.tell(&FromPart::Left { host: self.name(host), since_ns });
        }
    }

    fn came(&self, host: &Host) -> Result<(), LabError> {
        self.far.lock().unwrap_or_else(PoisonError::into_inner).came(host.id(), host)?;
        if let Some(far) = far_host(host, &self.machine, &self.far) {
            self.controller.tell(&FromPart::Came(far));
        }
        Ok(())
    }
}
