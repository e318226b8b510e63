//! The command line in the form in which it may be written to files.

/// The command line with everything that follows a `password=` hidden.
pub fn without_passwords(command: &str) -> String {
    // Words of the command are recognized in any case.
    let hide = |word: &str| match word.to_ascii_lowercase().find("password=") {
        Some(at) => format!("{}*******", &word[..at + "password=".len()]),
        None => word.to_owned(),
    };
    command.split(' ').map(hide).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_hidden_wherever_it_stands() {
        let command = "write n=1 -mode user=me password=a=b -transport truststore-password=secret";
        let expected = "write n=1 -mode user=me password=******* -transport truststore-password=*******";
        assert_eq!(without_passwords(command), expected);
        assert_eq!(without_passwords("-mode Password=secret"), "-mode Password=*******");
    }
}
