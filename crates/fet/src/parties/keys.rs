//! `fet keys`: a party's key file, and its public part for the other parties.

use std::path::{Path, PathBuf};

use fet_net::Keys;
use fet_privacy::identity::Identity;

use super::roster::Roster;
use fet_io::input::input;

/// Commands of `fet keys`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum KeysCommand {
    /// Create a key, and print its public part.
    New {
        /// Key file to write, which only its owner may read; the command never replaces an existing file.
        file: PathBuf,
    },
    /// Print the public part of a key: two lines for the roster.
    Show {
        /// Key file.
        file: PathBuf,
    },
    /// Print the public keys of all members of a roster, and their fingerprint, which the parties compare
    /// without the primary.
    Roster {
        /// The roster.
        file: PathBuf,
    },
}

/// Creates or reads the key, or reads the roster, and returns the public part.
pub fn keys(command: &KeysCommand) -> anyhow::Result<String> {
    let keys = match command {
        KeysCommand::New { file } => Keys::create(file),
        KeysCommand::Show { file } => Keys::read(file),
        KeysCommand::Roster { file } => return Ok(members(&Roster::read(file)?)),
    };
    let keys = keys.map_err(input)?;
    Ok(format!("identity = \"{}\"\nsigning = \"{:?}\"\n", keys.public(), signer(&keys).public()))
}

/// Returns the members of a roster, one block each, and the fingerprint.
fn members(roster: &Roster) -> String {
    let role = |place: usize| if place == 0 { "the primary".to_string() } else { format!("party {place}") };
    let block = |(place, (member, signing)): (usize, (&fet_net::hub::Member, Option<String>))| {
        let fet_net::hub::Member { name, identity } = member;
        let signing = signing.as_deref().unwrap_or("none");
        format!("{name}, {}\n  identity  {identity}\n  signing   {signing}\n", role(place))
    };
    let blocks: String = roster.members_with_signing().enumerate().map(block).collect();
    format!("{blocks}fingerprint\n  {}\n", roster.fingerprint())
}

/// Reads the keys in a file.
pub(super) fn read(file: &Path) -> anyhow::Result<Keys> {
    Keys::read(file).map_err(input)
}

/// Returns the signing key for a party's keys for secure aggregation.
///
/// This key differs from the key that signs the server's challenges, because the server could choose any
/// challenge.
pub(super) fn signer(keys: &Keys) -> Identity {
    Identity::from_secret(*keys.secret("secure sums"))
}
