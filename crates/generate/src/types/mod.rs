//! The types of CQL: their text, their wire form, their comparison.
