//! A group of parties. Some collude with the receiver; the honest ones are the real
//! [`Participant`]s.

use fet_privacy::identity::Identity;
use fet_privacy::secure_sum::{
    Evaluation, Member, Message, Participant, PublicKey, SignedKey, SumError, SumId, Terms, Unmasking, quorum,
};

pub(crate) const CONTEXT: [u8; 32] = [4; 32];
/// Number of words in a vector; the words are random enough to distinguish sums.
const LENGTH: usize = 3;

/// Identifier of a sum: the owned form of a [`SumId`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id {
    pub(crate) round: u64,
    pub(crate) attempt: u32,
    pub(crate) active: Vec<usize>,
    pub(crate) over: u8,
}

impl Id {
    pub(crate) fn sum(&self, degree: usize) -> SumId<'_> {
        let Self { round, attempt, ref active, over } = *self;
        SumId { round, name: 0, attempt, active, over: [over; 32], bits: 32, degree }
    }
}

pub(crate) fn identity(party: usize) -> Identity {
    Identity::from_secret([party as u8 + 1; 32])
}

pub(crate) fn secret(party: usize, session: u8) -> [u8; 32] {
    let mut secret = [session; 32];
    secret[..8].copy_from_slice(&(party as u64).to_le_bytes());
    secret
}

pub(crate) fn terms(parties: usize, colluding: usize) -> Terms {
    let roster = (0..parties).map(|party| identity(party).public()).collect();
    Terms { context: CONTEXT, roster, least: 2, colluding }
}

/// Returns parties that have not agreed on keys yet.
pub(crate) fn strangers(parties: usize, colluding: usize, session: u8) -> Vec<Participant> {
    let terms = terms(parties, colluding);
    (0..parties).map(|party| Participant::new(party, secret(party, session), terms.clone())).collect()
}

pub(crate) fn keys(participants: &[Participant]) -> Vec<(usize, SignedKey)> {
    participants
        .iter()
        .enumerate()
        .map(|(party, one)| (party, one.signed_key(&identity(party), [party as u64, 1])))
        .collect()
}

/// Lets all parties agree and confirm. Returns the shares that each party sealed for the others.
pub(crate) fn introduce(participants: &mut [Participant]) -> Vec<Vec<(usize, Vec<u8>)>> {
    let keys = keys(participants);
    let agree = |(party, one): (usize, &mut Participant)| one.agree(&keys, &identity(party)).expect("sound");
    let agreed: Vec<_> = participants.iter_mut().enumerate().map(agree).collect();
    let signatures: Vec<_> = agreed.iter().map(|agreed| agreed.signature).enumerate().collect();
    let sealed: Vec<_> = agreed.into_iter().map(|agreed| agreed.sealed).collect();
    for (party, one) in participants.iter_mut().enumerate() {
        one.confirm(&for_party(&sealed, party), &signatures).expect("all received the same keys");
    }
    sealed
}

/// Returns the shares that the others sealed for `party`.
pub(crate) fn for_party(sealed: &[Vec<(usize, Vec<u8>)>], party: usize) -> Vec<(usize, &[u8])> {
    let mut all = Vec::new();
    for (from, sealed) in sealed.iter().enumerate() {
        all.extend(sealed.iter().filter(|(to, _)| *to == party).map(|(_, bytes)| (from, bytes.as_slice())));
    }
    all
}

/// Parties that have agreed on keys. The last `corrupt` parties collude with the receiver and give it
/// everything that they have.
pub(crate) struct PartyGroup {
    pub(crate) parties: usize,
    pub(crate) colluding: usize,
    pub(crate) degree: usize,
    participants: Vec<Participant>,
    corrupt: Vec<Member>,
}

impl PartyGroup {
    pub(crate) fn new(parties: usize, colluding: usize, degree: usize, corrupt: usize) -> Self {
        let mut participants = strangers(parties, colluding, 0);
        let sealed = introduce(&mut participants);
        let all: Vec<Option<PublicKey>> = keys(&participants).iter().map(|(_, key)| Some(key.key)).collect();
        let member = |party: usize| {
            let mut member = Member::from_secret(party, secret(party, 0));
            member.agree(&all, &CONTEXT).expect("sound keys");
            for (from, sealed) in for_party(&sealed, party) {
                member.keep_key_share(from, sealed, quorum(parties, colluding)).expect("sealed for it");
            }
            member
        };
        let corrupt = (parties - corrupt..parties).map(member).collect();
        Self { parties, colluding, degree, participants, corrupt }
    }

    pub(crate) fn is_corrupt(&self, party: usize) -> bool {
        party >= self.parties - self.corrupt.len()
    }

    pub(crate) fn honest(&self) -> impl Iterator<Item = usize> + use<> {
        0..self.parties - self.corrupt.len()
    }

    /// Returns a party's values in a round.
    pub(crate) fn values(party: usize, round: u64) -> Vec<u32> {
        let of = (party as u32 + 1).wrapping_mul(0x9e37_79b9).wrapping_add(round as u32);
        (1..=LENGTH as u32).map(|place| of.wrapping_mul(place.wrapping_mul(0x85eb_ca6b) | 1)).collect()
    }

    pub(crate) fn expected(of: &[usize], round: u64) -> Vec<u32> {
        of.iter().fold(vec![0; LENGTH], |sum, &party| {
            sum.iter().zip(Self::values(party, round)).map(|(a, b)| a.wrapping_add(b)).collect()
        })
    }

    /// Returns the message of a party. A corrupt party masks any request.
    pub(crate) fn mask(
        &mut self,
        party: usize,
        id: &Id,
        scheduled: &[usize],
    ) -> Result<Message<u32>, SumError> {
        let mut words = Self::values(party, id.round);
        let sum = id.sum(self.degree);
        let commitment = match self.member(party) {
            Some(_) if id.active.len() < 2 => return Err(SumError::Parties),
            Some(member) => member.mask(&mut words, &sum).commitment(),
            None => self.participants[party].mask(&mut words, &sum, scheduled)?,
        };
        Ok(Message { words, commitment })
    }

    /// Returns an honest party's answer: the unmasking value of its last message, if that message is of this
    /// attempt.
    pub(crate) fn unmask(&mut self, party: usize, round: u64, attempt: u32) -> Result<Unmasking, SumError> {
        self.participants[party].unmask(round, attempt)
    }

    pub(crate) fn reveal(
        &self,
        holder: usize,
        round: u64,
        attempt: u32,
        party: usize,
    ) -> Result<Evaluation, SumError> {
        self.participants[holder].reveal(round, attempt, party)
    }

    /// Returns a colluder, which answers every request.
    pub(crate) fn member(&self, party: usize) -> Option<&Member> {
        let first = self.parties - self.corrupt.len();
        party.checked_sub(first).map(|place| &self.corrupt[place])
    }

    /// Returns the values of the colluders' shares for the unmasking value of `party`.
    pub(crate) fn colluders_shares(&self, party: usize, id: &Id) -> Vec<(usize, Evaluation)> {
        let first = self.parties - self.corrupt.len();
        let sum = id.sum(self.degree);
        let share =
            |(place, member): (usize, &Member)| Some((first + place, member.evaluation(party, &sum)?));
        self.corrupt.iter().enumerate().filter_map(share).collect()
    }
}
