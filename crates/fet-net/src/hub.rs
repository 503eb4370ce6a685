//! Configuration of the relay: a NATS server at which each party reaches only its own two subjects.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::identity::PublicIdentity;
use crate::names::{Name, from_party, to_party};

/// Largest message of the server, in bytes: twice a packet.
const MAX_PAYLOAD: u32 = 256 * 1024;

/// Members of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    /// The run.
    pub run: Name,
    /// The primary.
    pub primary: Member,
    /// The other parties.
    pub parties: Vec<Member>,
}

/// Server that connects the members of one or more runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Relay {
    /// Address on which the server listens; `0.0.0.0` for all addresses.
    pub host: String,
    /// Port on which the server listens.
    pub port: u16,
    /// Port on which the server also listens for WebSockets, with the same certificate.
    pub websocket: Option<u16>,
    /// Certificate of the server. Without it, connections are not encrypted; the messages of the parties
    /// still are.
    pub tls: Option<Tls>,
    /// Cluster that the server belongs to.
    pub cluster: Option<Cluster>,
}

/// Place of a server in a cluster, whose servers pass each other the messages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cluster {
    /// Address on which the server listens for the other servers, `HOST:PORT`.
    pub listen: String,
    /// Addresses of the other servers, `HOST:PORT`.
    pub routes: Vec<String>,
    /// Authority (PEM) of the servers' certificates. The servers show each other their certificates if they
    /// have any.
    pub ca: Option<PathBuf>,
}

/// Name of a member and its identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// The name.
    pub name: Name,
    /// The identity.
    pub identity: PublicIdentity,
}

/// Certificate of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tls {
    /// Certificate (PEM).
    pub certificate: PathBuf,
    /// Private key of the certificate (PEM).
    pub key: PathBuf,
    /// Authority (PEM) of the certificates that parties must show; without it, they show none.
    pub verify: Option<PathBuf>,
}

/// Reason why a roster gives no configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RosterError {
    /// Two members have the same name.
    #[error("two members are called {0}")]
    SameName(Name),
    /// Two members have the same identity.
    #[error("{0} and another member have the same identity: each member needs its own key")]
    SameIdentity(Name),
    /// The roster has only the primary.
    #[error("the roster names no party other than the primary")]
    Alone,
    /// Two rosters have the same run with other members.
    #[error(
        "two rosters have the run {0} with other members: give one of the runs another name. Two rosters of one run may \
         differ only in keys, while a key is replaced"
    )]
    SameRun(Name),
    /// A text is not allowed in the configuration.
    #[error(
        "{0:?} is not allowed in the server's configuration: use letters, digits and the usual characters of paths"
    )]
    Text(String),
}

impl Relay {
    /// Returns the text of a `nats-server` configuration file for the members of these rosters. Members may
    /// publish and subscribe only to the subjects that their links need.
    ///
    /// # Errors
    /// If two members of a roster share a name or an identity, there is no party, two rosters of one run have
    /// other members, or a path has quotes or control characters.
    pub fn configuration(&self, rosters: &[Roster]) -> Result<String, RosterError> {
        let mut runs: BTreeMap<&Name, BTreeSet<&Name>> = BTreeMap::new();
        for roster in rosters {
            roster.check()?;
            let names = roster.members().map(|member| &member.name).collect();
            if runs.insert(&roster.run, names).is_some_and(|known| known != runs[&roster.run]) {
                return Err(RosterError::SameRun(roster.run.clone()));
            }
        }
        let runs: Vec<_> = runs.keys().map(|run| run.as_str()).collect();
        let mut text = format!(
            "# Relay of {} {}, generated from {}.\nhost: {}\nport: {}\nmax_payload: {MAX_PAYLOAD}\n\
             write_deadline: \"60s\"\n",
            if runs.len() == 1 { "the run" } else { "the runs" },
            runs.join(", "),
            if rosters.len() == 1 { "its roster" } else { "their rosters" },
            quoted(&self.host)?,
            self.port
        );
        let tls = self.tls.as_ref().map(Tls::block).transpose()?;
        text += tls.as_deref().unwrap_or_default();
        if let Some(port) = self.websocket {
            let tls = tls.as_deref().unwrap_or("no_tls: true\n");
            let _ = writeln!(text, "websocket {{\nhost: {}\nport: {port}\n{tls}}}", quoted(&self.host)?);
        }
        if let Some(cluster) = &self.cluster {
            text += &self.cluster_block(cluster)?;
        }
        text += "authorization {\n  timeout: 10\n  users = [\n";
        text += &users(rosters).iter().map(User::line).collect::<String>();
        text += "  ]\n}\n";
        Ok(text)
    }
}

impl Relay {
    fn cluster_block(&self, Cluster { listen, routes, ca }: &Cluster) -> Result<String, RosterError> {
        let route = |route: &String| quoted(&format!("nats://{route}"));
        let routes = routes.iter().map(route).collect::<Result<Vec<_>, _>>()?.join(", ");
        let mut text =
            format!("cluster {{\n  name: fet\n  listen: {}\n  routes: [{routes}]\n", quoted(listen)?);
        if let Some((tls, ca)) = self.tls.as_ref().zip(ca.as_ref()) {
            let (certificate, key) = (quoted_path(&tls.certificate)?, quoted_path(&tls.key)?);
            let ca = quoted_path(ca)?;
            let _ = writeln!(
                text,
                "  tls {{ cert_file: {certificate}, key_file: {key}, ca_file: {ca}, verify: true }}"
            );
        }
        Ok(text + "}\n")
    }
}

impl Tls {
    fn block(&self) -> Result<String, RosterError> {
        let mut text = "tls {\n".to_string();
        let _ = writeln!(text, "  cert_file: {}", quoted_path(&self.certificate)?);
        let _ = writeln!(text, "  key_file: {}", quoted_path(&self.key)?);
        if let Some(ca) = &self.verify {
            let _ = writeln!(text, "  ca_file: {}\n  verify: true", quoted_path(ca)?);
        }
        Ok(text + "}\n")
    }
}

impl Roster {
    /// Returns all members, the primary first.
    fn members(&self) -> impl Iterator<Item = &Member> {
        std::iter::once(&self.primary).chain(&self.parties)
    }

    fn check(&self) -> Result<(), RosterError> {
        if self.parties.is_empty() {
            return Err(RosterError::Alone);
        }
        let (mut names, mut identities) = (BTreeSet::new(), BTreeSet::new());
        for member in self.members() {
            if !names.insert(&member.name) {
                return Err(RosterError::SameName(member.name.clone()));
            }
            if !identities.insert(member.identity.to_string()) {
                return Err(RosterError::SameIdentity(member.name.clone()));
            }
        }
        Ok(())
    }
}

/// Identity at the server, with its subjects in all rosters.
struct User {
    identity: String,
    names: Vec<String>,
    publish: Vec<String>,
    subscribe: Vec<String>,
}

/// Returns the users of the server in the order in which the rosters name them.
fn users(rosters: &[Roster]) -> Vec<User> {
    let mut users: Vec<User> = Vec::new();
    for roster in rosters {
        let subjects =
            |party: &Member| [to_party(&roster.run, &party.name), from_party(&roster.run, &party.name)];
        let (to, from): (Vec<_>, Vec<_>) =
            roster.parties.iter().map(subjects).map(|[to, from]| (to, from)).unzip();
        let parties = roster.parties.iter().map(|party| (party, subjects(party)));
        let parties = parties.map(|(party, [to, from])| (party, vec![from], vec![to]));
        for (member, publish, subscribe) in std::iter::once((&roster.primary, to, from)).chain(parties) {
            let identity = member.identity.to_string();
            let at = users.iter().position(|user| user.identity == identity).unwrap_or_else(|| {
                users.push(User { identity, names: Vec::new(), publish: Vec::new(), subscribe: Vec::new() });
                users.len() - 1
            });
            let user = &mut users[at];
            add_new(&mut user.names, vec![member.name.to_string()]);
            add_new(&mut user.publish, publish);
            add_new(&mut user.subscribe, subscribe);
        }
    }
    users
}

/// Adds the texts that are not in the list yet.
fn add_new(list: &mut Vec<String>, texts: Vec<String>) {
    for text in texts {
        if !list.contains(&text) {
            list.push(text);
        }
    }
}

impl User {
    fn line(&self) -> String {
        let list = |subjects: &[String]| {
            let quoted: Vec<_> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
            quoted.join(", ")
        };
        format!(
            "    # {}\n    {{ nkey: {}, permissions: {{ publish: [{}], subscribe: [{}] }} }}\n",
            self.names.join(", "),
            self.identity,
            list(&self.publish),
            list(&self.subscribe)
        )
    }
}

fn quoted_path(path: &Path) -> Result<String, RosterError> {
    quoted(path.to_str().ok_or_else(|| RosterError::Text(path.display().to_string()))?)
}

fn quoted(text: &str) -> Result<String, RosterError> {
    if text.is_empty() || text.chars().any(|found| found.is_control() || matches!(found, '"' | '\\' | '\'')) {
        return Err(RosterError::Text(text.to_owned()));
    }
    Ok(format!("\"{text}\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Keys;

    fn roster() -> Roster {
        let member = |name: &str| Member { name: name.parse().unwrap(), identity: Keys::generate().public() };
        let parties = vec![member("shop"), member("post")];
        Roster { run: "r".parse().unwrap(), primary: member("bank"), parties }
    }

    fn relay() -> Relay {
        Relay { host: "127.0.0.1".into(), port: 4222, websocket: None, tls: None, cluster: None }
    }

    /// Returns the permissions of a member in a configuration.
    fn line<'a>(text: &'a str, member: &Member) -> &'a str {
        let identity = member.identity.to_string();
        let lines: Vec<_> = text.lines().filter(|line| line.contains(&identity)).collect();
        assert_eq!(lines.len(), 1, "{text}");
        lines[0].split_once("permissions: ").unwrap().1
    }

    #[test]
    fn one_server_serves_several_runs() {
        let first = roster();
        let mut second = roster();
        second.run = "s".parse().unwrap();
        // The shop is the primary of the second run under another name.
        second.primary.identity = first.parties[0].identity;
        let text = relay().configuration(&[first.clone(), second.clone()]).unwrap();
        assert_eq!(
            line(&text, &first.parties[0]),
            "{ publish: [\"fet.r.from.shop\", \"fet.s.to.shop\", \"fet.s.to.post\"], subscribe: [\"fet.r.to.shop\", \
             \"fet.s.from.shop\", \"fet.s.from.post\"] } }"
        );
        assert_eq!(
            line(&text, &second.parties[1]),
            "{ publish: [\"fet.s.from.post\"], subscribe: [\"fet.s.to.post\"] } }"
        );
        assert!(text.contains("the runs r, s") && text.contains("# shop, bank"), "{text}");
    }

    #[test]
    fn a_run_may_have_a_former_and_a_new_key() {
        let former = roster();
        let mut new = former.clone();
        new.parties[1].identity = Keys::generate().public();
        let text = relay().configuration(&[former.clone(), new.clone()]).unwrap();
        let permissions = "{ publish: [\"fet.r.from.post\"], subscribe: [\"fet.r.to.post\"] } }";
        assert_eq!([line(&text, &former.parties[1]), line(&text, &new.parties[1])], [permissions; 2]);
        new.parties[1].name = "rail".parse().unwrap();
        let refused = relay().configuration(&[former.clone(), new]).unwrap_err();
        assert_eq!(refused, RosterError::SameRun(former.run));
    }

    #[test]
    fn each_member_has_its_subjects_and_no_others() {
        let roster = roster();
        let text = relay().configuration(std::slice::from_ref(&roster)).unwrap();
        let line = |member: &Member| line(&text, member);
        assert_eq!(
            line(&roster.primary),
            "{ publish: [\"fet.r.to.shop\", \"fet.r.to.post\"], \
             subscribe: [\"fet.r.from.shop\", \"fet.r.from.post\"] } }"
        );
        assert_eq!(
            line(&roster.parties[1]),
            "{ publish: [\"fet.r.from.post\"], subscribe: [\"fet.r.to.post\"] } }"
        );
        assert!(!text.contains("_INBOX") && !text.contains('>') && !text.contains('*'), "{text}");
    }

    #[test]
    fn a_roster_that_mixes_members_up_is_refused() {
        let check = |change: &dyn Fn(&mut Roster), expected: &str| {
            let mut roster = roster();
            change(&mut roster);
            let error = relay().configuration(&[roster]).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&|roster| roster.parties.clear(), "no party");
        check(&|roster| roster.parties[0].name = roster.primary.name.clone(), "two members are called bank");
        check(&|roster| roster.parties[1].identity = roster.parties[0].identity, "post and another");
        let relay = Relay { host: "a\"\nport: 1".into(), ..relay() };
        assert!(matches!(relay.configuration(&[roster()]), Err(RosterError::Text(_))));
        let cluster = Cluster { listen: "0.0.0.0:6222".into(), routes: vec!["b\"]".into()], ca: None };
        let relay = Relay { cluster: Some(cluster), host: "a".into(), ..relay };
        assert!(matches!(relay.configuration(&[roster()]), Err(RosterError::Text(_))));
    }
}
