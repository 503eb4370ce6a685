//! The `fet` command: arguments, output and exit code.
//!
//! 0: done. 1: a golden figure missed, or a run failed. 2: invalid input. 75: another process works on the run, a party cannot be
//! reached, or a disk is full: try again. 130: interrupted.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::LazyLock;
use std::sync::atomic::AtomicBool;

use clap::{CommandFactory, Parser, Subcommand};
use fet::experiment_file::{self, ExperimentArguments};
use fet::parties::{hub, keys, prune, serve, status};
use fet::run::{InputError, Keep, Log};
use fet::{
    account, attack, audit, data, exit, explain, golden, init, ledger, link, list, plot, predict, psi,
    schema, show, threads, train,
};
use fet_files::{Notes, answer};

/// Vertical federated learning on fuzzily linked data: the Federated Transformer and its baselines.
///
/// Data files are read from the folder in the environment variable FET_DATA, else from `data`.
#[derive(Debug, Parser)]
#[command(version = VERSION.as_str(), propagate_version = true, disable_help_subcommand = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Train an experiment; the same command resumes an interrupted run, and one with more `train.epochs` a finished run.
    Run {
        #[command(flatten)]
        experiment: ExperimentArguments,
        /// The folder for the results [default: runs/NAME-sSEED].
        #[arg(long)]
        out: Option<PathBuf>,
        /// Begin with the models of this finished run, and prepare records as it did.
        #[arg(long, value_name = "RUN")]
        from: Option<PathBuf>,
        /// The other parties are elsewhere: their roster (TOML). Each of them runs `fet party`.
        #[arg(long, value_name = "ROSTER", requires = "key")]
        parties: Option<PathBuf>,
        /// The primary's key, as `fet keys new` makes it, to reach parties elsewhere.
        #[arg(long, requires = "parties")]
        key: Option<PathBuf>,
        /// Remove the state of the last epoch once the run is done: `train.epochs` can then not be raised.
        #[arg(long)]
        forget: bool,
        /// The form of progress messages.
        #[arg(long, value_enum, default_value_t)]
        log: Log,
    },
    /// Take part in runs as one of the other parties: wait for the primary, and answer it, until stopped.
    Party(serve::Arguments),
    /// Show how the links of a run under way stand: who is there, what they do, how long a packet takes.
    Status(status::Arguments),
    /// Show what all runs of a party have cost together, or add releases to it.
    Ledger {
        #[command(subcommand)]
        command: ledger::Command,
    },
    /// Make a party's key, or show what the others are told of it.
    Keys {
        #[command(subcommand)]
        command: keys::Command,
    },
    /// Configure the server through which parties reach each other.
    Hub {
        #[command(subcommand)]
        command: hub::Command,
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
    /// List every setting with its default, and the plug-ins of each slot; of one table or slot, or of all.
    List {
        /// experiment, train, split, scores, policy, method, linker, encoder, aggregator, privacy, labels, attack, data, data.source
        /// or device.
        slot: Option<String>,
    },
    /// Explain a setting (`fet help train.decay`), a table of settings, a plug-in or a command.
    Help {
        /// train.decay, linker.clk.bits, train, clk, run, ...
        topic: Option<String>,
    },
    /// Print the JSON schema of experiments, for editors.
    Schema,
    /// Print completions for a shell, as in `fet completions bash`.
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write the manual pages into a folder.
    Manual {
        /// The folder.
        folder: PathBuf,
    },
    /// Write an experiment for tables of your own, with a comment on each choice.
    Init(init::Arguments),
    /// Look at tables before anything trains.
    Data {
        #[command(subcommand)]
        command: data::Command,
    },
    /// Link two tables by names, addresses, coordinates or exact keys, and report the quality of the links.
    Link(Box<link::Command>),
    /// Find in two places which keys two tables have in common, by two files that show no key: how many, which rows, or with some columns.
    #[command(subcommand)]
    Psi(psi::Command),
    /// Predict new records of the primary with the model of a finished run.
    Predict(predict::Arguments),
    /// Explain a finished run: how much its model relies on each party and column.
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
        /// Print a record in JSON for each attack, as in the report, in place of words.
        #[arg(long)]
        json: bool,
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

/// The stack of the thread that does the work, in bytes, whatever the shell's limit (`ulimit -s`) is.
const STACK: usize = 16 << 20;
/// More threads than any machine has processors.
const MOST_THREADS: usize = 4096;

fn main() -> ExitCode {
    match std::thread::Builder::new().stack_size(STACK).spawn(work).map(std::thread::JoinHandle::join) {
        Ok(Ok(code)) => code,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => refused(&format!("cannot begin a thread ({error})")),
    }
}

/// Prints why, and ends with the exit code of invalid input.
fn refused(why: &str) -> ExitCode {
    fet_files::note!("fet: {}", short(why));
    ExitCode::from(2)
}

fn work() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        // Help and version are answers, and their exit code is 0.
        Err(told) if !told.use_stderr() => {
            return match answer(&told.render().to_string()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    fet_files::note!("fet: standard output: {error}");
                    ExitCode::from(exit::code(&error.into()))
                }
            };
        }
        Err(error) => {
            // What could not be read may have asked for JSON.
            if asks_for_json(std::env::args_os()) {
                fet_files::choose_notes(Notes::Json);
            }
            fet_files::note!("{}", short(error.render().to_string().trim_end()));
            return ExitCode::from(2);
        }
    };
    choose_notes(&arguments.command);
    let threads = std::env::var("RAYON_NUM_THREADS").unwrap_or_default();
    if threads.parse().is_ok_and(|threads: usize| threads > MOST_THREADS) {
        return refused(&format!("RAYON_NUM_THREADS must be at most {MOST_THREADS}; it is {threads}"));
    }
    // A file that may grow no further (`ulimit -f`) is then an error of the write, and what was begun is tidied up.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Default::default());
    // A run ends after its step, a party after its answer; anything else at once, and leaves no part of a file.
    if !matches!(arguments.command, Command::Run { .. } | Command::Party(_)) {
        let _ = ctrlc::set_handler(|| fet_files::leave(130));
    }
    if matches!(arguments.command, Command::Run { parties: None, .. }) {
        threads::take_part();
    }
    match obey(arguments.command) {
        Ok(code) => code,
        Err(error) => {
            fet_files::note!("fet: {}", short(&format!("{error:#}")));
            ExitCode::from(exit::code(&error))
        }
    }
}

/// The form of what the command says on standard error: JSON where it is asked for, with the time where it is a log.
fn choose_notes(command: &Command) {
    let log = match command {
        Command::Run { log, .. } => *log,
        Command::Party(arguments) if arguments.command.is_none() => arguments.log,
        _ => return,
    };
    fet_files::choose_notes(match log {
        Log::Human => Notes::Timed,
        Log::Json => Notes::Json,
    });
}

fn asks_for_json(arguments: impl Iterator<Item = OsString>) -> bool {
    let all: Vec<OsString> = arguments.collect();
    all.iter().any(|one| one == "--log=json")
        || all.windows(2).any(|two| two[0] == "--log" && two[1] == "json")
}

fn obey(command: Command) -> anyhow::Result<ExitCode> {
    match command {
        Command::Run { mut experiment, out, from, parties, key, forget, log } => {
            if let Some(from) = from {
                let place =
                    from.canonicalize().map_err(|e| InputError(format!("--from {}: {e}", from.display())))?;
                experiment.sets.push(format!("from={}", toml::Value::from(place.to_string_lossy().as_ref())));
            }
            let keep = if forget { Keep::Nothing } else { Keep::LastState };
            train::train(&experiment, out, log, keep, parties.as_deref().zip(key.as_deref()))
        }
        Command::Party(serve::Arguments { command: Some(serve::Command::Prune(arguments)), .. }) => {
            answer(&prune::prune(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Party(arguments) => {
            let stop = train::stopped_by_signals()?;
            serve::serve(&arguments, &stop)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Status(arguments) => {
            let (text, well) = status::status(&arguments)?;
            answer(&text)?;
            Ok(if well || !arguments.check { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
        Command::Ledger { command } => {
            answer(&ledger::ledger(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Keys { command } => {
            answer(&keys::keys(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Hub { command } => {
            answer(&hub::hub(&command)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Show { experiment, batch: true, .. } => {
            show::batch(&experiment, std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Show { experiment, json, .. } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            fet_backends::open(&experiment.device).map_err(|e| InputError(e.to_string()))?;
            if json {
                answer(&format!("{}\n", experiment_file::resolved(&experiment)))?;
            } else {
                answer(&experiment.to_table().to_string())?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::List { slot } => {
            answer(&list::text(slot.as_deref()).map_err(InputError)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Init(arguments) => {
            answer(&init::init(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Help { topic } => {
            answer(&help(topic.as_deref()).map_err(InputError)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Schema => {
            answer(&format!("{:#}\n", schema::for_editors()))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Arguments::command(), "fet", &mut script);
            answer(&String::from_utf8_lossy(&script))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Manual { folder } => {
            let refuse = |error| InputError(format!("{}: {error}", folder.display()));
            std::fs::create_dir_all(&folder).map_err(refuse)?;
            clap_mangen::generate_to(Arguments::command(), &folder).map_err(refuse)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Data { command: data::Command::Show(arguments) } => {
            answer(&data::show(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Data { command: data::Command::Check { experiment } } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            answer(&data::check(&experiment)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Link(command) => said(&command.run()?),
        Command::Psi(command) => said(&psi::run(&command)?),
        Command::Predict(arguments) => {
            for warning in predict::predict(&arguments)? {
                fet_files::note!("warning: {warning}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Explain(arguments) => {
            answer(&explain::explain(&arguments)?)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Plot { runs, out } => {
            for file in plot::plot(&runs, &out)? {
                answer(&format!("{}\n", file.display()))?;
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Account { question } => {
            answer(&format!("{}\n", account::answer(&question).map_err(|e| InputError(e.to_string()))?))?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Attack { experiment, attack, json } => {
            let experiment = experiment_file::load(&experiment).map_err(|e| InputError(e.to_string()))?;
            attack::attack(&experiment, attack.as_deref(), &AtomicBool::new(false), |record| {
                let text = if json { serde_json::to_string(record)? } else { attack::words(record) };
                Ok(answer(&format!("{}\n", text.trim_end()))?)
            })?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Audit { experiment, settings, table } => {
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
        Command::Golden { file, device } => {
            let backend = fet_backends::open(&device).map_err(|e| InputError(e.to_string()))?;
            let verdict = golden::check(&file, &backend).map_err(|e| InputError(e.to_string()))?;
            answer(&format!("{}\n", serde_json::to_string(&verdict)?))?;
            Ok(if verdict.is_met() { ExitCode::SUCCESS } else { ExitCode::from(1) })
        }
    }
}

/// Says what was done: beside the answer, where the links are on standard output.
fn said((told, beside): &(String, bool)) -> anyhow::Result<ExitCode> {
    match beside {
        true => fet_files::note!("{}", told.trim_end()),
        false => answer(told)?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Version, commit and features: what a report of a fault needs.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let features = [("columnar", cfg!(feature = "columnar")), ("libtorch", cfg!(feature = "libtorch"))];
    let built: Vec<&str> = features.into_iter().filter(|(_, built)| *built).map(|(name, _)| name).collect();
    let built = if built.is_empty() { "none".to_string() } else { built.join(", ") };
    format!("{} (commit {}, features: {built})", env!("CARGO_PKG_VERSION"), env!("FET_COMMIT"))
});

/// A message of a length that somebody reads.
fn short(message: &str) -> String {
    const LONGEST: usize = 1_500;
    let plain = fet_files::plain(message);
    match plain.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &plain[..end]),
        None => plain,
    }
}

/// The help of a command, or of what an experiment may say.
fn help(topic: Option<&str>) -> Result<String, String> {
    let mut command = Arguments::command();
    command.build();
    let Some(topic) = topic else { return Ok(format!("{}\n", command.render_help())) };
    match command.find_subcommand_mut(topic) {
        Some(command) => Ok(format!("{}\n", command.render_long_help())),
        None => fet::help::text(topic),
    }
}
