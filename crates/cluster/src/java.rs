//! Finding a Java that a database runs on, among those installed.

use std::{
    collections::BTreeSet,
    env, fmt, fs,
    ops::RangeInclusive,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use thiserror::Error;

use crate::cache;

/// An installed Java.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Java {
    /// The directory that holds `bin/java`.
    pub home: PathBuf,
    /// What it says of itself.
    pub version: JavaVersion,
    /// The program.
    pub path: PathBuf,
}

/// A Java version: `17.0.15`, `1.8.0_392`, `25`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JavaVersion {
    /// 8 for `1.8.0_392`, 17 for `17.0.15`.
    pub major: u32,
    /// As the JVM prints it.
    pub text: String,
}

impl JavaVersion {
    /// Parses a version string (JEP 223; before Java 9 the number that counts stands second). `None` when it is none.
    pub fn parse(text: &str) -> Option<JavaVersion> {
        let text = text.trim();
        let mut numbers = text.split(|c: char| !c.is_ascii_digit()).map(|number| number.parse::<u32>().ok());
        let major = match (numbers.next()??, numbers.next().flatten()) {
            (1, Some(old)) => old,
            (major, _) => major,
        };
        Some(JavaVersion { major, text: text.to_owned() })
    }
}

impl fmt::Display for JavaVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.text)
    }
}

/// No installed Java is one of those wanted.
#[derive(Debug, Error)]
#[error("no {} is installed: {}{}", javas(wanted), looked_at(found), remedy(wanted))]
pub struct JavaError {
    /// The major versions that would have done.
    pub wanted: RangeInclusive<u32>,
    /// Every Java looked at, with its version or why it has none.
    pub found: Vec<(PathBuf, Result<JavaVersion, String>)>,
}

fn looked_at(found: &[(PathBuf, Result<JavaVersion, String>)]) -> String {
    if found.is_empty() {
        return "JAVA_HOME, PATH, /usr/lib/jvm, the directories of SDKMAN, asdf, mise and IDEs, and Brownout's cache hold no Java at all"
            .into();
    }
    let one = |(path, version): &(PathBuf, Result<JavaVersion, String>)| match version {
        Ok(version) => format!("{} is {version}", path.display()),
        Err(error) => format!("{} does not run ({error})", path.display()),
    };
    found.iter().map(one).collect::<Vec<_>>().join(", ")
}

fn javas(wanted: &RangeInclusive<u32>) -> String {
    match (wanted.start(), wanted.end()) {
        (least, most) if least == most => format!("Java {least}"),
        (least, most) => format!("Java {least} to {most}"),
    }
}

fn remedy(wanted: &RangeInclusive<u32>) -> String {
    let major = wanted.end();
    // Distributions of today have none.
    let old = if *major == 8 { " (where there is none: another builder's, such as Temurin 8)" } else { "" };
    format!("; apt-get install openjdk-{major}-jre-headless{old}, or set JAVA_HOME to a Java that fits")
}

/// Finds a Java whose major version is in `wanted`: that of `JAVA_HOME` if it fits, else that of `PATH`,
/// else the newest of those in the usual places. Each candidate is run once with `-version`.
///
/// # Errors
/// When none fits; the error lists all that were looked at and says what to install.
pub fn find(wanted: RangeInclusive<u32>) -> Result<Java, JavaError> {
    choose(wanted, candidates())
}

/// Homes to try, in groups: within a group the newest wins, between groups the first.
type Candidates = Vec<Vec<PathBuf>>;

fn choose(wanted: RangeInclusive<u32>, candidates: Candidates) -> Result<Java, JavaError> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for group in candidates {
        let mut best: Option<Java> = None;
        for home in group {
            // Distributions give the same Java several names.
            let Ok(path) = fs::canonicalize(home.join("bin/java")) else { continue };
            if !seen.insert(path.clone()) {
                continue;
            }
            let version = version_of(&path);
            if let Ok(version) = &version
                && wanted.contains(&version.major)
                && best.as_ref().is_none_or(|best| best.version.major < version.major)
            {
                let home = path.parent().and_then(Path::parent).unwrap_or(&home).to_owned();
                best = Some(Java { home, version: version.clone(), path: path.clone() });
            }
            found.push((path, version));
        }
        if let Some(java) = best {
            return Ok(java);
        }
    }
    Err(JavaError { wanted, found })
}

fn candidates() -> Candidates {
    let from_path = env::var_os("PATH")
        .map(|path| env::split_paths(&path).collect::<Vec<_>>())
        .unwrap_or_default()
        .into_iter()
        // `home/bin` is on PATH; /usr/bin/java leads to its home by a link, which `choose` follows.
        .filter_map(|directory| directory.parent().map(Path::to_owned))
        .collect();
    let mut usual = Vec::new();
    let mut children = |directory: &Path| {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut entries: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
        entries.sort();
        usual.extend(entries);
    };
    for directory in ["/usr/lib/jvm", "/usr/java", "/opt/java"] {
        children(Path::new(directory));
    }
    if let Some(home) = env::var_os("HOME").map(PathBuf::from) {
        for directory in [".sdkman/candidates/java", ".asdf/installs/java", ".local/share/mise/installs/java", ".jdks"]
        {
            children(&home.join(directory));
        }
    }
    // Where `scripts/java8` puts what distributions have no more.
    if let Ok(cache) = cache::directory() {
        children(&cache.join("jvm"));
    }
    vec![env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect(), from_path, usual]
}

fn version_of(java: &Path) -> Result<JavaVersion, String> {
    let output = Command::new(java)
        .arg("-version")
        .stdin(Stdio::null())
        .env_remove("JAVA_TOOL_OPTIONS")
        .env_remove("_JAVA_OPTIONS")
        .env_remove("JDK_JAVA_OPTIONS")
        .output()
        .map_err(|error| error.to_string())?;
    // `-version` answers on standard error, in every Java since 1.1.
    let text = String::from_utf8_lossy(&output.stderr);
    version_in(&text).ok_or_else(|| match text.lines().next() {
        Some(line) => format!("{}: {line}", output.status),
        None => output.status.to_string(),
    })
}

/// The version in the first line that has one, as in `openjdk version "17.0.15" 2025-04-15`.
fn version_in(text: &str) -> Option<JavaVersion> {
    text.lines().find_map(|line| {
        let (_, rest) = line.split_once(" version \"")?;
        JavaVersion::parse(rest.split('"').next()?)
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn version_strings_of_all_ages_parse() {
        for (text, major) in [
            ("17.0.15", 17),
            ("1.8.0_392", 8),
            ("1.7.0", 7),
            ("25", 25),
            ("11.0.2+9", 11),
            ("21-ea", 21),
            ("9", 9),
            ("1", 1),
            ("17.0.15+6-Debian-1deb12u1", 17),
        ] {
            assert_eq!(JavaVersion::parse(text).map(|version| version.major), Some(major), "{text}");
        }
        for text in ["", "unknown", "-17", ".17"] {
            assert_eq!(JavaVersion::parse(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_jvm_prints_is_read_past_its_warnings() {
        let text = "Picked up JAVA_OPTIONS: -X\nopenjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime Environment";
        assert_eq!(version_in(text).unwrap().text, "17.0.15");
        assert_eq!(version_in("Error: no JVM"), None);
    }

    /// A directory with a script that says it is Java `version`.
    fn fake(root: &Path, name: &str, version: &str) -> PathBuf {
        let home = root.join(name);
        fs::create_dir_all(home.join("bin")).unwrap();
        let script = format!("#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n");
        fs::write(home.join("bin/java"), script).unwrap();
        fs::set_permissions(home.join("bin/java"), fs::Permissions::from_mode(0o755)).unwrap();
        home
    }

    #[test]
    fn the_first_group_that_fits_wins_and_in_it_the_newest() {
        let root = tempfile::tempdir().unwrap();
        let java = |name, version| fake(root.path(), name, version);
        let (j8, j11, j17, j25) = (java("8", "1.8.0"), java("11", "11.0.2"), java("17", "17.0.1"), java("25", "25"));
        let found = choose(11..=17, vec![vec![j25.clone()], vec![j11.clone(), j17.clone(), j8.clone()]]).unwrap();
        assert_eq!(found.version.major, 17);
        let found = choose(11..=17, vec![vec![j11], vec![j17]]).unwrap();
        assert_eq!(found.version.major, 11);

        let error = choose(11..=17, vec![vec![j25, j8]]).unwrap_err().to_string();
        assert!(error.contains("25/bin/java is 25"), "{error}");
        assert!(error.contains("8/bin/java is 1.8.0"), "{error}");
        assert!(error.contains("openjdk-17-jre-headless"), "{error}");
        assert!(error.starts_with("no Java 11 to 17 is installed"), "{error}");

        let (j17, j11) = (java("other17", "17.0.2"), java("other11", "11.0.3"));
        let error = choose(8..=8, vec![vec![j17, j11]]).unwrap_err().to_string();
        assert!(error.starts_with("no Java 8 is installed") && error.contains("Temurin 8"), "{error}");
    }

    #[test]
    fn a_java_that_does_not_run_is_named_with_the_reason() {
        let root = tempfile::tempdir().unwrap();
        let home = fake(root.path(), "broken", "17");
        fs::write(home.join("bin/java"), "#!/bin/sh\necho no memory >&2; exit 1\n").unwrap();
        let error = choose(11..=17, vec![vec![home]]).unwrap_err().to_string();
        assert!(error.contains("no memory"), "{error}");
    }
}
