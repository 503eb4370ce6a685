//! Releases of a run and their privacy loss: the numbers in a report.

use fet_privacy::accountant::{Account, Event};
use fet_privacy::noise::{REACH, Slack};

use fet_core::privacy::{Learning, Loss, Neighbouring, NoisyReleases, Randomness, Releases, Tally};

use super::settings::NoiseSettings;

/// The account of one mechanism in one run.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ledger<'a> {
    pub(super) settings: &'a NoiseSettings,
    pub(super) schedule: &'a Releases,
    /// True if the noise is integer; the accounting then subtracts `SMOOTHING` from its variance.
    pub(super) integer: bool,
}

/// The primary's view of a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReleaseView {
    /// The protocol's output: the sum over the parties, or each part with the full noise.
    AsAgreed,
    /// Each party's share of a sum separately, with its own share of the noise.
    Shares,
    /// The sum without the noise of this number of colluding parties, who subtract it; one party stays
    /// honest.
    Colluding(usize),
}

/// r² of the statement: the accounting of the discrete Gaussian reduces the variance by this value, in
/// units².
pub(super) const SMOOTHING: f64 = 9.0;

/// Margin of the ε for which δ is divided over the resulting ε.
pub(super) const EPSILON_MARGIN: f64 = 0.01;

impl Ledger<'_> {
    /// Returns the number of rows of a release that may change if one record changes (the statement's m).
    pub(super) fn occurrences(&self) -> usize {
        let Releases { rows, all_rows, .. } = *self.schedule;
        let most = if self.settings.learning == Learning::Frozen { all_rows } else { rows };
        match self.settings.max_occurrences {
            0 => most,
            cap => self.settings.rows_of(cap).min(most),
        }
    }

    /// Returns the noise in units of the sensitivity of a release with `active` parties.
    pub(super) fn multiplier(&self, noise: f64, active: usize, seen: ReleaseView) -> f64 {
        let (noise, row) = match seen {
            ReleaseView::AsAgreed => (noise, self.settings.sensitivity(active)),
            ReleaseView::Shares => {
                (noise * self.settings.share(active, true), self.settings.sensitivity_of_shares(active))
            }
            ReleaseView::Colluding(colluding) => {
                let honest = (active - colluding.min(active.saturating_sub(1))) as f64;
                let left = noise * self.settings.share(active, true) * honest.sqrt();
                (left, self.settings.sensitivity(active))
            }
        };
        let sensitivity = row * (self.occurrences() as f64).sqrt();
        let shrink = if self.integer {
            let scale = scale(self.settings.clip, active, self.schedule.block);
            (1.0 - SMOOTHING / (noise * self.settings.clip * scale).powi(2)).max(0.0).sqrt()
        } else {
            1.0
        };
        noise * shrink / sensitivity
    }

    /// Returns the releases of a run without dropped-out parties: of each epoch, or of the single pass over
    /// all rows.
    pub(super) fn planned(&self) -> Vec<Tally> {
        let epochs = if self.settings.learning == Learning::Frozen { 1 } else { self.schedule.epochs };
        vec![self.schedule.of_epoch(); epochs]
    }

    /// Returns the releases as events of the accountant. With frozen secondaries, all releases of a pass are
    /// one event: a record affects only its own rows. That event costs as much as if the fewest active
    /// parties of any release had taken part in the whole pass.
    pub(super) fn events(&self, noise: f64, made: &[Tally], seen: ReleaseView) -> Vec<Event> {
        let rate = if self.settings.amplification { self.settings.sample_rate } else { 1.0 };
        let event = |(active, steps)| Event { noise: self.multiplier(noise, active, seen), rate, steps };
        if self.settings.learning == Learning::Frozen {
            return made.iter().filter_map(Tally::fewest).map(|fewest| event((fewest, 1))).collect();
        }
        Tally::of_all(made).iter().map(event).collect()
    }

    /// Returns the privacy loss of imperfect integer sampling over the whole run.
    pub(super) fn slack(&self, made: &[Tally]) -> Slack {
        Slack::for_draws(self.values(made))
    }

    /// Returns the maximum number of integers that all parties draw as noise.
    fn values(&self, made: &[Tally]) -> f64 {
        let Releases { rows, all_rows, active, block, .. } = *self.schedule;
        let rows = if self.settings.learning == Learning::Frozen {
            made.iter().filter(|pass| pass.releases() > 0).count().max(1) as f64 * all_rows as f64
        } else {
            let releases = |tallies: &[Tally]| tallies.iter().map(Tally::releases).sum::<u64>();
            releases(&self.planned()).max(releases(made)) as f64 * rows as f64
        };
        if self.integer { rows * (block * active) as f64 } else { 0.0 }
    }

    /// Returns the releases as a loss that adds up over runs.
    pub(super) fn loss(&self, noise: f64, made: &[Tally]) -> Loss {
        let events = self.events(noise, made, ReleaseView::AsAgreed);
        if events.is_empty() {
            return Loss::NONE;
        }
        let mut releases: Vec<NoisyReleases> = Vec::new();
        for Event { noise, rate, steps } in events {
            match releases.iter_mut().find(|kind| (kind.noise, kind.rate) == (noise, rate)) {
                Some(kind) => kind.count += steps,
                None => releases.push(NoisyReleases { noise, rate, count: steps }),
            }
        }
        Loss::Gaussian { releases, values: self.values(made) }
    }

    /// Returns ε of these releases at the settings' δ, and ε by Rényi divergences.
    pub(super) fn cost(&self, noise: f64, made: &[Tally], seen: ReleaseView) -> (f64, f64) {
        self.cost_at(noise, made, seen, self.settings.delta)
    }

    /// Returns ε of these releases at δ = `delta`, and ε by Rényi divergences.
    pub(super) fn cost_at(&self, noise: f64, made: &[Tally], seen: ReleaseView, delta: f64) -> (f64, f64) {
        let slack = self.slack(made);
        let at = |delta| self.ideal_cost_at(noise, made, seen, delta);
        let first = at(delta);
        let nothing = self.events(noise, made, seen).is_empty();
        if !self.integer || nothing || !first.0.is_finite() {
            return first;
        }
        // The δ left for the ideal mechanism depends on ε: the resulting ε must not exceed the assumed ε.
        let mut most = first.0 + EPSILON_MARGIN;
        for _ in 0..50 {
            let (found, rdp) = at(slack.delta_left(delta, most));
            let (found, rdp) = (found + slack.epsilon(), rdp + slack.epsilon());
            if found <= most {
                return (found, rdp);
            }
            most = found + EPSILON_MARGIN;
        }
        (f64::INFINITY, f64::INFINITY)
    }

    /// Returns ε at δ = `delta` under the assumption that integers are sampled perfectly, and ε by Rényi
    /// divergences.
    pub(super) fn ideal_cost_at(
        &self,
        noise: f64,
        made: &[Tally],
        seen: ReleaseView,
        delta: f64,
    ) -> (f64, f64) {
        let events = self.events(noise, made, seen);
        if events.is_empty() {
            return (0.0, 0.0);
        }
        Account::from_events(&events, delta).map_or((f64::INFINITY, f64::INFINITY), |a| (a.epsilon(), a.rdp))
    }

    /// Returns ε if the primary saw every party's share of each sum separately. It is at least `epsilon`,
    /// since the shares determine the sum. It is infinite if ε is unbounded, and `None` without secure
    /// aggregation.
    pub(super) fn if_sum_fails(&self, noise: f64, made: &[Tally], epsilon: f64) -> Option<f64> {
        self.schedule.summed.then(|| self.cost(noise, made, ReleaseView::Shares).0.max(epsilon))
    }

    /// Returns ε for 0, 1, … parties that collude with the primary, up to the number in the settings but at
    /// least 1. The ε of the number in the settings is `epsilon`. The result is empty without secure
    /// aggregation.
    pub(super) fn by_colluding(&self, noise: f64, made: &[Tally], epsilon: f64) -> Vec<f64> {
        let provided = self.settings.colluding;
        let counts = if self.schedule.summed { 0..=provided.max(1) } else { return Vec::new() };
        let cost = |colluding: usize| match colluding {
            _ if colluding == provided => epsilon,
            _ => self.cost(noise, made, ReleaseView::Colluding(colluding)).0,
        };
        counts.map(cost).collect()
    }

    /// Returns the assumptions behind the reported ε.
    pub(super) fn assumptions(&self, if_sum_fails: Option<f64>, by_colluding: &[f64]) -> Vec<String> {
        let NoiseSettings { neighbouring, learning, amplification, sample_rate, colluding, .. } =
            self.settings;
        let mut all = vec![match neighbouring {
            Neighbouring::Replace => {
                "the guarantee protects one record, replaced in every secondary at once".to_string()
            }
            Neighbouring::AddRemove => {
                "the guarantee protects one record of one secondary, added or removed".to_string()
            }
            Neighbouring::Record => {
                "the guarantee protects one record of one secondary, added, removed or replaced".to_string()
            }
        }];
        let rows = self.occurrences();
        all.push(match (learning, self.settings.max_occurrences) {
            (Learning::Counted, _) => format!(
                "a record may change all {rows} rows of every release, as a neighbour or through the weights it trained"
            ),
            (_, 0) => format!("a record may be a neighbour of all {rows} rows of a release"),
            (_, limit) => format!(
                "a record is a neighbour of at most {limit} rows of a release, since it offers itself \
                 only to its nearest rows; {rows} rows are counted{}",
                if *neighbouring == Neighbouring::AddRemove {
                    ""
                } else {
                    ": a replaced record leaves some and joins others"
                }
            ),
        });
        all.push(match learning {
            Learning::Counted => {
                "the secondaries' models learn, and their learning from a record is counted".to_string()
            }
            Learning::Assumed => {
                "NOT COUNTED: the learning of the secondaries' models from the record; ε treats their \
                 weights as known, as the paper does"
                    .to_string()
            }
            Learning::Frozen => {
                "the secondaries keep their initial weights, and every row is released once for the whole run"
                    .to_string()
            }
        });
        if *amplification {
            all.push(format!(
                "each secondary draws each record with probability {sample_rate}, independently for \
                 every release, and keeps the draw secret"
            ));
        }
        let figure = |epsilon: f64| {
            if epsilon.is_finite() { format!("{epsilon:.4}") } else { "unbounded".to_string() }
        };
        all.push(match if_sum_fails {
            Some(epsilon) => format!(
                "the primary sees only sums and reports truthfully which parties dropped out; up to \
                 {colluding} secondaries collude with it (with {}; if the sums failed and it saw every \
                 party's share separately, ε would be {})",
                by_colluding
                    .iter()
                    .enumerate()
                    .map(|(colluding, &epsilon)| format!("{colluding}, ε is {}", figure(epsilon)))
                    .collect::<Vec<_>>()
                    .join("; with "),
                figure(epsilon)
            ),
            None => {
                "the primary sees every party's representation separately, each with the full noise, and \
                     reports truthfully which parties dropped out"
                    .to_string()
            }
        });
        all.push(if self.integer {
            format!(
                "the noise is a sum of discrete Gaussians; ε accounts for the sampling from tables and \
                 for the end of the sum, {REACH} deviations out"
            )
        } else {
            "the noise is a Gaussian in 32-bit floats, an idealisation: use `discrete-gaussian` for a proved ε"
                .to_string()
        });
        if self.schedule.randomness == Randomness::Experiment {
            all.push(
                "in a simulation each party's noise is derived from the experiment's seed so that the \
                 run repeats: anyone who knows the seed can subtract it; a deployment draws each \
                 party's seed from the operating system"
                    .to_string(),
            );
        }
        all.push(
            "a secondary scales its columns by ranges that its owner declares from public knowledge, \
             and clamps values to them; no record influences the scaling of another"
                .to_string(),
        );
        all.push(
            "not protected: the number of records, the declared ranges, the secondaries' models \
             themselves, and the primary's keys, rows and labels"
                .to_string(),
        );
        all
    }
}

/// Returns the units per 1 of integer shares, a power of two: a typical value of a block of norm c is some
/// 2^8 units.
pub(super) fn scale(clip: f64, active: usize, block: usize) -> f64 {
    let typical = clip / active as f64 / (block as f64).sqrt();
    2f64.powi((256.0 / typical).log2().ceil() as i32)
}
