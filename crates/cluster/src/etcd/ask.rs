//! What an etcd server is asked: who leads, who its members are, whether it answers, what it still holds.

use std::{
    collections::BTreeMap,
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use serde_json::{Value, json};

use super::{
    http::{Client, Door},
    metrics::Metrics,
};
use crate::database::{ClusterView, Led, Member};

/// For one answer: a healthy server takes milliseconds, and a busy one is asked again.
pub(super) const PATIENCE: Duration = Duration::from_secs(1);
/// For who leads: a server that stands still must not hold up those who ask.
const ROLE_WITHIN: Duration = Duration::from_millis(400);
/// The first key there can be, in base 64; as the end of a range: no end.
const FIRST: &str = "AA==";

/// What a server says of itself and of the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Status {
    /// `3.6.16`.
    pub(crate) version: String,
    /// Its own number.
    pub(crate) id: u64,
    /// Whom it takes for the leader; none: nobody.
    pub(crate) leader: Option<u64>,
    pub(crate) term: u64,
    /// The last entry that it knows to be committed, and the last that it has applied.
    pub(crate) committed: u64,
    pub(crate) applied: u64,
    pub(crate) database_bytes: u64,
    /// What is wrong with it, in its own words: no leader, alarms.
    pub(crate) errors: Vec<String>,
}

impl Status {
    /// An answer to `/v3/maintenance/status`. The gateway leaves out what is nought or empty.
    fn of(answer: &Value) -> Option<Status> {
        let header = answer.get("header")?;
        Some(Status {
            version: answer.get("version")?.as_str()?.to_owned(),
            id: number(header, "member_id"),
            leader: Some(number(answer, "leader")).filter(|id| *id != 0),
            term: number(answer, "raftTerm"),
            committed: number(answer, "raftIndex"),
            applied: number(answer, "raftAppliedIndex"),
            database_bytes: number(answer, "dbSize"),
            errors: answer.get("errors").map(texts).unwrap_or_default(),
        })
    }
}

/// A member as a server knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) id: u64,
    /// Empty until it has started once.
    name: String,
    clients: Vec<String>,
}

impl Known {
    #[cfg(test)]
    pub(super) fn of(id: u64, name: &str) -> Known {
        Known { id, name: name.to_owned(), clients: Vec::new() }
    }

    /// Which of ours it is: by where clients reach it, else by its name.
    fn place(&self, members: &[Member]) -> Option<usize> {
        let is_there = |member: &Member| self.clients.iter().any(|url| is_at(url, member.client));
        let named = || members.iter().position(|member| member.name == self.name);
        members.iter().position(is_there).or_else(named)
    }
}

/// The names of the members by their numbers, as a server knows them.
pub(super) fn names(known: &[Known], members: &[Member]) -> BTreeMap<u64, String> {
    let name = |one: &Known| {
        let ours = one.place(members).map(|place| &members[place]);
        (one.id, ours.map_or_else(|| one.name.clone(), |member| member.name.clone()))
    };
    known.iter().map(name).collect()
}

/// Whether a URL, `http://10.77.0.1:2379`, is of this address.
fn is_at(url: &str, address: SocketAddr) -> bool {
    let at = url.rsplit_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    let Some((host, port)) = at.rsplit_once(':') else { return false };
    port.parse() == Ok(address.port()) && host.parse::<IpAddr>().is_ok_and(|host| host == address.ip())
}

/// A number of an answer: 64 bits come as text, less than that as numbers, and nought not at all.
fn number(of: &Value, name: &str) -> u64 {
    match of.get(name) {
        Some(Value::String(text)) => text.parse().unwrap_or(0),
        Some(value) => value.as_u64().unwrap_or(0),
        None => 0,
    }
}

/// The texts of a list.
fn texts(list: &Value) -> Vec<String> {
    list.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

pub(super) fn status_of(client: &mut Client) -> Result<Status, String> {
    let answer = client.ask("/v3/maintenance/status", &json!({}))?;
    Status::of(&answer).ok_or_else(|| "its status cannot be read".to_owned())
}

pub(super) fn members_of(client: &mut Client) -> Result<Vec<Known>, String> {
    let answer = client.ask("/v3/cluster/member/list", &json!({}))?;
    let known = |member: &Value| Known {
        id: number(member, "ID"),
        name: member.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        clients: member.get("clientURLs").map(texts).unwrap_or_default(),
    };
    let members = answer.get("members").and_then(Value::as_array).ok_or("its list of members cannot be read")?;
    Ok(members.iter().map(known).collect())
}

/// The status of the server at `to`.
pub(crate) fn status(door: &Door, to: SocketAddr, patience: Duration) -> Result<Status, String> {
    status_of(&mut door.open(to, patience)?)
}

/// Whether the server at `to` answers clients; if not, what it does instead. It need not have a leader for that.
pub(crate) fn answers(door: &Door, to: SocketAddr) -> Result<(), String> {
    let mut client = door.open(to, PATIENCE)?;
    client.ask("/v3/kv/range", &json!({ "key": FIRST, "serializable": true })).map(drop)
}

/// How many keys there are below this prefix, which is not empty and ends in no byte of 255.
pub(crate) fn keys_below(door: &Door, to: SocketAddr, prefix: &str, patience: Duration) -> Result<u64, String> {
    let (key, end) = below(prefix);
    let range = json!({ "key": key, "range_end": end, "count_only": true });
    Ok(number(&door.open(to, patience)?.ask("/v3/kv/range", &range)?, "count"))
}

/// Deletes them.
pub(crate) fn delete_below(door: &Door, to: SocketAddr, prefix: &str, patience: Duration) -> Result<(), String> {
    let (key, end) = below(prefix);
    door.open(to, patience)?.ask("/v3/kv/deleterange", &json!({ "key": key, "range_end": end })).map(drop)
}

/// From where to where keys begin with a prefix.
fn below(prefix: &str) -> (String, String) {
    let mut end = prefix.as_bytes().to_vec();
    if let Some(last) = end.last_mut() {
        *last += 1;
    }
    (base64(prefix.as_bytes()), base64(&end))
}

/// Bytes as JSON carries them (RFC 4648, section 4).
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let letters = |three: &[u8]| {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letter = move |at: usize| match at <= three.len() {
            true => char::from(LETTERS[(bits >> (18 - 6 * at)) as usize & 63]),
            false => '=',
        };
        [0, 1, 2, 3].map(letter)
    };
    bytes.chunks(3).flat_map(letters).collect()
}

/// Whom `members[index]` takes for the leader.
pub(crate) fn leader(door: &Door, members: &[Member], index: usize) -> Result<Option<Led>, String> {
    let mut client = door.open(members[index].client, ROLE_WITHIN)?;
    let status = status_of(&mut client)?;
    let Some(id) = status.leader else { return Ok(None) };
    if id == status.id {
        return Ok(Some(Led { leader: index, term: status.term }));
    }
    let known = members_of(&mut client)?;
    let known = known.iter().find(|known| known.id == id);
    let place = known.and_then(|known| known.place(members));
    let leader = place.ok_or_else(|| format!("the leader ({id:x}) is none of the nodes"))?;
    Ok(Some(Led { leader, term: status.term }))
}

/// What `members[index]` sees of the cluster:
///
/// 1. all members have joined, and all know the same leader by the same term (what is compared between nodes);
/// 2. nothing is wrong with it (`errors` of its status: alarms, no leader);
/// 3. it holds a stream to each other member (`etcd_network_active_peers`);
/// 4. a linearizable read is answered through it: a majority follows the leader, and it hears of that.
pub(crate) fn view(door: &Door, members: &[Member], index: usize) -> ClusterView {
    let me = &members[index];
    let lacking = |what: &str, why: String| ClusterView::lacking(format!("{} {what} ({why})", me.name));
    let mut client = match door.open(me.client, PATIENCE) {
        Ok(client) => client,
        Err(why) => return lacking("does not answer clients yet", why),
    };
    let (status, known) = match status_of(&mut client).and_then(|status| Ok((status, members_of(&mut client)?))) {
        Ok(told) => told,
        Err(why) => return lacking("does not say which members it knows", why),
    };
    let connected = match client.get("/metrics") {
        Ok(text) => connected(&text),
        Err(why) => return lacking("does not say whom it is connected to", why),
    };
    let mut missing = Vec::new();
    for (other, member) in members.iter().enumerate() {
        match known.iter().find(|known| known.place(members) == Some(other)) {
            None => missing.push(format!("{} does not know {} as a member", me.name, member.name)),
            Some(known) if other != index && known.id != status.id && !connected.contains(&known.id) => {
                missing.push(format!("{} is not connected to {}", me.name, member.name));
            }
            Some(_) => {}
        }
    }
    missing.extend(status.errors.iter().map(|error| format!("{} reports: {error}", me.name)));
    let Some(leader) = status.leader else {
        missing.push(format!("{} knows of no leader", me.name));
        return ClusterView { missing, schema: None };
    };
    if missing.is_empty()
        && let Err(why) = client.ask("/v3/kv/range", &json!({ "key": FIRST }))
    {
        missing.push(format!("{} cannot read what a majority holds ({why})", me.name));
    }
    let name = names(&known, members).remove(&leader).unwrap_or_else(|| format!("{leader:x}"));
    ClusterView { missing, schema: Some(format!("{name} leads, term {}", status.term)) }
}

/// As [`view`], and what is left of what clients have written: keys, entries that are not applied, proposals that wait.
pub(crate) fn rest(door: &Door, members: &[Member], index: usize) -> ClusterView {
    let mut view = view(door, members, index);
    if !view.missing.is_empty() {
        return view;
    }
    let me = &members[index];
    match door.open(me.client, PATIENCE).and_then(|mut client| left(&mut client)) {
        Ok(left) => view.missing.extend(left.into_iter().map(|left| format!("{} still has {left}", me.name))),
        Err(why) => view.missing.push(format!("{} does not say what it still works on ({why})", me.name)),
    }
    view
}

fn left(client: &mut Client) -> Result<Vec<String>, String> {
    let mut left = Vec::new();
    let all = json!({ "key": FIRST, "range_end": FIRST, "count_only": true, "serializable": true });
    let keys = number(&client.ask("/v3/kv/range", &all)?, "count");
    if keys > 0 {
        left.push(format!("{keys} keys"));
    }
    let status = status_of(client)?;
    let behind = status.committed.saturating_sub(status.applied);
    if behind > 0 {
        left.push(format!("{behind} entries to apply"));
    }
    let metrics = client.get("/metrics")?;
    let pending = Metrics::read(&metrics).sum("etcd_server_proposals_pending").unwrap_or(0.0);
    if pending > 0.0 {
        left.push(format!("{pending} proposals that wait"));
    }
    Ok(left)
}

/// The numbers of the members that a stream is up to.
fn connected(metrics: &str) -> Vec<u64> {
    let peers = Metrics::read(metrics).by("etcd_network_active_peers", "Remote");
    let up = peers.into_iter().filter(|(_, streams)| *streams > 0.0);
    up.filter_map(|(id, _)| u64::from_str_radix(id, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;

    /// As 3.6 answers; 3.4 writes the same.
    const STATUS: &str = r#"{"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"1",
        "raft_term":"2"},"version":"3.6.16","dbSize":"20480","leader":"10501334649042878790","raftIndex":"9","raftTerm":"2",
        "raftAppliedIndex":"8","dbSizeInUse":"16384","storageVersion":"3.6.0"}"#;

    fn member(name: &str, last: u8) -> Member {
        let address = Ipv4Addr::new(10, 77, 0, last);
        Member {
            name: name.to_owned(),
            address,
            client: SocketAddr::new(address.into(), 2379),
            home: "/".into(),
            logs: "/".into(),
        }
    }

    #[test]
    fn a_status_is_read_with_numbers_as_text_and_without_those_that_are_nought() {
        let status = Status::of(&serde_json::from_str(STATUS).unwrap()).unwrap();
        assert_eq!(status.version, "3.6.16");
        assert_eq!((status.id, status.leader), (10_276_657_743_932_975_437, Some(10_501_334_649_042_878_790)));
        assert_eq!((status.term, status.committed, status.applied, status.database_bytes), (2, 9, 8, 20_480));
        let lost = r#"{"header":{"member_id":7},"version":"3.4.23","errors":["etcdserver: no leader"]}"#;
        let lost = Status::of(&serde_json::from_str(lost).unwrap()).unwrap();
        assert_eq!((lost.id, lost.leader, lost.errors), (7, None, vec!["etcdserver: no leader".to_owned()]));
        assert_eq!(Status::of(&json!({ "error": "x" })), None);
    }

    #[test]
    fn bytes_are_written_as_the_specification_has_them() {
        let all = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|text| base64(text.as_bytes()));
        assert_eq!(all, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64(&[0]), FIRST);
    }

    #[test]
    fn a_member_is_told_by_where_clients_reach_it_or_by_its_name() {
        let members = [member("n1", 1), member("n2", 2)];
        let known = |id, name: &str, url: &str| Known { id, name: name.to_owned(), clients: vec![url.to_owned()] };
        let all = [
            known(7, "n2", "http://10.99.0.2:2379"),
            known(8, "infra-a", "https://10.77.0.1:2379/"),
            known(9, "infra-b", "http://10.77.0.1:12379"),
            known(10, "n2", "http://10.77.0.1:2379"),
        ];
        let named = [(7, "n2"), (8, "n1"), (9, "infra-b"), (10, "n1")].map(|(id, name)| (id, name.to_owned()));
        assert_eq!(names(&all, &members), BTreeMap::from(named));
        assert!(!is_at("http://10.77.0.1", members[0].client) && !is_at("nowhere", members[0].client));
    }

    #[test]
    fn who_is_connected_is_told_by_numbers_in_hexadecimal() {
        let text = "etcd_network_active_peers{Local=\"8e9e05c52164694d\",Remote=\"91bc3c398fb3c146\"} 1\n\
                    etcd_network_active_peers{Local=\"8e9e05c52164694d\",Remote=\"fd422379fda50e48\"} 0\n";
        assert_eq!(connected(text), [0x91bc_3c39_8fb3_c146]);
    }
}
