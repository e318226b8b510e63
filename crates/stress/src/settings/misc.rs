//! Groups that only Apache's tool has (`-jmx`, `-credentials-file`, `-reporting`), and `-sendto`.

use std::{path::Path, time::Duration};

use super::{
    Files, SettingsError,
    grammar::{Alternative, Group, Pattern, select, take, value},
    mode::Secret,
    number,
};

/// Users and passwords, from a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Credentials {
    /// `cql.username`
    pub user: Option<String>,
    /// `cql.password`
    pub password: Option<Secret>,
    /// `transport.truststore.password`
    pub truststore_password: Option<Secret>,
    /// `transport.keystore.password`
    pub keystore_password: Option<Secret>,
}

/// `-reporting`: how often rows and their header are printed, as Apache's tool sets it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Reporting {
    /// Time between two rows; overrides `-log interval=` if given.
    pub output: Option<Duration>,
    /// Time between two headers; `None`: one at the start.
    pub header: Option<Duration>,
}

pub(super) fn reporting_alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("output-frequency=", Pattern::Time, "a row every so often"),
        value("header-frequency=", Pattern::Time, "the heading again every so often"),
    ])]
}

pub(super) fn jmx_alternatives() -> Vec<Alternative> {
    vec![Alternative::new(vec![
        value("user=", Pattern::Something, "accepted; JMX is not asked"),
        value("password=", Pattern::Something, "accepted; JMX is not asked"),
    ])]
}

impl Reporting {
    pub(super) fn parse(words: Option<&[String]>) -> Result<Self, SettingsError> {
        let (_, taken) = select("-reporting", words.unwrap_or_default(), reporting_alternatives())?;
        let time = |name| taken.get(name).map(|text| number::time(name, text)).transpose();
        Ok(Reporting { output: time("output-frequency=")?, header: time("header-frequency=")? })
    }
}

/// `-jmx` and `-sendto` are parsed but have no effect.
pub(super) fn without_effect(
    groups: &mut Vec<Group>,
    notes: &mut Vec<String>,
) -> Result<Option<String>, SettingsError> {
    if let Some(words) = take(groups, "-jmx") {
        select("-jmx", &words, jmx_alternatives())?;
        notes.push("-jmx has no effect: servers are not asked over JMX".to_owned());
    }
    let Some(words) = take(groups, "-send-to").or_else(|| take(groups, "-sendto")) else { return Ok(None) };
    let [host] = &words[..] else {
        return Err(SettingsError::senseless(
            format!("Invalid -sendto specifier: [{}]", words.join(", ")),
            "leave -sendto out: there is no daemon any more, the command runs here",
        ));
    };
    notes.push(format!("-sendto {host} has no effect: there is no daemon any more, the command runs here"));
    Ok(Some(host.clone()))
}

const OPTION: &str = "-credentials-file ";

impl Credentials {
    /// Parses a Java properties file.
    pub(super) fn parse(
        words: Option<&[String]>,
        files: Files<'_>,
        notes: &mut Vec<String>,
    ) -> Result<Self, SettingsError> {
        let path = match words {
            None => return Ok(Credentials::default()),
            Some([path]) => Path::new(path),
            Some(_) => {
                return Err(SettingsError::senseless("-credentials-file takes one word", "write the name of a file"));
            }
        };
        let refuse = |reason| SettingsError::File { option: OPTION, file: path.to_owned(), reason };
        let text = files(path).map_err(|error| refuse(format!("cannot be read: {error}")))?;
        let mut credentials = Credentials::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with(['#', '!']) {
                continue;
            }
            let Some((key, value)) = line.split_once(['=', ':']) else {
                return Err(refuse(format!("line {} is no 'key=value'", at + 1)));
            };
            let (key, value) = (key.trim(), value.trim());
            match key {
                "cql.username" => credentials.user = Some(value.to_owned()),
                "cql.password" => credentials.password = Some(Secret::new(value)),
                "transport.truststore.password" => credentials.truststore_password = Some(Secret::new(value)),
                "transport.keystore.password" => credentials.keystore_password = Some(Secret::new(value)),
                "jmx.username" | "jmx.password" => {
                    notes.push(format!("-credentials-file: {key} has no effect: servers are not asked over JMX"));
                }
                _ => {
                    return Err(refuse(format!(
                        "line {}: unknown key '{key}'; the keys are cql.username, cql.password, jmx.username, jmx.password, \
                         transport.truststore.password and transport.keystore.password",
                        at + 1
                    )));
                }
            }
        }
        Ok(credentials)
    }
}
