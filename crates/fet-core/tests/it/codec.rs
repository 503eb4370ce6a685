//! Tests of the codec: every message survives a round trip, no altered frame is accepted, and no bytes make
//! the decoder panic or allocate more than a small multiple of the frame.

use cap::Cap;
use fet_core::data::{Keys, Matrix, Sealed, Standardise, TextTable};
use fet_core::message::{
    Age, Agreed, Answer, Backward, Block, CodecError, Confirmed, Epoch, Forward, Joined, KeyShares,
    LARGEST_FRAME, LifetimeState, LinkKeys, Linked, LoadParameters, Masked, Message, OLDEST_PROTOCOL,
    PROTOCOL_VERSION, Parts, PublicKeys, ReleasePlaces, ReleasedValues, Reply, Request, Reveal, Round, Saved,
    ShareParameters, SignedKey, Terms, Unmask, Words, decode, encode, encode_behind, frames,
};
use fet_core::parameters::Parameters;
use fet_core::party::Refusal;
use rand::{Rng, RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Counts allocated bytes.
#[global_allocator]
static ALLOCATOR: Cap<std::alloc::System> = Cap::new(std::alloc::System, usize::MAX);

fn parameters() -> Parameters {
    let mut parameters = Parameters::default();
    parameters.push("embedding.position.frequencies", &[2, 3], &[1.0, -2.0, 0.5, 1e-38, 0.0, -0.0]);
    parameters.push("scalar", &[], &[7.0]);
    parameters.push("nothing", &[0, 4], &[]);
    parameters
}

fn requests() -> Vec<Request> {
    let block = Block::new([1, 2, 3], vec![0.25; 6]).expect("it fills");
    let text = TextTable::new(2, ["Müller", "", "राम", "x\ny"].map(String::from).to_vec());
    let round = Round::Train { step: 1 << 40 };
    let averaged = Round::Average { epoch: 4 };
    vec![
        Request::Join(Terms {
            protocol: 1,
            results: 2,
            settings: "seed = 1\n".to_string(),
            settings_hash: [3; 32],
            name: "bank".to_string(),
            number: 1,
            parties: 4,
            rows: 100,
            parts: Parts::Given(vec![0, 2, 1]),
            standardise: Standardise::ALL,
        }),
        Request::Link(LinkKeys { keys: Keys::Numbers(Matrix::new(2, vec![0.5, -1e300, 2.0, 3.0])) }),
        Request::Link(LinkKeys { keys: Keys::Text(text) }),
        Request::Link(LinkKeys { keys: Keys::Sealed(Sealed::new(9, 2, vec![1, 2, 3])) }),
        Request::Answer(Sealed::new(0, 1, Vec::new())),
        Request::MakeKey,
        Request::AgreeOnKeys(PublicKeys { parties: vec![0, 2], keys: vec![signed(5), signed(6)] }),
        Request::KeepKeyShares(Confirmed {
            key_shares: KeyShares { parties: vec![2], sealed: vec![4; 48] },
            signatures: vec![5; 128],
        }),
        Request::Unmask(Unmask { round, attempt: 2 }),
        Request::Reveal(Reveal { round, attempt: 2, party: 1 }),
        Request::Forward(Forward { round, rows: vec![3, 1, 4], active: vec![0, 1], attempt: Some(2) }),
        Request::Forward(Forward {
            round: Round::Validation { epoch: 1, batch: 2 },
            rows: (0..300).collect(),
            active: vec![0],
            attempt: None,
        }),
        Request::Backward(Backward { round, gradient: block, learning_rate: 1e-3 }),
        Request::ShareParameters(ShareParameters { round: averaged, active: vec![0, 1], attempt: None }),
        Request::LoadParameters(LoadParameters { round: averaged, parameters: parameters() }),
        Request::Predict(LinkKeys { keys: Keys::Numbers(Matrix::new(1, vec![7.0])) }),
        Request::Forward(Forward {
            round: Round::Predict { batch: 0 },
            rows: vec![0],
            active: vec![1],
            attempt: None,
        }),
        Request::KeepBest(Epoch { epoch: 3 }),
        Request::Save(Epoch { epoch: 3 }),
        Request::Load(Saved { epoch: 3, tag: [9; 32] }),
        Request::Finish,
        Request::Forget,
        Request::Release(None),
        Request::Release(Some(ReleasePlaces {
            keys: Keys::Numbers(Matrix::new(1, vec![7.0, 2.5])),
            labels: vec![0, 3],
            symbols: 3,
            label_truth: 0.9,
        })),
    ]
}

fn standing() -> LifetimeState {
    LifetimeState { age: Age { found: 3, now: 4 }, earlier: 2, epsilon: Some(3.5), delta: 1e-5 }
}

fn signed(byte: u8) -> SignedKey {
    SignedKey { key: [byte; 32], age: Age { found: 3, now: 4 }, signature: vec![byte; 64] }
}

fn answers() -> Vec<Answer> {
    let similarities = Some(Matrix::new(2, vec![-0.5f32, -1.0]));
    let block = Block::new([2, 2, 2], (0..8).map(|x| x as f32).collect()).expect("it fills");
    vec![
        Ok(Reply::Joined(Joined { parameters: 1_000, table: [9; 32], lifetime: Some(standing()) })),
        Ok(Reply::Joined(Joined { parameters: 1, table: [0; 32], lifetime: None })),
        Ok(Reply::Linked(Linked { available: 2, similarities })),
        Ok(Reply::Linked(Linked { available: 2, similarities: None })),
        Ok(Reply::Challenge(Sealed::new(4, 1, vec![0; 40]))),
        Ok(Reply::Key(signed(8))),
        Ok(Reply::Agreed(Agreed {
            key_shares: KeyShares { parties: vec![1, 2], sealed: vec![3; 96] },
            signature: vec![6; 64],
        })),
        Ok(Reply::Unmasking([7; 32])),
        Ok(Reply::Share([1; 32])),
        Ok(Reply::Representation(block)),
        Ok(Reply::Masked(Masked {
            shape: [1, 1, 2],
            words: vec![u32::MAX, 1],
            bits: 32,
            commitment: [2; 32],
        })),
        Ok(Reply::Parameters(parameters())),
        Ok(Reply::MaskedParameters(Words { words: vec![u64::MAX, 0], commitment: [2; 32] })),
        Ok(Reply::Saved(Saved { epoch: 1, tag: [1; 32] })),
        Ok(Reply::Done),
        Ok(Reply::Released(ReleasedValues { values: vec![i64::MIN, 0, 5], lifetime: Some(standing()) })),
        Ok(Reply::Released(ReleasedValues { values: Vec::new(), lifetime: None })),
        Err(Refusal::new("`rows` must be below 100; it is 200")),
    ]
}

#[test]
fn every_message_comes_back_as_it_went() {
    for request in requests() {
        let frame = encode(&request).expect("a frame");
        assert_eq!(decode::<Request>(&frame, LARGEST_FRAME).as_ref(), Ok(&request));
        let kind = decode::<Answer>(&frame, LARGEST_FRAME).expect_err("a request is not an answer");
        assert_eq!(kind, CodecError::Kind { found: "request", expected: "answer" });
        let short = decode::<Request>(&frame, frame.len() - 1);
        assert_eq!(short, Err(CodecError::TooLarge { length: frame.len(), limit: frame.len() - 1 }));
    }
    for answer in answers() {
        let frame = encode(&answer).expect("a frame");
        assert_eq!(decode::<Answer>(&frame, LARGEST_FRAME), Ok(answer));
    }
}

/// The bytes of a message, written by hand from the documentation of the frame. If they change, raise
/// `PROTOCOL_VERSION`.
#[test]
fn the_frame_is_the_documented_one() {
    let request = Request::Forward(Forward {
        round: Round::Train { step: 300 },
        rows: vec![1, 258],
        active: vec![0],
        attempt: None,
    });
    let frame = encode(&request).expect("a frame");
    let variant = [8];
    let round = [0, 0xac, 0x02];
    let rows = [8, 1, 0, 0, 0, 2, 1, 0, 0];
    let active = [4, 0, 0, 0, 0];
    let attempt = [0];
    let body = [&variant[..], &round, &rows, &active, &attempt].concat();
    assert_eq!(&frame[..8], [b'F', b'e', b'T', b'm', 8, 0, 0, 0]);
    assert_eq!(frame[8..16], (body.len() as u64).to_le_bytes());
    assert_eq!(&frame[24..], body);
    let sum = xxhash_rust::xxh3::xxh3_64(&[&frame[..16], &frame[24..]].concat());
    assert_eq!(frame[16..24], sum.to_le_bytes());
}

/// Request that a later version of the protocol adds.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Newer(Request);

impl Message for Newer {
    const KIND: u16 = Request::KIND;

    fn since(&self) -> u16 {
        PROTOCOL_VERSION + 1
    }
}

/// A program refuses only the messages of a later version, and names that version.
#[test]
fn refuses_a_message_of_a_later_version_by_its_number() {
    let frame = encode(&Newer(Request::MakeKey)).expect("a frame");
    let refused = decode::<Request>(&frame, LARGEST_FRAME).expect_err("a newer message");
    assert_eq!(refused, CodecError::Version { found: PROTOCOL_VERSION + 1 });
    let (found, ours) = (PROTOCOL_VERSION + 1, PROTOCOL_VERSION);
    assert!(
        refused.to_string().contains(&format!(
            "needs version {found} of the protocol, but its receiver speaks version {ours}"
        )),
        "{refused}"
    );
    let mut frame = encode(&Request::MakeKey).expect("a frame");
    assert_eq!(decode(&frame, LARGEST_FRAME), Ok(Request::MakeKey));
    frame[4..6].copy_from_slice(&(OLDEST_PROTOCOL - 1).to_le_bytes());
    let refused = decode::<Request>(&frame, LARGEST_FRAME).expect_err("a message of a version that ended");
    assert_eq!(refused, CodecError::Version { found: OLDEST_PROTOCOL - 1 });
}

/// Changes a frame at random: flips a bit, changes a byte, cuts, inserts, swaps, fills with ones, or repeats
/// a part.
fn mutate(frame: &[u8], rng: &mut ChaCha8Rng) -> Vec<u8> {
    let mut changed = frame.to_vec();
    for _ in 0..rng.random_range(1..4) {
        if changed.is_empty() {
            break;
        }
        let place = rng.random_range(0..changed.len());
        match rng.random_range(0..7) {
            0 => changed[place] ^= 1 << rng.random_range(0..8),
            1 => changed[place] = rng.random(),
            2 => changed.truncate(place),
            3 => changed.insert(place, rng.random()),
            4 => {
                let other = rng.random_range(0..changed.len());
                changed.swap(place, other);
            }
            5 => {
                let end = changed.len().min(place + 9);
                changed[place..end].fill(0xff);
            }
            _ => {
                let part = changed[place..].to_vec();
                changed.extend(part);
            }
        }
    }
    changed
}

/// Gives a frame the length and the checksum that an attacker would compute.
fn seal(frame: &mut [u8]) {
    if frame.len() < 24 {
        return;
    }
    let length = (frame.len() - 24) as u64;
    frame[8..16].copy_from_slice(&length.to_le_bytes());
    let sum = xxhash_rust::xxh3::xxh3_64(&[&frame[..16], &frame[24..]].concat());
    frame[16..24].copy_from_slice(&sum.to_le_bytes());
}

#[test]
fn frames_that_travel_together_are_told_apart() {
    let requests = requests();
    let mut together = Vec::new();
    for request in &requests {
        encode_behind(&mut together, request).expect("small");
    }
    let apart: Vec<Request> =
        frames(&together).map(|frame| decode(frame, LARGEST_FRAME).expect("a frame")).collect();
    assert_eq!(apart, requests);
    assert_eq!(frames(&[]).collect::<Vec<_>>(), [&[] as &[u8]]);
    // Splitting altered bytes loses no byte, and the decoder refuses bytes left over at the end.
    let mut rng = ChaCha8Rng::seed_from_u64(9);
    for _ in 0..2000 {
        let altered = mutate(&together, &mut rng);
        let pieces: Vec<&[u8]> = frames(&altered).collect();
        assert_eq!(pieces.concat(), altered);
    }
    let first = frames(&together).next().expect("a frame").len();
    let cut: Vec<&[u8]> = frames(&together[..first + 30]).collect();
    assert_eq!(decode::<Request>(cut[0], LARGEST_FRAME).as_ref(), Ok(&requests[0]));
    assert!(decode::<Request>(cut[1], LARGEST_FRAME).is_err());
}

/// Decodes a million altered frames, half of them with a matching checksum. None makes the decoder panic or
/// allocate more than a multiple of the frame, and it accepts none of the frames with a wrong checksum. Seed
/// 17.
#[test]
fn altered_frames_are_refused_and_cost_no_memory() {
    let requests: Vec<Vec<u8>> = requests().iter().map(|request| encode(request).expect("a frame")).collect();
    let answers: Vec<Vec<u8>> = answers().iter().map(|answer| encode(answer).expect("a frame")).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    let (mut accepted, mut sealed_accepted) = (0, 0);
    for round in 0..1_000_000u32 {
        let (frames, is_request) = if round % 3 == 0 { (&answers, false) } else { (&requests, true) };
        let frame = &frames[rng.random_range(0..frames.len())];
        let sealed = round % 2 == 0;
        let mut changed = mutate(frame, &mut rng);
        if sealed {
            seal(&mut changed);
        }
        let is_accepted = if is_request {
            decode::<Request>(&changed, LARGEST_FRAME).is_ok()
        } else {
            decode::<Answer>(&changed, LARGEST_FRAME).is_ok()
        };
        if is_accepted && changed != *frame {
            if sealed {
                sealed_accepted += 1;
            } else {
                accepted += 1;
            }
        }
    }
    assert_eq!(accepted, 0, "the decoder accepts only frames that were sent");
    assert!(sealed_accepted > 1_000, "the sealed frames reach behind the checksum: {sealed_accepted}");
    // No frame here is larger than a few kilobytes. If a frame had claimed a large allocation, the maximum of
    // this process would show it. The other tests of this file hold far less.
    let most = ALLOCATOR.max_allocated();
    assert!(most < 4 << 20, "{most} bytes were held at once");
}

/// The decoder refuses lengths beyond the end of the bytes before it allocates anything for them.
#[test]
fn a_length_beyond_the_bytes_allocates_nothing() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    for _ in 0..10_000 {
        // A `Forward` message whose rows claim to be up to 2^63 bytes.
        let claim: u64 = rng.next_u64() >> rng.random_range(1..50);
        let mut frame = encode(&Request::MakeKey).expect("a frame");
        frame.truncate(24);
        frame.extend([8, 0, 1]);
        let mut rest = claim;
        while rest >= 0x80 {
            frame.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        frame.push(rest as u8);
        seal(&mut frame);
        assert!(decode::<Request>(&frame, LARGEST_FRAME).is_err(), "{claim}");
    }
    assert!(ALLOCATOR.max_allocated() < 4 << 20);
}
