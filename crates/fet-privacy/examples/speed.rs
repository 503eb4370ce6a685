//! Measures the time of secure sums and integer noise: medians of eleven runs, on all cores.
//!
//! `cargo run --release -p fet-privacy --example speed`

#![expect(clippy::print_stdout, reason = "the example prints its measurements")]

use std::time::Instant;

use fet_privacy::identity::Identity;
use fet_privacy::noise::DiscreteGaussian;
use fet_privacy::secure_sum::{
    Agreed, Member, Participant, SumId, Terms, Unmasking, quorum, reconstruct, total, unmask,
};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

const LENGTH: usize = 10_000;

fn median(mut run: impl FnMut(u64) -> f64) -> f64 {
    let mut times: Vec<f64> = (0..11).map(&mut run).collect();
    times.sort_by(f64::total_cmp);
    times[5]
}

/// Times of the parts of a session, in milliseconds.
struct Times {
    /// Creating keys, signatures and key shares, for all parties together.
    agreeing: f64,
    /// One round: masking by all parties, summing, unmasking and checking.
    round: f64,
    /// Part of the round spent on all parties' points and their products.
    points: f64,
    /// Unmasking a message in place of one party.
    recovery: f64,
}

fn sums(parties: usize, degree: usize) -> Times {
    let identity = |party: usize| Identity::from_secret([party as u8; 32]);
    let roster = (0..parties).map(|party| identity(party).public()).collect();
    let terms = Terms { context: [0; 32], roster, least: 2, colluding: 0 };
    let active: Vec<usize> = (0..parties).collect();
    let secret = |party: usize| [party as u8 ^ 0x55; 32];
    let start = Instant::now();
    let mut all: Vec<Participant> =
        active.iter().map(|&party| Participant::new(party, secret(party), terms.clone())).collect();
    let keys: Vec<_> =
        active.iter().map(|&party| (party, all[party].signed_key(&identity(party), [0, 0]))).collect();
    let agree = |(party, one): (usize, &mut Participant)| one.agree(&keys, &identity(party)).expect("sound");
    let agreed: Vec<_> = all.par_iter_mut().enumerate().map(agree).collect();
    let signatures: Vec<_> = agreed.iter().map(|agreed| agreed.signature).enumerate().collect();
    all.par_iter_mut().enumerate().for_each(|(party, one)| {
        let from = |(from, agreed): (usize, &'_ Agreed)| {
            let sealed = agreed.sealed.iter().find(|(to, _)| *to == party);
            sealed.map(|(_, sealed)| (from, sealed.clone()))
        };
        let sealed: Vec<_> = agreed.iter().enumerate().filter_map(from).collect();
        let sealed: Vec<_> = sealed.iter().map(|(from, sealed)| (*from, sealed.as_slice())).collect();
        one.confirm(&sealed, &signatures).expect("all received the same keys");
    });
    let agreeing = start.elapsed().as_secs_f64();
    let id = |round| SumId { round, name: 0, attempt: 0, active: &active, over: [0; 32], bits: 32, degree };
    let round = median(|round| {
        let values = vec![vec![7u32; LENGTH]; parties];
        let id = id(round);
        let start = Instant::now();
        let mask = |(one, mut words): (&mut Participant, Vec<u32>)| {
            let commitment = one.mask(&mut words, &id, &active).expect("it is agreed");
            (words, commitment)
        };
        let messages: Vec<_> = all.par_iter_mut().zip(values).map(mask).collect();
        let (words, commitments): (Vec<_>, Vec<_>) = messages.into_iter().unzip();
        let mut sum = total(words, 32).expect("of one length");
        let unmaskings: Vec<Unmasking> =
            all.iter_mut().map(|one| one.unmask(round, 0).expect("sent")).collect();
        assert!(unmaskings.iter().zip(&commitments).all(|(unmasking, sent)| unmasking.commitment() == *sent));
        unmask(&mut sum, &unmaskings, 32);
        let elapsed = start.elapsed().as_secs_f64();
        assert!(sum.iter().all(|&word| word == 7 * parties as u32));
        elapsed
    });
    let members: Vec<Member> =
        active.iter().map(|&party| Member::from_secret(party, secret(party))).collect();
    let points = median(|round| {
        let start = Instant::now();
        let found = members.par_iter().map(|member| member.unmasking(&id(round))).collect::<Vec<_>>();
        assert_eq!(found.len(), parties);
        start.elapsed().as_secs_f64()
    });
    // Replace the first party of the last round that was unmasked.
    let last = id(10);
    let commitment = members[0].unmasking(&last).commitment();
    let needed = quorum(parties, 0);
    let recovery = median(|_| {
        let start = Instant::now();
        let reveal = |&holder: &usize| Some((holder, all[holder].reveal(10, 0, 0).ok()?));
        let shares: Vec<_> = active.par_iter().filter_map(reveal).collect();
        let found = reconstruct(0, needed, &shares, &commitment, &last);
        assert_eq!(found.is_ok(), parties > needed, "with two parties, none can be replaced");
        start.elapsed().as_secs_f64()
    });
    let [agreeing, round, points, recovery] = [agreeing, round, points, recovery].map(|time| 1e3 * time);
    Times { agreeing, round, points, recovery }
}

fn main() {
    println!("ms, for all parties together; a round is masking, summing and unmasking {LENGTH} words");
    println!("parties | degree | keys, signatures, shares | round | of it points | replacing a party");
    for (parties, degree) in [(2, 8), (5, 8), (10, 8), (20, 8), (50, 8), (100, 8), (100, 99), (128, 8)] {
        let Times { agreeing, round, points, recovery } = sums(parties, degree);
        let degree = degree.min(parties - 1);
        println!("{parties:7} | {degree:6} | {agreeing:24.1} | {round:5.2} | {points:12.2} | {recovery:8.2}");
    }
    println!("noise, units | million values per second");
    for deviation in [100.0, 1_000.0, 10_000.0, 100_000.0] {
        let sampler = DiscreteGaussian::new(deviation).expect("in range");
        let mut values = vec![0i32; 2_560_000];
        let seconds = median(|seed| {
            let start = Instant::now();
            sampler.fill(&mut values, &mut ChaCha8Rng::seed_from_u64(seed));
            start.elapsed().as_secs_f64()
        });
        println!("{deviation:12} | {:.0}", values.len() as f64 / seconds / 1e6);
    }
}
