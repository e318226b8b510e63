//! The order of names to people.

/// A name as it is sorted by people, to whom node10 comes after node9: each run of digits is a number.
pub fn natural(name: &str) -> Vec<(String, u64)> {
    let mut parts = Vec::new();
    let mut rest = name;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (text, after) = rest.split_at(digits);
        let end = after.find(|c: char| !c.is_ascii_digit()).unwrap_or(after.len());
        let (number, after) = after.split_at(end);
        // One with more digits than a number has is as good as any.
        parts.push((text.to_owned(), number.parse().unwrap_or(0)));
        rest = after;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_people() {
        let mut names = ["db-10", "db-9", "a-1-2", "db-1", "a-1-10", "b"];
        names.sort_by_key(|name| natural(name));
        assert_eq!(names, ["a-1-2", "a-1-10", "b", "db-1", "db-9", "db-10"]);
    }
}
