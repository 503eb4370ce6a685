//! Messages between parties. The reader must refuse an altered frame. If a hostile sender has corrected its
//! checksum, the frame is a message, and encoding and decoding it again must give the same message.

use fet_core::data::{Keys, Matrix, Sealed, TextTable};
use fet_core::message::{
    Answer, Backward, Block, Epoch, Forward, LARGEST_FRAME, LinkKeys, LoadParameters, Message, Request,
    Round, decode, encode,
};
use fet_core::parameters::Parameters;
use fet_core::party::Refusal;
use xxhash_rust::xxh3::Xxh3;

use crate::fuzz::contract::ReaderOutcome;

/// Offset at which length, checksum and body begin.
const LENGTH: usize = 8;
const SUM: usize = 16;
const BODY: usize = 24;

pub(super) fn messages() -> Vec<Vec<u8>> {
    let mut parameters = Parameters::default();
    parameters.push("embedding.position", &[2, 3], &[1.0, -2.0, 0.5, 1e-38, 0.0, -0.0]);
    parameters.push("nothing", &[0, 4], &[]);
    let gradient = Block::new([1, 2, 3], vec![0.25; 6]).expect("it fills");
    let round = Round::Train { step: 1 << 40 };
    let texts = TextTable::new(2, ["M\u{fc}ller", "", "x", "y"].map(String::from).to_vec());
    let requests = [
        Request::Link(LinkKeys { keys: Keys::Numbers(Matrix::new(2, vec![0.5, -1e300, 2.0, 3.0])) }),
        Request::Link(LinkKeys { keys: Keys::Text(texts) }),
        Request::Link(LinkKeys { keys: Keys::Sealed(Sealed::new(9, 2, vec![1, 2, 3])) }),
        Request::Forward(Forward { round, rows: (0..300).collect(), active: vec![0, 1], attempt: Some(2) }),
        Request::Backward(Backward { round, gradient, learning_rate: 1e-3 }),
        Request::LoadParameters(LoadParameters { round: Round::Average { epoch: 4 }, parameters }),
        Request::Save(Epoch { epoch: 3 }),
        Request::Finish,
    ];
    let refused: Answer = Err(Refusal::spent("x"));
    let mut all: Vec<Vec<u8>> = requests.iter().map(|request| encode(request).expect("small")).collect();
    all.push(encode(&refused).expect("small"));
    all
}

pub(super) fn read(bytes: &[u8]) -> ReaderOutcome {
    let known = messages();
    let plain =
        either(bytes, &|again| (!known.contains(again)).then(|| "an altered frame is read".to_string()));
    if let ReaderOutcome::Wrong(_) = plain {
        return plain;
    }
    let mut forged = bytes.to_vec();
    if let Some(length) = forged.len().checked_sub(BODY) {
        forged[LENGTH..SUM].copy_from_slice(&(length as u64).to_le_bytes());
        let mut sum = Xxh3::new();
        sum.update(&forged[..SUM]);
        sum.update(&forged[BODY..]);
        let sum = sum.digest();
        forged[SUM..BODY].copy_from_slice(&sum.to_le_bytes());
        return either(&forged, &|_| None);
    }
    plain
}

fn either(frame: &[u8], wrong: &dyn Fn(&Vec<u8>) -> Option<String>) -> ReaderOutcome {
    match again::<Request>(frame, wrong) {
        ReaderOutcome::Refused(_) => again::<Answer>(frame, wrong),
        found => found,
    }
}

fn again<M: Message>(frame: &[u8], wrong: &dyn Fn(&Vec<u8>) -> Option<String>) -> ReaderOutcome {
    let message: M = match decode(frame, LARGEST_FRAME) {
        Ok(message) => message,
        Err(error) => return ReaderOutcome::Refused(error.to_string()),
    };
    let Ok(first) = encode(&message) else {
        return ReaderOutcome::Wrong("it cannot be encoded again".into());
    };
    match decode::<M>(&first, LARGEST_FRAME).and_then(|message| encode(&message)) {
        Ok(second) if second == first => wrong(&first).map_or(ReaderOutcome::Accepted, ReaderOutcome::Wrong),
        Ok(_) => ReaderOutcome::Wrong("the second encoding differs".into()),
        Err(error) => ReaderOutcome::Wrong(format!("the encoded message is refused: {error}")),
    }
}
