//! Packets as they come from a TUN: what they are, and how they are cut, damaged and refused.

pub(in crate::emulator) mod buffers;
pub(in crate::emulator) mod checksum;
pub(in crate::emulator) mod damage;
pub(in crate::emulator) mod fragment;
pub(in crate::emulator) mod frame;
pub(in crate::emulator) mod icmp;
pub(in crate::emulator) mod slicer;
