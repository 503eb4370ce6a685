//! What every aggregator keeps to.

use burn::tensor::{Device, Tensor};
use fet_core::aggregator::{Aggregation, Aggregator};
use fet_core::parameters::host;
use fet_core::registry::Slot;

use super::{all, random};
use crate::support::{devices, flex};

/// Representations and similarities of the parties named, drawn anew for each name.
fn round(names: &[u64], parties: usize, device: &Device) -> (Vec<Tensor<3>>, Aggregation) {
    let parts: Vec<Tensor<3>> = names.iter().map(|&name| random([3, 4, 5], name, device)).collect();
    let round = Aggregation {
        parties,
        active: (0..names.len()).collect(),
        shapes: vec![[3, 4, 5]; names.len()],
        similarities: names.iter().map(|&name| random([3, 4], name + 100, device)).collect(),
    };
    (parts, round)
}

#[test]
fn aggregators_have_their_width_spread_by_the_adjoint_and_do_not_mind_the_order() {
    for backend in devices() {
        for slot in all::<dyn Aggregator>() {
            let aggregator = slot.build(&()).expect("sound defaults");
            let combine = |names: &[u64], parties| {
                let (parts, round) = round(names, parties, &backend.device);
                aggregator.combine(parts, &round)
            };
            let close = |a: &[f32], b: &[f32]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
            for parties in [3, 5] {
                let width = aggregator.width(parties, 5);
                let memory = combine(&[1, 2, 3], parties);
                assert_eq!(memory.dims(), [3, 4, width], "{slot:?}");
                if width == 5 {
                    let turned = host(combine(&[3, 1, 2], parties));
                    assert!(close(&host(memory.clone()), &turned), "{slot:?}: order");
                }
                // <A x, g> = <x, A* g>
                let dot = |a: &[f32], b: &[f32]| {
                    assert_eq!(a.len(), b.len(), "{slot:?}");
                    a.iter().zip(b).map(|(a, b)| f64::from(a * b)).sum::<f64>()
                };
                let gradient: Tensor<3> = random([3, 4, width], 9, &backend.device);
                let left = dot(&host(memory), &host(gradient.clone()));
                let (parts, round) = round(&[1, 2, 3], parties, &backend.device);
                let shares = aggregator.spread(gradient, &round);
                let right: f64 = shares.into_iter().zip(parts).map(|(g, x)| dot(&host(x), &host(g))).sum();
                assert!((left - right).abs() < 1e-5, "{slot:?}: {left} and {right}");
            }
        }
    }
}

#[test]
fn what_is_called_a_mean_gives_equals_themselves() {
    let device = flex().device;
    for kind in ["average", "secure-average", "similarity-weighted"] {
        let slot = Slot::<dyn Aggregator>::of(kind).expect("sound defaults");
        let (parts, round) = round(&[1, 1, 1], 3, &device);
        let expected = host(parts[0].clone());
        let mean = host(slot.build(&()).expect("sound defaults").combine(parts, &round));
        assert!(mean.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-6), "{kind}");
    }
}

#[test]
fn a_single_position_is_repeated_beside_longer_parts() {
    let device = flex().device;
    let concat = Slot::<dyn Aggregator>::of("concat").expect("sound defaults").build(&()).expect("sound");
    let (long, short): (Tensor<3>, Tensor<3>) =
        (random([2, 3, 2], 1, &device), random([2, 1, 4], 2, &device));
    let round = Aggregation {
        parties: 3,
        active: vec![0, 2],
        shapes: vec![[2, 3, 2], [2, 1, 4]],
        similarities: Vec::new(),
    };
    let memory = concat.combine(vec![long, short.clone()], &round);
    assert_eq!(memory.dims(), [2, 3, 2 + 2 + 4]);
    for position in 0..3 {
        assert_eq!(host(memory.clone().narrow(1, position, 1).narrow(2, 4, 4)), host(short.clone()));
    }
    let shares = concat.spread(memory, &round);
    assert_eq!(shares[1].dims(), [2, 1, 4]);
    let tripled = host(short).iter().map(|x| 3.0 * x).collect::<Vec<_>>();
    assert!(host(shares[1].clone()).iter().zip(&tripled).all(|(a, b)| (a - b).abs() < 1e-6));
}
