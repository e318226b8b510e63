use crate::{output, view};

/// The first process of a lab: does what its parent asked for.
pub fn inside() -> u8 {
    brownout_lab::inside(view::from_text, |error| output::fail(error))
}
