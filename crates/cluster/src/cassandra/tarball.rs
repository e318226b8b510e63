//! Cassandra from an unpacked binary tarball.

use std::path::Path;

use super::{
    Distribution, Origin, ProvisionError,
    dialect::Series,
    distribution::{jars_in, known},
};

/// Takes the tarball unpacked at `home`: `lib/*.jar`, with the version from the name of Cassandra's own jar.
/// Its configuration is not used; Brownout writes its own.
///
/// # Errors
/// When it is not a Cassandra, or one of a line that is not known.
pub fn open(home: &Path) -> Result<Distribution, ProvisionError> {
    let not = |why: String| ProvisionError::NotCassandra { home: home.to_owned(), why };
    let root = std::fs::canonicalize(home).map_err(|error| not(error.to_string()))?;
    let lib = root.join("lib");
    let classpath = jars_in(&lib).map_err(|error| not(format!("{}: {error}", lib.display())))?;
    let versions: Vec<&str> = classpath.iter().filter_map(|jar| version(jar)).collect();
    let version = match versions[..] {
        [version] => version.to_owned(),
        [] => return Err(not("lib/ holds no apache-cassandra-VERSION.jar".into())),
        _ => return Err(not(format!("lib/ holds several Cassandras: {}", versions.join(", ")))),
    };
    // Any release of the line will do: its configuration and options are the same.
    if Series::of(&version).is_none() {
        return Err(ProvisionError::UnknownVersion { asked: version, known: known() });
    }
    Ok(Distribution { version, classpath, root, how: Origin::Tarball })
}

/// `5.0.9` from `apache-cassandra-5.0.9.jar` (the tarball's name) or `cassandra-all-5.0.9.jar` (Maven's).
fn version(jar: &Path) -> Option<&str> {
    let name = jar.file_name()?.to_str()?.strip_suffix(".jar")?;
    let version = name.strip_prefix("apache-cassandra-").or_else(|| name.strip_prefix("cassandra-all-"))?;
    version.starts_with(|c: char| c.is_ascii_digit()).then_some(version)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn unpacked(jars: &[&str]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir(home.path().join("lib")).unwrap();
        for jar in jars {
            fs::write(home.path().join("lib").join(jar), "").unwrap();
        }
        home
    }

    #[test]
    fn the_version_comes_from_the_jars_name() {
        let home = unpacked(&["apache-cassandra-5.0.7.jar", "jamm-0.4.0.jar", "README"]);
        let distribution = open(home.path()).unwrap();
        assert_eq!((distribution.version.as_str(), distribution.classpath.len()), ("5.0.7", 2));
        assert_eq!(open(unpacked(&["apache-cassandra-5.0-rc2.jar"]).path()).unwrap().version, "5.0-rc2");
        assert_eq!(open(unpacked(&["apache-cassandra-4.1.9.jar"]).path()).unwrap().version, "4.1.9");
    }

    #[test]
    fn what_is_no_cassandra_is_refused_with_the_reason() {
        for (jars, said) in [
            (&["guava.jar"][..], "no apache-cassandra-VERSION.jar"),
            (&["apache-cassandra-5.0.7.jar", "apache-cassandra-5.0.9.jar"], "several"),
            (&["apache-cassandra-3.0.29.jar"], "'3.0.29' is not known; known are: 5.0"),
            (&["apache-cassandra-5.01.jar"], "'5.01' is not known"),
            (&["apache-cassandra-thrift.jar"], "no apache-cassandra-VERSION.jar"),
        ] {
            let error = open(unpacked(jars).path()).unwrap_err().to_string();
            assert!(error.contains(said), "{error}");
        }
        assert!(open(Path::new("/no/such")).unwrap_err().to_string().contains("/no/such"));
        assert!(open(tempfile::tempdir().unwrap().path()).unwrap_err().to_string().contains("lib"));
    }
}
