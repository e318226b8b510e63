//! Options that a command understands but does not use: each is reported in a note. If ignoring an option would change
//! the run from the one requested, it is refused.

use super::{Command, CommandKind, Extras, Length, Rate, SettingsError, grammar::Group};

/// `-insert` options that apply only to rows of profiles.
const OF_PROFILES: [&str; 5] = ["partitions=", "batchtype=", "batch-size=", "select-ratio=", "row-population-ratio="];
/// Command options that apply only to a load.
const OF_LOADS: [&str; 5] = ["truncate=", "no-warmup", "cl=", "serial-cl=", "seed="];
/// Groups that apply only to a load.
const GROUPS_OF_LOADS: [&str; 6] = ["-rate", "-pop", "-insert", "-col", "-tokenrange", "-graph"];
/// Options that say when a load ends.
const LENGTHS: [&str; 5] = ["n=", "duration=", "err<", "n>", "n<"];

/// The words of all groups as they were written; the first group is the command.
pub(super) struct Written(Vec<Group>);

impl Written {
    /// Remembers them before each group is consumed by its parser.
    pub(super) fn of(groups: &[Group]) -> Self {
        Written(groups.to_vec())
    }

    fn has(&self, group: &str) -> bool {
        self.0.iter().skip(1).any(|(name, _)| name == group)
    }

    /// Which of these options a group contains; `None`: the command.
    fn given(&self, group: Option<&str>, options: &[&'static str]) -> Vec<&'static str> {
        let found = match group {
            None => self.0.first(),
            Some(group) => self.0.iter().skip(1).find(|(name, _)| name == group),
        };
        let words = found.map(|(_, words)| &words[..]).unwrap_or_default();
        let begins = |word: &String, option: &str| {
            word.get(..option.len()).is_some_and(|start| start.eq_ignore_ascii_case(option))
        };
        options.iter().copied().filter(|option| words.iter().any(|word| begins(word, option))).collect()
    }

    /// Notes on what this command does not use.
    ///
    /// # Errors
    /// Something that would make the run another than the one requested.
    pub(super) fn judge(
        &self,
        command: &Command,
        rate: &Rate,
        extras: &Extras,
        notes: &mut Vec<String>,
    ) -> Result<(), SettingsError> {
        match command.kind {
            CommandKind::VerifySizes => notes.extend(self.without_load(extras)),
            CommandKind::User => notes.extend(self.user(command)),
            kind => notes.extend(self.predefined(kind)?),
        }
        if matches!(rate, Rate::Search(_)) && !self.given(Some("-pop"), &["no-wrap"]).is_empty() {
            return Err(SettingsError::senseless(
                "-pop no-wrap ends a run when all seeds were visited, and a search ends with its answer",
                "leave no-wrap out, or measure one rate with open=",
            ));
        }
        if matches!(rate, Rate::Search(_)) && command.length != Length::Count(0) {
            notes.extend(self.given(None, &LENGTHS).into_iter().map(|option| {
                let rest = if option == "n=" {
                    "; it says which partitions there are, and how long the warm-up is"
                } else {
                    ""
                };
                format!("{option} does not end a search, which ends with its answer{rest}")
            }));
        }
        Ok(())
    }

    fn predefined(&self, kind: CommandKind) -> Result<Vec<String>, SettingsError> {
        let name = kind.name();
        if let Some(option) = self.given(Some("-insert"), &["cl=", "serial-cl="]).first() {
            return Err(SettingsError::senseless(
                format!("-insert {option} is of the inserts of user, and this is {name}"),
                format!("write it right after the command, as in {name} {option}…"),
            ));
        }
        let mut notes: Vec<String> = self
            .given(Some("-insert"), &OF_PROFILES)
            .into_iter()
            .map(|option| format!("-insert {option} has no effect on {name}: it is for the rows of user's profiles"))
            .collect();
        if self.has("-tokenrange") {
            notes.push(format!(
                "-tokenrange has no effect on {name}: only token_range_queries of user's profiles walk token ranges"
            ));
        }
        Ok(notes)
    }

    fn user(&self, command: &Command) -> Vec<String> {
        let mut notes = Vec::new();
        if self.has("-col") {
            notes.push("-col has no effect on user: its columns are those of its profiles".to_owned());
        }
        if command.inserts_alone() && !command.is_sequential() && !self.has("-pop") {
            let n = match command.length {
                Length::Count(n) if n > 0 => n,
                _ => 1_000_000,
            };
            let remedy = if command.ops.len() == 1 {
                format!("write -pop seq=1..{n}, or ops(insert=1)")
            } else {
                "write -pop seq=1..N and load one table after the other, or all at once with rates, as in \
                 ops(a.insert=500/s,b.insert=500/s)"
                    .to_owned()
            };
            notes.push(format!(
                "partitions are drawn from gaussian(1..{n}), some often and some never, as in cassandra-stress unless ops(…) is \
                 insert alone; to write each once, {remedy}"
            ));
        }
        notes
    }

    fn without_load(&self, extras: &Extras) -> Option<String> {
        let groups = GROUPS_OF_LOADS.into_iter().filter(|group| self.has(group));
        let logs = [
            ("json=", "-log json="),
            ("csv=", "-log csv="),
            ("hdrfile=", "-log hdrfile="),
            ("prometheus=", "-log prometheus="),
        ];
        let logs = logs.into_iter().filter(|(option, _)| !self.given(Some("-log"), &[option]).is_empty());
        let words = [
            (extras.record.is_some(), "--record"),
            (extras.tick.is_some(), "--tick"),
            (extras.compact, "--compact"),
            (extras.wait_compactions, "--wait-compactions"),
        ];
        let words = words.into_iter().filter(|(given, _)| *given).map(|(_, word)| word);
        let idle: Vec<&str> = self
            .given(None, &OF_LOADS)
            .into_iter()
            .chain(groups)
            .chain(logs.map(|(_, word)| word))
            .chain(words)
            .collect();
        (!idle.is_empty()).then(|| format!("no effect on verify-sizes, which puts no load on: {}", idle.join(", ")))
    }
}
