//! Shapley values of the players of a cooperative game (Shapley 1953).
//!
//! φᵢ = mean over all orders of the players of v(players before i, and i) − v(players before i). For example,
//! the players are parties and v is a metric of the model that a coalition trains. Exact and sampled values
//! both sum to v(all) − v(none). The value function is called at most once per coalition.

use std::collections::BTreeMap;

use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

/// Maximum number of players for exact values, which need every coalition: 2⁸ = 256.
pub const EXACT_PLAYERS: usize = 8;

/// Shapley values of all players.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shapley {
    /// Value of each player, in the unit of v.
    pub values: Vec<f64>,
    /// Standard error of each sampled value. `None` for exact values.
    pub errors: Option<Vec<f64>>,
    /// v(none), the value of the empty coalition.
    pub none: f64,
    /// v(all), the value of the coalition of all players.
    pub all: f64,
    /// Number of evaluated coalitions.
    pub coalitions: usize,
}

/// Computes the Shapley values of `players` players. `value` receives the membership of each player in a
/// coalition.
///
/// The values are exact up to [`EXACT_PLAYERS`] players: φᵢ = Σ over S without i of |S|! (n − |S| − 1)! / n!
/// · (v(S ∪ i) − v(S)). For more players they are means over `pairs` random orders and their reverses
/// (antithetic; Mitchell et al. 2022, "Sampling Permutations for Shapley Value Estimation"). Exact values use
/// no random numbers. Sampling evaluates at most 2 · pairs · (n − 1) + 2 coalitions.
pub fn shapley<E>(
    players: usize,
    pairs: usize,
    value: impl FnMut(&[bool]) -> Result<f64, E>,
    rng: &mut ChaCha8Rng,
) -> Result<Shapley, ShapleyError<E>> {
    if players == 0 {
        return Err(ShapleyError::NoPlayers);
    }
    let mut game = Game { value, known: BTreeMap::new() };
    let (values, errors) = if players <= EXACT_PLAYERS {
        (exact(players, &mut game)?, None)
    } else if pairs < 2 {
        return Err(ShapleyError::Pairs(pairs));
    } else {
        let (values, errors) = sampled(players, pairs, &mut game, rng)?;
        (values, Some(errors))
    };
    let (none, all) = (game.value(&vec![false; players])?, game.value(&vec![true; players])?);
    Ok(Shapley { values, errors, none, all, coalitions: game.known.len() })
}

/// Value function with a cache of its results.
struct Game<F> {
    value: F,
    known: BTreeMap<Vec<bool>, f64>,
}

impl<E, F: FnMut(&[bool]) -> Result<f64, E>> Game<F> {
    fn value(&mut self, coalition: &[bool]) -> Result<f64, ShapleyError<E>> {
        if let Some(value) = self.known.get(coalition) {
            return Ok(*value);
        }
        let value = (self.value)(coalition).map_err(ShapleyError::Value)?;
        if !value.is_finite() {
            let coalition = (0..coalition.len()).filter(|player| coalition[*player]).collect();
            return Err(ShapleyError::NotFinite { value, coalition });
        }
        self.known.insert(coalition.to_vec(), value);
        Ok(value)
    }
}

fn exact<E, F: FnMut(&[bool]) -> Result<f64, E>>(
    players: usize,
    game: &mut Game<F>,
) -> Result<Vec<f64>, ShapleyError<E>> {
    let factorial = |n: usize| (1..=n).map(|k| k as f64).product::<f64>();
    let mut values = vec![0.0; players];
    for bits in 0..1usize << players {
        let mut coalition: Vec<bool> = (0..players).map(|player| bits >> player & 1 == 1).collect();
        let size = coalition.iter().filter(|is_in| **is_in).count();
        let without = game.value(&coalition)?;
        for player in 0..players {
            if coalition[player] {
                continue;
            }
            coalition[player] = true;
            let weight = factorial(size) * factorial(players - size - 1) / factorial(players);
            values[player] += weight * (game.value(&coalition)? - without);
            coalition[player] = false;
        }
    }
    Ok(values)
}

/// Computes means and standard errors over pairs of orders.
fn sampled<E, F: FnMut(&[bool]) -> Result<f64, E>>(
    players: usize,
    pairs: usize,
    game: &mut Game<F>,
    rng: &mut ChaCha8Rng,
) -> Result<(Vec<f64>, Vec<f64>), ShapleyError<E>> {
    let mut draws: Vec<Vec<f64>> = vec![Vec::with_capacity(pairs); players];
    for _ in 0..pairs {
        let mut order: Vec<usize> = (0..players).collect();
        order.shuffle(rng);
        let forth = marginals(&order, game)?;
        order.reverse();
        let back = marginals(&order, game)?;
        (0..players).for_each(|player| draws[player].push((forth[player] + back[player]) / 2.0));
    }
    let count = pairs as f64;
    let mean = |draws: &Vec<f64>| draws.iter().sum::<f64>() / count;
    let error = |draws: &Vec<f64>| {
        let centre = mean(draws);
        (draws.iter().map(|draw| (draw - centre).powi(2)).sum::<f64>() / (count - 1.0) / count).sqrt()
    };
    Ok((draws.iter().map(mean).collect(), draws.iter().map(error).collect()))
}

/// Returns the marginal contribution of each player in this order.
fn marginals<E, F: FnMut(&[bool]) -> Result<f64, E>>(
    order: &[usize],
    game: &mut Game<F>,
) -> Result<Vec<f64>, ShapleyError<E>> {
    let mut coalition = vec![false; order.len()];
    let mut marginals = vec![0.0; order.len()];
    let mut before = game.value(&coalition)?;
    for &player in order {
        coalition[player] = true;
        let after = game.value(&coalition)?;
        marginals[player] = after - before;
        before = after;
    }
    Ok(marginals)
}

/// Error of a Shapley computation.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapleyError<E> {
    /// No players.
    #[error("a game needs at least one player")]
    NoPlayers,
    /// Too few orders.
    #[error("more than {EXACT_PLAYERS} players need at least 2 pairs of orders, not {0}; use 100")]
    Pairs(usize),
    /// The value function failed.
    #[error("the value of a coalition failed")]
    Value(#[source] E),
    /// The value of a coalition is not finite.
    #[error("the value of the coalition of players {coalition:?} is {value}; values must be finite")]
    NotFinite {
        /// Rejected value.
        value: f64,
        /// Members of the coalition.
        coalition: Vec<usize>,
    },
}
