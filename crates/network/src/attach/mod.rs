//! Networks that others have made: hosts that run already, such as containers, between which packets are diverted through the
//! emulator for as long as somebody is there to carry them.
//!
//! | way | where | by what | leaves by |
//! |---|---|---|---|
//! | [`forward`] | the sender's way out | nf_tables, to a TAP | a packet socket |
//! | [`queue`] | the receiver's way in | nf_tables, to a queue of the kernel's | a verdict |
//! | [`route`] | the sender's routes | routes, to a TUN | a raw socket |

mod attachment;
mod check;
mod commands;
mod diversion;
mod forward;
mod inside;
mod keeper;
mod open;
mod opened;
mod queue;
mod reattach;
mod route;
mod selection;
mod spec;
mod state;
mod trial;

pub(crate) use self::attachment::{Attachment, Prepared};
pub use self::{
    spec::{AttachSpec, AttachedKind, AttachedSpec, Exit},
    trial::{attach_trials, attach_way},
};
