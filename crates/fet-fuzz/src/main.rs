//! `fet-fuzz`: fuzz campaigns over the readers, with totals.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    unix::main()
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    fet_fuzz::print("fet-fuzz needs Unix, because it sets memory limits");
    ExitCode::from(2)
}

#[cfg(unix)]
mod unix {
    use std::path::PathBuf;
    use std::process::ExitCode;

    use anyhow::Context;
    use clap::{Parser, Subcommand};
    use comfy_table::{CellAlignment, Table, presets::ASCII_HORIZONTAL_ONLY};
    use fet_fuzz::campaign::{Counts, Fault, Range, child, run};
    use fet_fuzz::{Reader, print, readers};

    /// Gives damaged inputs to each reader and counts faults. Exits with 0 if there are no faults.
    #[derive(Debug, Parser)]
    struct Arguments {
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
        command: Option<Command>,
    }

    #[derive(Debug, Subcommand)]
    enum Command {
        /// Run one range of one reader in this process.
        #[command(hide = true)]
        Child { reader: String, from: u64, to: u64, seed: u64, progress: PathBuf },
    }

    /// Number of faults after which a reader's campaign ends.
    const MOST_FAULTS: usize = 200;

    pub(super) fn main() -> ExitCode {
        match answer(&Arguments::parse()) {
            Ok(true) => ExitCode::SUCCESS,
            Ok(false) => ExitCode::FAILURE,
            Err(error) => {
                print(&format!("fet-fuzz: {error:#}"));
                ExitCode::from(2)
            }
        }
    }

    fn find(name: &str) -> anyhow::Result<&'static Reader> {
        let names = || readers::ALL.iter().map(|reader| reader.name).collect::<Vec<_>>().join(", ");
        Reader::of(name).with_context(|| format!("unknown reader {name}; known readers: {}", names()))
    }

    fn answer(arguments: &Arguments) -> anyhow::Result<bool> {
        if let Some(Command::Child { reader, from, to, seed, progress }) = &arguments.command {
            return child(find(reader)?, Range { seed: *seed, from: *from, to: *to }, progress)
                .map(|()| true);
        }
        let chosen: Vec<&Reader> = match arguments.readers.as_slice() {
            [] => readers::ALL.iter().collect(),
            names => names.iter().map(|name| find(name)).collect::<anyhow::Result<_>>()?,
        };
        let mut table = Table::new();
        table.load_style(ASCII_HORIZONTAL_ONLY);
        let faults = Fault::ALL.map(|fault| fault.name().to_string());
        table.set_header(
            [&["reader", "cases", "accepted", "refused"].map(String::from)[..], &faults].concat(),
        );
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let mut sound = true;
        for reader in chosen {
            let range =
                Range { seed: arguments.seed, from: arguments.from, to: arguments.from + arguments.cases };
            let counts = run(reader, range, MOST_FAULTS)?;
            sound &= counts.faults.is_empty();
            keep(arguments, reader, &counts)?;
            let of = |kind| counts.faults.iter().filter(|(_, fault, _)| *fault == kind).count() as u64;
            let cases = counts.accepted
                + counts.refused
                + of(Fault::Panic)
                + of(Fault::Abort)
                + of(Fault::Hang)
                + of(Fault::Wrong);
            let numbers = [cases, counts.accepted, counts.refused].into_iter().chain(Fault::ALL.map(of));
            table.add_row(
                std::iter::once(reader.name.to_string()).chain(numbers.map(|number| number.to_string())),
            );
        }
        print(&table.to_string());
        Ok(sound)
    }

    fn keep(arguments: &Arguments, reader: &Reader, counts: &Counts) -> anyhow::Result<()> {
        let beginnings = reader.beginnings();
        for (number, fault, how) in &counts.faults {
            print(&format!("{} {} {number}: {how}", reader.name, fault.name()));
            if let Some(folder) = &arguments.keep {
                std::fs::create_dir_all(folder)?;
                let name = format!("{}-{}-{number}", reader.name, arguments.seed);
                std::fs::write(folder.join(name), reader.case(&beginnings, arguments.seed, *number))?;
            }
        }
        Ok(())
    }
}
