//! Tests invalid replies: the error names party, message and round.

use fet_core::data::Task;
use fet_core::message::{
    Agreed, Block, Joined, KeyShares, Linked, Masked, Reply, Request, Saved, SignedKey, Words,
};
use fet_core::parameters::Parameters;
use fet_core::party::{Failure, Party, Refusal};
use fet_federation::simulation::ObservedParty;

use crate::support::{experiment, flex, intercepted, square, watched};

const SECURE: &str = "aggregator.kind=secure-average";

/// Replaces a party's reply.
type Twist = fn(&Request, Reply) -> Result<Reply, Failure>;

/// After any invalid reply, the run ends with an error that names party, message and round.
#[test]
fn error_of_an_invalid_reply_names_party_message_and_round() {
    let check = |sets: &[&str], twist: Twist, parts: &[&str]| {
        let experiment = experiment(sets);
        let wrap = |index: usize, party: ObservedParty| -> Box<dyn Party> {
            if index != 1 {
                return Box::new(party);
            }
            intercepted(party, move |party, request| {
                let reply = party.ask(request.clone())?;
                twist(&request, reply)
            })
        };
        let error = match watched(&experiment, square(100, Task::Regression), &flex(), wrap) {
            Err(error) => error.to_string(),
            Ok((mut trainer, _)) => trainer.epoch(&mut |_| true).expect_err("refused").to_string(),
        };
        // The first party that sees a wrong key of party 2 refuses it.
        let second = if parts.contains(&"not signed") { "party 2" } else { "party \"second\"" };
        for part in [&[second], parts].concat() {
            assert!(error.contains(part), "{sets:?}: {part} in {error}");
        }
    };
    let block = |shape: [usize; 3]| Block::new(shape, vec![0.0; shape.iter().product()]).expect("it fills");
    assert_eq!(block([1, 2, 3]).shape(), [1, 2, 3]);
    check(&[], |_, _| Ok(Reply::Done), &["Join", "Done"]);
    check(
        &[],
        |request, reply| if matches!(request, Request::Link(_)) { Ok(Reply::Done) } else { Ok(reply) },
        &["Link", "Done"],
    );
    check(
        &[],
        |_, reply| match reply {
            Reply::Linked(linked) => Ok(Reply::Linked(Linked { available: 0, ..linked })),
            reply => Ok(reply),
        },
        &["Link", "available", "1 to 4", "it is 0"],
    );
    check(
        &[],
        |_, reply| match reply {
            Reply::Linked(linked) => Ok(Reply::Linked(Linked { available: usize::MAX, ..linked })),
            reply => Ok(reply),
        },
        &["Link", "available"],
    );
    check(
        &["method.kind=fedsim"],
        |_, reply| match reply {
            Reply::Linked(linked) => Ok(Reply::Linked(Linked { similarities: None, ..linked })),
            reply => Ok(reply),
        },
        &["Link", "similarities", "missing"],
    );
    check(
        &[],
        |_, reply| match reply {
            Reply::Representation(_) => {
                let block = Block::new([1, 1, 1], vec![0.0]).expect("it fills");
                Ok(Reply::Representation(block))
            }
            reply => Ok(reply),
        },
        &["Forward", "training step 1", "shape", "[32, 4, 16]", "[1, 1, 1]"],
    );
    check(
        &[],
        |request, reply| match request {
            Request::Forward(message) if !message.round.is_training() => {
                Ok(Reply::Saved(Saved { epoch: 1, tag: [0; 32] }))
            }
            _ => Ok(reply),
        },
        &["Forward", "validation batch 1 of epoch 1", "Saved"],
    );
    check(
        &[],
        |request, reply| {
            if matches!(request, Request::Backward(_)) {
                Ok(Reply::Joined(Joined { parameters: 0, table: [0; 32], lifetime: None }))
            } else {
                Ok(reply)
            }
        },
        &["Backward", "training step 1", "Joined"],
    );
    check(
        &["method.pe_average_every=1"],
        |_, reply| match reply {
            Reply::Parameters(_) => Ok(Reply::Parameters(Parameters::default())),
            reply => Ok(reply),
        },
        &["ShareParameters", "averaging after epoch 1", "parameters"],
    );
    check(
        &["method.pe_average_every=1"],
        |_, reply| match reply {
            Reply::Parameters(mut parameters) => {
                parameters.split_mut().1[0] = f32::NAN;
                Ok(Reply::Parameters(parameters))
            }
            reply => Ok(reply),
        },
        &["ShareParameters", "finite"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Masked(masked) => Ok(Reply::Masked(Masked { words: vec![0; 3], ..masked })),
            reply => Ok(reply),
        },
        &["Forward", "training step 1", "words", "3 words"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Masked(masked) => Ok(Reply::Masked(Masked { bits: 8, ..masked })),
            reply => Ok(reply),
        },
        &["Forward", "words", "8 bits"],
    );
    check(
        &[SECURE, "method.pe_average_every=1"],
        |_, reply| match reply {
            Reply::MaskedParameters(_) => {
                Ok(Reply::MaskedParameters(Words { words: vec![1], commitment: [0; 32] }))
            }
            reply => Ok(reply),
        },
        &["ShareParameters", "words", "it is 1"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Key(key) => Ok(Reply::Key(SignedKey { key: [0; 32], ..key })),
            reply => Ok(reply),
        },
        &["AgreeOnKeys", "not signed"],
    );
    check(
        &[SECURE],
        |_, reply| match reply {
            Reply::Agreed(Agreed { key_shares, signature }) => Ok(Reply::Agreed(Agreed {
                key_shares: KeyShares { sealed: vec![1], ..key_shares },
                signature,
            })),
            reply => Ok(reply),
        },
        &["AgreeOnKeys", "sealed", "1 bytes"],
    );
    check(
        &[SECURE],
        |_, reply| if let Reply::Unmasking(_) = reply { Ok(Reply::Done) } else { Ok(reply) },
        &["Unmask", "training step 1", "Done"],
    );
    check(&[], |_, _| Err(Refusal::new("no time").into()), &["Join", "no time"]);
    check(&[], |_, _| Err(Failure::Gone), &["Join", "no longer answers"]);
}
