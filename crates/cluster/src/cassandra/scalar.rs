//! Single values, as YAML writes them.

/// A string in single quotes, in which only the quote itself has to be escaped.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}
