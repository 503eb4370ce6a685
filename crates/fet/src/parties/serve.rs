//! `fet party`: one of the other parties, which waits for the primary and answers it, run after run, until it is stopped.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use fet_core::aggregator::{Aggregator, Role};
use fet_core::data::{DatasetContext, Folders, PartyTable};
use fet_core::experiment::Experiment;
use fet_core::message::{Answer, LARGEST_FRAME, Request, decode, encode};
use fet_core::party::{Failure, Party, Refusal};
use fet_core::policy::Policy;
use fet_core::rng::OwnSeed;
use fet_files::{hex, sha256_of_file};
use fet_net::{Local, Peer, Service, Settings};
use fet_privacy::identity::PublicIdentity;
use fet_train::secondary::{Finished, Own, Secondary, Store};
use fet_train::trainer::Machine;
use schemars::JsonSchema;
use serde::Deserialize;

use super::roster::Roster;
use super::{About, Purpose, Unreached, common_data, keys};
use crate::experiment_file::{self, ExperimentArguments, data_folders};
use crate::folder::MODEL;
use crate::input::{input, machine};
use crate::lock;

/// The arguments of `fet party`.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// The party's own file (TOML): who it is, its experiment, its key, its state and its table.
    pub file: PathBuf,
}

/// A party's own file. Paths are relative to it. Nothing of it is sent but what the protocol says.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct File {
    /// Its name in the roster.
    party: String,
    roster: PathBuf,
    /// The experiment that all have agreed on.
    experiment: PathBuf,
    /// Changes of its settings, as `--set` makes them; the primary must have the same.
    #[serde(default)]
    set: Vec<String>,
    key: PathBuf,
    /// The folder for its state and its model.
    state: PathBuf,
    /// The tensor backend; that of the experiment where it is left out.
    device: Option<String>,
    /// Its own table, in place of the one that the experiment names: the settings of `data.secondaries`.
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    #[serde(default)]
    data: toml::Table,
    /// What it lets the primary have.
    #[serde(default)]
    policy: Policy,
    /// Whether its secrets, noise and masks follow from the experiment's seed, as in a simulation: a rehearsal, which hides nothing.
    #[serde(default)]
    rehearsal: bool,
}

/// Serves until `stop` is set.
pub fn serve(arguments: &Arguments, stop: &AtomicBool) -> anyhow::Result<()> {
    let path = &arguments.file;
    let bad = |problem: String| input(format!("{}: {problem}", path.display()));
    let file: File = super::read(path)?;
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
    let keys = keys::read(&folder.join(&file.key))?;
    let pinned = roster.parties()[index].identity;
    if keys.public() != pinned {
        return Err(bad(format!(
            "`key` is that of {}; in the roster {} is {pinned}",
            keys.public(),
            file.party
        )));
    }
    let seat = Seat::new(&file, &folder, &roster, index, &keys)?;
    let state = folder.join(&file.state);
    private_folder(&state)
        .map_err(|error| bad(format!("`state`: cannot make the folder {} ({error})", state.display())))?;
    let Some(_lock) = lock::take(&state)? else {
        return Err(bad(format!("another process uses the state in {}", state.display())));
    };
    seat.check_table(&state).map_err(bad)?;
    let wait = Duration::from_secs(roster.file.wait);
    let local = Local::new(keys, About::of(Purpose::Run, None));
    let hub = super::connect(&roster, &local.keys, wait)?;
    let route = roster.route(index);
    let transport = hub.to_primary(&route).map_err(input)?;
    let mut service = Service::new(transport, local, route, roster.primary().identity, Settings::default());
    fet_files::note!("{}: ready for {}", file.party, roster.primary().name);
    let mut serving = Serving { seat, secondary: None, purpose: Purpose::Run, differs: None };
    service.serve(&mut serving, stop);
    if !stop.load(Ordering::Relaxed) {
        return Err(Unreached(format!("{}: the connection to the server has ended", file.party)).into());
    }
    fet_files::note!("{}: stopped", file.party);
    Ok(())
}

/// What a party takes to each run.
struct Seat {
    name: String,
    experiment: Experiment,
    table: PartyTable,
    machine: Machine,
    policy: Policy,
    roster: Arc<[PublicIdentity]>,
    secret: [u8; 32],
    /// From 1.
    number: usize,
    state: PathBuf,
    rehearsal: bool,
    /// The checksum of its table's file, if it has one of its own.
    checksum: Option<[u8; 32]>,
}

impl Seat {
    fn new(
        file: &File,
        folder: &Path,
        roster: &Roster,
        index: usize,
        keys: &fet_net::Keys,
    ) -> anyhow::Result<Self> {
        let arguments = ExperimentArguments {
            file: folder.join(&file.experiment),
            sets: file.set.clone(),
            device: file.device.clone(),
            seed: None,
        };
        let own = |settings: &mut toml::Table| match file.data.is_empty() {
            true => Ok(()),
            false => own_table(settings, &file.data, index),
        };
        let experiment = experiment_file::load_changed(&arguments, own).map_err(input)?;
        super::check_secrets(&experiment, file.rehearsal).map_err(input)?;
        let backend = fet_backends::open(&experiment.device).map_err(input)?;
        let common = data_folders(&experiment);
        let places = std::iter::once(folder.to_path_buf()).chain(common.all().iter().cloned());
        let here = |place: PathBuf| if place.as_os_str().is_empty() { ".".into() } else { place };
        let folders = Folders::new(places.map(here));
        let context = DatasetContext { folders: &folders, seed: experiment.seed, aside: &[] };
        let table = experiment.data.build(&context).map_err(input)?.secondary(index).map_err(input)?;
        let checksum =
            own_file(&experiment, index).and_then(|file| sha256_of_file(&folders.find(&file)).ok());
        let aggregator = experiment.aggregator.build(&()).map_err(input)?;
        let secret = is_secret(aggregator.as_ref());
        if file.rehearsal {
            fet_files::note!(
                "warning: {}: this is a rehearsal: its secrets, noise and masks follow from the experiment's seed, and hide \
                 nothing",
                file.party
            );
        }
        let signing = if secret { roster.signing().map_err(input)? } else { roster.signing_or_none() };
        let signer = keys::signer(keys);
        if secret && signing[index] != signer.public() {
            return Err(input(format!(
                "{}: `signing` of {} is not that of its key; `fet keys show` prints it",
                roster.path.display(),
                file.party
            )));
        }
        Ok(Self {
            name: file.party.clone(),
            machine: machine(&backend),
            experiment,
            table,
            policy: file.policy.clone(),
            roster: signing.into(),
            secret: *keys.secret("secure sums"),
            number: index + 1,
            state: folder.join(&file.state).join("party"),
            rehearsal: file.rehearsal,
            checksum,
        })
    }

    /// Notes which table the state is made with. Where noise was released, another table under the same noise would tell how they
    /// differ.
    fn check_table(&self, state: &Path) -> Result<(), String> {
        let Some(checksum) = self.checksum.as_ref().map(|sum| hex(sum)) else { return Ok(()) };
        let path = state.join("table");
        let failed = |error: std::io::Error| format!("`state`: {}: {error}", path.display());
        let known =
            if path.exists() { fet_files::read_to_string(&path).map_err(failed)? } else { String::new() };
        if known == checksum {
            return Ok(());
        }
        if !known.is_empty() {
            let entries = std::fs::read_dir(&self.state).into_iter().flatten().flatten();
            let released = |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("ledger-");
            if entries.map(|entry| entry.file_name()).any(|name| released(&name)) {
                return Err(format!(
                    "`state` must be another folder: {} holds what was released with noise of another table",
                    state.display()
                ));
            }
            fet_files::note!("warning: {}: the table is not as it was when its state was made", self.name);
        }
        fet_files::write(&path, checksum.as_bytes()).map_err(failed)
    }

    /// The party as it begins a run.
    fn secondary(&self, purpose: Purpose) -> Result<Secondary, String> {
        let store = Store::Folder(self.state.clone());
        let seed = match self.rehearsal {
            true => OwnSeed::simulated(self.experiment.seed, self.number),
            false => store.own_seed(false).map_err(|error| error.to_string())?,
        };
        let model = match purpose {
            Purpose::Run => None,
            Purpose::Predictions => {
                let path = self.state.join(MODEL);
                let unusable = |error: &dyn std::fmt::Display| format!("{}: {error}", path.display());
                let bytes = fet_files::read(&path).map_err(|error| unusable(&error))?;
                Some(Finished::read(&bytes).map_err(|error| unusable(&error))?)
            }
        };
        let name = self.name.clone();
        Ok(Secondary::new(Own {
            table: self.table.clone(),
            settings: self.experiment.common(),
            seed,
            identity: fet_privacy::identity::Identity::from_secret(self.secret),
            roster: Arc::clone(&self.roster),
            policy: self.policy.clone(),
            device: self.machine.device.clone(),
            computation: self.experiment.train.computation(self.machine.on_host),
            store,
            model,
            start: None,
            tell: Arc::new(move |warning| fet_files::note!("{name}: {warning}")),
        }))
    }
}

/// Makes a folder that only its owner may read.
fn private_folder(path: &Path) -> std::io::Result<()> {
    let mut folder = std::fs::DirBuilder::new();
    folder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut folder, 0o700);
    folder.create(path)
}

/// The file of a party's table, as the experiment names it.
fn own_file(experiment: &Experiment, index: usize) -> Option<String> {
    let settings = experiment.data.settings();
    let table = settings.get("secondaries")?.get(index)?;
    table.get("file")?.as_str().map(String::from)
}

/// Whether what parties send is summed in secret.
fn is_secret(aggregator: &dyn Aggregator) -> bool {
    matches!(aggregator.role(), Role::Sum(_))
}

/// Puts a party's own table into the settings of the experiment, in the place of its entry, whose name it keeps.
fn own_table(settings: &mut toml::Table, own: &toml::Table, index: usize) -> Result<(), String> {
    let secondaries = settings
        .get_mut("data")
        .and_then(|data| data.get_mut("secondaries"))
        .and_then(toml::Value::as_array_mut)
        .ok_or("has no `secondaries`, one of which a table of your own could be")?;
    let found = secondaries.len();
    let entry = secondaries.get_mut(index).ok_or_else(|| {
        format!(
            "must have {} `secondaries` or more, since this party is number {}; it has {found}",
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

/// The first line in which settings differ, with both values.
fn differs(theirs: Option<&str>, ours: Option<&str>) -> Option<String> {
    let (theirs, ours) = (theirs?, ours?);
    let lines = |text: &str| text.lines().map(str::to_string).collect::<Vec<_>>();
    let (theirs, ours) = (lines(theirs), lines(ours));
    let missing = || "nothing".to_string();
    let place = (0..theirs.len().max(ours.len())).find(|&place| theirs.get(place) != ours.get(place))?;
    let line = |lines: &[String]| lines.get(place).cloned().unwrap_or_else(missing);
    Some(format!(
        "settings of `data` differ: the primary has `{}`, this party `{}`",
        line(&theirs),
        line(&ours)
    ))
}

/// A party that serves.
struct Serving {
    seat: Seat,
    secondary: Option<Secondary>,
    purpose: Purpose,
    /// In what the primary's settings of common data differ from this party's.
    differs: Option<String>,
}

impl Serving {
    fn reply(&mut self, request: Request) -> Result<Answer, Failure> {
        // Whoever asks to join begins anew: its program, or another party's, was started again.
        if let Request::Join(_) = request {
            if let Some(differs) = &self.differs {
                fet_files::note!("{}: refused Join: {differs}", self.seat.name);
                return Ok(Err(Refusal::new(differs)));
            }
            self.secondary = match self.seat.secondary(self.purpose) {
                Ok(secondary) => Some(secondary),
                Err(problem) => {
                    fet_files::note!("{}: {problem}", self.seat.name);
                    let reason = "has no state or model that it could serve with; its operator is told why";
                    return Ok(Err(Refusal::new(reason)));
                }
            };
        }
        let (name, is_join, is_end) =
            (request.name(), matches!(request, Request::Join(_)), matches!(request, Request::Finish));
        let of_predictions = matches!(
            request,
            Request::Join(_) | Request::Predict(_) | Request::Answer(_) | Request::Forward(_)
        );
        if self.purpose == Purpose::Predictions && !of_predictions {
            return Ok(Err(Refusal::new(format!(
                "`{name}` is of a run, and the primary has joined for predictions"
            ))));
        }
        let Some(secondary) = &mut self.secondary else {
            let reason = "the party has no run under way: another command with the primary's key has joined it since; give the same \
                          command again once that has ended";
            fet_files::note!("{}: refused {name}: no run is under way", self.seat.name);
            return Ok(Err(Refusal::new(reason)));
        };
        let who = &self.seat.name;
        match secondary.ask(request) {
            Ok(reply) => {
                if is_join {
                    fet_files::note!("{who}: agreed to the terms");
                } else if is_end {
                    fet_files::note!("{who}: the run is over; the model is in {}", self.seat.state.display());
                }
                Ok(Ok(reply))
            }
            Err(Failure::Refused(refusal)) => {
                fet_files::note!("{who}: refused {name}: {refusal}");
                Ok(Err(refusal))
            }
            Err(failure) => Err(failure),
        }
    }
}

impl fet_net::Answer for Serving {
    fn begins(&mut self, peer: &Peer) {
        let about = About::read(&peer.about);
        fet_files::note!("{}: the primary has joined: {}", self.seat.name, about.program);
        self.purpose = about.purpose;
        let other_secret = about.secret != super::confirmation(&self.seat.experiment);
        let other_secret = other_secret.then(|| {
            let name = super::secret_env(&self.seat.experiment.linker.settings()).unwrap_or_default();
            format!("the linkers' common secret (`linker.secret_env` \"{name}\") is another at this party")
        });
        self.differs = other_secret
            .or_else(|| differs(about.data.as_deref(), common_data(&self.seat.experiment).as_deref()));
        self.secondary = None;
    }

    fn answer(&mut self, request: Vec<u8>) -> Vec<u8> {
        let answer = match decode(&request, LARGEST_FRAME) {
            Ok(request) => self.reply(request).unwrap_or_else(|failure| Err(Refusal::new(failure))),
            Err(error) => Err(Refusal::new(error)),
        };
        let answer: Answer = answer;
        encode(&answer).or_else(|error| encode::<Answer>(&Err(Refusal::new(error)))).unwrap_or_default()
    }

    fn refused(&mut self, peer: &Peer, ours: u16) {
        let program = About::read(&peer.about).program;
        let (name, theirs) = (&self.seat.name, peer.version);
        fet_files::note!(
            "{name}: refused {program}: it speaks version {theirs} of the protocol, and this program {ours}"
        );
    }
}
