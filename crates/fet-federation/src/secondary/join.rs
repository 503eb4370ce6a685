//! Joining a run: a party compares the terms with its own settings, and builds its side of the run.

use fet_core::aggregator::SecureSum;
use fet_core::data::DataError;
use fet_core::encoder::Encoder;
use fet_core::linker::{Cached, Linker};
use fet_core::message::{Joined, LARGEST_FRAME, PROTOCOL_VERSION, Reply, Terms};
use fet_core::method::SecondaryContext;
use fet_core::parameters::Parameters;
use fet_core::privacy::{PrivacyMechanism, Selection};
use fet_core::rng::{Purpose, stream};

use super::account::Account;
use super::evaluated::Evaluated;
use super::guarantee;
use super::lifetime::{Joining, Spending};
use super::received::{self, Received};
use super::request_validator::{self, RequestValidator};
use super::table::TableIdentity;
use super::{Finished, Own, Secondary, SecondaryError, Session};
use crate::prepare::{Preparing, RECORDS, by_statistics, key_columns, warnings};
use crate::privacy::{protection, secret_sum, solvable_sums};
use crate::report::RESULTS_VERSION;
use crate::schedule::{self, Schedule};
use crate::state_file::load_all;

/// Maximum number of secondaries of a run; terms with more are refused before any computation.
const MOST_PARTIES: usize = 1 << 14;
/// Maximum number of the primary's records: the capacity of a frame if a key is one number.
pub(super) const MOST_ROWS: usize = LARGEST_FRAME / 8;

impl Secondary {
    /// Agrees to the terms, or refuses them and stays unchanged; a table that no model can use is dropped.
    pub(super) fn join(&mut self, terms: &Terms) -> Result<Reply, SecondaryError> {
        let own = self.own.take().ok_or(SecondaryError::AlreadyJoined)?;
        match agree(&own, terms) {
            Ok(parts) => {
                let session = parts.into_session(own, terms)?;
                let parameters = session.encoder.learner().parameters().values().len();
                let table = session.table.keyed();
                let lifetime = session.account.lifetime.as_ref().map(Spending::standing);
                self.session = Some(session);
                Ok(Reply::Joined(Joined { parameters, table, lifetime }))
            }
            Err(error) => {
                self.own = Some(own);
                Err(error)
            }
        }
    }
}

impl Own {
    /// Reports a problem with the party's own records to its operator only; the refusal goes to the primary.
    fn unusable(&self, error: &DataError) -> SecondaryError {
        (self.tell)(error.to_string());
        SecondaryError::UnusableRecords
    }
}

fn differs(field: &str, theirs: impl ToString, ours: impl ToString) -> SecondaryError {
    SecondaryError::Terms { field: field.to_string(), theirs: theirs.to_string(), ours: ours.to_string() }
}

/// Parts of a session in addition to the party's own data.
struct Parts {
    linker: Box<dyn Linker>,
    neighbours: usize,
    pooled: bool,
    reveals_similarities: bool,
    preparing: Preparing,
    encoder: Box<dyn Encoder>,
    privacy: Box<dyn PrivacyMechanism>,
    sum: Option<SecureSum>,
    shared: Option<&'static str>,
    validator: RequestValidator,
    account: Account,
}

fn agree(own: &Own, terms: &Terms) -> Result<Parts, SecondaryError> {
    let Own { table, settings, .. } = own;
    if terms.protocol != PROTOCOL_VERSION {
        return Err(differs("protocol", terms.protocol, PROTOCOL_VERSION));
    }
    if terms.results != RESULTS_VERSION {
        return Err(differs("results", terms.results, RESULTS_VERSION));
    }
    if terms.name != table.name {
        return Err(differs("name", format!("\"{}\"", terms.name), format!("\"{}\"", table.name)));
    }
    if let Some((field, ours, theirs)) = settings.difference(&terms.settings) {
        return Err(differs(&field, theirs, ours));
    }
    if fet_io::sha256(terms.settings.as_bytes()) != terms.settings_hash {
        return Err(differs(
            "settings_hash",
            "another hash than that of its settings",
            "that of the settings",
        ));
    }
    let message =
        |field, rule, value: usize| SecondaryError::Message { field, rule, value: value.to_string() };
    if !(1..=MOST_PARTIES).contains(&terms.parties) {
        return Err(message("parties", format!("must be 1 to {MOST_PARTIES}"), terms.parties));
    }
    if terms.parties != own.roster.len() {
        return Err(differs("parties", terms.parties, own.roster.len()));
    }
    if !(1..=terms.parties).contains(&terms.number) {
        return Err(message(
            "number",
            format!("must be 1 to {}, the number of parties", terms.parties),
            terms.number,
        ));
    }
    if terms.rows > MOST_ROWS {
        return Err(message("rows", format!("must be at most {MOST_ROWS}"), terms.rows));
    }
    let method = settings.method.build(&())?;
    let plan = method.plan();
    let aggregator = settings.aggregator.build(&())?;
    let linker = settings.linker.build(&())?;
    let split = schedule::split(&terms.parts, terms.rows, settings.seed)?;
    let (privacy, releases) =
        protection(settings, &plan, linker.as_ref(), aggregator.as_ref(), &split, terms.parties)?;
    let sum = secret_sum(aggregator.as_ref());
    request_validator::check_policy(&own.policy, settings, terms.rows, privacy.as_ref(), sum, &releases)?;
    let weaknesses = guarantee::check(&own.policy, settings.privacy.kind(), privacy.as_ref(), &releases)?;
    let weaknesses = weaknesses.into_iter().chain(solvable_sums(privacy.as_ref(), &releases));
    // In a simulation, the report states this for all parties.
    if !own.seed.is_simulated() {
        weaknesses.for_each(|warning| (own.tell)(format!("{}: {warning}", table.name)));
    }
    let schedule = Schedule::new(settings.seed, &settings.train, &plan, split, terms.parties);
    if let Some(part) = by_statistics(table, terms.standardise).filter(|_| !privacy.is_identity()) {
        let (name, kind) = (table.name.clone(), settings.privacy.kind().to_string());
        return Err(SecondaryError::NoBounds { part, name, kind });
    }
    table.notes().for_each(|note| (own.tell)(format!("{}: {note}", table.name)));
    let preparing = match (&own.model, &own.start) {
        (Some(model), _) => model.preparing(terms, settings)?,
        (None, Some(start)) => start.beginning(terms)?,
        (None, None) => Preparing::of_all(table, terms.standardise).map_err(|error| own.unusable(&error))?,
    };
    // The warnings depend on the records: only the operator may see them.
    let all: Vec<usize> = (0..table.rows()).collect();
    for warning in warnings(&preparing.departures(table, &all), RECORDS, |row| row) {
        (own.tell)(format!("{}: {warning}", table.name));
    }
    let neighbours = plan.neighbours.of(terms.number, linker.about().neighbours);
    let encoder = method.secondary(
        &settings.encoder,
        &SecondaryContext {
            device: &own.device.clone().autodiff(),
            weights: stream(settings.seed, terms.number, Purpose::Weights, 0),
            neighbours,
            key_columns: key_columns(&table.keys),
            feature_columns: preparing.features.width(table.features.columns()),
            computation: own.computation,
        },
    )?;
    let mut account = Account::new(releases, privacy.as_ref(), &own.policy);
    if let Some(place) = &own.lifetime {
        let joining = Joining::new(own, place, privacy.as_ref());
        account.lifetime = Some(Spending::join(joining, privacy.as_ref(), &releases)?);
    }
    let chosen_once = privacy.selection() == Selection::ALL;
    Ok(Parts {
        neighbours,
        pooled: plan.pooled,
        reveals_similarities: plan.similarities || aggregator.uses_similarities(),
        preparing,
        encoder,
        sum,
        validator: RequestValidator::new(
            schedule,
            privacy.freezes_secondaries(),
            sum.is_some(),
            plan.averaged.map(|averaged| averaged.every),
            &own.policy,
        )
        .serving(own.model.is_some())
        .whole_sums(request_validator::needs_whole_sums(&own.policy, privacy.as_ref(), sum)),
        account,
        shared: plan.averaged.map(|averaged| averaged.prefix),
        privacy,
        // If neighbours are chosen again for each release, caching links does not pay off.
        linker: if chosen_once {
            Cached::from_environment(linker, &settings.linker.settings())
        } else {
            linker
        },
    })
}

impl Parts {
    fn into_session(self, own: Own, terms: &Terms) -> Result<Session, SecondaryError> {
        let Own {
            table,
            file,
            settings,
            seed,
            identity,
            roster,
            device,
            evaluation_cache,
            store,
            tell,
            model,
            start,
            ..
        } = own;
        let rows = table.rows();
        let identity_of_table = TableIdentity::new(&table, &seed, &file);
        let trained = model.as_ref().or(start.as_ref()).map(Finished::table);
        trained.and_then(|trained| identity_of_table.note(trained)).into_iter().for_each(|note| tell(note));
        let records = self.preparing.apply(table).map_err(|error| {
            tell(error.to_string());
            SecondaryError::UnusableRecords
        })?;
        let mut encoder = self.encoder;
        if let Some(model) = &model {
            encoder.learner_mut().load(&model.parameters)?;
        } else if let Some(start) = &start {
            load_all(encoder.learner_mut(), &start.parameters)?;
        }
        // The hash uses the party's own copy of the settings: the terms may express the same settings in
        // other words.
        let text = settings.of_state(self.privacy.as_ref()).to_toml();
        Ok(Session {
            number: terms.number,
            parties: terms.parties,
            rows: terms.rows,
            settings_hash: fet_io::sha256(text.as_bytes()),
            common: received::common(&text, terms),
            received: Received::new(&text, terms),
            settings,
            linker: self.linker,
            neighbours: self.neighbours,
            pooled: self.pooled,
            reveals_similarities: self.reveals_similarities,
            encoder,
            privacy: self.privacy,
            sum: self.sum,
            shared: self.shared,
            device: device.autodiff(),
            seed,
            identity,
            roster,
            validator: self.validator,
            account: self.account,
            store,
            seed_kept: false,
            tell,
            scratch: vec![u32::MAX; rows],
            records,
            has_run_records: model.as_ref().is_none_or(|model| *model.table() == identity_of_table.digest()),
            table: identity_of_table,
            // A party that serves predictions does not link the run's keys.
            linked: model.is_some(),
            unlinked: None,
            links: None,
            serving: None,
            queries: None,
            chosen: None,
            pending: None,
            evaluated: Evaluated::new(evaluation_cache),
            blanked: 0,
            sums: None,
            best: Parameters::default(),
        })
    }
}
