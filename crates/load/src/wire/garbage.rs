//! What a peer sent that makes no sense.

/// Why bytes are not a valid answer. Short, because it goes into an event of the run.
pub(crate) type Garbage = &'static str;
