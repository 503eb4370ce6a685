//! The `fet` command: arguments, output and exit code.
//!
//! 0: done. 1: a golden figure missed, or a run failed. 2: invalid input. 75: another process works on the run. 130:
//! interrupted.

#![expect(clippy::print_stdout, reason = "a command answers on standard output")]

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context;
use clap::{Parser, Subcommand};
use fet::experiment_file::{self, ExperimentArguments};
use fet::finished::FinishedRun;
use fet::run::{InputError, Log, Outcome};
use fet::{account, attack, audit, data, explain, golden, link, list, plot, predict, run, show};

/// Vertical federated learning on fuzzily linked data: the Federated Transformer and its baselines.
///
/// Data files are read from the folder in the environment variable FET_DATA, else from `data`.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train an experiment; the same command resumes an interrupted run.
    Run {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// The folder for the results [default: runs/NAME-sSEED].
        #[arg(long)]
        out: Option<PathBuf>,
        /// The form of progress messages.
        #[arg(long, value_enum, default_value_t)]
        log: Log,
    },
    /// Show an experiment with every default filled in.
    Show {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// Print one JSON object instead of TOML.
        #[arg(long)]
        json: bool,
        /// For programs: reads `{"set": ["path=value"], "seed": 0}` from each line of standard input, and answers each
        /// with one line: the experiment, the checksum of its data and the version of the results.
        #[arg(long, conflicts_with = "json")]
        batch: bool,
    },
    /// List the plug-ins, of one slot or of all.
    List {
        /// method, linker, encoder, aggregator, privacy, labels, attack, data, data.source or device.
        slot: Option<String>,
    },
    /// Look at tables before anything trains.
    Data {
        #[command(subcommand)]
        command: data::Command,
    },
    /// Link two tables by names, addresses, coordinates or exact keys, and report the quality of the links.
    Link(Box<link::Arguments>),
    /// Predict new records of the primary with the model of a finished run.
    Predict(predict::Arguments),
    /// Explain a finished run: what its parties and columns add.
    Explain(explain::Arguments),
    /// Plot finished runs: learning curves, positional encodings, the dynamic mask.
    Plot {
        /// Folders of finished runs; each becomes a series.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// The folder for the pictures.
        #[arg(long, default_value = "plots")]
        out: PathBuf,
    },
    /// Compute the privacy loss (ε, δ) of noisy releases, or the noise that they need.
    Account {
        #[command(flatten)]
        question: account::Question,
    },
    /// Train an experiment and put it to an attack: what one party learns of what the others keep to themselves.
    Attack {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// The attack, by name; without it, that of the experiment, or every attack that fits it. `fet list attack`.
        #[arg(long)]
        attack: Option<String>,
    },
    /// Train an experiment many times with canaries in a secondary's table, and hold the ε that its releases betray against the
    /// ε that it claims. Exits with 1 if the claim is refuted.
    Audit {
        #[command(flatten)]
        experiment: ExperimentArguments,
        #[command(flatten)]
        settings: audit::Settings,
        /// Audit the experiment under every mechanism and every neighbouring relation, and print a table.
        #[arg(long)]
        table: bool,
    },
    /// Compare this program with the figures of another implementation.
    Golden {
        /// A golden file.
        file: PathBuf,
        /// The tensor backend.
        #[arg(long, default_value = "flex")]
        device: String,
    },
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match answer(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("fet: {error:#}");
            ExitCode::from(if error.is::<InputError>() { 2 } else { 1 })
        }
    }
}

fn answer(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run { experiment, out, log } => train(&experiment, out, log),
        Command::Show { experiment, batch: true, .. } => {
            show::batch(&experiment, std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Show { experiment, json, .. } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            fet_backends::open(&experiment.device).map_err(|e| InputError(e.to_string()))?;
            if json {
                println!("{}", experiment_file::resolved(&experiment));
            } else {
                print!("{}", experiment.to_table());
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::List { slot } => {
            print!("{}", list::text(slot.as_deref()).map_err(InputError)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Data { command: data::Command::Show(arguments) } => {
            print!("{}", data::show(&arguments)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Data { command: data::Command::Check { experiment } } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            print!("{}", data::check(&experiment)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Link(arguments) => {
            print!("{}", link::link(&arguments)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Predict(arguments) => {
            for warning in predict::predict(&arguments)? {
                eprintln!("warning: {warning}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Explain(arguments) => {
            print!("{}", explain::explain(&arguments)?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Plot { runs, out } => {
            for file in plot::plot(&runs, &out)? {
                println!("{}", file.display());
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Account { question } => {
            println!("{}", account::answer(&question).map_err(|e| InputError(e.to_string()))?);
            Ok(ExitCode::SUCCESS)
        }
        Command::Attack { experiment, attack } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            for record in attack::attack(&experiment, attack.as_deref(), &AtomicBool::new(false))? {
                println!("{}", serde_json::to_string(&record)?);
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Audit { experiment, settings, table } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            let refuted = if table {
                let (text, refuted) = audit::table(&experiment, &settings)?;
                print!("{text}");
                refuted
            } else {
                let found = audit::audit(&experiment, &settings)?;
                println!("{}", serde_json::to_string(&found)?);
                found.refuted
            };
            Ok(if refuted { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
        Command::Golden { file, device } => {
            let backend = fet_backends::open(&device).map_err(|e| InputError(e.to_string()))?;
            let verdict = golden::check(&file, &backend).map_err(|e| InputError(e.to_string()))?;
            println!("{}", serde_json::to_string(&verdict)?);
            Ok(if verdict.is_met() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
    }
}

fn train(arguments: &ExperimentArguments, out: Option<PathBuf>, log: Log) -> anyhow::Result<ExitCode> {
    let experiment = experiment_file::load(arguments).map_err(|e| InputError(e.to_string()))?;
    let default = || PathBuf::from(format!("runs/{}-s{}", experiment.name, experiment.seed));
    let folder = out.unwrap_or_else(default);
    let stop = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&stop);
    ctrlc::set_handler(move || asked.store(true, Ordering::Relaxed)).context("cannot listen for Ctrl-C")?;
    match run::run(&experiment, &folder, log, &stop)? {
        Outcome::Done(report) => {
            if let Ok(run) = FinishedRun::read(&folder) {
                let metric = run.report.metric;
                eprintln!("{} on the test rows", metric.phrase(run.report.best.test));
            }
            eprintln!("done: {}", report.display());
        }
        Outcome::WasDone(report) => eprintln!("was already done: {}", report.display()),
        Outcome::Interrupted(folder) => {
            eprintln!(
                "interrupted; the finished epochs are saved in {}, and the same command resumes the run",
                folder.display()
            );
            return Ok(ExitCode::from(130));
        }
        Outcome::Elsewhere(folder) => {
            eprintln!(
                "fet: another process works on the run in {}; wait for it, or stop it",
                folder.display()
            );
            return Ok(ExitCode::from(75));
        }
    }
    Ok(ExitCode::SUCCESS)
}
