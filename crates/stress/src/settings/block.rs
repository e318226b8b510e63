//! The block of settings at the start of a run's output, as cassandra-stress prints it.

use super::{CommandKind, Compression, DataPath, Settings};

impl Settings {
    /// The `Stress Settings` block, with a section of our own at its end. It ends with an empty line; the profile's
    /// part of a `user` command is [`crate::profile::Profile::block`], which belongs before that line.
    ///
    /// The order, the names and the formats of values are those of cassandra-stress (`printSettings` of its settings
    /// classes), except that passwords of stores are not shown.
    pub fn block(&self) -> String {
        let mut text = String::from("******************** Stress Settings ********************\n");
        let mut part = |name: &str, lines: &str| {
            text.push_str(name);
            text.push_str(":\n");
            text.push_str(lines);
        };
        part("Command", &self.command.block());
        part("Rate", &self.rate.block());
        part("Population", &self.population.block());
        part("Insert", &self.insert.block());
        if !matches!(self.command.kind, CommandKind::User | CommandKind::VerifySizes) {
            part("Columns", &self.columns.block());
        }
        part("Errors", &self.errors.block());
        part("Log", &self.log.block());
        part("Mode", &self.mode.block());
        part("Node", &self.node.block());
        part("Schema", &self.schema.block());
        part("Transport", &self.transport.block());
        part("Port", &self.port.block());
        part("Send To Daemon", &format!("  {}\n", self.send_to.as_deref().unwrap_or("*not set*")));
        part("Graph", &self.graph.block());
        part("TokenRange", &self.token_range.block());
        let ours: String = self.ours().into_iter().map(|(name, value)| format!("  {name}: {value}\n")).collect();
        part("Brownout", &ours);
        text.push('\n');
        text
    }

    /// Settings for which cassandra-stress has no line; only those that were given.
    fn ours(&self) -> Vec<(&'static str, String)> {
        let mut lines = self.rate.ours();
        lines.extend(self.command.generator.map(|generator| ("Generator", generator.name().to_owned())));
        lines.extend(self.command.seed.map(|seed| ("Seed", seed.to_string())));
        lines.extend(self.insert.batch_size.map(|size| ("Rows In A Batch", size.to_string())));
        if self.mode.path == DataPath::Driver {
            lines.push(("Data Path", "the scylla driver".to_owned()));
        }
        if self.mode.compression != Compression::None {
            lines.push(("Frames", "compressed".to_owned()));
        }
        lines.extend(self.node.pin.clone().map(|host| ("Coordinator", host)));
        lines.extend(self.transport.ours());
        let path = |path: &std::path::PathBuf| path.display().to_string();
        lines.extend(self.log.hdr_file.as_ref().map(|file| ("HDR File", path(file))));
        lines.extend(self.log.json.as_ref().map(|file| ("JSON File", path(file))));
        lines.extend(self.log.csv.as_ref().map(|file| ("CSV File", path(file))));
        lines.extend(self.log.prometheus.map(|address| ("Prometheus", format!("http://{address}/metrics"))));
        let extras = &self.extras;
        lines.extend(extras.record.as_ref().map(|file| ("Record", path(file))));
        lines.extend(extras.nodetool.clone().map(|command| ("Nodetool", command)));
        lines.extend(extras.tick.map(|tick| ("Tick", format!("{tick:?}"))));
        let first =
            [(extras.flush, "flush"), (extras.compact, "compact"), (extras.wait_compactions, "wait for compactions")];
        let first: Vec<&str> = first.into_iter().filter(|(asked, _)| *asked).map(|(_, what)| what).collect();
        if !first.is_empty() {
            lines.push(("First", first.join(", ")));
        }
        lines
    }
}
