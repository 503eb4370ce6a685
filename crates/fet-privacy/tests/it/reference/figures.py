"""Writes figures.csv: ε of the Poisson-subsampled Gaussian by two other programs, for `tests/figures.rs`.

    pip install dp-accounting==0.6.0 prv-accountant==0.2.0 && python figures.py > figures.csv

`upper` is Google's `dp_accounting`, connect-the-dots, pessimistic: an upper bound. `low` and `high` are Microsoft's
`prv_accountant` (Gopi, Lee, Wutschitz 2021), whose interval is proved to hold ε but for the library's own rounding; it has the `remove` direction alone,
which is the larger one here. Both build the loss distribution, cut it and compose it in ways of their own.
"""

import sys
import warnings

from dp_accounting.pld import privacy_loss_distribution as pld
from prv_accountant import PRVAccountant
from prv_accountant.privacy_random_variables import GaussianMechanism, PoissonSubsampledGaussianMechanism

warnings.filterwarnings("ignore")

# (rate, noise, steps, delta, grid of dp_accounting)
SETTINGS = [
    (0.01, 4.0, 10_000, 1e-5, 2e-6),
    (0.01, 1.0, 1_000, 1e-5, 1e-5),
    (1.0, 10.0, 100, 1e-5, 1e-5),
    (0.1, 2.0, 500, 1e-5, 1e-5),
    (1.0, 5.0, 1, 1e-5, 1e-5),
    (0.01, 1.0, 10_000, 1e-5, 1e-5),
    (0.1, 1.0, 100, 1e-5, 2e-5),
    (0.1, 2.0, 1_000, 1e-5, 1e-5),
    (0.001, 0.7, 10_000, 1e-6, 1e-5),
    (0.5, 1.0, 10, 1e-6, 2e-5),
    (0.9, 3.0, 100, 1e-5, 2e-5),
    (0.5, 20.0, 1_000, 1e-5, 1e-5),
    (0.05, 0.5, 20, 1e-8, 2e-5),
    (0.3, 0.8, 1, 1e-5, 1e-5),
]


def dots(rate, noise, steps, delta, grid):
    loss = pld.from_gaussian_mechanism(noise, value_discretization_interval=grid, sampling_prob=rate,
                                       pessimistic_estimate=True, use_connect_dots=True)
    return loss.self_compose(steps).get_epsilon_for_delta(delta)


def interval(rate, noise, steps, delta):
    one = GaussianMechanism(noise) if rate == 1.0 else PoissonSubsampledGaussianMechanism(rate, noise)
    accountant = PRVAccountant(prvs=[one], max_self_compositions=[steps], eps_error=5e-4, delta_error=delta * 1e-4)
    low, _, high = accountant.compute_epsilon(delta, [steps])
    return low, high


print("rate,noise,steps,delta,upper,low,high")
for rate, noise, steps, delta, grid in SETTINGS:
    figures = [dots(rate, noise, steps, delta, grid)]
    try:
        figures += interval(rate, noise, steps, delta)
        shown = ",".join(f"{figure:.6f}" for figure in figures)
    except Exception as error:
        print(rate, noise, steps, delta, repr(error)[:100], file=sys.stderr)
        shown = f"{figures[0]:.6f},,"
    print(f"{rate},{noise},{steps},{delta},{shown}", flush=True)
