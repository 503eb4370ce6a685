//! Joining a run: a party compares the terms with its own settings, and builds its side of the run.

use std::sync::Arc;

use fet_core::data::DataError;
use fet_core::encoder::Encoder;
use fet_core::linker::{Cached, Linker};
use fet_core::message::{OLDEST_PROTOCOL, PROTOCOL_VERSION, Terms};
use fet_core::method::SecondaryContext;
use fet_core::parameters::Parameters;
use fet_core::privacy::{PrivacyMechanism, Selection};
use fet_core::rng::{Purpose, stream};
use fet_eval::records::RESULTS_VERSION;

use super::account::Account;
use super::config::PartyConfig;
use super::error::SecondaryError;
use super::evaluation_cache::EvaluationCache;
use super::lifetime::{Joining, Spending};
use super::policy::{PredictionRules, ProposedRun, check_guarantee, check_policy, needs_whole_sums};
use super::received::{self, Received};
use super::saved_state::SavedState;
use super::session::{
    AgreedTerms, Credentials, Linking, LocalModel, MOST_ROWS, MethodTerms, OwnRecords, ReleaseState,
    RunLinks, Session,
};
use super::state::{FinishedModel, TableIdentity};
use super::validator::{ReleaseRules, RequestValidator};
use crate::federation::PartyIndex;
use crate::prepare::{Preparing, RECORDS, by_statistics, key_columns, warnings};
use crate::privacy::{RunShape, protection, secure_sum_form, solvable_sums};
use crate::schedule::{self, Schedule};
use crate::state_file::load_all;

/// Maximum number of secondaries of a run; terms with more are refused before any computation.
const MOST_PARTIES: usize = 1 << 14;

impl PartyConfig {
    /// Reports a problem with the party's own records to its operator only; the refusal goes to the primary.
    fn unusable(&self, error: &DataError) -> SecondaryError {
        (self.tell)(error.to_string());
        SecondaryError::UnusableRecords
    }
}

fn differs(field: &str, theirs: impl ToString, ours: impl ToString) -> SecondaryError {
    SecondaryError::Terms { field: field.to_string(), theirs: theirs.to_string(), ours: ours.to_string() }
}

/// The parts of a session that follow from the terms.
pub(super) struct Agreement {
    party: PartyIndex,
    preparing: Preparing,
    linker: Box<dyn Linker>,
    method: MethodTerms,
    encoder: Box<dyn Encoder>,
    privacy: Box<dyn PrivacyMechanism>,
    account: Account,
    validator: RequestValidator,
}

/// Compares the terms with the party's own settings; returns the party's number.
pub(super) fn check_terms(own: &PartyConfig, terms: &Terms) -> Result<PartyIndex, SecondaryError> {
    let PartyConfig { table, settings, .. } = own;
    if !(OLDEST_PROTOCOL..=PROTOCOL_VERSION).contains(&terms.protocol) {
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
            "a hash that differs from that of its settings",
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
    let party = PartyIndex::from_number(terms.number).filter(|party| party.index() < terms.parties);
    let party = party.ok_or_else(|| {
        message("number", format!("must be 1 to {}, the number of parties", terms.parties), terms.number)
    })?;
    if terms.rows > MOST_ROWS {
        return Err(message("rows", format!("must be at most {MOST_ROWS}"), terms.rows));
    }
    Ok(party)
}

/// Compares the terms with the party's own settings and policy, and builds the parts of a session from them.
pub(super) fn agree(own: &PartyConfig, terms: &Terms) -> Result<Agreement, SecondaryError> {
    let PartyConfig { table, settings, .. } = own;
    let party = check_terms(own, terms)?;
    let method = settings.method.build(&())?;
    let plan = method.plan();
    let aggregator = settings.aggregator.build(&())?;
    let linker = settings.linker.build(&())?;
    let split = schedule::split(&terms.parts, terms.rows, settings.seed)?;
    let run = RunShape {
        plan: &plan,
        linker: linker.as_ref(),
        aggregator: aggregator.as_ref(),
        split: &split,
        parties: terms.parties,
    };
    let (privacy, releases) = protection(settings, &run)?;
    let sum = secure_sum_form(aggregator.as_ref());
    let proposed =
        ProposedRun { settings, rows: terms.rows, privacy: privacy.as_ref(), sum, releases: &releases };
    check_policy(&own.policy, &proposed)?;
    let weaknesses = check_guarantee(&own.policy, settings.privacy.kind(), privacy.as_ref(), &releases)?;
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
        (None, None) => Preparing::of_all(table, terms.standardise)
            .map_err(|error| own.unusable(&error))?
            .with_key_inputs(settings.train.key_inputs),
    };
    // The warnings depend on the records: only the operator may see them.
    let all: Vec<usize> = (0..table.rows()).collect();
    for warning in warnings(&preparing.departures(table, &all), RECORDS, |row| row) {
        (own.tell)(format!("{}: {warning}", table.name));
    }
    let neighbours = plan.neighbours.represented(terms.number, linker.about().neighbours);
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
    let mut account = if own.model.is_some() && !privacy.is_identity() {
        check_private_predictions(own, privacy.as_ref())?;
        Account::for_predictions(releases, privacy.as_ref(), &own.policy)
    } else {
        Account::new(releases, privacy.as_ref(), &own.policy)
    };
    if let Some(place) = &own.lifetime {
        let joining = Joining::new(own, place, privacy.as_ref(), &releases)?;
        account = account.with_lifetime(Spending::join(joining, privacy.as_ref(), &releases)?);
    }
    let rules = ReleaseRules {
        serving: own.model.is_some(),
        frozen: privacy.freezes_secondaries(),
        sums: sum.is_some(),
        numbered: sum.is_some() || !privacy.is_identity(),
        whole_sums: needs_whole_sums(&own.policy, privacy.as_ref(), sum),
        least_summed: own.policy.least_summed,
        averaged_every: plan.averaged.map(|averaged| averaged.every),
        probes: own.policy.probes,
        predictions: PredictionRules::new(&own.policy),
    };
    let method = MethodTerms {
        neighbours,
        pooled: plan.pooled,
        reveals_similarities: plan.similarities || aggregator.uses_similarities(),
        sum,
        averaged: plan.averaged.map(|averaged| averaged.prefix),
    };
    // If neighbours are chosen again for each release, caching links does not pay off.
    let chosen_once = privacy.selection() == Selection::ALL;
    let linker =
        if chosen_once { Cached::from_environment(linker, &settings.linker.settings()) } else { linker };
    let validator = RequestValidator::new(schedule, rules);
    Ok(Agreement { party, preparing, linker, method, encoder, privacy, account, validator })
}

/// Refuses predictions with a privacy mechanism that no account bounds.
fn check_private_predictions(
    own: &PartyConfig,
    privacy: &dyn PrivacyMechanism,
) -> Result<(), SecondaryError> {
    if privacy.claims_amplification() {
        return Err(SecondaryError::AmplifiedPrediction);
    }
    let limit = own.policy.lifetime_epsilon;
    if own.lifetime.is_some() && own.seed.is_simulated() && limit > 0.0 {
        let rule = "must be 0 for predictions in a rehearsal, whose noise hides nothing".to_string();
        return Err(SecondaryError::Policy { field: "lifetime_epsilon", rule, value: limit.to_string() });
    }
    if own.lifetime.is_none() || own.seed.is_simulated() || limit > 0.0 {
        return Ok(());
    }
    let rule = "must be above 0 for predictions with a privacy mechanism: each batch is one more release, and only this limit \
                bounds all of them"
        .to_string();
    Err(SecondaryError::Policy { field: "lifetime_epsilon", rule, value: "0".into() })
}

/// Makes the session of a run from the party's own data.
pub(super) fn session(
    agreement: Agreement,
    config: PartyConfig,
    terms: &Terms,
) -> Result<Session, SecondaryError> {
    let Agreement { party, preparing, linker, method, mut encoder, privacy, account, validator } = agreement;
    let PartyConfig {
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
    } = config;
    let rows = table.rows();
    let identity_of_table = TableIdentity::new(&table, &seed, &file);
    let trained = model.as_ref().or(start.as_ref()).map(FinishedModel::table);
    trained.and_then(|trained| identity_of_table.note(trained)).into_iter().for_each(|note| tell(note));
    let prepared = preparing.apply(table).map_err(|error| {
        tell(error.to_string());
        SecondaryError::UnusableRecords
    })?;
    if let Some(model) = &model {
        encoder.learner_mut().load(&model.parameters)?;
    } else if let Some(start) = &start {
        load_all(encoder.learner_mut(), &start.parameters)?;
    }
    // The hash uses the party's own copy of the settings: the terms may express the same settings in
    // other words.
    let text = settings.of_state(privacy.as_ref()).to_toml();
    let mut received = Received::new(&text, terms);
    if model.is_some() && !privacy.is_identity() && !seed.is_simulated() {
        // Two sessions with the same noise would reveal the changes of the table between them.
        let mut random = [0; 32];
        getrandom::fill(&mut random).map_err(|error| SecondaryError::NoRandomness(error.to_string()))?;
        received.fresh(&random);
    }
    Ok(Session {
        terms: AgreedTerms {
            party,
            parties: terms.parties,
            rows: terms.rows,
            settings_hash: fet_io::sha256(text.as_bytes()),
            common: received::common(&text, terms),
            settings,
        },
        received,
        credentials: Credentials { seed, identity, roster },
        records: OwnRecords {
            prepared,
            is_of_run: model.as_ref().is_none_or(|model| *model.table() == identity_of_table.digest()),
            table: identity_of_table,
        },
        method,
        linking: Linking {
            linker,
            run: if model.is_some() { RunLinks::Serving } else { RunLinks::Awaited },
            new_rows: None,
            challenge: None,
            queries: None,
            count: Arc::default(),
        },
        model: LocalModel {
            encoder,
            device: device.autodiff(),
            pending: None,
            cache: EvaluationCache::new(evaluation_cache),
            best: Parameters::default(),
            scratch: vec![u32::MAX; rows],
        },
        privacy,
        release: ReleaseState { account, chosen: None, participant: None, blanked: 0 },
        validator,
        saved: SavedState::new(store),
        tell,
    })
}
