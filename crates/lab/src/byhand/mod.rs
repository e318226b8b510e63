//! The lab by hand.

use serde::{Deserialize, Serialize};

use crate::{ground::Interrupts, provided::Provided};

/// What a lab's first process is asked.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(crate) provided: Provided,
}

pub(crate) fn inside(_order: Order, _interrupts: Interrupts) -> u8 {
    2
}
