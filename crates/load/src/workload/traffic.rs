//! Request and answer as the traits name them, until the wire's own types of these names take their place.

use std::marker::PhantomData;

/// One request on its way into a connection's output.
#[derive(Debug)]
pub struct Request<'a>(PhantomData<&'a mut Vec<u8>>);

/// One answer of the server, borrowed from a connection's input.
#[derive(Debug)]
pub struct Answer<'a>(PhantomData<&'a [u8]>);
