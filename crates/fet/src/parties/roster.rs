//! Roster: the information that all parties of a run share before the run. They exchange it on another
//! channel than the server.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fet_core::experiment::syntax;
use fet_core::schema;
use fet_net::nats::{Hub, NatsError, Server};
use fet_net::{Keys, Name, PublicIdentity, Route, hub};
use fet_privacy::identity::PublicIdentity as Signing;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use fet_io::input::input;

/// Longest wait for the server that needs no message.
const SHORT: Duration = Duration::from_secs(15);

/// File of a roster.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RosterFile {
    /// Name of the run: letters, digits, `-` and `_`.
    pub(super) run: String,
    /// Address of the server: `tls://HOST:PORT`, or `nats://HOST:PORT`. `wss://HOST:PORT` or `ws://HOST:PORT` is a
    /// WebSocket at a further port of the server. Several addresses, with commas between them, are the servers of one cluster.
    pub(super) server: String,
    /// Certificates (PEM) of the authority that signs the server's certificate; without it, the system's
    /// authorities.
    pub(super) ca: Option<PathBuf>,
    /// Certificate (PEM) that this organisation presents to the server, if the server requires one
    /// (`hub.verify`). Each organisation has its own file under this name.
    pub(super) certificate: Option<PathBuf>,
    /// Private key (PEM) of that certificate.
    pub(super) certificate_key: Option<PathBuf>,
    /// The party with the labels.
    pub(super) primary: RosterMember,
    /// The other parties, in the order of the experiment.
    pub(super) parties: Vec<RosterMember>,
    /// Maximum wait for a missing party, in seconds.
    #[serde(default = "ten_minutes")]
    pub(super) wait: u64,
    /// True for a rehearsal: the primary's secrets derive from the experiment's seed, as in a
    /// simulation, and hide nothing. Each party declares a rehearsal in its own file.
    #[serde(default)]
    pub(super) rehearsal: bool,
    /// Settings of the server, for `fet hub config`.
    pub(super) hub: Option<HubSettings>,
}

/// Identity of a party.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RosterMember {
    /// Name of the party.
    pub(super) name: String,
    /// Public key from `fet keys show`.
    pub(super) identity: String,
    /// Signing key from `fet keys show`; needed for secure aggregation.
    pub(super) signing: Option<String>,
}

/// Address and TLS settings of the server.
#[derive(Debug, Clone, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct HubSettings {
    /// Address on which the server listens; `0.0.0.0` for all addresses of the machine.
    #[serde(default = "everywhere")]
    pub(super) host: String,
    /// Port on which the server listens.
    #[serde(default = "usual_port")]
    pub(super) port: u16,
    /// The server's certificate (PEM).
    pub(super) certificate: Option<PathBuf>,
    /// Private key (PEM) of the server's certificate.
    pub(super) key: Option<PathBuf>,
    /// Authority of the certificates that parties must present; without it, the server requires none. Parties
    /// set theirs in `certificate` and `certificate_key`.
    pub(super) verify: Option<PathBuf>,
}

/// Reads one of the parties' files; errors use the same wording as errors in settings.
pub(super) fn read<T: JsonSchema + DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let bad = |problem: String| input(format!("{}: {problem}", path.display()));
    let text = fet_io::read_to_string(path).map_err(|error| bad(error.to_string()))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| bad(syntax(&error)))?;
    schema::check(&table, &schema::for_type::<T>()).map_err(|error| {
        let shown = error.excerpt(&path.display().to_string(), &text);
        bad(format!("{error}{}", shown.map_or_else(String::new, |shown| format!("\n{}", shown.trim_end()))))
    })?;
    table.try_into().map_err(|error: toml::de::Error| bad(syntax(&error)))
}

/// Error for a party or server that cannot be reached now; the same command may succeed later (exit code 75).
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Unreached(pub String);

fn ten_minutes() -> u64 {
    600
}

fn everywhere() -> String {
    "0.0.0.0".to_string()
}

fn usual_port() -> u16 {
    4222
}

/// Checked roster.
#[derive(Debug, Clone)]
pub(super) struct Roster {
    pub(super) path: PathBuf,
    pub(super) file: RosterFile,
    run: Name,
    primary: hub::Member,
    parties: Vec<hub::Member>,
    /// Signing key of each party's keys for secure aggregation, if the roster contains it.
    signing: Vec<Option<Signing>>,
}

impl Roster {
    /// Reads and checks a roster.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        let file: RosterFile = read(path)?;
        let name = |field: &str, text: &str| {
            text.parse::<Name>().map_err(|error| bad(format!("`{field}`: {error}")))
        };
        let member = |field: &str, member: &RosterMember| -> anyhow::Result<hub::Member> {
            let identity: PublicIdentity = member
                .identity
                .parse()
                .map_err(|error| bad(format!("`{field}.identity`: {error}; `fet keys show` prints it")))?;
            Ok(hub::Member { name: name(&format!("{field}.name"), &member.name)?, identity })
        };
        let signer = |field: &str, member: &RosterMember| -> anyhow::Result<Option<Signing>> {
            let rule = "must be the 64 hex digits that `fet keys show` prints";
            let problem = || bad(format!("`{field}.signing` {rule}"));
            Ok(member.signing.as_deref().map(|text| hex(text).ok_or_else(problem)).transpose()?.map(Signing))
        };
        let run = name("run", &file.run)?;
        signer("primary", &file.primary)?;
        let primary = member("primary", &file.primary)?;
        let (mut parties, mut signing) = (Vec::new(), Vec::new());
        for (place, entry) in file.parties.iter().enumerate() {
            let field = format!("parties[{place}]");
            parties.push(member(&field, entry)?);
            signing.push(signer(&field, entry)?);
        }
        if file.certificate.is_some() != file.certificate_key.is_some() {
            return Err(bad("`certificate` and `certificate_key` must be given together".into()));
        }
        if parties.is_empty() {
            return Err(bad("`parties` must name at least one party in addition to the primary".into()));
        }
        let mut seen = BTreeSet::new();
        let all = || std::iter::once(&primary).chain(&parties);
        if let Some(twice) = all().find(|member| !seen.insert(member.name.to_string())) {
            return Err(bad(format!("two members have the name {}", twice.name)));
        }
        let mut seen = BTreeSet::new();
        if let Some(twice) = all().find(|member| !seen.insert(member.identity.to_string())) {
            return Err(bad(format!("{} has the identity of another member", twice.name)));
        }
        Ok(Self { path: path.to_path_buf(), file, run, primary, parties, signing })
    }

    /// Returns the members in the form that the server's configuration needs.
    pub(super) fn members(&self) -> hub::Roster {
        hub::Roster { run: self.run.clone(), primary: self.primary.clone(), parties: self.parties.clone() }
    }

    /// Returns the server's address and certificates.
    pub(super) fn server(&self) -> Server {
        let folder = self.path.parent().unwrap_or(Path::new(""));
        let place = |file: &Option<PathBuf>| file.as_ref().map(|file| folder.join(file));
        let certificate = place(&self.file.certificate).zip(place(&self.file.certificate_key));
        Server { url: self.file.server.clone(), ca: place(&self.file.ca), certificate }
    }

    pub(super) fn primary(&self) -> &hub::Member {
        &self.primary
    }

    pub(super) fn parties(&self) -> &[hub::Member] {
        &self.parties
    }

    /// Returns the signing key of each party.
    ///
    /// # Errors
    /// Returns a message that names the first party without a known signing key.
    pub(super) fn signing(&self) -> Result<Vec<Signing>, String> {
        let of = |(party, signing): (&hub::Member, &Option<Signing>)| {
            signing.ok_or_else(|| {
                format!(
                    "{}: {} has no `signing`, which secure aggregation needs; `fet keys show` prints it",
                    self.path.display(),
                    party.name
                )
            })
        };
        self.parties.iter().zip(&self.signing).map(of).collect()
    }

    /// Returns the signing key of each party, or an unusable key for a party without a known key.
    pub(super) fn signing_or_none(&self) -> Vec<Signing> {
        self.signing.iter().map(|signing| signing.unwrap_or(Signing([0; 32]))).collect()
    }

    /// Returns all members, the primary first, each with its signing key if the roster contains it.
    pub(super) fn members_with_signing(&self) -> impl Iterator<Item = (&hub::Member, Option<String>)> {
        let signing = std::iter::once(&self.file.primary).chain(&self.file.parties);
        let signing = signing.map(|member| member.signing.as_deref().map(str::to_lowercase));
        std::iter::once(&self.primary).chain(&self.parties).zip(signing)
    }

    /// Returns a digest of the names and both public keys of all members, in their order.
    ///
    /// Two rosters with the same fingerprint name the same keys. The server and the name of the run are not
    /// part of the fingerprint.
    pub(super) fn fingerprint(&self) -> String {
        let mut text = String::from("fet roster, 1\n");
        for (member, signing) in self.members_with_signing() {
            let hub::Member { name, identity } = member;
            text += &format!("{name} {identity} {}\n", signing.as_deref().unwrap_or("none"));
        }
        let digits = fet_io::hex(&fet_io::sha256(text.as_bytes()));
        let groups: Vec<&str> = (0..16).filter_map(|group| digits.get(4 * group..4 * group + 4)).collect();
        groups.join(" ")
    }

    /// Returns the route between the primary and a party, from 0.
    pub(super) fn route(&self, party: usize) -> Route {
        Route {
            run: self.run.clone(),
            primary: self.primary.name.clone(),
            party: self.parties[party].name.clone(),
        }
    }

    /// Connects to the server as the owner of these keys, and waits for a server that does not answer. Setting `stop` ends the
    /// wait; `tell` receives a message about a long one.
    pub(super) fn connect(
        &self,
        keys: &Arc<Keys>,
        stop: &AtomicBool,
        tell: &dyn Fn(String),
    ) -> anyhow::Result<Hub> {
        let wait = Duration::from_secs(self.file.wait);
        let mut told = wait <= SHORT;
        let mut goes_on = |error: &NatsError| {
            if !std::mem::replace(&mut told, true) {
                tell(format!("{error}; the command tries again for up to {} s", wait.as_secs()));
            }
            !stop.load(Ordering::Relaxed)
        };
        Hub::connect_while(&self.server(), keys, wait, &mut goes_on).map_err(|error| match error {
            NatsError::Unreachable { .. } => Unreached(error.to_string()).into(),
            error => input(error),
        })
    }
}

fn hex(text: &str) -> Option<[u8; 32]> {
    let text = text.as_bytes();
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, digits) in bytes.iter_mut().zip(text.chunks_exact(2)) {
        *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parties::keys::{KeysCommand, keys};
    use fet_net::Keys;

    /// The fingerprint depends on every name, every key and their order, and on nothing more.
    #[test]
    fn fingerprint_depends_on_all_members() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let member = |name: &str, file: &str| {
            let path = folder.path().join(file);
            if !path.exists() {
                Keys::create(&path).expect("a key");
            }
            format!("name = \"{name}\"\n{}", keys(&KeysCommand::Show { file: path }).expect("a key"))
        };
        let of = |run: &str, members: [String; 3]| {
            let [primary, first, second] = members;
            let text = format!(
                "run = \"{run}\"\nserver = \"tls://localhost:4222\"\n[primary]\n{primary}[[parties]]\n{first}\
                 [[parties]]\n{second}"
            );
            let path = folder.path().join("roster.toml");
            std::fs::write(&path, text).expect("writable");
            (Roster::read(&path).expect("a roster").fingerprint(), path)
        };
        let (a, b, c) = (member("a", "a.key"), member("b", "b.key"), member("c", "c.key"));
        let (usual, path) = of("run", [a.clone(), b.clone(), c.clone()]);
        assert_eq!((usual.len(), usual.split(' ').count()), (79, 16), "{usual}");
        let shown = keys(&KeysCommand::Roster { file: path }).expect("a roster");
        assert!(shown.ends_with(&format!("fingerprint\n  {usual}\n")), "{shown}");
        assert!(
            b.lines().skip(1).all(|line| shown.contains(line.split('"').nth(1).expect("a key"))),
            "{shown}"
        );
        assert_eq!(of("another", [a.clone(), b.clone(), c.clone()]).0, usual);
        let unsigned = b.lines().take(2).map(|line| format!("{line}\n")).collect::<String>();
        for other in [
            [a.clone(), c.clone(), b.clone()],
            [a.clone(), member("b", "d.key"), c.clone()],
            [a.clone(), b.clone(), member("d", "c.key")],
            [a.clone(), unsigned, c.clone()],
        ] {
            assert_ne!(of("run", other).0, usual);
        }
    }
}
