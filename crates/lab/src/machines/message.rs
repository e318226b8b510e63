//! What the controller of a run over several machines and its parts tell each other, and how that goes over a pipe.
//!
//! A frame is its length (four bytes, big-endian), its kind (one byte), and what it holds: a message as JSON, or a piece of a file.
//! All times are ns of the monotonic clock of the machine that the others' clocks are compared with: the run's *axis*. Each part
//! converts them to its own clock, and back.

use std::{
    io::{self, Read, Write},
    net::{IpAddr, SocketAddr},
};

use brownout_containers::Selection;
use brownout_record::{Arm, OperationRows};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{design::PlannedTrial, provided::Provided, request::Asked, software::Software};

/// A part of a trial that one machine is to make.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Order {
    /// The experiment: file, text, what was set, the files that it names and the containers that were found.
    pub(crate) asked: Asked,
    /// What was found out about the cluster.
    pub(crate) provided: Provided,
    /// Levels of a search that have become cells, in order.
    pub(crate) levels: Vec<String>,
    /// Which trial.
    pub(crate) planned: Planned,
    pub(crate) attempt: u32,
    /// Faults are acknowledged and not put in force.
    pub(crate) sabotage: bool,
    /// Which of the machines it is.
    pub(crate) machine: String,
    pub(crate) role: Role,
}

/// What a part does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Role {
    /// Impairs and measures the hosts of its machine.
    Agent,
    /// Sends its share of the operations.
    Load {
        /// Which, from 0.
        number: usize,
        /// Of how many.
        of: usize,
    },
}

/// A [`PlannedTrial`].
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Planned {
    number: u32,
    block: u32,
    cell: usize,
    arm: Arm,
}

impl From<PlannedTrial> for Planned {
    fn from(PlannedTrial { number, block, cell, arm }: PlannedTrial) -> Planned {
        Planned { number, block, cell, arm }
    }
}

impl From<Planned> for PlannedTrial {
    fn from(Planned { number, block, cell, arm }: Planned) -> PlannedTrial {
        PlannedTrial { number, block, cell, arm }
    }
}

/// Where another machine is reached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Peer {
    /// Its name.
    pub(crate) machine: String,
    /// Who tells what its clock shows.
    pub(crate) clock: SocketAddr,
    /// Who takes what has arrived elsewhere of what it has sent.
    pub(crate) relay: SocketAddr,
    /// Which machine it really is: several parts may be on one.
    pub(crate) boot: String,
    /// The processes of its hosts.
    pub(crate) pids: Vec<u32>,
}

/// Where a host of another machine takes what is to be measured.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct FarHost {
    pub(crate) host: String,
    pub(crate) machine: String,
    /// Its own addresses, the first of which is an IPv4 one.
    pub(crate) own: Vec<IpAddr>,
    /// One for each kind of sender.
    pub(crate) addresses: Vec<SocketAddr>,
}

/// What a part is told.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ToPart {
    /// Who speaks: a part of another version does not go on.
    Hello { version: String },
    /// Say which containers these are here, and end.
    Look(Selection),
    /// Ask the nodes of an experiment who they are, and end.
    Survey(Box<Asked>),
    /// The first of a trial: what to do.
    Order(Box<Order>),
    /// Who the others are; the first of them is the one whose clock is the axis.
    Peers(Vec<Peer>),
    /// Where hosts of other machines are measured, now.
    Far(Vec<FarHost>),
    /// A host of another machine has gone, since then.
    Left { host: String, since_ns: u64 },
    /// Intervals begin then: begin to observe.
    Begin { epoch_ns: u64 },
    /// Make what the load writes to: of all loads, one does. Of that name there may be what a load has made that was lost.
    MakeSchema { ours: bool },
    /// Who made it is lost: drop it in the end.
    Inherit,
    /// Connect to all nodes.
    Connect,
    /// Write every row once.
    Fill,
    /// As much as the cluster takes, from then on.
    Flood { from_ns: u64 },
    /// Nothing.
    Pause { from_ns: u64 },
    /// The load that is measured: what the flood was answered at, per second, by all together.
    Measure { capacity: f64, from_ns: u64 },
    /// The phase of the faults begins then.
    Faults { from_ns: u64 },
    /// The last phase ends then: heal, see how all that is open ends, and give the record.
    End { at_ns: u64 },
    /// Heal, give the record, and end, now.
    Stop,
    /// What time is it on the axis?
    Now,
    /// The controller is there. A part that does not hear this for [`super::LEASE`] heals, and ends.
    Lease,
}

/// What others need to know of a part.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct Ready {
    /// Of an agent, where it is reached, and where its hosts are measured.
    pub(crate) clock: Option<SocketAddr>,
    pub(crate) relay: Option<SocketAddr>,
    pub(crate) far: Vec<FarHost>,
    /// See [`Peer`].
    pub(crate) boot: String,
    pub(crate) pids: Vec<u32>,
}

/// What a part tells.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum FromPart {
    /// What is there, as JSON.
    Found { text: String },
    /// What the nodes run.
    Surveyed { software: Vec<Software> },
    /// It has begun: where others reach it, and where its hosts are measured.
    Ready(Box<Ready>),
    /// It knows the others' clocks: how exactly the axis', ns.
    Synchronised { error_ns: u64 },
    /// What was asked for last is done.
    Done,
    /// What an interval looked like.
    Tick(PartTick),
    /// What became of operations by now, in intervals; times are ns since the first of these. Each replaces what was told of its
    /// interval before.
    Operations(Vec<OperationRows>),
    /// Something that a person should see.
    Note { text: String },
    /// What time it is, on the axis.
    Now { axis_ns: u64 },
    /// One of its hosts is gone since then, or is somewhere else now.
    Left { host: String, since_ns: u64 },
    /// It is there again.
    Came(FarHost),
    /// It is over, and why, if not well. A record of so many bytes follows.
    Over { failure: Option<String>, interrupted: bool, exchanges: Vec<[u64; 4]>, zero_ns: u64, record: u64 },
    /// It could not even begin.
    Failed { text: String, exit_code: u8 },
}

/// One interval of a part.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct PartTick {
    pub(crate) offered: u64,
    pub(crate) delivered: u64,
    pub(crate) failed: u64,
    pub(crate) seconds: f64,
    /// Of those ok and timed out, ns.
    pub(crate) p50_ns: u64,
    pub(crate) p99_ns: u64,
    pub(crate) coordinators: Vec<(String, u64)>,
    /// Name, ok, timed out, median.
    pub(crate) operations: Vec<(String, u64, u64, u64)>,
    pub(crate) faults: Vec<String>,
    pub(crate) busy: f64,
    /// Rows written, of how many.
    pub(crate) filled: (u64, u64),
    /// Why rows cannot be written.
    pub(crate) refused: Option<String>,
    /// How exactly it knows the axis' clock, ns.
    pub(crate) error_ns: Option<u64>,
}

const MESSAGE: u8 = 0;
const PIECE: u8 = 1;
/// A longer frame is none of ours.
const LONGEST: u32 = 64 << 20;
/// Of a file that follows a message.
const PIECE_BYTES: usize = 1 << 20;

/// Writes a message.
pub(crate) fn write_message(to: &mut dyn Write, message: &impl Serialize) -> io::Result<()> {
    write_frame(to, MESSAGE, &serde_json::to_vec(message)?)
}

/// Writes a file, in pieces.
pub(crate) fn write_file(to: &mut dyn Write, from: &mut dyn Read) -> io::Result<()> {
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match from.read(&mut piece)? {
            0 => return Ok(()),
            length => write_frame(to, PIECE, &piece[..length])?,
        }
    }
}

fn write_frame(to: &mut dyn Write, kind: u8, holds: &[u8]) -> io::Result<()> {
    let length = u32::try_from(holds.len()).ok().filter(|length| *length <= LONGEST);
    let length = length.ok_or_else(|| io::Error::other(format!("a message of {} bytes is too long", holds.len())))?;
    // At once: whoever reads never sees half a frame of a writer that lives.
    let mut frame = Vec::with_capacity(holds.len() + 5);
    frame.extend(length.to_be_bytes());
    frame.push(kind);
    frame.extend_from_slice(holds);
    to.write_all(&frame)?;
    to.flush()
}

/// Reads the next message; none at the end.
pub(crate) fn read_message<T: DeserializeOwned>(from: &mut dyn Read) -> io::Result<Option<T>> {
    match read_frame(from)? {
        None => Ok(None),
        Some((MESSAGE, holds)) => Ok(Some(serde_json::from_slice(&holds)?)),
        Some((kind, _)) => Err(senseless(&format!("a frame of kind {kind} where a message is due"))),
    }
}

/// Reads a file of so many bytes.
pub(crate) fn read_file(from: &mut dyn Read, bytes: u64, to: &mut dyn Write) -> io::Result<()> {
    let mut left = bytes;
    while left > 0 {
        match read_frame(from)? {
            Some((PIECE, holds)) if holds.len() as u64 <= left => {
                to.write_all(&holds)?;
                left -= holds.len() as u64;
            }
            Some((kind, holds)) => {
                return Err(senseless(&format!(
                    "a frame of kind {kind} and {} bytes where {left} are due",
                    holds.len()
                )));
            }
            None => return Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
    Ok(())
}

fn read_frame(from: &mut dyn Read) -> io::Result<Option<(u8, Vec<u8>)>> {
    let mut head = [0; 5];
    match from.read(&mut head[..1])? {
        0 => return Ok(None),
        _ => from.read_exact(&mut head[1..])?,
    }
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]);
    if length > LONGEST {
        return Err(senseless(&format!("a frame of {length} bytes")));
    }
    let mut holds = vec![0; length as usize];
    from.read_exact(&mut holds)?;
    Ok(Some((head[4], holds)))
}

fn senseless(what: &str) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        format!("{what}: the other end is no part of this run, or of another version"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_and_files_come_out_as_they_went_in() {
        let mut pipe = Vec::new();
        let file: Vec<u8> = (0..3 * PIECE_BYTES as u32 / 2).map(|at| at as u8).collect();
        write_message(&mut pipe, &ToPart::Begin { epoch_ns: u64::MAX }).unwrap();
        write_file(&mut pipe, &mut &file[..]).unwrap();
        write_message(&mut pipe, &ToPart::Lease).unwrap();
        let mut from = &pipe[..];
        let first = read_message::<ToPart>(&mut from).unwrap().unwrap();
        assert!(matches!(first, ToPart::Begin { epoch_ns: u64::MAX }), "{first:?}");
        let mut read = Vec::new();
        read_file(&mut from, file.len() as u64, &mut read).unwrap();
        assert_eq!(read, file);
        assert!(matches!(read_message::<ToPart>(&mut from).unwrap(), Some(ToPart::Lease)));
        assert!(read_message::<ToPart>(&mut from).unwrap().is_none(), "the end");
    }

    #[test]
    fn what_is_cut_or_senseless_is_an_error_and_no_message() {
        let mut pipe = Vec::new();
        write_message(&mut pipe, &ToPart::Lease).unwrap();
        let cut = read_message::<ToPart>(&mut &pipe[..pipe.len() - 1]);
        assert_eq!(cut.unwrap_err().kind(), io::ErrorKind::UnexpectedEof);
        for wrong in ["Usage: agent", "\u{1}\u{0}\u{0}\u{0}\u{0}"] {
            assert!(read_message::<ToPart>(&mut wrong.as_bytes()).is_err(), "{wrong:?}");
        }
        let mut piece = Vec::new();
        write_file(&mut piece, &mut &b"abc"[..]).unwrap();
        assert!(read_message::<ToPart>(&mut &piece[..]).is_err());
        assert!(read_file(&mut &piece[..], 2, &mut Vec::new()).is_err(), "more than was said");
        assert!(read_file(&mut &piece[..], 4, &mut Vec::new()).is_err(), "less than was said");
    }
}
