//! Whole command lines: those that run something, and those that only print something.

use brownout_generate::distribution::print_table;

use super::{
    Extras, Files, Settings, SettingsError,
    grammar::{self, Alternative, distribution, select, take},
    help, legacy,
};

/// What a command line requests.
#[derive(Debug, Clone, PartialEq)]
pub enum Invocation {
    /// A run.
    Run(Box<Settings>),
    /// A text for stdout: `help`, `print dist=…`, `version`.
    Answer(String),
}

impl Invocation {
    /// Parses the arguments after the program's name.
    ///
    /// # Errors
    /// As [`SettingsError`] says.
    pub fn parse<S: AsRef<str>>(arguments: &[S]) -> Result<Self, SettingsError> {
        Invocation::parse_with(arguments, &|path| std::fs::read_to_string(path))
    }

    /// The same, with another way of reading files.
    ///
    /// # Errors
    /// Those of [`Invocation::parse`].
    pub fn parse_with<S: AsRef<str>>(arguments: &[S], files: Files<'_>) -> Result<Self, SettingsError> {
        let first = arguments.first().map(|first| first.as_ref().trim().to_ascii_lowercase());
        if matches!(first.as_deref(), Some("--help" | "-h")) {
            return help::topic(arguments.get(1).map(AsRef::as_ref)).map(Invocation::Answer);
        }
        if matches!(first.as_deref(), Some("--version" | "-v")) {
            return Ok(Invocation::Answer(help::version()));
        }
        // Legacy options begin with two dashes, too.
        let is_legacy = grammar::words(arguments).first().is_some_and(|first| first.eq_ignore_ascii_case("legacy"));
        if is_legacy {
            let words = legacy::translate(&grammar::words(arguments)[1..])?;
            let note = format!("Running in legacy support mode. Translating command to: \nstress {}", words.join(" "));
            let settings =
                Settings::from_groups(grammar::groups(grammar::words(&words))?, Extras::default(), files, vec![note])?;
            return Ok(Invocation::Run(Box::new(settings)));
        }
        let (extras, rest) = Extras::parse(arguments)?;
        let mut groups = grammar::groups(grammar::words(&rest))?;
        if let Some(answer) = answer(&mut groups)? {
            return Ok(Invocation::Answer(answer));
        }
        Settings::from_groups(groups, extras, files, Vec::new()).map(Box::new).map(Invocation::Run)
    }
}

/// `help`, `print` and `version` take effect wherever they occur as a group: `write -?`.
fn answer(groups: &mut Vec<grammar::Group>) -> Result<Option<String>, SettingsError> {
    if let Some(words) = take(groups, "-?").or_else(|| take(groups, "help")) {
        let topic = match (&words[..], &groups[..]) {
            ([], []) => None,
            ([topic], _) => Some(topic.as_str()),
            ([], [(name, content)]) if content.is_empty() => Some(name.as_str()),
            _ => {
                return Err(SettingsError::senseless(
                    "Invalid command/option provided to help",
                    "write one command or option group: help write, help -rate",
                ));
            }
        };
        return help::topic(topic).map(Some);
    }
    if let Some((_, words)) = groups.iter().find(|(name, _)| name == "print") {
        let alternative = Alternative::new(vec![distribution("dist=", "the distribution to be shown").required()]);
        let (_, taken) = select("print", words, vec![alternative])?;
        return Ok(taken.spec("print", "dist=")?.map(|spec| print_table(&spec)));
    }
    Ok(groups.iter().any(|(name, _)| name == "version").then(help::version))
}
