//! Containers that no runtime is asked for: they are named by a process, or by a network namespace.

use std::{fs, path::Path};

use super::Told;
use crate::error::ContainersError;

/// By one process of each.
pub(crate) fn by_pids(pids: &[u32]) -> Result<Vec<Told>, ContainersError> {
    pids.iter().map(|pid| by_pid(*pid)).collect()
}

fn by_pid(pid: u32) -> Result<Told, ContainersError> {
    let Some((name, begun)) = process(pid) else {
        return Err(ContainersError::NotFound {
            what: format!("of the process {pid}"),
            looked: "there is no such process here (/proc); see ps".to_owned(),
        });
    };
    let host = host_name(&name);
    Ok(Told {
        id: pid.to_string(),
        name,
        pid: Some(pid),
        started: format!("{begun} ticks since boot"),
        ..Told::named(&format!("{host}-{pid}"))
    })
}

/// By the file of each one's network namespace, `/run/netns/db1`.
pub(crate) fn by_namespaces(paths: &[impl AsRef<Path>]) -> Result<Vec<Told>, ContainersError> {
    paths.iter().map(|path| by_namespace(path.as_ref())).collect()
}

pub(crate) fn by_namespace(path: &Path) -> Result<Told, ContainersError> {
    let shown = path.display().to_string();
    if let Err(error) = fs::metadata(path) {
        return Err(ContainersError::NotFound {
            what: format!("with the network namespace {shown}"),
            looked: format!("{error}; see ip netns, and write its whole path (/run/netns/NAME)"),
        });
    }
    // /proc/PID/ns/net says nothing by its last part.
    let name = match path.strip_prefix("/proc") {
        Ok(inside) => inside.iter().next(),
        Err(_) => path.file_name(),
    };
    let name = host_name(&name.unwrap_or_default().to_string_lossy());
    Ok(Told { id: shown, namespace: Some(path.to_owned()), ..Told::named(&name) })
}

/// The name of a process, and when it began, in ticks since the machine did (proc(5)); none if there is none.
pub(crate) fn process(pid: u32) -> Option<(String, u64)> {
    let stat = fs::read(format!("/proc/{pid}/stat")).ok()?;
    stat_line(&String::from_utf8_lossy(&stat))
}

/// The second field is a name in brackets, which may hold spaces and brackets itself.
fn stat_line(stat: &str) -> Option<(String, u64)> {
    let (front, rest) = stat.rsplit_once(')')?;
    let name = front.split_once('(')?.1;
    let mut fields = rest.split_ascii_whitespace();
    // One that has ended and was not waited for is a number and nothing more.
    if matches!(fields.next()?, "Z" | "X") {
        return None;
    }
    // Field 22, of which the third is the state.
    Some((name.to_owned(), fields.nth(18)?.parse().ok()?))
}

/// As much of a name as a host may have.
fn host_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { '-' };
    let name: String = name.chars().map(plain).collect();
    if name.is_empty() { "container".to_owned() } else { name }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_read_whatever_its_name() {
        let line = "4711 (a) R (b c) S 12 1 1 0 -1 4194304 1 2 3 4 100 20 7 3 20 0 5 0 9876 1 1";
        assert_eq!(stat_line(line), Some(("a) R (b c".to_owned(), 9876)));
        assert_eq!(stat_line(&line.replace(") S ", ") Z ")), None, "it has ended");
        assert_eq!(stat_line("4711 (cut) S 12"), None);
    }

    #[test]
    fn a_process_is_a_container_and_one_that_is_not_there_is_told() {
        let own = std::process::id();
        let told = by_pids(&[own]).unwrap().remove(0);
        assert_eq!((told.pid, told.id), (Some(own), own.to_string()));
        assert!(told.host.ends_with(&format!("-{own}")), "{}", told.host);
        // Above the most that a kernel may count to.
        let error = by_pids(&[4_194_305]).unwrap_err().to_string();
        assert!(error.contains("of the process 4194305: there is no such process"), "{error}");
    }

    #[test]
    fn a_namespace_is_named_by_its_file() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("db 1");
        fs::write(&path, "").unwrap();
        assert_eq!(by_namespace(&path).unwrap().host, "db-1");
        assert_eq!(by_namespace(Path::new("/proc/self/ns/net")).unwrap().host, "self");
        let error = by_namespaces(&[directory.path().join("db2")]).unwrap_err().to_string();
        assert!(error.contains("db2") && error.contains("ip netns"), "{error}");
    }
}
