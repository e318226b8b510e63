//! The directory of each user's labs, with a directory for each lab. A lab lives as long as its lock is held.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    thread,
    time::Duration,
};

use super::Failure;
use crate::experiment::one_of;

const LOCK: &str = "lock";
const SOCKET: &str = "lab.sock";
const WORK: &str = "work";
const KEEPER: &str = "keeper.pid";
/// Names are part of a socket's path, which has 107 bytes in all (unix(7)).
const LONGEST_NAME: usize = 40;

/// The directory of all labs of this user.
#[derive(Debug, Clone)]
pub struct LabRegistry {
    root: PathBuf,
}

/// The directory of one lab.
#[derive(Debug, Clone)]
pub struct LabDirectory {
    /// The lab's name.
    pub name: String,
    path: PathBuf,
}

/// A lab's directory with its lock, held by this process and by all that it hands the file to.
#[derive(Debug)]
pub(crate) struct Claim {
    pub(crate) directory: LabDirectory,
    pub(crate) lock: File,
}

impl LabRegistry {
    /// That of the user: `$XDG_RUNTIME_DIR/brownout`; without it `/run/brownout` for root and
    /// `~/.local/state/brownout` for others. Made if it is not there, for its owner alone.
    pub fn mine() -> Result<LabRegistry, Failure> {
        let user = rustix::process::geteuid().as_raw();
        // `sudo` may leave a variable that names another user's directory.
        let owned =
            |path: &PathBuf| path.is_absolute() && fs::metadata(path).is_ok_and(|directory| directory.uid() == user);
        let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from).filter(owned);
        let root = match (runtime, std::env::var_os("HOME")) {
            (Some(runtime), _) => runtime.join("brownout"),
            (None, _) if user == 0 => PathBuf::from("/run/brownout"),
            (None, Some(home)) => PathBuf::from(home).join(".local/state/brownout"),
            (None, None) => {
                return Err(Failure::cannot(
                    "neither XDG_RUNTIME_DIR nor HOME is set, so there is no directory for a lab's socket; \
                     set one of them",
                ));
            }
        };
        let failed = |error: io::Error| {
            Failure::cannot(format!(
                "cannot use {}, the directory of labs' sockets: {error}; set XDG_RUNTIME_DIR to a directory \
                 of yours",
                root.display()
            ))
        };
        DirBuilder::new().recursive(true).mode(0o700).create(&root).map_err(failed)?;
        let found = fs::symlink_metadata(&root).map_err(failed)?;
        if !found.is_dir() || found.uid() != user {
            return Err(failed(io::Error::other("it is not a directory that this user owns")));
        }
        if found.mode() & 0o077 != 0 {
            fs::set_permissions(&root, fs::Permissions::from_mode(0o700)).map_err(failed)?;
        }
        Ok(LabRegistry { root })
    }

    pub(super) fn at(root: PathBuf) -> LabRegistry {
        LabRegistry { root }
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    /// The directory that a lab of this name has, or would have.
    pub fn lab(&self, name: &str) -> Result<LabDirectory, Failure> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_' || c == '.';
        let begins = name.chars().next().is_some_and(|c| c.is_ascii_alphanumeric());
        if !begins || !name.chars().all(plain) || name.len() > LONGEST_NAME {
            return Err(Failure::wrong(format!(
                "'{name}' is not a valid lab name: use up to {LONGEST_NAME} letters, digits, '-', '_' and \
                 '.', beginning with a letter or a digit; choose another with --name"
            )));
        }
        Ok(LabDirectory { name: name.to_owned(), path: self.root.join(name) })
    }

    /// Every lab that lives, by name. What others have left is removed.
    pub fn labs(&self) -> Result<Vec<LabDirectory>, Failure> {
        let _one_at_a_time = self.lock()?;
        let mut labs = Vec::new();
        for entry in fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let Ok(directory) = self.lab(&name) else { continue };
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) && !directory.sweep() {
                labs.push(directory);
            }
        }
        labs.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(labs)
    }

    /// The lab of that name; without a name, the only one.
    pub fn find(&self, name: Option<&str>) -> Result<LabDirectory, Failure> {
        let mut labs = self.labs()?;
        let names = |labs: &[LabDirectory]| labs.iter().map(|lab| lab.name.clone()).collect::<Vec<_>>();
        if let Some(name) = name {
            let known = names(&labs);
            return labs.into_iter().find(|lab| lab.name == name).ok_or_else(|| {
                Failure::wrong(match known.is_empty() {
                    true => format!("no lab '{name}': none is running; start one: brownout up --name {name}"),
                    false => {
                        format!(
                            "no lab '{name}'; {}",
                            one_of("the running labs are", known.iter().map(String::as_str), name)
                        )
                    }
                })
            });
        }
        match (labs.pop(), labs.is_empty()) {
            (None, _) => Err(Failure::wrong("no lab is running; start one: brownout up")),
            (Some(only), true) => Ok(only),
            (Some(last), false) => {
                labs.push(last);
                let names = names(&labs).join(", ");
                Err(Failure::wrong(format!("several labs are running: {names}; choose one with --name")))
            }
        }
    }

    /// Makes the directory of a new lab, and takes its lock.
    pub(crate) fn claim(&self, name: &str) -> Result<Claim, Failure> {
        let directory = self.lab(name)?;
        let _one_at_a_time = self.lock()?;
        if directory.path.exists() && !directory.sweep() {
            return Err(Failure::wrong(format!(
                "a lab '{name}' is running already; end it with: brownout destroy --name {name}, or name the new one with --name"
            )));
        }
        let failed = |error: io::Error| {
            Failure::cannot(format!(
                "cannot make {}: {error}; check the space and the rights there",
                directory.path.display()
            ))
        };
        DirBuilder::new().mode(0o700).create(&directory.path).map_err(failed)?;
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        let lock = options.open(directory.path.join(LOCK)).map_err(failed)?;
        lock.try_lock().map_err(|error| failed(io::Error::other(error)))?;
        Ok(Claim { directory, lock })
    }

    /// Held while labs are found, made and removed, so that nobody takes one that is being made for a dead one.
    fn lock(&self) -> Result<File, Failure> {
        let path = self.root.join(".lock");
        let failed = |error: io::Error| Failure::cannot(format!("cannot lock {}: {error}", path.display()));
        let file =
            OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        Ok(file)
    }

    /// Removes the directory of a lab that has ended, while the lock is still held.
    pub(super) fn remove(&self, directory: &LabDirectory) {
        let Ok(_one_at_a_time) = self.lock() else { return };
        directory.remove();
    }
}

impl LabDirectory {
    /// Where the lab listens.
    pub fn socket(&self) -> PathBuf {
        self.path.join(SOCKET)
    }

    /// The directory itself.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether somebody holds its lock.
    pub fn lives(&self) -> bool {
        let lock = File::open(self.path.join(LOCK));
        lock.is_ok_and(|lock| matches!(lock.try_lock(), Err(fs::TryLockError::WouldBlock)))
    }

    /// The keeper of the lab, if it lives.
    pub fn keeper(&self) -> Option<i32> {
        let text = fs::read_to_string(self.path.join(KEEPER)).ok()?;
        text.trim().parse().ok().filter(|pid| *pid > 1)
    }

    pub(super) fn write_keeper(&self, pid: u32) -> io::Result<()> {
        fs::write(self.path.join(KEEPER), pid.to_string())
    }

    /// Where its nodes keep their data and logs.
    pub fn work(&self) -> Option<PathBuf> {
        use std::{ffi::OsString, os::unix::ffi::OsStringExt};
        let path = PathBuf::from(OsString::from_vec(fs::read(self.path.join(WORK)).ok()?));
        // Made by us, and named after the lab; anything else is not ours to remove.
        (path.is_absolute() && path.file_name().is_some_and(|last| last == self.name.as_str())).then_some(path)
    }

    pub(super) fn write_work(&self, work: &Path) -> io::Result<()> {
        use std::os::unix::ffi::OsStrExt;
        fs::write(self.path.join(WORK), work.as_os_str().as_bytes())
    }

    /// Removes it, and what its nodes kept, if nobody holds its lock; false: it lives. The lock of the place is held.
    fn sweep(&self) -> bool {
        let Ok(lock) = File::open(self.path.join(LOCK)) else {
            // Of a claim that was killed before it had a lock, an empty directory is left; anything else is not ours.
            let _ = fs::remove_dir(&self.path);
            return true;
        };
        if lock.try_lock().is_err() {
            return false;
        }
        if let Some(work) = self.work() {
            remove_directory(&work);
        }
        self.remove();
        true
    }

    fn remove(&self) {
        // The lock last: as long as it is there, what cannot be removed now is removed by the next command.
        for file in [SOCKET, KEEPER, WORK, LOCK] {
            let _ = fs::remove_file(self.path.join(file));
        }
        let _ = fs::remove_dir(&self.path);
    }
}

/// Removes a directory of a lab. Its last processes may be dying still, and writing while they do.
pub(super) fn remove_directory(directory: &Path) {
    for _ in 0..40 {
        match fs::remove_dir_all(directory) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => thread::sleep(Duration::from_millis(50)),
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registry() -> (tempfile::TempDir, LabRegistry) {
        let directory = tempfile::tempdir().unwrap();
        let registry = LabRegistry { root: directory.path().to_owned() };
        (directory, registry)
    }

    #[test]
    fn a_lab_lives_as_long_as_its_lock_is_held_and_then_its_directories_go() {
        let (directory, registry) = registry();
        let claim = registry.claim("one").unwrap();
        let work = directory.path().join("work").join("one");
        fs::create_dir_all(work.join("scratch")).unwrap();
        claim.directory.write_work(&work).unwrap();
        assert!(claim.directory.lives());
        assert!(registry.claim("one").unwrap_err().message.contains("running already"));
        assert_eq!(registry.labs().unwrap().len(), 1);
        let path = claim.directory.path.clone();
        drop(claim);
        assert!(registry.labs().unwrap().is_empty());
        assert!(!path.exists() && !work.exists());
    }

    #[test]
    fn the_only_lab_needs_no_name_and_an_unknown_one_is_told_with_the_nearest() {
        let (_directory, registry) = registry();
        assert!(registry.find(None).unwrap_err().message.contains("brownout up"));
        let _one = registry.claim("paris").unwrap();
        assert_eq!(registry.find(None).unwrap().name, "paris");
        let _two = registry.claim("rome").unwrap();
        assert!(registry.find(None).unwrap_err().message.contains("paris, rome"));
        assert!(registry.find(Some("pariss")).unwrap_err().message.contains("did you mean 'paris'?"));
    }

    #[test]
    fn names_that_are_paths_or_options_are_refused() {
        let (_directory, registry) = registry();
        for name in ["", ".", "..", "-n", "a/b", "a b", ".lock", &"x".repeat(41)] {
            assert_eq!(registry.lab(name).unwrap_err().code, 2, "{name}");
        }
        assert!(registry.lab("slow-replica_5.0").is_ok());
    }

    #[test]
    fn nothing_but_a_directory_named_after_the_lab_is_swept() {
        let (directory, registry) = registry();
        let claim = registry.claim("one").unwrap();
        let other = directory.path().join("precious");
        fs::create_dir(&other).unwrap();
        fs::write(other.join("file"), "").unwrap();
        claim.directory.write_work(&other).unwrap();
        drop(claim);
        assert!(registry.labs().unwrap().is_empty());
        assert!(other.exists());
    }
}
