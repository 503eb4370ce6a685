//! Tests a malicious primary against real secondaries, and malicious secondaries against a real trainer.
//!
//! At most one exact sum of a round becomes known, and errors name the sender of an invalid message.
//! `fet-privacy` tests the further computations of a receiver, and keys in all constellations, without
//! models.

use fet_core::aggregator::SecureSum;
use fet_core::message::{
    Agreed, Confirmed, Forward, Masked, PublicKeys, Reply, Request, Reveal, Round, SignedKey, Terms, Unmask,
};
use fet_core::party::{Failure, Party, Refusal};
use fet_core::rng::{Purpose, stream};
use fet_federation::prepare::divide;
use fet_federation::secondary::Secondary;
use fet_federation::secure_aggregation;
use fet_federation::simulation::ObservedParty;
use fet_privacy::secure_sum::{SumId, Unmasking, quorum, reconstruct, total, unmask};
use rand::seq::IteratorRandom;

use crate::support::{experiment, flex, intercepted, open, party_config, square_of, terms, watched};

const SECURE: &str = "aggregator.kind=secure-average";
const FORM: SecureSum = SecureSum { bits: 32, range: 16.0, degree: 8 };
const ROUND: Round = Round::Train { step: 0 };

/// Returns the rows of the first step, and the parties after the request to join.
fn parties(count: usize) -> (Vec<u32>, Vec<ObservedParty>) {
    let form = [SECURE, "aggregator.bits=32", "aggregator.range=16", "aggregator.degree=8"];
    let (trainer, parties) = open(&experiment(&form), square_of(60, count), &flex());
    (trainer.schedule().batches(0).get(0).expect("a batch").iter().map(|&row| row as u32).collect(), parties)
}

/// Returns each party's part for these rows, as the same parties show it to an aggregator that sees the
/// parts.
fn parts(count: usize, rows: &[u32]) -> Vec<Vec<f32>> {
    let (_, mut parties) = open(&experiment(&[]), square_of(60, count), &flex());
    let active: Vec<u32> = (0..count as u32).collect();
    let message = Forward { round: ROUND, rows: rows.to_vec(), active, attempt: None };
    let part = |party: &mut ObservedParty| match party.ask(Request::Forward(message.clone())) {
        Ok(Reply::Representation(block)) => block.into_values(),
        other => panic!("{other:?}"),
    };
    parties.iter_mut().map(part).collect()
}

/// Information of a primary about one attempt.
struct Attempt {
    number: u32,
    active: Vec<usize>,
    messages: Vec<Option<Masked>>,
    unmaskings: Vec<Option<Unmasking>>,
    shares: Vec<Vec<(usize, [u8; 32])>>,
}

impl Attempt {
    fn ask(number: u32, active: &[usize], rows: &[u32], parties: &mut [ObservedParty]) -> Self {
        let short: Vec<u32> = active.iter().map(|&party| party as u32).collect();
        let request = Forward { round: ROUND, rows: rows.to_vec(), active: short, attempt: Some(number) };
        let mut message = |&party: &usize| match parties[party].ask(Request::Forward(request.clone())) {
            Ok(Reply::Masked(masked)) => Some(masked),
            Err(Failure::Refused(_)) => None,
            other => panic!("{other:?}"),
        };
        let messages = active.iter().map(&mut message).collect();
        let (unmaskings, shares) = (vec![None; active.len()], vec![Vec::new(); active.len()]);
        Self { number, active: active.to_vec(), messages, unmaskings, shares }
    }

    /// Lets these parties unmask the attempt and reconstruct the key shares of all others.
    fn unmask(&mut self, by: &[usize], parties: &mut [ObservedParty]) {
        let attempt = self.number;
        for &party in by {
            let answer = parties[party].ask(Request::Unmask(Unmask { round: ROUND, attempt }));
            let place = self.active.iter().position(|&other| other == party);
            if let (Ok(Reply::Unmasking(unmasking)), Some(place)) = (answer, place) {
                self.unmaskings[place] = Some(Unmasking(unmasking));
            }
        }
        for (place, &of) in self.active.iter().enumerate() {
            for &holder in by {
                let reveal = Reveal { round: ROUND, attempt, party: of as u32 };
                if let Ok(Reply::Share(share)) = parties[holder].ask(Request::Reveal(reveal)) {
                    self.shares[place].push((holder, share));
                }
            }
        }
    }

    /// Returns the sum in units, if it can be unmasked completely.
    fn sum(&self, rows: &[u32], agreed: usize) -> Option<Vec<u32>> {
        let shape = self.messages.first()?.as_ref()?.shape;
        let bits = self.messages[0].as_ref()?.bits;
        let id = SumId {
            round: ROUND.key(),
            name: 0,
            attempt: self.number,
            active: &self.active,
            over: secure_aggregation::over_rows(rows, shape),
            bits,
            degree: FORM.degree,
        };
        let mut unmaskings = Vec::new();
        for (place, message) in self.messages.iter().enumerate() {
            let commitment = message.as_ref()?.commitment;
            let direct = self.unmaskings[place].filter(|unmasking| unmasking.commitment() == commitment);
            let shares = &self.shares[place];
            let reconstructed =
                || reconstruct(self.active[place], quorum(agreed, 0), shares, &commitment, &id).ok();
            unmaskings.push(direct.or_else(|| reconstructed().map(|reconstructed| reconstructed.unmasking))?);
        }
        let words = self.messages.iter().flatten().map(|message| message.words.clone()).collect();
        let mut sum = total(words, bits).expect("of one length");
        unmask(&mut sum, &unmaskings, bits);
        Some(sum)
    }

    fn expected(&self, parts: &[Vec<f32>]) -> Vec<u32> {
        let units = secure_aggregation::units(FORM, None, self.active.len()).expect("room");
        let mut sum = vec![0u32; parts[0].len()];
        for &party in &self.active {
            sum.iter_mut().zip(&parts[party]).for_each(|(sum, &value)| {
                *sum = sum.wrapping_add(units.round(value) as u32);
            });
        }
        sum
    }
}

/// The primary falsely declares some parties dropped out. These parties unmask the first attempt and
/// reconstruct it for the others, while the others unmask the second attempt.
///
/// The test covers every subset of few parties, and some subsets of many.
#[test]
fn primary_that_divides_the_parties_gets_at_most_one_exact_sum() {
    let (mut whole, mut divided) = (0, 0);
    for count in [2usize, 3, 4, 5, 6, 8, 16, 32, 128] {
        let mut rng = stream(count as u64, 0, Purpose::Parties, 0);
        let subsets: Vec<Vec<usize>> = match count {
            2..=4 => (0..1 << count)
                .map(|set: u32| (0..count).filter(|party| set >> party & 1 == 1).collect())
                .collect(),
            _ => [count / 2 - 1, count / 2, (count / 2 + 1) % 65]
                .into_iter()
                .take(if count > 8 { 1 } else { 3 })
                .map(|dropped| (0..count).sample(&mut rng, dropped))
                .collect(),
        };
        let everyone: Vec<usize> = (0..count).collect();
        let mut expected = None;
        for dropped in subsets {
            let (rows, mut parties) = parties(count);
            let parts = expected.get_or_insert_with(|| parts(count, &rows));
            let left: Vec<usize> =
                everyone.iter().copied().filter(|party| !dropped.contains(party)).collect();
            let mut first = Attempt::ask(0, &everyone, &rows, &mut parties);
            let mut second = Attempt::ask(1, &left, &rows, &mut parties);
            second.unmask(&left, &mut parties);
            first.unmask(&dropped, &mut parties);
            // The remaining parties unmask their last message, of whichever attempt.
            first.unmask(&left, &mut parties);
            second.unmask(&dropped, &mut parties);
            let sums = [first, second].map(|attempt| {
                let sum = attempt.sum(&rows, count);
                let found = sum.is_some();
                if let Some(sum) = sum {
                    assert_eq!(sum, attempt.expected(parts), "{count} parties without {dropped:?}");
                }
                found
            });
            assert_ne!(sums, [true, true], "{count} parties without {dropped:?}: two sums");
            whole += usize::from(sums[0]);
            divided += usize::from(sums[1]);
        }
    }
    assert!(whole > 3 && divided > 5, "{whole} first attempts, {divided} second");
}

/// Starts a session of the parties under the same settings, up to their keys.
fn joined(count: usize) -> Vec<(Secondary, SignedKey)> {
    let experiment = experiment(&[SECURE]);
    let (_, tables) = divide(square_of(60, count));
    let join = |(party, table): (usize, fet_core::data::PartyTable)| {
        let name = table.name.clone();
        let mut secondary = Secondary::new(party_config(&experiment, table, party + 1, count));
        let terms = Terms { name, number: party + 1, parties: count, rows: 60, ..terms(&experiment) };
        secondary.ask(Request::Join(terms)).expect("its own terms");
        match secondary.ask(Request::MakeKey).expect("a key") {
            Reply::Key(key) => (secondary, key),
            other => panic!("{other:?}"),
        }
    };
    tables.into_iter().enumerate().map(join).collect()
}

/// The primary replaces a party's signed key by one of an earlier session: that party refuses, the others
/// lack its signature, and no party answers a request for a sum.
///
/// The same holds if the primary names another set of parties to one party.
#[test]
fn keys_of_other_sessions_or_sets_give_no_sum() {
    let count = 3;
    let agree = |party: &mut Secondary, keys: &[SignedKey], of: &[u32]| {
        let keys = of.iter().map(|&party| keys[party as usize].clone()).collect();
        party.ask(Request::AgreeOnKeys(PublicKeys { parties: of.to_vec(), keys }))
    };
    let forward =
        Request::Forward(Forward { round: ROUND, rows: vec![1], active: vec![0, 1, 2], attempt: Some(0) });
    let refused = |answer: Result<Reply, Failure>, why: &str| {
        let error = answer.expect_err(why).to_string();
        assert!(error.contains(why), "{why} in {error}");
    };
    let old: Vec<SignedKey> = joined(count).into_iter().map(|(_, key)| key).collect();
    for replay in [true, false] {
        let mut now = joined(count);
        let mut keys: Vec<SignedKey> = now.iter().map(|(_, key)| key.clone()).collect();
        let told: [&[u32]; 3] = if replay {
            keys[2] = old[2].clone();
            [&[0, 1, 2]; 3]
        } else {
            [&[0, 1, 2], &[0, 1, 2], &[1, 2]]
        };
        let mut agreed: Vec<Agreed> = Vec::new();
        for (place, (party, _)) in now.iter_mut().enumerate() {
            match agree(party, &keys, told[place]) {
                Ok(Reply::Agreed(answer)) => agreed.push(answer),
                answer => refused(answer, "party 3 is not signed"),
            }
        }
        assert_eq!(agreed.len(), if replay { 2 } else { 3 });
        let last = agreed.get(2).unwrap_or(&agreed[1]).signature.clone();
        for place in 0..2 {
            let others = [1 - place, 2];
            let mut key_shares = agreed[place].key_shares.clone();
            key_shares.parties = others.map(|party| party as u32).to_vec();
            let signatures = [&agreed[0].signature[..], &agreed[1].signature, &last].concat();
            let party = &mut now[place].0;
            refused(party.ask(forward.clone()), "before the parties agreed on keys and confirmed them");
            let short = Confirmed { key_shares: key_shares.clone(), signatures: signatures[64..].to_vec() };
            refused(party.ask(Request::KeepKeyShares(short)), "`signatures` must be 64 bytes");
            let confirmed = Request::KeepKeyShares(Confirmed { key_shares, signatures });
            refused(party.ask(confirmed), "party 3 did not sign the keys");
            refused(party.ask(forward.clone()), "before the parties agreed on keys and confirmed them");
            refused(agree(party, &keys, &[0, 1, 2]), "already agreed on keys");
            refused(party.ask(Request::MakeKey), "already agreed on keys");
        }
    }
}

fn vanishes(request: &Request, reply: Reply) -> Result<Reply, Failure> {
    if matches!(request, Request::Unmask(_) | Request::Reveal(_)) { Err(Failure::Gone) } else { Ok(reply) }
}

fn lies(_: &Request, reply: Reply) -> Result<Reply, Failure> {
    Ok(match reply {
        Reply::Unmasking(_) => Reply::Unmasking([5; 32]),
        reply => reply,
    })
}

fn spoils(_: &Request, reply: Reply) -> Result<Reply, Failure> {
    Ok(match reply {
        // A valid point, but not a key share of any party.
        Reply::Share(_) => Reply::Share([0; 32]),
        reply => reply,
    })
}

fn refuses(_: &Request, reply: Reply) -> Result<Reply, Failure> {
    if let Reply::Share(_) = reply { Err(Refusal::new("no").into()) } else { Ok(reply) }
}

/// Some parties drop out during unmasking, some unmask wrongly, some spoil the reconstruction.
///
/// The sum of that step is still correct if enough parties answer correctly; otherwise the error names the
/// missing parties.
#[test]
fn unmasking_needs_enough_correct_answers_and_names_the_others() {
    type Twist = fn(&Request, Reply) -> Result<Reply, Failure>;
    let run = |count: usize, twists: &[(usize, Twist)]| {
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            match twists.iter().find(|(of, _)| *of == index) {
                Some(&(_, twist)) => intercepted(party, move |party, request| {
                    let late = request.round().is_some_and(|round| round >= Round::Train { step: 1 });
                    let reply = party.ask(request.clone())?;
                    if late { twist(&request, reply) } else { Ok(reply) }
                }),
                None => Box::new(party),
            }
        };
        let experiment = experiment(&[SECURE, "train.epochs=1"]);
        let (mut trainer, _) = watched(&experiment, square_of(100, count), &flex(), wrap).expect("a trainer");
        let mut losses = Vec::new();
        let done = trainer
            .epoch(&mut |step| {
                losses.push(step.loss);
                true
            })
            .map(|_| ())
            .map_err(|error| error.to_string());
        let warnings = trainer.warnings().join("\n");
        (losses, trainer.federation().dropped().to_vec(), warnings, done)
    };
    type TwistCase<'a> = (usize, &'a [(usize, Twist)], &'a [usize], &'a [&'a str]);
    let cases: [TwistCase<'_>; 4] = [
        (5, &[(1, vanishes), (3, vanishes)], &[1, 3], &[]),
        (4, &[(1, lies)], &[1], &["party 2"]),
        (6, &[(2, vanishes), (4, refuses)], &[2], &[]),
        (7, &[(5, vanishes), (0, spoils), (6, lies)], &[5, 6], &["party 1 ", "party 7"]),
    ];
    for (count, twists, gone, named) in cases {
        let (whole, lossy) = (run(count, &[]), run(count, twists));
        assert_eq!(lossy.3, Ok(()), "{count}: {gone:?}");
        let mut lost: Vec<usize> = lossy.1.into_iter().collect();
        lost.sort_unstable();
        assert_eq!((whole.1.len(), &lost[..]), (0, gone));
        assert_eq!(whole.0[..2], lossy.0[..2], "the sum of the step with dropped parties is the same");
        assert!(whole.2.is_empty() && named.iter().all(|name| lossy.2.contains(name)), "{}", lossy.2);
        // Without noise, each dropped party causes a warning about the difference of sums; any other warning
        // names a lying party.
        let others =
            lossy.2.lines().filter(|line| !line.contains("dropped out, and `privacy.kind` is \"none\""));
        assert_eq!(others.count() == 0, named.is_empty(), "{}", lossy.2);
    }
    let few = run(5, &[(1, vanishes), (3, vanishes), (4, refuses)]).3.expect_err("two of three holders");
    assert!(
        few.contains("2 valid shares of the unmasking value of party 2") && few.contains("3 are needed"),
        "{few}"
    );
    let lied = run(2, &[(1, lies)]).3.expect_err("no party can replace it");
    assert!(lied.contains("party 2 sent an unmasking value that does not match the commitment"), "{lied}");
}
