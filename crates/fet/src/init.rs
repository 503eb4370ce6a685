//! `fet init`: writes an experiment for a user's own tables, with a comment on each choice.
//!
//! The experiment is a starting point that runs. The user must name the label; the keys are the columns that all
//! tables share, unless the user names them. `plan` looks at the tables and makes the choices: `tables` knows
//! single columns, `keys` and `linking` compare the keys of two tables, `training` chooses the metric, the split
//! and the length of training, and `variants` the methods of the study at the end of the file.

mod keys;
mod linking;
pub(crate) mod plan;
mod tables;
mod training;
mod variants;

use std::path::{Path, PathBuf};

use fet_core::experiment::{Experiment, set_all};
use fet_io::input::input;
use fet_io::output;

use self::plan::{Plan, Request, plan};

/// Arguments of `fet init`.
#[derive(Debug, Clone, clap::Args)]
pub struct InitArguments {
    /// The primary's table, which has the label, followed by the tables of the other parties.
    #[arg(required = true, num_args = 2.., value_name = "TABLE")]
    pub tables: Vec<PathBuf>,
    /// Column of the primary's table to predict.
    #[arg(long)]
    pub label: String,
    /// Columns that link the records, with the same names in all tables [default: the columns that all tables
    /// share].
    #[arg(long, value_delimiter = ',', value_name = "A,B")]
    pub keys: Vec<String>,
    /// Experiment file to write; the command never replaces an existing file. `-` writes to standard output.
    #[arg(long, default_value = "experiment.toml")]
    pub out: PathBuf,
}

/// Writes the experiment, and returns the next steps for the user.
pub fn init(arguments: &InitArguments) -> anyhow::Result<String> {
    let out = &arguments.out;
    output::check(out, &arguments.tables)?;
    let to_standard = out == Path::new(output::STANDARD);
    if !to_standard && out.symlink_metadata().is_ok() {
        return Err(input(format!("--out {}: the file exists already; name another file", out.display())));
    }
    let InitArguments { tables, label, keys, .. } = arguments;
    let plan = plan(&Request { tables, label, keys, file: out })?;
    check(&plan).map_err(|error| input(format!("{}: {error}", out.display())))?;
    for warning in &plan.warnings {
        fet_io::note!("warning: {warning}");
    }
    let text = plan.study_text();
    if to_standard {
        return Ok(text);
    }
    fet_io::write(out, text.as_bytes())?;
    let out = out.display();
    Ok(format!(
        "written: {out}\nRead the file, then run `fet data check {out}` and `fet run {out}`, and explain the run with \
         `fet explain`.\n"
    ))
}

/// Checks that the experiment and each of its variants have valid settings.
fn check(plan: &Plan) -> anyhow::Result<()> {
    let table: toml::Table = plan.experiment_text().parse()?;
    for variant in &plan.variants {
        let mut table = table.clone();
        set_all(&mut table, &variant.set)?;
        Experiment::from_table(table)?;
    }
    Experiment::from_table(table)?;
    Ok(())
}
