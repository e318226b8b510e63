//! Which containers are meant, as it is typed at `ground` and `attach`.

use std::path::{Path, PathBuf};

use brownout_containers::{By, Selection};
use brownout_lab::byhand::Failure;

use crate::output::WRONG;

/// Containers, by one way of naming them.
#[derive(clap::Args)]
pub struct SelectionArguments {
    /// Containers, by name or id, with spaces or commas between. Or an experiment file: the containers that its ground:
    /// selects.
    #[arg(value_name = "NAME")]
    names: Vec<String>,
    /// All containers of a Compose project.
    #[arg(long)]
    project: Option<String>,
    /// All containers with this label: app=db.
    #[arg(long, value_name = "KEY[=VALUE]")]
    label: Option<String>,
    /// Processes, whoever started them: each stands for its network namespace.
    #[arg(long, value_name = "PID,…", value_delimiter = ',')]
    pids: Vec<u32>,
    /// Network namespaces, by their files: /run/netns/db1.
    #[arg(long, value_name = "PATH,…", value_delimiter = ',')]
    netns: Vec<PathBuf>,
    /// The socket of the container runtime. Default: the first of those that are known which answers.
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
}

impl SelectionArguments {
    /// The file that was named in the place of containers: no container's name has a slash, and none ends as a file's does.
    pub fn file(&self) -> Result<Option<PathBuf>, Failure> {
        let is_yaml = |name: &str| Path::new(name).extension().is_some_and(|end| end == "yaml" || end == "yml");
        let is_file = |name: &&String| name.contains('/') || is_yaml(name);
        let Some(file) = self.names.iter().find(is_file) else { return Ok(None) };
        let is_alone = self.names.len() == 1 && self.project.is_none() && self.label.is_none();
        if is_alone && self.pids.is_empty() && self.netns.is_empty() && self.socket.is_none() {
            return Ok(Some(PathBuf::from(file)));
        }
        let message = format!("{file} is a file, which says by itself which containers are meant; give nothing else");
        Err(Failure { message, code: WRONG })
    }

    /// What is meant; none: nothing was named.
    pub fn selection(&self) -> Result<Option<Selection>, Failure> {
        let names: Vec<String> = self.names.iter().flat_map(|name| name.split(',')).map(str::to_owned).collect();
        let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
        let ways = [
            (!names.is_empty()).then_some(("names", By::Names(names))),
            self.project.clone().map(|project| ("--project", By::Project(project))),
            self.label.clone().map(|label| ("--label", By::Label(label))),
            (!self.pids.is_empty()).then(|| ("--pids", By::Pids(self.pids.clone()))),
            (!self.netns.is_empty()).then(|| ("--netns", By::Namespaces(self.netns.clone()))),
        ];
        let (words, mut given): (Vec<&str>, Vec<By>) = ways.into_iter().flatten().unzip();
        if words.len() > 1 {
            let message = format!("{} cannot be combined; give one of them", words.join(" and "));
            return Err(Failure { message, code: WRONG });
        }
        Ok(given.pop().map(|by| Selection { by, socket: self.socket.clone() }))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Typed {
        #[command(flatten)]
        selection: SelectionArguments,
    }

    fn selection(words: &str) -> Result<Option<Selection>, Failure> {
        let words = std::iter::once("x").chain(words.split_whitespace());
        Typed::try_parse_from(words).unwrap().selection.selection()
    }

    #[test]
    fn containers_are_meant_in_one_way_alone() {
        let by = |words: &str| selection(words).unwrap().unwrap().by;
        assert!(matches!(by("a b,c"), By::Names(names) if names == ["a", "b", "c"]));
        assert!(matches!(by("--project shop"), By::Project(project) if project == "shop"));
        assert!(matches!(by("--label app=db"), By::Label(label) if label == "app=db"));
        assert!(matches!(by("--pids 7,8"), By::Pids(pids) if pids == [7, 8]));
        assert!(matches!(by("--netns /run/netns/a"), By::Namespaces(paths) if paths.len() == 1));
        let socket = selection("a --socket /run/x.sock").unwrap().unwrap().socket;
        assert_eq!(socket, Some(PathBuf::from("/run/x.sock")));
        assert!(selection("").unwrap().is_none());
        let file =
            |words: &str| Typed::try_parse_from(["x"].into_iter().chain(words.split(' '))).unwrap().selection.file();
        assert_eq!(file("slow.yaml").unwrap(), Some(PathBuf::from("slow.yaml")));
        assert_eq!(file("dir/lab").unwrap(), Some(PathBuf::from("dir/lab")));
        assert_eq!(file("cassandra_a,yaml").unwrap(), None);
        assert!(file("slow.yaml --project shop").is_err_and(|failure| failure.message.contains("slow.yaml is a file")));
        assert!(file("slow.yaml c1").is_err());
        let failure = selection("a --project shop").err().unwrap();
        assert!(failure.code == 2 && failure.message.contains("names and --project"), "{failure}");
    }
}
