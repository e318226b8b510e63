//! The roles that nodes have to each other, of a database in which they have some.

use std::fmt;

use crate::hosts::Hosts;

/// What a node is to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// All others follow it.
    Leader,
    /// It follows the leader.
    Follower,
}

impl Role {
    const ALL: [Role; 2] = [Role::Leader, Role::Follower];

    /// In the file.
    pub fn word(self) -> &'static str {
        match self {
            Role::Leader => "leader",
            Role::Follower => "follower",
        }
    }

    /// The role that a name means; none where it means a place: a site may be called so.
    pub fn meant(name: &str, hosts: &Hosts) -> Option<Role> {
        let is_place = hosts.find(name).is_some() || hosts.sites().contains_key(name);
        Role::ALL.into_iter().find(|role| role.word() == name).filter(|_| !is_place)
    }
}

/// For people: "the leader", "a follower".
impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Role::Leader => "the leader",
            Role::Follower => "a follower",
        })
    }
}
