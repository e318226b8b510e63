//! The YAML profiles of `user` commands.
