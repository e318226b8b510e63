//! Distributions: what may be written, and what is drawn from them.
