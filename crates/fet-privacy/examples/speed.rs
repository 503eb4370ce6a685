//! How long secret sums and integer noise take: medians of eleven, on all cores.
//!
//! `cargo run --release -p fet-privacy --example speed`

#![expect(clippy::print_stdout, reason = "it prints what it measured")]

use std::time::Instant;

use fet_privacy::noise::DiscreteGaussian;
use fet_privacy::secure_sum::{Member, Opening, SumId, holders, total, unmask};
use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rayon::prelude::*;

const LENGTH: usize = 10_000;

fn median(mut run: impl FnMut(u64) -> f64) -> f64 {
    let mut times: Vec<f64> = (0..11).map(&mut run).collect();
    times.sort_by(f64::total_cmp);
    times[5]
}

fn sums(parties: usize, degree: usize) -> (f64, f64) {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let mut members: Vec<Member> = (0..parties).map(|index| Member::new(index, &mut rng)).collect();
    let keys: Vec<_> = members.iter().map(|member| Some(member.public())).collect();
    let start = Instant::now();
    members.par_iter_mut().for_each(|member| member.agree(&keys, b"speed").expect("honest keys"));
    let active: Vec<usize> = (0..parties).collect();
    for from in 0..parties {
        let sealed = members[from].backups(&active);
        for (holder, sealed) in holders(&active, from).into_iter().zip(sealed) {
            members[holder].keep_backup(from, &sealed).expect("sealed for this party");
        }
    }
    let agreed = start.elapsed().as_secs_f64();
    let round = median(|round| {
        let values = vec![vec![7u32; LENGTH]; parties];
        let id = SumId { round, name: 0, attempt: 0, active: &active, over: [0; 32], bits: 32, degree };
        let start = Instant::now();
        let messages: Vec<Vec<u32>> = members
            .par_iter()
            .zip(values)
            .map(|(member, mut words)| {
                member.mask(&mut words, &id);
                words
            })
            .collect();
        let mut sum = total(messages, 32).expect("of one length");
        let openings: Vec<Opening> = members.iter().map(|member| member.opening(&id)).collect();
        unmask(&mut sum, &openings, 32);
        let elapsed = start.elapsed().as_secs_f64();
        assert!(sum.iter().all(|&word| word == 7 * parties as u32));
        elapsed
    });
    (1e3 * agreed, 1e3 * round)
}

fn main() {
    println!("parties | degree | keys and backups, ms | masking, summing and opening {LENGTH} words, ms");
    for parties in [2, 5, 10, 20, 50, 100] {
        let (agreed, round) = sums(parties, 8);
        println!("{parties:7} | {:6} | {agreed:20.1} | {round:6.2}", 8.min(parties - 1));
    }
    let (agreed, round) = sums(100, 99);
    println!("{:7} | {:6} | {agreed:20.1} | {round:6.2}", 100, 99);
    println!("noise, units | million values a second");
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
