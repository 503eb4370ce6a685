//! A dishonest relay: it sends its own keys, keys of an earlier session, different sets to different parties,
//! and shares to the wrong parties.

use fet_privacy::secure_sum::{Agreed, KeyShareError, Participant, SEALED_SHARE, SignedKey, SumError};

use crate::hostile::group::{Id, for_party, identity, introduce, keys, secret, strangers, terms};

/// Returns true if the party masks its values.
fn sends(participant: &mut Participant, active: &[usize]) -> bool {
    let id = Id { round: 0, attempt: 0, active: active.to_vec(), over: 0 };
    participant.mask(&mut [0u32; 3], &id.sum(8), active).is_ok()
}

/// Tries every pair of sets that a relay may name to two parties: the sum starts only if all parties of a set
/// received the same set.
#[test]
fn parties_that_were_told_different_sets_send_nothing() {
    let (mut started, mut stopped) = (0, 0);
    for parties in 2..=5usize {
        // Party 0 receives one set, and all others receive another.
        for (one, other) in
            (0u32..1 << parties).flat_map(|one| (0u32..1 << parties).map(move |other| (one, other)))
        {
            let set = |of: u32| (0..parties).filter(|party| of >> party & 1 == 1).collect::<Vec<_>>();
            let mut all = strangers(parties, 0, 1);
            let keys = keys(&all);
            let told = |party: usize| set(if party == 0 { one } else { other });
            let mut agreed: Vec<Option<Agreed>> = Vec::new();
            for (party, participant) in all.iter_mut().enumerate() {
                let told: Vec<_> = told(party).into_iter().map(|party| keys[party]).collect();
                agreed.push(participant.agree(&told, &identity(party)).ok());
            }
            for (party, participant) in all.iter_mut().enumerate() {
                let told = told(party);
                let signatures: Vec<_> = told
                    .iter()
                    .filter_map(|&other| Some((other, agreed[other].as_ref()?.signature)))
                    .collect();
                let sealed: Vec<_> = agreed
                    .iter()
                    .map(|agreed| agreed.as_ref().map_or(Vec::new(), |agreed| agreed.sealed.clone()))
                    .collect();
                let mut sealed = for_party(&sealed, party);
                sealed.retain(|(from, _)| told.contains(from));
                let _ = participant.confirm(&sealed, &signatures);
                let expected =
                    told.len() >= 2 && told.contains(&party) && (one == other || !told.contains(&0));
                assert_eq!(sends(participant, &told), expected, "party {party}: {one:b}, {other:b}");
                *(if expected { &mut started } else { &mut stopped }) += 1;
            }
        }
    }
    assert!(started > 100 && stopped > 1_000, "{started}, {stopped}");
}

/// Returns each party's answer to these keys, and then to the answers of the others.
fn introduced(participants: &mut [Participant], keys: &[(usize, SignedKey)]) -> Vec<Result<(), SumError>> {
    let mut agreed = Vec::new();
    for (party, participant) in participants.iter_mut().enumerate() {
        agreed.push(participant.agree(keys, &identity(party)));
    }
    let signatures: Vec<_> = agreed
        .iter()
        .enumerate()
        .map(|(party, agreed)| (party, agreed.as_ref().map_or([0; 64], |agreed| agreed.signature)))
        .collect();
    let nothing = || (0..keys.len()).map(|party| (party, vec![0; SEALED_SHARE])).collect();
    let sealed: Vec<Vec<(usize, Vec<u8>)>> = agreed
        .iter()
        .map(|agreed| agreed.as_ref().map_or_else(|_| nothing(), |agreed| agreed.sealed.clone()))
        .collect();
    let confirm = |(party, participant): (usize, &mut Participant)| match &agreed[party] {
        Ok(_) => participant.confirm(&for_party(&sealed, party), &signatures),
        Err(error) => Err(error.clone()),
    };
    participants.iter_mut().enumerate().map(confirm).collect()
}

/// A relay replaces a key: every party detects that the owner did not sign the new key.
#[test]
fn a_key_in_the_middle_is_refused_by_every_party() {
    for parties in [2, 3, 8, 128] {
        let mut all = strangers(parties, 0, 1);
        let honest = keys(&all);
        let relay = Participant::new(1, secret(1, 9), terms(parties, 0));
        // Signed by the relay; signed by the party for another key; signed for another party; signed by the
        // party with other numbers.
        let own = relay.signed_key(&identity(200), [0, 0]);
        let forged = SignedKey { signature: honest[1].1.signature, ..own };
        let renumbered = SignedKey { numbers: [9, 9], ..honest[1].1 };
        for wrong in [own, forged, honest[0].1, renumbered] {
            let mut keys = honest.clone();
            keys[1].1 = wrong;
            for (party, participant) in all.iter_mut().enumerate() {
                let refused = participant.agree(&keys, &identity(party));
                assert_eq!(refused, Err(SumError::Unsigned { party: 2 }), "party {party} of {parties}");
                assert!(!sends(participant, &[0, 1]), "no key agreement took place");
            }
        }
        // The refusals leave the parties unchanged: they accept the honest keys, once.
        introduce(&mut all);
        assert_eq!(all[0].agree(&honest, &identity(0)), Err(SumError::AgreedAlready));
        assert!(sends(&mut all[0], &(0..parties).collect::<Vec<_>>()));
    }
}

/// A key of an earlier session with the same settings has a valid signature. Its party now holds another key
/// and does not sign a transcript without that key. Its signature of the earlier session is for another
/// transcript. The session ends before any party sends data.
#[test]
fn a_key_of_an_earlier_session_starts_no_sum() {
    for (parties, colluding) in [(2, 0), (3, 1), (5, 0), (8, 2), (128, 0)] {
        let everyone: Vec<usize> = (0..parties).collect();
        let mut before = strangers(parties, colluding, 1);
        let old = keys(&before);
        assert!(introduced(&mut before, &old).iter().all(Result::is_ok));
        let every_set: Vec<Vec<usize>> = if parties <= 5 {
            (1u32..1 << parties)
                .map(|set| everyone.iter().copied().filter(|p| set >> p & 1 == 1).collect())
                .collect()
        } else {
            vec![vec![0], vec![parties - 1], everyone[1..].to_vec(), everyone.clone()]
        };
        for replayed in every_set {
            let mut now = strangers(parties, colluding, 2);
            let mut keys = keys(&now);
            replayed.iter().for_each(|&party| keys[party] = old[party]);
            for (party, result) in introduced(&mut now, &keys).into_iter().enumerate() {
                let error = result.expect_err("no session");
                let expected = if replayed.contains(&party) {
                    SumError::Unsigned { party: party + 1 }
                } else {
                    SumError::Unconfirmed { party: replayed[0] + 1 }
                };
                assert_eq!(error, expected, "{replayed:?}");
                assert!(!sends(&mut now[party], &everyone));
            }
        }
        // Replaying the answers of the earlier session one by one does not work either.
        let mut now = strangers(parties, colluding, 2);
        let fresh = keys(&now);
        let mut old_again = strangers(parties, colluding, 1);
        let stale: Vec<Agreed> = (0..parties)
            .map(|party| old_again[party].agree(&old, &identity(party)).expect("as in the earlier session"))
            .collect();
        let agreed: Vec<Agreed> =
            (0..parties).map(|party| now[party].agree(&fresh, &identity(party)).expect("sound")).collect();
        let signatures =
            |from: &[Agreed]| from.iter().map(|agreed| agreed.signature).enumerate().collect::<Vec<_>>();
        let sealed = |from: &[Agreed]| from.iter().map(|agreed| agreed.sealed.clone()).collect::<Vec<_>>();
        let (new, worn) = (sealed(&agreed), sealed(&stale));
        let mut mixed = signatures(&agreed);
        mixed[parties - 1] = signatures(&stale)[parties - 1];
        let unconfirmed = Err(SumError::Unconfirmed { party: parties });
        assert_eq!(now[0].confirm(&for_party(&new, 0), &mixed), unconfirmed);
        let unreadable = SumError::KeyShare(KeyShareError::Unreadable { from: 2 });
        assert_eq!(now[0].confirm(&for_party(&worn, 0), &signatures(&agreed)), Err(unreadable.clone()));
        // A party cannot read shares for another party.
        let mut swapped = for_party(&new, 1);
        swapped[0].0 = 1;
        swapped.splice(1.., for_party(&new, 0).into_iter().skip(1));
        assert_eq!(now[0].confirm(&swapped, &signatures(&agreed)), Err(unreadable));
        assert!(!sends(&mut now[0], &everyone));
        assert_eq!(now[0].confirm(&for_party(&new, 0), &signatures(&agreed)), Ok(()));
        assert_eq!(now[0].confirm(&for_party(&new, 0), &signatures(&agreed)), Err(SumError::AgreedAlready));
        assert!(sends(&mut now[0], &everyone));
    }
}

/// The set has the minimum size that the party itself requires, whatever the relay names.
#[test]
fn a_party_agrees_with_no_fewer_than_its_policy_and_the_collusion_allow() {
    for (least, colluding, needed) in [(2, 0, 2), (4, 0, 4), (2, 2, 4), (3, 3, 5), (6, 1, 6)] {
        for named in 1..=7 {
            let terms = fet_privacy::secure_sum::Terms { least, ..terms(7, colluding) };
            let make = |party| Participant::new(party, secret(party, 1), terms.clone());
            let mut all: Vec<Participant> = (0..7).map(make).collect();
            let mut named_keys = keys(&all);
            named_keys.truncate(named);
            let answer = all[0].agree(&named_keys, &identity(0)).map(|_| ());
            let few = SumError::TooFew { what: "agreeing on keys", found: named, needed };
            assert_eq!(answer, if named < needed { Err(few) } else { Ok(()) }, "{least}, {colluding}");
        }
    }
    // Named twice, out of order, unknown, or without the party that receives the request.
    let mut all = strangers(3, 0, 1);
    let keys = keys(&all);
    let stranger = (3, keys[2].1);
    for wrong in [[keys[0], keys[0], keys[1]], [keys[1], keys[0], keys[2]], [keys[0], keys[1], stranger]] {
        assert_eq!(all[0].agree(&wrong, &identity(0)), Err(SumError::Parties));
    }
    assert_eq!(all[0].agree(&keys[1..], &identity(0)), Err(SumError::Parties));
    assert_eq!(all[0].agree(&[], &identity(0)), Err(SumError::Parties));
}
