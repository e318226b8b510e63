//! Request and answer as the traits name them, until the wire's own types of these names take their place.

use crate::wire::response::Response;

/// One request on its way into a connection's output.
pub struct Request<'a> {
    pub(crate) out: &'a mut Vec<u8>,
    pub(crate) stream: u16,
    pub(crate) prepared: &'a [Box<[u8]>],
}

/// One answer of the server, borrowed from a connection's input.
pub struct Answer<'a>(pub(crate) Response<'a>);
