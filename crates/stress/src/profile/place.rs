//! Where profiles come from: files and URIs.

use std::{io, path::Path};

use super::{Profile, ProfileError, fetch};

impl Profile {
    /// Reads and checks a profile from a file, or from a URI: `file:`, `http:` or `https:`.
    ///
    /// # Errors
    /// It cannot be read, or is not a profile.
    pub fn load(place: &str) -> Result<Self, ProfileError> {
        let wrong = |message: String| ProfileError::without_place(place, "", message);
        let (name, text) = match path(place).map_err(wrong)? {
            None => (place.to_owned(), fetch::fetch(place).map_err(wrong)?),
            Some(path) => {
                let text = std::fs::read_to_string(&path).map_err(|error| {
                    wrong(format!("cannot be read: {error}; name a YAML file, as in profile=./users.yaml"))
                })?;
                (path, text)
            }
        };
        if text.trim().is_empty() {
            return Err(wrong(format!("Unable to load yaml file from: {place}: it is empty")));
        }
        Profile::from_text(&name, text, &beside)
    }
}

/// Reads a file that a profile names, relative to the profile; for a profile on a server, from there, too.
fn beside(file: &Path) -> io::Result<String> {
    match file.to_str().filter(|place| fetch::is_web(place)) {
        Some(uri) => fetch::fetch(uri).map_err(io::Error::other),
        None => std::fs::read_to_string(file),
    }
}

/// All profiles of a command. Operations without a profile's name belong to the first.
///
/// # Errors
/// Those of [`Profile::load`]; two profiles have the same name.
pub fn load_all(places: &[String]) -> Result<Vec<Profile>, ProfileError> {
    let mut profiles: Vec<Profile> = Vec::new();
    for place in places {
        let profile = Profile::load(place)?;
        if let Some(other) = profiles.iter().find(|other| other.name == profile.name) {
            // "singe" is how cassandra-stress spells it.
            let message = format!(
                "Must only specify a singe YAML file per table (including keyspace qualifier). {} is '{}', too; give one of \
                 them a specname of its own",
                other.file, other.name
            );
            return Err(ProfileError::without_place(place, "specname", message));
        }
        profiles.push(profile);
    }
    Ok(profiles)
}

/// The path that a place means; `None` for a web server. A file of exactly that name comes first, as in
/// cassandra-stress.
fn path(place: &str) -> Result<Option<String>, String> {
    if Path::new(place).exists() {
        return Ok(Some(place.to_owned()));
    }
    if fetch::is_web(place) {
        return Ok(None);
    }
    let lower = place.to_ascii_lowercase();
    if lower.starts_with("ftp:") || lower.starts_with("jar:") {
        return Err(format!("is fetched by http: and https: only; download it, and name the file: curl -O {place}"));
    }
    let Some(rest) = lower.strip_prefix("file:").map(|rest| &place[place.len() - rest.len()..]) else {
        return Ok(Some(place.to_owned()));
    };
    let path = match rest.strip_prefix("//") {
        // file://host/path: only this host can be meant.
        Some(rest) => match rest.find('/') {
            Some(at) if at == 0 || rest[..at].eq_ignore_ascii_case("localhost") => &rest[at..],
            _ => return Err("a file: URI names a host; write file:///path, or the path alone".to_owned()),
        },
        None => rest,
    };
    Ok(Some(unescaped(path)))
}

/// Decodes `%20` and the like.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escape = (bytes[at] == b'%').then(|| text.get(at + 1..at + 3)).flatten();
        match escape.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_file_uris_name_the_same_file() {
        for (place, file) in [
            ("users.yaml", "users.yaml"),
            ("./users.yaml", "./users.yaml"),
            ("file:users.yaml", "users.yaml"),
            ("file:/tmp/users.yaml", "/tmp/users.yaml"),
            ("file:///tmp/my%20users.yaml", "/tmp/my users.yaml"),
            ("FILE://localhost/tmp/u.yaml", "/tmp/u.yaml"),
        ] {
            assert_eq!(path(place), Ok(Some(file.to_owned())), "{place}");
        }
    }

    #[test]
    fn what_is_elsewhere_is_refused_with_a_remedy() {
        for (place, remedy) in [("ftp://example.org/u.yaml", "curl -O ftp:"), ("file://there/u.yaml", "file:///path")] {
            let error = path(place).expect_err(place);
            assert!(error.contains(remedy), "{place}: {error}");
        }
    }
}
