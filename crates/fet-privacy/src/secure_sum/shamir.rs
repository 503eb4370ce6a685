//! Shares of a scalar (Shamir 1979) over the field of the group's order.
//!
//! The implementation is a dozen lines on the arithmetic of `curve25519-dalek`. A crate would add an
//! abstraction over curves and tie us to its version of that arithmetic. Crates that share bytes do not fit:
//! shares must be scalars of the group, so that values can be computed from them.

use curve25519_dalek::scalar::Scalar;

/// Returns the place of a party (from 0) on the polynomial; the secret is at 0.
pub(super) fn place(party: usize) -> Scalar {
    Scalar::from(party as u64 + 1)
}

/// Returns the share of a party: the value of the polynomial at its place. The secret is the first
/// coefficient.
pub(super) fn share(coefficients: &[Scalar], party: usize) -> Scalar {
    let x = place(party);
    coefficients.iter().rev().fold(Scalar::ZERO, |sum, coefficient| sum * x + coefficient)
}

/// Returns the Lagrange weights that combine the values of `parties`, all different, to the value at `x`.
pub(super) fn weights(parties: &[usize], x: Scalar) -> Vec<Scalar> {
    let places: Vec<Scalar> = parties.iter().map(|&party| place(party)).collect();
    let product = |of: usize, from: Scalar| {
        let others = places.iter().enumerate().filter(|&(other, _)| other != of);
        others.map(|(_, place)| from - place).product::<Scalar>()
    };
    let mut below: Vec<Scalar> = (0..places.len()).map(|of| product(of, places[of])).collect();
    Scalar::invert_batch_alloc(&mut below);
    below.into_iter().enumerate().map(|(of, inverse)| product(of, x) * inverse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_shares_as_coefficients_give_the_secret_and_fewer_fit_any() {
        let coefficients: Vec<Scalar> = [7u64, 3, 11].map(Scalar::from).to_vec();
        let value = |parties: &[usize], x: Scalar| -> Scalar {
            let shares = parties.iter().map(|&party| share(&coefficients, party));
            weights(parties, x).iter().zip(shares).map(|(weight, share)| weight * share).sum()
        };
        for parties in [[0, 1, 2], [5, 0, 99], [3, 4, 1]] {
            assert_eq!(value(&parties, Scalar::ZERO), Scalar::from(7u64));
            assert_eq!(value(&parties, place(6)), share(&coefficients, 6));
        }
        // Two shares fit every secret: one polynomial goes through them and any value at 0.
        assert_ne!(value(&[0, 1], Scalar::ZERO), Scalar::from(7u64));
    }
}
