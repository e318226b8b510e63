//! Verifying a directory of jars against pinned checksums.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{self, Read},
    path::Path,
};

use sha2::{Digest, Sha256};

use super::distribution::jars_in;

/// What differs between the jars in `directory` and `pins` (lines of `sha256sum`): nothing when they are the same.
///
/// Every jar is read (67 MB: a fraction of a second), so that a damaged disk is found as well as a changed file.
pub(crate) fn differences(directory: &Path, pins: &str) -> io::Result<Vec<String>> {
    let mut pinned: BTreeMap<&str, &str> =
        pins.lines().filter_map(|line| line.split_once("  ")).map(|(sum, name)| (name, sum)).collect();
    let mut differences = Vec::new();
    for jar in jars_in(directory)? {
        let name = jar.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match pinned.remove(name.as_str()) {
            None => differences.push(format!("{name} does not belong there")),
            Some(sum) if sum != sha256(&jar)? => differences.push(format!("{name} has another SHA-256")),
            Some(_) => {}
        }
    }
    differences.extend(pinned.keys().map(|name| format!("{name} is missing")));
    Ok(differences)
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut file = File::open(path)?;
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        match file.read(&mut buffer)? {
            0 => return Ok(hex(&hash.finalize())),
            count => hash.update(&buffer[..count]),
        }
    }
}

/// Lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    // The SHA-256 of "abc" (FIPS 180-4, appendix) and of nothing.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    const EMPTY: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn a_changed_missing_or_foreign_jar_is_detected() {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(directory.path().join(name), text).unwrap();
        let pins = format!("{ABC}  a.jar\n{EMPTY}  b.jar\n");
        write("a.jar", "abc");
        write("b.jar", "");
        write("notes.txt", "not a jar");
        let look = || differences(directory.path(), &pins).unwrap();
        assert_eq!(look(), Vec::<String>::new());

        write("a.jar", "abd");
        assert_eq!(look(), ["a.jar has another SHA-256"]);
        write("a.jar", "abc");
        write("c.jar", "");
        assert_eq!(look(), ["c.jar does not belong there"]);
        fs::remove_file(directory.path().join("c.jar")).unwrap();
        fs::remove_file(directory.path().join("b.jar")).unwrap();
        assert_eq!(look(), ["b.jar is missing"]);
    }
}
