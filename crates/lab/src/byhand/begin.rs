//! `up`: from a lab file to a lab that is ready.

use std::{
    collections::BTreeMap,
    fs::{self, DirBuilder, File, OpenOptions},
    io::{self, Read, Seek, SeekFrom, Write},
    os::{
        fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd},
        unix::{
            fs::{DirBuilderExt, PermissionsExt},
            net::{UnixListener, UnixStream},
            process::CommandExt,
        },
    },
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use brownout_cluster::cache;
use brownout_disk::Disk;
use rustix::io::fcntl_dupfd_cloexec;

use super::{
    Failure,
    keeper::KEEP,
    lab_file::{GROUND, LabFile},
    protocol::Reply,
    registry::{self, Claim, LabRegistry},
    wire::{self, wait_readable},
};
use crate::{
    experiment::Source,
    ground::Interrupts,
    machine,
    progress::Progress,
    provided::Found,
    request::{LabRequest, Request},
};

/// Between two looks at whether the user has given up.
const LOOK: Duration = Duration::from_millis(200);
/// Descriptors that are inherited stand above those of the standard streams and of the lab's request.
const FIRST_INHERITED: i32 = 10;

/// What is asked of [`up`].
#[derive(Debug, Clone, Default)]
pub struct Up {
    /// The lab file; none: three nodes of Cassandra 5.0.
    pub file: Option<PathBuf>,
    /// The lab's name. Default: the file's, or "lab".
    pub name: Option<String>,
    /// `KEY=VALUE` in the file.
    pub set: Vec<String>,
    /// How many nodes; none: as the file says.
    pub nodes: Option<u64>,
    /// Which etcd they run; none: what the file says.
    pub etcd: Option<String>,
    /// Where the nodes keep their data, in a directory of the lab's name. Default: in the cache.
    pub dir: Option<PathBuf>,
    /// No disks that can be slow.
    pub no_disk: bool,
    /// The command line, for the event log.
    pub who: String,
}

/// Starts a lab, and returns its name when it is ready; whatever goes wrong, nothing is left.
pub fn up(asked: &Up, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<String, Failure> {
    let (file, text) = match &asked.file {
        Some(file) => {
            let source = Source::read(file)?;
            if source.sections().contains(&GROUND) {
                let message = "its ground is containers, and up makes a lab of its own; work on them with: brownout attach \
                               FILE, or leave ground out";
                return Err(source.complain(GROUND, message.to_owned()).into());
            }
            (file.clone(), source.text().to_owned())
        }
        // A mapping, since the reader wants one.
        None => (PathBuf::from("lab"), "seed: 1\n".to_owned()),
    };
    let mut set = asked.set.clone();
    set.extend(asked.nodes.map(|nodes| format!("cluster.nodes={nodes}")));
    set.extend(asked.etcd.iter().map(|version| format!("cluster.etcd={version}")));
    let lab = LabFile::read(&file, &text, &set)?;
    if !lab.ignored.is_empty() {
        progress.note(&format!("not used in a lab by hand: {}", lab.ignored.join(", ")));
    }
    let no_disk = match asked.no_disk {
        true => Some("the lab was started with --no-disk".to_owned()),
        false => Disk::available().err(),
    };
    if let Some(reason) = no_disk.as_ref().filter(|_| !asked.no_disk) {
        progress.note(&format!("no slow disks in this lab: {reason}"));
    }
    let stem = || file.file_stem().map_or_else(|| "lab".to_owned(), |stem| stem.to_string_lossy().into_owned());
    let name = asked.name.clone().unwrap_or_else(stem);
    let registry = LabRegistry::mine()?;
    let section = &lab.layout.cluster;
    if section.is_external() {
        let message = "a lab by hand makes its own nodes, and an external cluster is none of ours to play with; leave \
                       cluster.external out";
        return Err(Failure::wrong(message));
    }
    let base = match &asked.dir {
        Some(dir) => dir.clone(),
        None => cache::directory().map_err(|error| Failure::cannot(error.to_string()))?.join("labs"),
    };
    machine::refuse_if_lacking(&lab.layout, &base)?;
    let claim = registry.claim(&name)?;
    let mut unborn = Unborn::new(&registry, claim);
    let found = Found::find(&[section], &file, interrupts, progress)?;
    let born = unborn.born(&base, |work, birth, claim, listener| LabRequest {
        name: name.clone(),
        registry: registry.root().to_owned(),
        provided: found.in_directory(work),
        file: file.clone(),
        text: text.clone(),
        set: set.clone(),
        attached: None,
        files: BTreeMap::new(),
        no_disk: no_disk.clone(),
        started_unix_ms: now_unix_ms(),
        who: asked.who.clone(),
        lock: claim,
        listener,
        birth,
    })?;
    born.wait(interrupts, progress)?;
    Ok(name)
}

/// The wall clock, ms since 1970 UTC.
pub(super) fn now_unix_ms() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_millis() as u64)
}

/// A lab whose keeper has not taken over yet. Dropping it removes all that was made for it.
pub(super) struct Unborn {
    registry: LabRegistry,
    claim: Option<Claim>,
    work: Option<PathBuf>,
}

impl Drop for Unborn {
    fn drop(&mut self) {
        if let Some(claim) = self.claim.take() {
            if let Some(work) = self.work.take() {
                registry::remove_directory(&work);
            }
            self.registry.remove(&claim.directory);
        }
    }
}

impl Unborn {
    /// Of a name that has just been claimed.
    pub(super) fn new(registry: &LabRegistry, claim: Claim) -> Unborn {
        Unborn { registry: registry.clone(), claim: Some(claim), work: None }
    }

    /// Makes its directories and its socket, and starts its keeper.
    pub(super) fn born(
        &mut self,
        base: &Path,
        request: impl FnOnce(&Path, i32, i32, i32) -> LabRequest,
    ) -> Result<Born, Failure> {
        let Some(claim) = &self.claim else { return Err(Failure::failed("the lab has been started already")) };
        let failed = |doing: &str, path: &Path, error: io::Error| {
            let path = path.display();
            Failure::cannot(format!("cannot {doing} {path}: {error}; check the space and the rights there"))
        };
        let name = &claim.directory.name;
        fs::create_dir_all(base).map_err(|error| failed("make", base, error))?;
        let base = base.canonicalize().map_err(|error| failed("find", base, error))?;
        let work = base.join(name);
        DirBuilder::new().mode(0o700).create(&work).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => Failure::cannot(format!(
                "{} already exists and belongs to none of your running labs; remove it, or choose another \
                 directory with --dir",
                work.display()
            )),
            _ => failed("make", &work, error),
        })?;
        self.work = Some(work.clone());
        claim.directory.write_work(&work).map_err(|error| failed("write in the directory of", &work, error))?;
        for part in ["scratch", "logs"] {
            let part = work.join(part);
            fs::create_dir(&part).map_err(|error| failed("make", &part, error))?;
        }
        let log_path = work.join("keeper.log");
        let log = OpenOptions::new().create(true).truncate(false).read(true).write(true).open(&log_path);
        let log = log.map_err(|error| failed("make", &log_path, error))?;
        let socket = claim.directory.socket();
        let listener = UnixListener::bind(&socket).map_err(|error| failed("listen on", &socket, error))?;
        fs::set_permissions(&socket, fs::Permissions::from_mode(0o600))
            .map_err(|error| failed("protect", &socket, error))?;
        let started = |error: io::Error| Failure::cannot(format!("cannot start the lab's keeper: {error}"));
        let (birth, theirs) = UnixStream::pair().map_err(started)?;
        let inherited = [theirs.as_fd(), claim.lock.as_fd(), listener.as_fd()].map(inheritable);
        let [theirs, lock, listener] = inherited;
        let (theirs, lock, listener) = (theirs.map_err(started)?, lock.map_err(started)?, listener.map_err(started)?);
        let request = request(&work, theirs.as_raw_fd(), lock.as_raw_fd(), listener.as_raw_fd());
        let request = serde_json::to_vec(&Request::ByHand(Box::new(request))).map_err(|error| started(error.into()))?;
        let output = || log.try_clone().map(Stdio::from).map_err(started);
        let mut command = Command::new("/proc/self/exe");
        command.arg0("brownout").arg(KEEP).stdin(Stdio::piped()).stdout(output()?).stderr(output()?).current_dir("/");
        let kept = [theirs.as_raw_fd(), lock.as_raw_fd(), listener.as_raw_fd()];
        // SAFETY: only system calls.
        unsafe {
            command.pre_exec(move || {
                // A session of its own: the terminal's signals and its end are not the lab's.
                libc::setsid();
                // Nor are files that this process has got from its shell; kernels before 5.11 leave them.
                libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC);
                kept.iter().for_each(|descriptor| {
                    libc::fcntl(*descriptor, libc::F_SETFD, 0);
                });
                Ok(())
            });
        }
        let mut keeper = command.spawn().map_err(started)?;
        let handed = keeper.stdin.take().map_or(Ok(()), |mut stdin| stdin.write_all(&request));
        // From here on the keeper removes what was made; one that could not read its order, too.
        self.claim = None;
        handed.map_err(started)?;
        Ok(Born { keeper, birth, log })
    }
}

/// A copy above those of the standard streams and of the lab's request. The keeper inherits it, since only its start clears
/// the flag that closes it.
fn inheritable(descriptor: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    Ok(fcntl_dupfd_cloexec(descriptor, FIRST_INHERITED)?)
}

/// A lab under way, with the stream on which it tells how far it is. If that closes, the lab ends.
pub(super) struct Born {
    keeper: Child,
    birth: UnixStream,
    log: File,
}

impl Born {
    pub(super) fn wait(mut self, interrupts: Interrupts, progress: &mut dyn Progress) -> Result<(), Failure> {
        let ended = loop {
            if interrupts.any() {
                break Failure { message: "interrupted; the lab is gone".to_owned(), code: 130 };
            }
            if !wait_readable(self.birth.as_fd(), LOOK) {
                continue;
            }
            match wire::receive::<Reply>(&self.birth) {
                Ok(Some((Reply::Step(text), _))) => progress.step(&text),
                Ok(Some((Reply::Line(text), _))) => progress.note(&text),
                Ok(Some((Reply::Done(_), _))) => return Ok(()),
                Ok(Some((Reply::Failed(failure), _))) => break failure,
                Ok(Some(_)) => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Ok(None) | Err(_) => break self.last_words(),
            }
        };
        drop(self.birth);
        // It removes what was made, and then nothing is left.
        let _ = self.keeper.wait();
        Err(ended)
    }

    fn last_words(&mut self) -> Failure {
        let mut said = Vec::new();
        let _ = self.log.seek(SeekFrom::Start(0)).and_then(|_| self.log.read_to_end(&mut said));
        let said = String::from_utf8_lossy(&said);
        let last: Vec<&str> = said.lines().rev().take(5).collect();
        let last: Vec<&str> = last.into_iter().rev().collect();
        let words = if last.is_empty() {
            "its log is empty".to_owned()
        } else {
            format!("the end of its log: {}", last.join(" / "))
        };
        Failure::cannot(format!("the lab ended before it was ready; {words}"))
    }
}
