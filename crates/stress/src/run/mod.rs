//! The runner: phases, rates, end conditions.
