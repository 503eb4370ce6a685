//! `fet-e2e fuzz`: fuzz campaigns over the readers, with totals.

use std::path::PathBuf;

use anyhow::Context;

use super::campaign::{CampaignCounts, CaseRange, child};
use super::{FuzzReader, campaign, readers};
use crate::case::CaseEnd;
use crate::tally::FaultTally;

/// Arguments of `fet-e2e fuzz`.
#[derive(Debug, clap::Args)]
pub struct FuzzArguments {
    /// Only these readers [default: all].
    readers: Vec<String>,
    /// Number of cases per reader.
    #[arg(long, default_value_t = 10_000)]
    cases: u64,
    /// Number of the first case.
    #[arg(long, default_value_t = 0)]
    from: u64,
    /// Seed of the campaign.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Write inputs with faults to this folder, as READER-SEED-NUMBER.
    #[arg(long)]
    keep: Option<PathBuf>,
    #[command(subcommand)]
    command: Option<FuzzCommand>,
}

#[derive(Debug, clap::Subcommand)]
enum FuzzCommand {
    /// Run one range of one reader in this process.
    #[command(hide = true)]
    Child { reader: String, from: u64, to: u64, seed: u64, progress: PathBuf },
}

/// Number of faults after which a reader's campaign ends.
const MOST_FAULTS: usize = 200;

fn find(name: &str) -> anyhow::Result<&'static FuzzReader> {
    let names = || readers::ALL.iter().map(|reader| reader.name).collect::<Vec<_>>().join(", ");
    FuzzReader::by_name(name).with_context(|| format!("unknown reader {name}; known readers: {}", names()))
}

/// Runs the campaigns. Calls `say` with each line to show. Returns true if there are no faults.
///
/// # Errors
/// Returns an error for an unknown reader, or if no child process can be started.
pub fn run(arguments: &FuzzArguments, say: &mut dyn FnMut(String)) -> anyhow::Result<bool> {
    if let Some(FuzzCommand::Child { reader, from, to, seed, progress }) = &arguments.command {
        let range = CaseRange { seed: *seed, from: *from, to: *to };
        return child(find(reader)?, range, progress, say).map(|()| true);
    }
    let chosen: Vec<&FuzzReader> = match arguments.readers.as_slice() {
        [] => readers::ALL.iter().collect(),
        names => names.iter().map(|name| find(name)).collect::<anyhow::Result<_>>()?,
    };
    let mut tally = FaultTally::default();
    for reader in chosen {
        let range =
            CaseRange { seed: arguments.seed, from: arguments.from, to: arguments.from + arguments.cases };
        let counts = campaign::run(reader, range, MOST_FAULTS)?;
        keep(arguments, reader, &counts, say)?;
        tally.add(reader.name, counts.accepted, Some(CaseEnd::Expected), []);
        tally.add(reader.name, counts.refused, Some(CaseEnd::Refused), []);
        for (_, fault) in &counts.faults {
            tally.add(reader.name, 1, None, [fault.kind]);
        }
    }
    say(tally.table("reader"));
    Ok(tally.good() == tally.cases())
}

fn keep(
    arguments: &FuzzArguments,
    reader: &FuzzReader,
    counts: &CampaignCounts,
    say: &mut dyn FnMut(String),
) -> anyhow::Result<()> {
    let beginnings = reader.initial_inputs();
    for (number, fault) in &counts.faults {
        say(format!("{} {} {number}: {}", reader.name, fault.kind.name(), fault.what));
        if let Some(folder) = &arguments.keep {
            std::fs::create_dir_all(folder)?;
            let name = format!("{}-{}-{number}", reader.name, arguments.seed);
            std::fs::write(folder.join(name), reader.case(&beginnings, arguments.seed, *number))?;
        }
    }
    Ok(())
}
