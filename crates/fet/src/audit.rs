//! `fet audit`: the canary audit of an experiment on its own data.

use fet_core::experiment::Experiment;
use fet_io::input::input;

pub use fet_attacks::audit::{Audit, MadeReleases, Owner, Settings, audit_on, audit_releases};

use crate::experiment_file::data_folders;
use crate::experiment_file::machine;

/// Audits an experiment on its own data.
pub fn audit(experiment: &Experiment, settings: &Settings) -> anyhow::Result<Audit> {
    let backend = fet_backends::open(&experiment.device).map_err(input)?;
    let data = fet_federation::data::read(experiment, &data_folders(experiment)).map_err(input)?;
    if experiment.release.is_some() {
        return audit_releases(experiment, &data, settings, &|maker, table, seed| {
            Ok(vec![maker.make(table, seed).map_err(input)?])
        });
    }
    let data = fet_federation::data::in_numbers(data).map_err(input)?;
    audit_on(experiment, &data, settings, &machine(&backend), &|table| table)
}

/// Audits the experiment under every mechanism and relation. Returns a Markdown table, and true if a claim is refuted.
pub fn table(experiment: &Experiment, settings: &Settings) -> anyhow::Result<(String, bool)> {
    if let Some(release) = &experiment.release {
        return Err(input(format!(
            "--table: compares privacy mechanisms, and a run with `release.kind = \"{}\"` has none. Leave out --table",
            release.kind()
        )));
    }
    fet_attacks::audit::table(experiment, settings, audit)
}
