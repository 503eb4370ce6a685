//! The `fet` command: arguments, output and exit code.
//!
//! Exit codes: 0: success. 1: a run failed, an audit refutes a claim, `fet status --check` finds a problem, or
//! `fet log verify` finds a changed log. 2: invalid input. 75: another process works on the run, a party cannot be
//! reached, or a disk is full; try again. 130: interrupted.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use crate::experiment_file::{self, ExperimentArguments};
use crate::parties::{audit_log, check, hub, keys, serve, status};
use crate::run::{Keep, Log};
use crate::schema::SchemaFile;
use crate::{
    account, attack, audit, data, exit, explain, init, ledger, list, plot, predict, reference, schema,
    service, show, study, threads, train, worth,
};
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use fet_core::message::PROTOCOL_VERSION;
use fet_eval::records::RESULTS_VERSION;
use fet_io::input::InputError;
use fet_io::{Notes, answer};
use fet_link::{link, psi};

/// Vertical federated learning on fuzzily linked data: the Federated Transformer and its baselines.
///
/// Data files are read from the folder in the environment variable FET_DATA, else from `data`.
#[derive(Debug, Parser)]
#[command(version = VERSION.as_str(), propagate_version = true, disable_help_subcommand = true)]
struct FetArguments {
    #[command(subcommand)]
    command: FetCommand,
}

/// Commands by task, as `fet --help` shows them.
const GROUPS: [(&str, &[&str]); 7] = [
    ("Train and predict", &["worth", "init", "data", "run", "predict", "serve", "explain", "plot"]),
    ("Compare methods and settings", &["study", "tune"]),
    ("Link tables", &["link", "psi"]),
    ("Measure privacy", &["account", "ledger", "attack", "audit"]),
    ("Connect parties on several machines", &["keys", "hub", "party", "status", "log"]),
    ("Look up settings and plug-ins", &["show", "list", "help", "schema"]),
    ("Set up the shell", &["completions", "manual"]),
];

const TEMPLATE: &str = "{about-with-newline}\n{usage-heading} {usage}\n\n{after-help}\n\nOptions:\n{options}";

/// Returns the command line, whose help lists the commands by task.
fn command_line() -> clap::Command {
    let command = FetArguments::command();
    let mut groups = Vec::new();
    for (title, names) in GROUPS {
        let line = |name: &&str| {
            let about = command.find_subcommand(name).and_then(clap::Command::get_about);
            format!("  {name:<12} {}", about.map(ToString::to_string).unwrap_or_default())
        };
        groups.push(format!("{title}:\n{}", names.iter().map(line).collect::<Vec<_>>().join("\n")));
    }
    command.help_template(TEMPLATE).after_help(groups.join("\n\n"))
}

#[derive(Debug, Subcommand)]
enum FetCommand {
    /// Train a model from an experiment file.
    ///
    /// The same command resumes an interrupted run. With a larger `train.epochs` it continues a finished run.
    Run {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// Folder for the results [default: runs/NAME-sSEED].
        #[arg(long)]
        out: Option<PathBuf>,
        /// Start from the models of this finished run, and prepare records in the same way.
        #[arg(long, value_name = "RUN")]
        from: Option<PathBuf>,
        #[command(flatten)]
        parties: train::ElsewhereArguments,
        /// Remove the state of the last epoch after the run; a later command cannot continue the run with
        /// more epochs.
        #[arg(long)]
        forget: bool,
        /// Form of progress messages.
        #[arg(long, value_enum, default_value_t)]
        log: Log,
    },
    /// Serve a party's data and model to the primary.
    ///
    /// The party waits for the primary and answers its requests, run after run, until it is stopped.
    Party(serve::PartyArguments),
    /// Show the state of a run and its connections.
    ///
    /// The command lists the parties, their current work and the round-trip time of a packet.
    Status(status::StatusArguments),
    /// Show or verify a party's audit log.
    Log {
        #[command(subcommand)]
        command: audit_log::LogCommand,
    },
    /// Show or extend a party's lifetime privacy account.
    Ledger {
        #[command(subcommand)]
        command: ledger::LedgerCommand,
    },
    /// Create a party's key, or show its public part.
    Keys {
        #[command(subcommand)]
        command: keys::KeysCommand,
    },
    /// Configure the server that connects the parties.
    Hub {
        #[command(subcommand)]
        command: hub::HubCommand,
    },
    /// Print an experiment with all defaults filled in.
    Show {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// Print one JSON object instead of TOML.
        #[arg(long)]
        json: bool,
        /// For programs: read `{"set": ["path=value"], "seed": 0}` from each line of standard input, and
        /// answer each line with one line: the experiment, the checksum of its data and the version of the
        /// results.
        #[arg(long, conflicts_with = "json")]
        batch: bool,
    },
    /// List settings, defaults and plug-ins.
    List {
        /// Table or slot to list [default: all]: experiment, train, split, scores, policy, method, linker,
        /// encoder, aggregator, privacy, labels, attack, data, data.source or device.
        slot: Option<String>,
    },
    /// Explain a setting, table, plug-in or command.
    Help {
        /// For example train.decay, linker.clk.bits, train, clk, party.policy, roster.server or run.
        topic: Option<String>,
    },
    /// Print the JSON schema of a file for editors.
    Schema {
        /// Kind of file.
        #[arg(value_enum, default_value = "experiment")]
        file: SchemaFile,
    },
    /// Print shell completions.
    Completions {
        /// Shell to complete for, as in `fet completions bash`.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder.
    Manual {
        /// Folder for the pages.
        folder: PathBuf,
        /// Write the reference of all settings as Markdown instead.
        #[arg(long)]
        markdown: bool,
    },
    /// Measure the gain from federating your own tables.
    ///
    /// The command trains every method on the primary's own columns and with the other parties, and says if federating
    /// improves the prediction, by how much, and which party contributes.
    Worth(Box<worth::WorthArguments>),
    /// Write an experiment for your own tables.
    Init(init::InitArguments),
    /// Inspect tables before training.
    Data {
        #[command(subcommand)]
        command: data::DataCommand,
    },
    /// Link two tables and report the quality of the links.
    Link(Box<link::LinkCommand>),
    /// Find the keys that two parties' tables share.
    ///
    /// The parties exchange two files that reveal no key. The result is the number of common keys, the rows
    /// with common keys, or these rows with some columns.
    #[command(subcommand)]
    Psi(psi::PsiCommand),
    /// Predict new records with a finished run.
    Predict(predict::PredictArguments),
    /// Answer requests for predictions by a finished run over HTTP.
    ///
    /// The server takes rows in JSON, CSV or Arrow until it is stopped. `/openapi.json` describes its requests.
    Serve(service::ServeArguments),
    /// Explain the parties and columns of a finished run.
    Explain(explain::ExplainArguments),
    /// Run a study: every variant with every seed, then a report.
    ///
    /// The same command resumes an interrupted study.
    Study(Box<fet_study::AblateArguments>),
    /// Search for better settings on the validation rows.
    ///
    /// The search never reads the test rows.
    Tune(Box<fet_study::TuneArguments>),
    /// Plot finished runs as SVG charts.
    ///
    /// The charts are learning curves, positional encodings and the dynamic mask.
    Plot {
        /// Folders of finished runs; each run becomes a series.
        #[arg(required = true)]
        runs: Vec<PathBuf>,
        /// Folder for the charts.
        #[arg(long, default_value = "plots")]
        out: PathBuf,
    },
    /// Compute a privacy loss (ε, δ), or the noise for one.
    Account {
        #[command(flatten)]
        question: account::AccountArguments,
    },
    /// Attack an experiment and measure the leakage.
    ///
    /// The command trains the experiment. It then measures how much one party learns of another party's
    /// private data.
    Attack {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// Name of the attack [default: the experiment's attack, or every attack that fits]. `fet list
        /// attack` lists all attacks.
        #[arg(long)]
        attack: Option<String>,
        /// Print one JSON record for each attack, as in the report, instead of text.
        #[arg(long)]
        json: bool,
    },
    /// Test an experiment's claimed ε with canaries.
    ///
    /// The command trains the experiment many times with canaries in a secondary's table, or makes its release many times
    /// (`[release]`). It compares lower bounds on ε with the claimed ε, and exits with 1 if a bound refutes the claim.
    Audit {
        #[command(flatten)]
        experiment: ExperimentArguments,
        #[command(flatten)]
        settings: audit::Settings,
        /// Audit the experiment under every mechanism and every neighbouring relation, and print a table.
        #[arg(long)]
        table: bool,
    },
}

/// Stack size of the working thread in bytes, independent of the shell's limit (`ulimit -s`).
const STACK: usize = 16 << 20;
/// Maximum number of threads, above the number of processors of any machine.
const MOST_THREADS: usize = 4096;

/// Runs the command line of `fet` with every plug-in that the program names, and returns its exit code.
pub fn main() -> ExitCode {
    main_with(std::env::args_os().collect())
}

/// Runs the command line with these arguments, for a program that receives others from the operating system. The first
/// argument is the name of the program.
pub fn main_with(arguments: Vec<OsString>) -> ExitCode {
    let work = move || work(&arguments);
    match std::thread::Builder::new().stack_size(STACK).spawn(work).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => refused(&format!("cannot start a thread ({error})")),
    }
}

/// Prints a message, and returns the exit code of invalid input.
fn refused(why: &str) -> ExitCode {
    fet_io::note!("fet: {}", fet_io::shorten(why));
    ExitCode::from(2)
}

fn work(given: &[OsString]) -> ExitCode {
    let found = command_line().try_get_matches_from(given);
    let arguments = match found.and_then(|found| FetArguments::from_arg_matches(&found)) {
        Ok(arguments) => arguments,
        // Help and version are successful answers with exit code 0.
        Err(told) if !told.use_stderr() => {
            return match answer(&told.render().to_string()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    fet_io::note!("fet: standard output: {error}");
                    ExitCode::from(exit::code(&error.into()))
                }
            };
        }
        Err(error) => {
            // The unreadable arguments may have asked for JSON.
            if asks_for_json(given) {
                fet_io::choose_notes(Notes::Json);
            }
            fet_io::note!("{}", fet_io::shorten(error.render().to_string().trim_end()));
            return ExitCode::from(2);
        }
    };
    choose_notes(&arguments.command);
    let threads = std::env::var("RAYON_NUM_THREADS").unwrap_or_default();
    if threads.parse().is_ok_and(|threads: usize| threads > MOST_THREADS) {
        return refused(&format!("RAYON_NUM_THREADS must be at most {MOST_THREADS}; it is {threads}"));
    }
    // With this handler a file that may not grow further (`ulimit -f`) is a write error, and the command
    // cleans up.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
    // A run stops after its step, a party after its answer, and a study ends its runs. Other commands stop at once
    // and leave no partial file.
    let ends_itself = matches!(
        arguments.command,
        FetCommand::Run { .. }
            | FetCommand::Party(_)
            | FetCommand::Serve(_)
            | FetCommand::Study(_)
            | FetCommand::Tune(_)
            | FetCommand::Worth(_)
    );
    if !ends_itself {
        let _ = ctrlc::set_handler(|| fet_io::leave(130));
    }
    if matches!(&arguments.command, FetCommand::Run { parties, .. } if parties.parties.is_none()) {
        threads::take_part();
    }
    #[cfg(feature = "telemetry")]
    let _telemetry = match arguments.command {
        FetCommand::Run { .. } | FetCommand::Party(_) | FetCommand::Serve(_) => {
            match crate::telemetry::Telemetry::start() {
                Ok(telemetry) => telemetry,
                Err(error) => return refused(&error.to_string()),
            }
        }
        _ => None,
    };
    match obey(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            fet_io::note!("fet: {}", fet_io::shorten(&format!("{error:#}")));
            ExitCode::from(exit::code(&error))
        }
    }
}

/// Chooses the form of messages on standard error: JSON on request, with the time in logs.
fn choose_notes(command: &FetCommand) {
    let log = match command {
        FetCommand::Run { log, .. } => *log,
        FetCommand::Party(arguments) if arguments.command.is_none() => arguments.log,
        FetCommand::Serve(arguments) => arguments.log,
        _ => return,
    };
    fet_io::choose_notes(match log {
        Log::Human => Notes::Timed,
        Log::Json => Notes::Json,
    });
}

/// Warns of each `--set` that drops the value of an earlier one.
fn warn_of_dropped(experiment: &ExperimentArguments) {
    for sentence in experiment_file::dropped(experiment) {
        fet_io::note!("warning: {sentence}");
    }
}

fn asks_for_json(all: &[OsString]) -> bool {
    all.iter().any(|one| one == "--log=json")
        || all.windows(2).any(|two| two[0] == "--log" && two[1] == "json")
}

fn obey(command: FetCommand) -> anyhow::Result<ExitCode> {
    match command {
        FetCommand::Run { mut experiment, out, from, parties, forget, log } => {
            if let Some(from) = from {
                let place =
                    from.canonicalize().map_err(|e| InputError(format!("--from {}: {e}", from.display())))?;
                experiment.sets.push(format!("from={}", toml::Value::from(place.to_string_lossy().as_ref())));
            }
            // A study's own runs have JSON: its variants replace methods on purpose.
            if log == Log::Human {
                warn_of_dropped(&experiment);
            }
            let keep = if forget { Keep::Nothing } else { Keep::LastState };
            train::train(&experiment, out, log, keep, &parties)
        }
        FetCommand::Party(serve::PartyArguments { command: Some(command), .. }) => {
            answer(&serve::obey(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Party(serve::PartyArguments { check: true, files, .. }) => {
            for file in files {
                let command = check::CheckArguments { file, rows: None, json: false };
                answer(&serve::obey(&serve::PartyCommand::Check(command))?)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Party(arguments) => {
            let stop = train::stopped_by_signals()?;
            serve::serve(&arguments, &stop)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Serve(arguments) => {
            let stop = train::stopped_by_signals()?;
            service::serve(&arguments, &stop)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Status(arguments) => {
            let (text, well) = status::status(&arguments)?;
            answer(&text)?;
            Ok(if well || !arguments.check { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
        FetCommand::Log { command } => {
            let (text, is_intact) = audit_log::log(&command)?;
            answer(&text)?;
            Ok(if is_intact { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
        FetCommand::Ledger { command } => {
            answer(&ledger::ledger(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Keys { command } => {
            answer(&keys::keys(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Hub { command } => {
            answer(&hub::hub(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Show { experiment, batch: true, .. } => {
            show::batch(&experiment, std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Show { experiment, json, .. } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            fet_backends::open(&experiment.device).map_err(|e| InputError(e.to_string()))?;
            if json {
                answer(&format!("{}\n", experiment_file::resolved(&experiment)))?;
            } else {
                answer(&experiment.to_table().to_string())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::List { slot } => {
            answer(&list::text(slot.as_deref()).map_err(InputError)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Init(arguments) => {
            answer(&init::init(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Help { topic } => {
            answer(&help(topic.as_deref()).map_err(InputError)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Schema { file } => {
            answer(&format!("{:#}\n", schema::of_file(file)))?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command_line(), "fet", &mut script);
            answer(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Manual { folder, markdown } => {
            let refuse = |error| InputError(format!("cannot write pages into {}: {error}", folder.display()));
            std::fs::create_dir_all(&folder).map_err(refuse)?;
            if markdown {
                for (file, text) in reference::pages() {
                    std::fs::write(folder.join(file), text).map_err(refuse)?;
                }
            } else {
                clap_mangen::generate_to(command_line(), &folder).map_err(refuse)?;
            }
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Data { command: data::DataCommand::Show(arguments) } => {
            answer(&data::show(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Data { command: data::DataCommand::Check { experiment } } => {
            warn_of_dropped(&experiment);
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            answer(&data::check(&experiment)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Data { command: data::DataCommand::List } => {
            answer(&data::list())?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Data { command: data::DataCommand::Get(arguments) } => {
            answer(&data::get(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Link(command) => fet_link::report(&command.run()?),
        FetCommand::Psi(command) => fet_link::report(&psi::run(&command)?),
        FetCommand::Predict(arguments) => {
            for warning in predict::predict(&arguments)? {
                fet_io::note!("warning: {warning}");
            }
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Explain(arguments) => {
            answer(&explain::explain(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Worth(arguments) => worth::worth(&arguments),
        FetCommand::Study(arguments) => study::study(&arguments),
        FetCommand::Tune(arguments) => study::tune(&arguments),
        FetCommand::Plot { runs, out } => {
            for file in plot::plot(&runs, &out)? {
                answer(&format!("{}\n", file.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Account { question } => {
            answer(&format!("{}\n", account::answer(&question).map_err(|e| InputError(e.to_string()))?))?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Attack { experiment, attack, json } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            attack::attack(&experiment, attack.as_deref(), &AtomicBool::new(false), |record| {
                let text = if json { serde_json::to_string(record)? } else { attack::words(record) };
                Ok(answer(&format!("{}\n", text.trim_end()))?)
            })?;
            Ok(ExitCode::SUCCESS)
        }
        FetCommand::Audit { experiment, settings, table } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            let refuted = if table {
                let (text, refuted) = audit::table(&experiment, &settings)?;
                answer(&text)?;
                refuted
            } else {
                let found = audit::audit(&experiment, &settings)?;
                answer(&format!("{}\n", serde_json::to_string(&found)?))?;
                found.refuted
            };
            Ok(if refuted { ExitCode::from(1) } else { ExitCode::SUCCESS })
        }
    }
}

/// Version, commit, features, and the versions on which the parties of a run must agree.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [
        ("columnar", cfg!(feature = "columnar")),
        ("cuda", cfg!(feature = "cuda")),
        ("libtorch", cfg!(feature = "libtorch")),
        ("telemetry", cfg!(feature = "telemetry")),
        ("wgpu", cfg!(feature = "wgpu")),
    ];
    let built: Vec<&str> = features.into_iter().filter(|(_, built)| *built).map(|(name, _)| name).collect();
    let built = if built.is_empty() { "none".to_string() } else { built.join(", ") };
    format!(
        "{} (commit {}, features: {built})\nprotocol {PROTOCOL_VERSION} over links of version {}, results {RESULTS_VERSION}",
        env!("CARGO_PKG_VERSION"),
        env!("FET_COMMIT"),
        fet_net::PROTOCOL
    )
});

/// Returns the help of a command, or of a topic of experiments.
fn help(topic: Option<&str>) -> Result<String, String> {
    let mut command = command_line();
    command.build();
    let Some(topic) = topic else { return Ok(format!("{}\n", command.render_help())) };
    match command.find_subcommand_mut(topic) {
        // `party` is a command and the name of the file that it reads.
        Some(command) if crate::help::names_file(topic) => Ok(format!(
            "{}\nSettings of the file ({topic}.toml):\n\n{}",
            command.render_long_help(),
            crate::help::text(topic)?
        )),
        Some(command) => Ok(format!("{}\n", command.render_long_help())),
        None => crate::help::text(topic),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_lists_every_command_in_one_group_on_a_short_line() {
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let command = command_line();
        let mut all: Vec<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
        grouped.sort_unstable();
        all.sort_unstable();
        assert_eq!(grouped, all);
        let help = command.clone().render_help().to_string();
        for subcommand in command.get_subcommands() {
            let about = subcommand.get_about().map(ToString::to_string).unwrap_or_default();
            assert!((10..=62).contains(&about.len()), "{}: {about}", subcommand.get_name());
            assert!(help.contains(&format!("  {:<12} {about}", subcommand.get_name())), "{help}");
        }
    }
}
