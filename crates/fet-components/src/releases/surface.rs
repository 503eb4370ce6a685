//! `surface`: noisy counts and sums of a few columns over a pyramid of cells, for places, stations and times.
//!
//! Statement, sensitivity and account with their proof are in [`fet_privacy::surface`].

use std::collections::BTreeMap;

use fet_core::data::{Column, DataError, Features, Keys, Matrix, PartyTable, Values};
use fet_core::privacy::{Loss, Neighbouring, Randomness};
use fet_core::registry::{Plugin, Recipe, Violation};
use fet_core::release::{
    Noiseless, PartyRelease, Places, Release, ReleaseLoss, ReleaseRecord, Released, TableRelation as Recorded,
};
use fet_core::rng::ChaCha8Rng;
use fet_privacy::surface::{AreaError, Design, Estimate, Pyramid, Relation, Surface, UNIT};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{CHECKSUMS, DECLARED, EXISTENCE, ONE_RECORD, Ranges};

/// Settings of `surface`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct SurfaceSettings {
    /// Range of each key column, in the order of the keys, from public knowledge and never from any party's
    /// records. Records outside are left out; a primary's row outside has the values of the edge. With four ranges, such as
    /// the start and the end of a trip, set `finest` to 16: the finest level has at most 65,536 cells. A date counts as the
    /// number of days since 1970.
    #[schemars(extend("x-rule" = "1 to 8 ranges [low, high]"))]
    pub area: Vec<[f64; 2]>,
    /// Number columns to release, by secondary, each with its range from public knowledge, as in `columns.weather =
    /// { temp = [-20, 120] }`. A value outside counts as the end of the range, a missing value as the middle. A
    /// secondary without an entry releases counts only.
    #[schemars(extend("x-rule" = "tables of ranges [low, high], by secondary"))]
    pub columns: Ranges,
    /// ε of each secondary's release.
    #[schemars(range(min = 0.01, max = 20))]
    pub epsilon: f64,
    /// δ, the probability that the bound ε fails: well below one divided by the number of records.
    #[schemars(range(max = 0.001), extend("exclusiveMinimum" = 0))]
    pub delta: f64,
    /// Neighbouring relation of a secondary's tables, which must be indistinguishable.
    pub neighbouring: TableRelation,
    /// Number of cells a side of the coarsest level.
    #[schemars(range(min = 1, max = 65_536))]
    pub coarsest: usize,
    /// Number of cells a side of the finest level: `coarsest` times 1, 2, 4, 8 or a higher power of two.
    #[schemars(range(min = 1, max = 65_536))]
    pub finest: usize,
    /// True to release the noise alone, without any record: the control that shows the gain from random
    /// numbers for each place.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(extend("default" = false))]
    pub noise_only: bool,
}

/// Neighbouring relation of a secondary's tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TableRelation {
    /// One record is added, removed, or replaced with its key.
    Record,
    /// One record is added or removed; the noise has half of the variance.
    AddRemove,
}

impl Default for SurfaceSettings {
    fn default() -> Self {
        Self {
            area: Vec::new(),
            columns: BTreeMap::new(),
            epsilon: 1.0,
            delta: 1e-5,
            neighbouring: TableRelation::Record,
            coarsest: 4,
            finest: 64,
            noise_only: false,
        }
    }
}

/// Range of a column, mapped to [−1, 1].
#[derive(Debug, Clone, Copy)]
struct Range {
    middle: f64,
    half: f64,
}

impl From<[f64; 2]> for Range {
    fn from([low, high]: [f64; 2]) -> Self {
        Self { middle: f64::midpoint(low, high), half: 0.5 * (high - low) }
    }
}

impl Recipe<dyn Release> for SurfaceSettings {
    fn check(&self) -> Result<(), Violation> {
        super::check_ranges(&self.columns)
    }

    fn build(&self, (): &()) -> Result<Box<dyn Release>, Violation> {
        if self.area.is_empty() {
            let rule = "must state the range of each key column from public knowledge, as in `area = [[-75, -73], [40, 41]]`: \
                        ranges of the records would reveal them";
            return Err(Violation::new("area", rule, "[]"));
        }
        let pyramid = Pyramid::new(&self.area, self.coarsest, self.finest).map_err(|error| {
            let (field, value) = match error {
                AreaError::Dimensions(_) | AreaError::Range(_) => ("area", format!("{:?}", self.area)),
                AreaError::Sides { .. } | AreaError::Cells(_) => ("finest", self.finest.to_string()),
            };
            Violation::new(field, error.to_string(), value)
        })?;
        let component = SurfaceRelease { settings: self.clone(), pyramid };
        // Counts need the least noise; a wrong ε or δ shows here, before any table is read.
        component.design(0).map_err(|rule| Violation::new("epsilon", rule, self.epsilon))?;
        Ok(Box::new(component))
    }
}

inventory::submit! {
    Plugin::<dyn Release>::new::<SurfaceSettings>(
        "surface",
        "noisy counts and sums of columns over cells of an area, released once",
    )
}

struct SurfaceRelease {
    settings: SurfaceSettings,
    pyramid: Pyramid,
}

impl SurfaceRelease {
    /// Returns the columns that a secondary releases, with their ranges.
    fn columns_of(&self, party: &str) -> impl ExactSizeIterator<Item = (&str, Range)> {
        static NONE: BTreeMap<String, [f64; 2]> = BTreeMap::new();
        let columns = self.settings.columns.get(party).unwrap_or(&NONE);
        columns.iter().map(|(name, range)| (name.as_str(), Range::from(*range)))
    }

    /// Returns the design of a release of some number of columns.
    fn design(&self, columns: usize) -> Result<Design, String> {
        let relation = match self.settings.neighbouring {
            TableRelation::AddRemove => Relation::AddRemove,
            TableRelation::Record => Relation::Record,
        };
        let target = [self.settings.epsilon, self.settings.delta];
        Design::for_target(self.pyramid.clone(), columns, relation, target).map_err(|error| error.to_string())
    }

    fn design_for(&self, party: &str) -> Result<Design, DataError> {
        self.design(self.columns_of(party).len()).map_err(|error| DataError::new("`release`", error))
    }

    /// Returns keys as numbers, one for each range of the area.
    fn numbers<'a>(&self, name: &str, keys: &'a Keys) -> Result<&'a Matrix<f64>, DataError> {
        let Some(numbers) = keys.numbers() else {
            let problem = format!(
                "must have keys of numbers where `release.kind` is \"surface\"; they are {}",
                keys.kind_name()
            );
            return Err(DataError::new(format!("data of {name}"), problem));
        };
        if numbers.columns() != self.pyramid.dimensions() {
            let problem = format!(
                "must have one range for each key column; it has {}, and {name} has {} key columns",
                self.pyramid.dimensions(),
                numbers.columns()
            );
            return Err(DataError::new("`release.area`", problem));
        }
        Ok(numbers)
    }

    fn totals(&self, design: &Design, table: &PartyTable) -> Result<Vec<i64>, DataError> {
        let keys = self.numbers(&table.name, &table.keys)?;
        let numbers = |(name, range): (&str, Range)| {
            let place = || format!("`release.columns.{}`", table.name);
            let Features::Columns(columns) = &table.features else {
                let problem =
                    "must be left out: the columns of this dataset are unnamed. Use the dataset \"linked\"";
                return Err(DataError::new(place(), problem));
            };
            let column = columns.table.column(name).map_err(|error| DataError::new(place(), error))?;
            match &column.values {
                Values::Number(values) => Ok((values, range)),
                other => {
                    let problem = format!("must name columns of numbers; `{name}` is a {}", other.kind());
                    Err(DataError::new(place(), problem))
                }
            }
        };
        let columns = self.columns_of(&table.name).map(numbers).collect::<Result<Vec<_>, _>>()?;
        let vectors = (0..keys.rows()).map(|row| {
            let value = |(values, range): &(&Vec<f64>, Range)| (values[row] - range.middle) / range.half;
            (keys.row(row), design.vector(&columns.iter().map(value).collect::<Vec<f64>>()))
        });
        Ok(self.pyramid.totals(1 + design.columns(), vectors))
    }
}

impl Release for SurfaceRelease {
    fn check_parties(&self, parties: &[&str]) -> Result<(), Violation> {
        super::check_names(&self.settings.columns, parties, None)
    }

    fn make(
        &self,
        table: &PartyTable,
        _places: Option<&Places>,
        noise: &mut ChaCha8Rng,
    ) -> Result<Released, DataError> {
        let design = self.design_for(&table.name)?;
        // The control reads the table as the release does, so that both refuse the same tables.
        let mut totals = self.totals(&design, table)?;
        if self.settings.noise_only {
            totals.fill(0);
        }
        Ok(Released { party: table.name.clone(), values: design.release(totals, noise) })
    }

    fn noiseless(
        &self,
        table: &PartyTable,
        _places: Option<&Places>,
    ) -> Result<Option<Noiseless>, DataError> {
        let design = self.design_for(&table.name)?;
        let mut values = self.totals(&design, table)?;
        if self.settings.noise_only {
            values.fill(0);
        }
        Ok(Some(Noiseless::Sums { values, deviation: design.deviation() }))
    }

    fn names(&self, party: &str) -> Vec<String> {
        let of = |(name, _)| [format!("{party}: {name}"), format!("{party}: error of {name}")];
        std::iter::once(format!("{party}: log count")).chain(self.columns_of(party).flat_map(of)).collect()
    }

    fn columns(&self, released: &Released, keys: &Keys) -> Result<Vec<Column>, DataError> {
        let party = &released.party;
        let design = self.design_for(party)?;
        let surface = Surface::new(&design, &released.values).ok_or_else(|| {
            let problem = format!("must have {} numbers; it has {}", design.len(), released.values.len());
            DataError::new(format!("release of {party}"), problem)
        })?;
        let keys = self.numbers("the primary", keys)?;
        let cells: Vec<_> = (0..keys.rows()).map(|row| surface.at(keys.row(row))).collect();
        let values = |value: &dyn Fn(&Estimate) -> f64| cells.iter().map(|cell| value(cell)).collect();
        let mut all: Vec<Vec<f64>> = vec![values(&|cell| cell.count.ln_1p())];
        for (place, (_, range)) in self.columns_of(party).enumerate() {
            all.push(values(&|cell| range.middle + range.half * cell.means[place][0]));
            all.push(values(&|cell| range.half * cell.means[place][1]));
        }
        let named = self.names(party).into_iter().zip(all);
        Ok(named.map(|(name, values)| Column { name, values: Values::Number(values) }).collect())
    }

    fn note(&self, keys: &Keys) -> Option<String> {
        let keys = keys.numbers()?;
        let outside = (0..keys.rows()).filter(|&row| !self.pyramid.contains(keys.row(row))).count();
        (outside > 0).then(|| {
            format!(
                "{outside} of {} rows lie outside `release.area` and have the released values of its edge",
                keys.rows()
            )
        })
    }

    fn loss(&self, table: &PartyTable, _symbols: usize) -> Result<ReleaseLoss, DataError> {
        let design = self.design_for(&table.name)?;
        let relation = match self.settings.neighbouring {
            TableRelation::AddRemove => Neighbouring::AddRemove,
            TableRelation::Record => Neighbouring::Record,
        };
        let loss = if self.settings.noise_only {
            Loss::NONE
        } else {
            super::gaussian(design.noise_multiplier(), design.len())
        };
        Ok(ReleaseLoss { relation, loss })
    }

    fn account(&self, released: &[Released]) -> ReleaseRecord {
        let SurfaceSettings { delta, noise_only, neighbouring, .. } = self.settings;
        let designs: Vec<Design> = released
            .iter()
            .map(|one| self.design_for(&one.party).expect("a release was made with this design"))
            .collect();
        let bounded = |epsilon: f64| if noise_only { 0.0 } else { epsilon };
        let party = |(one, design): (&Released, &Design)| PartyRelease {
            party: one.party.clone(),
            epsilon: Some(bounded(design.epsilon(delta))).filter(|epsilon| epsilon.is_finite()),
            noise_multiplier: design.noise_multiplier(),
            noise_of_count: design.deviation() / UNIT as f64,
            code: None,
            values: one.values.len(),
        };
        let parties: Vec<PartyRelease> = released.iter().zip(&designs).map(party).collect();
        let most = parties.iter().map(|party| party.epsilon.unwrap_or(f64::INFINITY)).fold(0.0, f64::max);
        let of_person = bounded(Design::epsilon_of_all(&designs, delta));
        let (neighbouring, relation) = match neighbouring {
            TableRelation::AddRemove => (Recorded::AddRemove, "added or removed"),
            TableRelation::Record => (Recorded::Record, "added, removed or replaced with its key"),
        };
        ReleaseRecord {
            kind: "surface".into(),
            noise_only,
            delta,
            neighbouring,
            // The caller knows the seeds.
            randomness: Randomness::Experiment,
            parties,
            epsilon_of_person: Some(of_person).filter(|epsilon| epsilon.is_finite()),
            epsilon_by_colluding: vec![most; released.len().min(2)],
            gate: None,
            of_primary: String::new(),
            statement: format!(
                "ε protects one record of one secondary, {relation}, in everything that the primary computes from its \
                 release: training, evaluation and predictions."
            ),
            assumptions: vec![
                "`release.area` and the ranges of `release.columns` do not follow from any party's records.".into(),
                DECLARED.into(),
                ONE_RECORD.into(),
                "This is the only release of the table: runs with other settings, seeds, folders or tables add to ε.".into(),
                CHECKSUMS.into(),
                "Each secondary adds the whole noise to its own release, so that colluding secondaries do not \
                 change ε."
                    .into(),
                EXISTENCE.into(),
            ],
        }
    }
}
