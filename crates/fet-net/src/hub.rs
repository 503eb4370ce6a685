//! Configuration of the relay: a NATS server at which each party reaches only its own two subjects.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use crate::identity::PublicIdentity;
use crate::names::{Name, from_party, to_party};

/// Largest message of the server, in bytes: twice a packet.
const MAX_PAYLOAD: u32 = 256 * 1024;

/// Members of a run, and the address of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Roster {
    /// The run.
    pub run: Name,
    /// The primary.
    pub primary: Member,
    /// The other parties.
    pub parties: Vec<Member>,
    /// Address on which the server listens; `0.0.0.0` for all addresses.
    pub host: String,
    /// Port on which the server listens.
    pub port: u16,
    /// Certificate of the server. Without it, connections are not encrypted; the messages of the parties
    /// still are.
    pub tls: Option<Tls>,
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
    /// A text is not allowed in the configuration.
    #[error(
        "{0:?} is not allowed in the server's configuration: use letters, digits and the usual characters of paths"
    )]
    Text(String),
}

impl Roster {
    /// Returns the text of a `nats-server` configuration file. Members may publish and subscribe only to the
    /// subjects that a link needs.
    ///
    /// # Errors
    /// If two members share a name or an identity, there is no party, or a path has quotes or control
    /// characters.
    pub fn configuration(&self) -> Result<String, RosterError> {
        self.check()?;
        let mut text = format!(
            "# Relay of the run {}, generated from its roster.\nhost: {}\nport: {}\nmax_payload: {MAX_PAYLOAD}\n\
             write_deadline: \"60s\"\n",
            self.run,
            quoted(&self.host)?,
            self.port
        );
        if let Some(tls) = &self.tls {
            text += "tls {\n";
            let _ = writeln!(text, "  cert_file: {}", quoted_path(&tls.certificate)?);
            let _ = writeln!(text, "  key_file: {}", quoted_path(&tls.key)?);
            if let Some(ca) = &tls.verify {
                let _ = writeln!(text, "  ca_file: {}\n  verify: true", quoted_path(ca)?);
            }
            text += "}\n";
        }
        let to: Vec<_> = self.parties.iter().map(|party| to_party(&self.run, &party.name)).collect();
        let from: Vec<_> = self.parties.iter().map(|party| from_party(&self.run, &party.name)).collect();
        text += "authorization {\n  timeout: 10\n  users = [\n";
        text += &user(&self.primary, &to, &from);
        for (party, (to, from)) in self.parties.iter().zip(to.iter().zip(&from)) {
            text += &user(party, std::slice::from_ref(from), std::slice::from_ref(to));
        }
        text += "  ]\n}\n";
        Ok(text)
    }

    fn check(&self) -> Result<(), RosterError> {
        if self.parties.is_empty() {
            return Err(RosterError::Alone);
        }
        let (mut names, mut identities) = (BTreeSet::new(), BTreeSet::new());
        for member in std::iter::once(&self.primary).chain(&self.parties) {
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

fn user(member: &Member, publish: &[String], subscribe: &[String]) -> String {
    let list = |subjects: &[String]| {
        let quoted: Vec<_> = subjects.iter().map(|subject| format!("\"{subject}\"")).collect();
        quoted.join(", ")
    };
    format!(
        "    # {}\n    {{ nkey: {}, permissions: {{ publish: [{}], subscribe: [{}] }} }}\n",
        member.name,
        member.identity,
        list(publish),
        list(subscribe)
    )
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
        let (run, host) = ("r".parse().unwrap(), "127.0.0.1".into());
        let parties = vec![member("shop"), member("post")];
        Roster { run, primary: member("bank"), parties, host, port: 4222, tls: None }
    }

    #[test]
    fn each_member_has_its_subjects_and_no_others() {
        let roster = roster();
        let text = roster.configuration().unwrap();
        let line = |member: &Member| {
            let identity = member.identity.to_string();
            text.lines().find(|line| line.contains(&identity)).unwrap().split_once("permissions: ").unwrap().1
        };
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
            let error = roster.configuration().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&|roster| roster.parties.clear(), "no party");
        check(&|roster| roster.parties[0].name = roster.primary.name.clone(), "two members are called bank");
        check(&|roster| roster.parties[1].identity = roster.parties[0].identity, "post and another");
        check(&|roster| roster.host = "a\"\nport: 1".into(), "is not allowed");
    }
}
