//! Keyspaces and tables: made, read back, truncated.
