//! Card that an end sends if the other end cannot read its handshake: names and public keys, in the clear.
//!
//! A card is not authenticated. It serves for messages to people, who compare rosters; no session depends on
//! it.

use super::{CARD, Ends, PROTOCOL};
use crate::identity::PublicIdentity;
use crate::names::Name;

/// Number of bytes of the checksum, which detects accidental alterations.
const CHECKSUM: usize = 8;

/// Names and keys that an end uses for a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Card {
    /// True if the other end should answer with its own card.
    pub(crate) asks: bool,
    /// Names of the run, the primary and the party.
    names: [Name; 3],
    /// Key of the end that made the card.
    own: PublicIdentity,
    /// Key that this end expects of the other end.
    expected: PublicIdentity,
}

impl Card {
    pub(crate) fn for_ends(ends: Ends<'_>, asks: bool) -> Self {
        let names = [&ends.route.run, &ends.route.primary, &ends.route.party].map(Name::clone);
        Self { asks, names, own: ends.keys.public(), expected: *ends.other }
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![CARD, u8::from(self.asks)];
        bytes.extend(PROTOCOL.to_le_bytes());
        for name in &self.names {
            bytes.push(name.as_str().len() as u8);
            bytes.extend(name.as_str().as_bytes());
        }
        bytes.extend(self.own.to_bytes());
        bytes.extend(self.expected.to_bytes());
        let checksum = fet_io::sha256(&bytes);
        bytes.extend(&checksum[..CHECKSUM]);
        bytes
    }

    /// Decodes a card. Returns `None` if the bytes are not a card, or were altered.
    pub(crate) fn decode(packet: &[u8]) -> Option<Self> {
        let (bytes, checksum) = packet.split_last_chunk::<CHECKSUM>()?;
        if fet_io::sha256(bytes)[..CHECKSUM] != *checksum {
            return None;
        }
        let ([CARD, asks @ (0 | 1), _, _], mut rest) = bytes.split_first_chunk()? else { return None };
        let mut name = || {
            let (length, after) = rest.split_first()?;
            let (name, after) = after.split_at_checked(usize::from(*length))?;
            rest = after;
            std::str::from_utf8(name).ok()?.parse().ok()
        };
        let names = [name()?, name()?, name()?];
        let (own, rest) = rest.split_first_chunk()?;
        let (expected, rest) = rest.split_first_chunk()?;
        let identity = |bytes: &[u8; 32]| PublicIdentity::from_bytes(*bytes);
        let card = Self { asks: *asks == 1, names, own: identity(own)?, expected: identity(expected)? };
        rest.is_empty().then_some(card)
    }

    /// Describes the differences between the other end's card and this end's card, for this end's user.
    pub(crate) fn difference(&self, theirs: &Self) -> Option<String> {
        let mut found = Vec::new();
        for (what, (ours, theirs)) in
            ["the run", "the primary", "the party"].iter().zip(self.names.iter().zip(&theirs.names))
        {
            if ours != theirs {
                found.push(format!("it calls {what} \"{theirs}\", but this end calls it \"{ours}\""));
            }
        }
        if theirs.own != self.expected {
            found.push(format!(
                "its key is {}, but this end's roster expects {} of it",
                theirs.own, self.expected
            ));
        }
        if theirs.expected != self.own {
            found.push(format!(
                "its roster expects {} of this end, but this end's key is {}",
                theirs.expected, self.own
            ));
        }
        (!found.is_empty()).then(|| {
            format!(
                "it cannot agree on a session: {}; compare the rosters over a channel other than the server",
                found.join("; ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Keys;
    use crate::names::Route;

    fn card(keys: &Keys, other: &PublicIdentity) -> Card {
        let name = |text: &str| text.parse().unwrap();
        let route = Route { run: name("city"), primary: name("bank"), party: name("shop") };
        Card::for_ends(Ends { route: &route, keys, other }, true)
    }

    #[test]
    fn reads_what_was_written_and_refuses_every_alteration() {
        let card = card(&Keys::generate(), &Keys::generate().public());
        let bytes = card.encode();
        assert_eq!(Card::decode(&bytes), Some(card));
        for at in 0..bytes.len() {
            assert_eq!(Card::decode(&bytes[..at]), None, "{at} bytes");
            let mut altered = bytes.clone();
            altered[at] ^= 1;
            assert_eq!(Card::decode(&altered), None, "byte {at}");
        }
    }

    #[test]
    fn names_what_differs() {
        let (bank, shop, rotated) = (Keys::generate(), Keys::generate(), Keys::generate());
        let primary = card(&bank, &shop.public());
        assert_eq!(primary.difference(&card(&shop, &bank.public())), None);
        let party = card(&rotated, &bank.public());
        let said = primary.difference(&party).unwrap();
        assert!(said.contains(&format!("its key is {}", rotated.public())), "{said}");
        assert!(said.contains(&format!("expects {} of it", shop.public())), "{said}");
        let said = party.difference(&primary).unwrap();
        assert!(said.contains(&format!("its roster expects {} of this end", shop.public())), "{said}");
        let named = Card { names: ["town", "bank", "shop"].map(|name| name.parse().unwrap()), ..primary };
        let said = party.difference(&named).unwrap();
        assert!(said.contains("the run \"town\", but this end calls it \"city\""), "{said}");
    }
}
