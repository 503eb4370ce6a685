//! Everything that a party brings to each run: its file, experiment, table and state.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use fet_core::aggregator::{Aggregator, Role};
use fet_core::data::{DatasetContext, Folders, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::policy::Policy;
use fet_core::rng::OwnSeed;
use fet_federation::lifetime::SharedLifetime;
use fet_federation::outlook::PartyPlace;
use fet_federation::secondary::{
    FinishedModel, LifetimePlace, PartyConfig, PredictionCount, Secondary, Store,
};
use fet_federation::state_file::StateError;
use fet_federation::trainer::Machine;
use fet_io::{hex, sha256_of_file};
use fet_privacy::identity::Identities;
use schemars::JsonSchema;
use serde::Deserialize;
use zeroize::Zeroizing;

use super::approval::ApprovalSettings;
use super::greeting::{JoinPurpose, check_secrets};
use super::keys;
use super::monitor::settings::MonitorSettings;
use super::roster::{self, Roster};
use super::run_id::RunId;
use crate::experiment_file::{self, ExperimentArguments, FileError, data_folders, machine};
use crate::folder::MODEL;
use crate::reporter::Reporter;
use fet_io::input::input;

/// A party's own file. Paths are relative to the file. The party sends only the parts of it that the protocol
/// requires.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PartyFile {
    /// Name of the party in the roster.
    pub(super) party: String,
    /// Roster of the run.
    pub(super) roster: PathBuf,
    /// Experiment that all parties have agreed on.
    experiment: PathBuf,
    /// Changes to the experiment's settings, in the form of `--set`; the primary must use the same changes.
    #[serde(default)]
    set: Vec<String>,
    /// The party's key from `fet keys new`.
    pub(super) key: PathBuf,
    /// Folder for the party's state and models.
    pub(crate) state: PathBuf,
    /// Compute device of this party; without it, the device of the experiment.
    device: Option<String>,
    /// The party's own table, in place of the table in the experiment: the settings of `data.secondaries`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    #[serde(default)]
    data: toml::Table,
    /// Limits on the information that the primary gets.
    #[serde(default)]
    pub(crate) policy: Policy,
    /// The owner's decision on runs.
    #[serde(default)]
    pub(super) approval: ApprovalSettings,
    /// True for a rehearsal: the party's secrets, noise and masks derive from the experiment's seed,
    /// as in a simulation, and hide nothing.
    #[serde(default)]
    pub(super) rehearsal: bool,
    /// Maximum number of programs of the primary that the party serves at once, such as a training and two services of
    /// predictions.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 1000))]
    pub(super) most_programs: usize,
    /// Health, metrics and a page for the party's operator.
    #[serde(default)]
    pub(super) monitor: MonitorSettings,
}

fn eight() -> usize {
    8
}

impl PartyFile {
    /// Reads and checks a party's file.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Self> {
        roster::read(path)
    }
}

/// A party's file, with the roster and the key that it names.
pub(super) struct PartyFiles {
    pub(super) file: PartyFile,
    path: PathBuf,
    /// Folder of the file.
    pub(super) folder: PathBuf,
    pub(super) roster: Roster,
    /// Index of the party among the roster's secondaries.
    pub(super) index: usize,
    pub(super) keys: Arc<fet_net::Keys>,
}

impl PartyFiles {
    /// Reads the files, and checks that the roster names the party with its key.
    pub(super) fn read(path: &Path) -> anyhow::Result<Self> {
        let bad = |problem: String| input(format!("{}: {problem}", path.display()));
        let file = PartyFile::read(path)?;
        file.policy.check().map_err(|violation| bad(violation.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_path_buf();
        let roster = Roster::read(&folder.join(&file.roster))?;
        let Some(index) = roster.parties().iter().position(|party| party.name.as_str() == file.party) else {
            let known: Vec<&str> = roster.parties().iter().map(|party| party.name.as_str()).collect();
            return Err(bad(format!(
                "`party` must be one of the roster's parties ({}); it is \"{}\"",
                known.join(", "),
                file.party
            )));
        };
        let keys = Arc::new(keys::read(&folder.join(&file.key))?);
        let pinned = roster.parties()[index].identity;
        if keys.public() != pinned {
            return Err(bad(format!(
                "`key` is the key of {}; the roster's key for {} is {pinned}",
                keys.public(),
                file.party
            )));
        }
        Ok(Self { file, path: path.to_path_buf(), folder, roster, index, keys })
    }

    /// Returns everything that the party brings to each run.
    pub(super) fn setup(&self, reporter: Reporter) -> anyhow::Result<PartySetup> {
        self.setup_with(reporter, Arc::new(SharedFiles::in_state(&self.state())))
    }

    /// Like [`PartyFiles::setup`], with the files that other rosters of the same state share.
    pub(super) fn setup_with(
        &self,
        reporter: Reporter,
        shared: Arc<SharedFiles>,
    ) -> anyhow::Result<PartySetup> {
        PartySetup::new(self, reporter, shared)
    }

    /// Returns the error of an experiment with the party's own table. An error of that table names the party's file.
    fn refuse(&self, error: FileError) -> anyhow::Error {
        let FileError::Settings { source, .. } = &error else { return input(error) };
        let problem = source.to_string();
        let table = format!("secondaries[{}]", self.index);
        // Either the setting is named in full, or the table's name comes before the rest.
        let own = problem
            .replace(&format!("data.{table}"), "data")
            .replace(&format!("`data`: `{table}."), "`data.");
        match own != problem && !self.file.data.is_empty() {
            true => input(format!("{}: {own}", self.path.display())),
            false => input(error),
        }
    }

    /// Folder of the party's state.
    pub(super) fn state(&self) -> PathBuf {
        self.folder.join(&self.file.state)
    }
}

/// Maximum number of runs whose files a party stores; more runs mean that somebody keeps drawing new ids.
const MOST_RUNS: usize = 1000;

/// Everything that a party brings to each run.
pub(super) struct PartySetup {
    pub(super) reporter: Reporter,
    pub(super) experiment: Experiment,
    table: PartyTable,
    machine: Machine,
    policy: Policy,
    roster: Identities,
    secret: Zeroizing<[u8; 32]>,
    /// Number of the party, from 1.
    number: usize,
    /// Folder of the party's own state, which outlives runs.
    state: PathBuf,
    /// Folder with one folder per run.
    runs: PathBuf,
    pub(super) rehearsal: bool,
    /// True if the run has secure sums.
    pub(super) has_sums: bool,
    /// True if one training at a time may run: it writes the accounts of its noise, or compares the accounts of the
    /// parties of a secure sum.
    pub(super) trains_alone: bool,
    /// File of the party's own table with its checksum, if the party has its own table.
    file: Option<(PathBuf, [u8; 32])>,
    shared: Arc<SharedFiles>,
}

/// Files of the party's own folder that all sessions share.
pub(super) struct SharedFiles {
    account: SharedLifetime,
    predictions: PredictionCount,
    /// Seed of the party's randomness, once a session has drawn or read it.
    seed: Mutex<Option<OwnSeed>>,
}

impl SharedFiles {
    /// Returns the files of the party with this state.
    pub(super) fn in_state(state: &Path) -> Self {
        let predictions = PredictionCount::in_folder(own_folder(state));
        Self { account: SharedLifetime::default(), predictions, seed: Mutex::default() }
    }
}

impl PartySetup {
    fn new(files: &PartyFiles, reporter: Reporter, shared: Arc<SharedFiles>) -> anyhow::Result<Self> {
        let PartyFiles { file, folder, roster, keys, .. } = files;
        let index = files.index;
        let arguments = ExperimentArguments {
            file: folder.join(&file.experiment),
            sets: file.set.clone(),
            device: file.device.clone(),
            seed: None,
        };
        let own = |settings: &mut toml::Table| match file.data.is_empty() {
            true => Ok(Vec::new()),
            false => {
                own_table(settings, &file.data, index).map(|()| vec![format!("data.secondaries[{index}]")])
            }
        };
        let experiment =
            experiment_file::load_changed(&arguments, own).map_err(|error| files.refuse(error))?;
        check_secrets(&experiment, file.rehearsal).map_err(input)?;
        let noisy = !experiment.privacy.build(&()).map_err(input)?.is_identity();
        if file.policy.probes && noisy && !file.rehearsal {
            return Err(input(
                "`policy.probes` must be false for a run with a privacy mechanism: ε does not cover the records that \
                 probes can select. Set it only in rehearsals and simulations of attacks",
            ));
        }
        let backend = fet_backends::open(&experiment.device).map_err(input)?;
        let common = data_folders(&experiment);
        let places = std::iter::once(folder.clone()).chain(common.all().iter().cloned());
        let here = |place: PathBuf| if place.as_os_str().is_empty() { ".".into() } else { place };
        let folders = Folders::new(places.map(here));
        let context = DatasetContext { folders: &folders, seed: experiment.seed, metadata: &[] };
        let table = experiment.data.build(&context).map_err(input)?.secondary(index).map_err(input)?;
        let table_file = own_file(&experiment, index).and_then(|name| {
            let path = folders.find(&name);
            sha256_of_file(&path).ok().map(|checksum| (path, checksum))
        });
        let aggregator = experiment.aggregator.build(&()).map_err(input)?;
        let secret = is_secret(aggregator.as_ref());
        if file.rehearsal {
            reporter.tell(
                "warning",
                "this is a rehearsal: its secrets, noise and masks derive from the experiment's seed and hide nothing",
            );
        }
        let signing = if secret { roster.signing().map_err(input)? } else { roster.signing_or_none() };
        let signer = keys::signer(keys);
        if secret && signing[index] != signer.public() {
            return Err(input(format!(
                "{}: `signing` of {} does not match its key; `fet keys show` prints it",
                roster.path.display(),
                file.party
            )));
        }
        Ok(Self {
            reporter,
            machine: machine(&backend),
            table,
            policy: file.policy.clone(),
            roster: signing.into_iter().collect(),
            secret: keys.secret("secure sums"),
            number: index + 1,
            state: own_folder(&folder.join(&file.state)),
            runs: folder.join(&file.state).join("runs"),
            rehearsal: file.rehearsal,
            has_sums: secret,
            trains_alone: noisy || secret || experiment.release.is_some(),
            experiment,
            file: table_file,
            shared,
        })
    }

    /// Stores the checksum of the table that the state belongs to, and refuses another table after noisy
    /// releases.
    ///
    /// Another table under the same noise would reveal the differences between both tables.
    pub(super) fn check_table(&self, state: &Path) -> Result<(), String> {
        let Some((file, checksum)) = self.file.as_ref().map(|(file, sum)| (file.display(), hex(sum))) else {
            return Ok(());
        };
        let path = state.join("table");
        let failed = |error: std::io::Error| format!("`state`: {}: {error}", path.display());
        let known =
            if path.exists() { fet_io::read_to_string(&path).map_err(failed)? } else { String::new() };
        if known == checksum {
            return Ok(());
        }
        if !known.is_empty() {
            let entries = std::fs::read_dir(&self.state).into_iter().flatten().flatten();
            let released = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("ledger-");
            if entries.map(|entry| entry.file_name()).any(|name| released(&name)) {
                return Err(format!(
                    "`state` must be another folder: {} contains noisy releases of another table than {file}. Copy {} \
                     into the `party` folder of the new state, because the lifetime account covers the people in the \
                     table",
                    state.display(),
                    self.state.join(fet_federation::lifetime::FILE).display()
                ));
            }
            let short = |sum: &str| sum.chars().take(8).collect::<String>();
            self.reporter.tell(
                "warning",
                format_args!(
                    "{file} differs from the table of this state (SHA-256 {}, now {}): the party refuses to continue a \
                     run that began with the old table, and finished models see the present records",
                    short(&known),
                    short(&checksum)
                ),
            );
        }
        fet_io::write(&path, checksum.as_bytes()).map_err(failed)
    }

    /// Returns the party's own seed. Sessions that begin before it is saved get the same one.
    fn own_seed(&self, store: &Store) -> Result<OwnSeed, StateError> {
        let mut known = self.shared.seed.lock().unwrap_or_else(PoisonError::into_inner);
        let seed = match known.take().filter(|_| !store.has_seed()) {
            Some(seed) => seed,
            None => store.own_seed(false)?,
        };
        Ok(known.insert(seed).clone())
    }

    /// Returns the checksum of the party's own table, or the settings of all data if the parties divide one table.
    pub(super) fn own_table(&self) -> String {
        self.file.as_ref().map_or_else(
            || self.data_settings(),
            |(file, sum)| format!("{} (SHA-256 {})", file.display(), hex(sum)),
        )
    }

    pub(super) fn policy(&self) -> &Policy {
        &self.policy
    }

    pub(super) fn table(&self) -> &PartyTable {
        &self.table
    }

    /// Returns the party's place among the secondaries.
    pub(super) fn place(&self) -> PartyPlace {
        PartyPlace { number: self.number, parties: self.roster.len() }
    }

    /// Folder of the party's own state, which outlives runs.
    pub(super) fn own_folder(&self) -> &Path {
        &self.state
    }

    /// Returns the names of the columns that models see of the party's table.
    pub(super) fn columns(&self) -> Vec<String> {
        (0..self.table.features.columns()).map(|column| self.table.features.name(column)).collect()
    }

    /// Returns the settings of the party's own table (TOML), or of all data if the parties divide one table.
    pub(super) fn data_settings(&self) -> String {
        let settings = self.experiment.data.settings();
        let own = settings.get("secondaries").and_then(|tables| tables.get(self.number - 1)).cloned();
        own.and_then(|own| own.as_table().cloned()).unwrap_or(settings).to_string()
    }

    /// Returns the folder for the party's files of a run.
    pub(super) fn of_run(&self, run: &RunId) -> PathBuf {
        self.runs.join(run.to_string())
    }

    /// Returns the party in its state at the start of a run.
    pub(super) fn secondary(&self, purpose: JoinPurpose, run: &RunId) -> Result<Secondary, Unable> {
        let folder = self.of_run(run);
        if purpose == JoinPurpose::Run && !folder.exists() {
            let known = std::fs::read_dir(&self.runs).into_iter().flatten().count();
            if known >= MOST_RUNS {
                return Err(Unable::TooMany(format!(
                    "{} contains {known} runs; remove unused runs (`fet party prune`)",
                    self.runs.display()
                )));
            }
        }
        let predictions = self.shared.predictions.clone();
        let store = Store::Folder { own: self.state.clone(), run: folder.clone(), predictions };
        let seed = match self.rehearsal {
            true => OwnSeed::simulated(self.experiment.seed, self.number),
            false => self.own_seed(&store).map_err(|error| Unable::Broken(error.to_string()))?,
        };
        let model = match purpose {
            JoinPurpose::Run => None,
            JoinPurpose::Predictions => {
                let path = folder.join(MODEL);
                if !path.exists() {
                    return Err(Unable::NoModel(path));
                }
                let unusable =
                    |error: &dyn std::fmt::Display| Unable::Broken(format!("{}: {error}", path.display()));
                let bytes = fet_io::read(&path).map_err(|error| unusable(&error))?;
                Some(FinishedModel::read(&bytes).map_err(|error| unusable(&error))?)
            }
        };
        let reporter = self.reporter.clone();
        let file = self
            .file
            .as_ref()
            .map_or_else(|| self.table.name.clone(), |(file, _)| file.display().to_string());
        Ok(Secondary::new(PartyConfig {
            table: self.table.clone(),
            file,
            settings: self.experiment.common(),
            seed,
            identity: fet_privacy::identity::Identity::from_secret(*self.secret),
            roster: self.roster.clone(),
            policy: self.policy.clone(),
            device: self.machine.device.clone(),
            computation: self.experiment.train.computation(self.machine.on_host),
            evaluation_cache: self.experiment.train.evaluation_cache_of(1),
            store,
            lifetime: Some(LifetimePlace {
                folder: self.state.clone(),
                account: self.shared.account.clone(),
                table: self.file.as_ref().map(|(_, checksum)| hex(checksum)),
            }),
            model,
            start: None,
            tell: Arc::new(move |warning| reporter.tell("warning", warning)),
        }))
    }
}

/// Reason why a party cannot start.
pub(super) enum Unable {
    /// The party stores too many runs.
    TooMany(String),
    /// The party has no model of the run in this file.
    NoModel(PathBuf),
    /// The party's state or model is unusable.
    Broken(String),
}

/// Returns the folder, below `state`, of the party's own files that outlive runs.
pub(crate) fn own_folder(state: &Path) -> PathBuf {
    state.join("party")
}

/// Creates a folder that only its owner may read.
pub(super) fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// Returns the file of a party's table in the experiment.
fn own_file(experiment: &Experiment, index: usize) -> Option<String> {
    let settings = experiment.data.settings();
    let table = settings.get("secondaries")?.get(index)?;
    table.get("file")?.as_str().map(String::from)
}

/// Returns true if the aggregator sums the parties' messages by secure aggregation.
fn is_secret(aggregator: &dyn Aggregator) -> bool {
    matches!(aggregator.role(), Role::Sum(_))
}

/// Replaces the party's table in the settings of the experiment by the party's own table, under the same
/// name.
fn own_table(settings: &mut toml::Table, own: &toml::Table, index: usize) -> Result<(), String> {
    let secondaries = settings
        .get_mut("data")
        .and_then(|data| data.get_mut("secondaries"))
        .and_then(toml::Value::as_array_mut)
        .ok_or("lacks `secondaries` that your own table could replace")?;
    let found = secondaries.len();
    let entry = secondaries.get_mut(index).ok_or_else(|| {
        format!(
            "must have {} `secondaries` or more, because this party is number {}; it has {found}",
            index + 1,
            index + 1
        )
    })?;
    let name = ["name", "file"].into_iter().find_map(|field| {
        entry.get(field).filter(|name| name.as_str().is_some_and(|name| !name.is_empty())).cloned()
    });
    let mut own = own.clone();
    own.extend(name.map(|name| ("name".to_string(), name)));
    *entry = own.into();
    Ok(())
}
