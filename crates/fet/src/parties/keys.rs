//! `fet keys`: a party's key file, and what of it the others are told.

use std::path::{Path, PathBuf};

use fet_net::Keys;
use fet_privacy::identity::Identity;

use super::roster::Roster;
use fet_io::input::input;

/// The commands of `fet keys`.
#[derive(Debug, Clone, clap::Subcommand)]
pub enum Command {
    /// Make a key, and print what the others are told of it.
    New {
        /// The file to write, which only its owner may read; one that is there is not replaced.
        file: PathBuf,
    },
    /// Print what the others are told of a key: two lines for the roster.
    Show {
        /// The key file.
        file: PathBuf,
    },
    /// Print the public keys of all members of a roster, and one fingerprint of them, which the parties compare without the primary.
    Roster {
        /// The roster.
        file: PathBuf,
    },
}

/// Makes or reads the key, or reads the roster; returns what the others are told.
pub fn keys(command: &Command) -> anyhow::Result<String> {
    let keys = match command {
        Command::New { file } => Keys::create(file),
        Command::Show { file } => Keys::read(file),
        Command::Roster { file } => return Ok(members(&Roster::read(file)?)),
    };
    let keys = keys.map_err(input)?;
    Ok(format!("identity = \"{}\"\nsigning = \"{:?}\"\n", keys.public(), signer(&keys).public()))
}

/// The members of a roster, one block each, and the fingerprint.
fn members(roster: &Roster) -> String {
    let role = |place: usize| if place == 0 { "the primary".to_string() } else { format!("party {place}") };
    let block = |(place, (member, signing)): (usize, (&fet_net::hub::Member, Option<String>))| {
        let fet_net::hub::Member { name, identity } = member;
        let signing = signing.as_deref().unwrap_or("none");
        format!("{name}, {}\n  identity  {identity}\n  signing   {signing}\n", role(place))
    };
    let blocks: String = roster.all().enumerate().map(block).collect();
    format!("{blocks}fingerprint\n  {}\n", roster.fingerprint())
}

/// The keys in a file.
pub(super) fn read(file: &Path) -> anyhow::Result<Keys> {
    Keys::read(file).map_err(input)
}

/// What a party signs its keys for secure sums with: another key than that which answers the server's challenges, which could
/// be anything.
pub(super) fn signer(keys: &Keys) -> Identity {
    Identity::from_secret(*keys.secret("secure sums"))
}
