//! Counts of a file in the narrower types that the lab takes; their checks have refused what does not fit.

pub(crate) fn to_u16(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

pub(super) fn to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
