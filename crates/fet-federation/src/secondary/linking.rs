//! Links of a party's records with the keys that the primary sends: once with the keys of the run, and with
//! the keys of new records for predictions.

use fet_core::data::{Keys, Matrix, Sealed};
use fet_core::linker::{LinkError, LinkTask, Links};
use fet_core::message::{Forward, LinkKeys, Linked, Reply};
use fet_core::privacy::Selection;
use fet_tables::prepare::FittedRange;
use tracing::info_span;

use super::error::SecondaryError;
use super::representation;
use super::selection::linking_seed;
use super::session::{MOST_ROWS, PendingChallenge, RowOrigin, RunLinks, Session};
use super::validator::ReleaseRequest;
use crate::privacy::most_rows;

/// Returns the similarity of a row's best link, if the linker returns similarities.
fn best(links: &Links, row: usize) -> Option<f64> {
    links.similarities(row)?.first().map(|best| f64::from(*best))
}

/// Links the keys of the run, once.
pub(super) fn link(session: &mut Session, message: LinkKeys) -> Result<Reply, SecondaryError> {
    if message.keys.rows() != session.terms.rows {
        let rule = format!("must be one for each of the primary's {} records", session.terms.rows);
        let value = message.keys.rows().to_string();
        return Err(SecondaryError::Message { field: "keys", rule, value });
    }
    if !matches!(session.linking.run, RunLinks::Awaited) {
        return Err(SecondaryError::LinkedAlready);
    }
    keep_queries(session, &message.keys)?;
    // From here on, the party searches its records. Even a failed search may disclose something about
    // them, so that no second search is allowed.
    session.linking.run = RunLinks::Searched;
    session.received.keys(&message.keys);
    begin_links(session, message.keys, RowOrigin::Run)
}

/// Keeps the keys if neighbours are chosen again for each release.
fn keep_queries(session: &mut Session, keys: &Keys) -> Result<(), SecondaryError> {
    if session.privacy.selection() == Selection::ALL {
        return Ok(());
    }
    if !session.linking.linker.about().in_the_clear || matches!(keys, Keys::Sealed(_)) {
        return Err(SecondaryError::SealedSelection);
    }
    session.linking.queries = Some(keys.clone());
    Ok(())
}

/// Links keys, or poses the linker's challenge first.
pub(super) fn begin_links(
    session: &mut Session,
    queries: Keys,
    origin: RowOrigin,
) -> Result<Reply, SecondaryError> {
    let mut data_holder =
        session.linking.linker.data_holder(linking_seed(session.terms.settings.seed, session.terms.party));
    let challenge = data_holder
        .challenge(&queries, &session.records.prepared.raw_keys)
        .map_err(|error| linking_error(session, error))?;
    if let Some(challenge) = challenge {
        session.linking.challenge = Some(PendingChallenge { queries, data_holder, origin });
        return Ok(Reply::Challenge(challenge));
    }
    search(session, PendingChallenge { queries, data_holder, origin }, None)
}

/// Links the keys of the pending challenge with the primary's answer.
pub(super) fn link_answered(session: &mut Session, answer: &Sealed) -> Result<Reply, SecondaryError> {
    let challenged = session.linking.challenge.take().ok_or(SecondaryError::NoChallenge)?;
    if challenged.origin == RowOrigin::Run || !session.privacy.is_identity() {
        session.received.answer(answer);
    }
    search(session, challenged, Some(answer))
}

/// Searches the records for the keys and keeps the links.
fn search(
    session: &mut Session,
    mut challenged: PendingChallenge,
    answer: Option<&Sealed>,
) -> Result<Reply, SecondaryError> {
    let PendingChallenge { queries, data_holder, origin } = &mut challenged;
    let new_rows = *origin == RowOrigin::New;
    let estimate = session.records.prepared.scaled.preparing.linking.filter(|_| new_rows);
    let rows = queries.rows() as i64;
    let _span = info_span!(target: "fet", "search", rows).entered();
    let count = &session.linking.count;
    count.begin(queries.rows());
    let links = data_holder.link(&LinkTask {
        answer,
        estimate,
        new_rows,
        progress: &|rows| count.add(rows),
        ..LinkTask::new(queries, &session.records.prepared.raw_keys)
    });
    let links = links.map_err(|error| linking_error(session, error))?;
    data_holder.warnings().into_iter().for_each(|warning| (session.tell)(warning));
    keep_links(session, &links, *origin)
}

/// Reports a problem with the party's own keys or code to its operator only; the refusal goes to the primary.
fn linking_error(session: &Session, error: LinkError) -> SecondaryError {
    let refusal = match &error {
        LinkError::Own { .. } => SecondaryError::UnusableKeys,
        LinkError::Code(_) => SecondaryError::FailedCode,
        _ => return error.into(),
    };
    (session.tell)(error.to_string());
    refusal
}

/// Tells the operator how many of the primary's records lack a link, which no other output shows.
fn tell_unlinked(session: &Session, links: &Links) {
    let Some(floor) = session.linking.linker.about().floor else { return };
    let unlinked = |row: &usize| best(links, *row).is_some_and(|best| best <= f64::from(floor));
    let none = (0..links.rows()).filter(unlinked).count();
    if none > 0 {
        (session.tell)(format!(
            "{}: {none} of the primary's {} records {} a link with it; the model sees unrelated \
             records of this party instead. `fet data show` and `fet link` show how keys are \
             written",
            session.records.prepared.scaled.name,
            links.rows(),
            if none == 1 { "lacks" } else { "lack" }
        ));
    }
}

/// Tells the operator how many of these rows have keys far from any record: their best link is worse than
/// that of every training row by more than a standard deviation.
fn tell_far(session: &Session, links: &Links, rows: impl Iterator<Item = usize>, which: &str) {
    let Some(range) = &session.records.prepared.scaled.preparing.similarities else { return };
    let (mut of, mut far, mut first) = (0, 0, 0);
    for row in rows {
        of += 1;
        let Some(best) = best(links, row) else { return };
        let [worst, _] = range.ends();
        if best < worst && !range.has(best) {
            first = if far == 0 { row } else { first };
            far += 1;
        }
    }
    if far > 0 {
        (session.tell)(format!(
            "{}: {far} of the primary's {of} {which} (the first is row {first}) {} far from any record of this party: their best \
             links are worse than those of all training rows. The model has learned nothing of such links",
            session.records.prepared.scaled.name,
            if far == 1 { "is" } else { "are" }
        ));
    }
}

/// Keeps the links, and returns the reply to the primary.
fn keep_links(session: &mut Session, links: &Links, origin: RowOrigin) -> Result<Reply, SecondaryError> {
    let links = links.first(session.method.neighbours);
    let mut similarities = None;
    if session.method.reveals_similarities {
        let row = |row| links.similarities(row).ok_or(SecondaryError::NoSimilarities);
        let all = (0..links.rows()).map(row).collect::<Result<Vec<_>, _>>()?;
        similarities = Some(Matrix::new(links.neighbours(), all.concat()));
    }
    let mut available = links.available();
    if origin == RowOrigin::Run {
        session.records.prepared.scaled.preparing.linking = links.estimate();
        tell_unlinked(session, &links);
        let split = session.validator.schedule().split().clone();
        let trained: Option<Vec<f64>> = split.train.iter().map(|&row| best(&links, row)).collect();
        session.records.prepared.scaled.preparing.similarities = trained.map(FittedRange::fit);
        let held_out = split.validation.into_iter().chain(split.test);
        tell_far(session, &links, held_out, "validation and test rows");
    } else {
        tell_far(session, &links, 0..links.rows(), "rows to predict");
    }
    match origin {
        RowOrigin::Run => {
            session.linking.run = RunLinks::Linked(links);
            session.model.cache.forget_links();
        }
        RowOrigin::New => session.linking.new_rows = Some(links),
    }
    if session.privacy.selection() != Selection::ALL {
        // The blank record fills empty places.
        available = session.method.neighbours;
    }
    Ok(Reply::Linked(Linked { available, similarities }))
}

/// Links the keys of new records.
pub(super) fn predict(session: &mut Session, message: LinkKeys) -> Result<Reply, SecondaryError> {
    check_serving(session)?;
    if matches!(session.linking.run, RunLinks::Awaited | RunLinks::Searched) {
        return Err(SecondaryError::NotLinked);
    }
    if session.linking.linker.about().by_position && session.records.is_of_run {
        return Err(SecondaryError::NoNewRecords {
            linker: session.terms.settings.linker.kind().to_string(),
        });
    }
    let rows = message.keys.rows();
    if !(1..=MOST_ROWS).contains(&rows) {
        let rule = format!("must have 1 to {MOST_ROWS} rows");
        return Err(SecondaryError::Message { field: "keys", rule, value: rows.to_string() });
    }
    let rules = session.validator.predictions();
    session.saved.predictions.count(rules, rows)?;
    session.linking.new_rows = None;
    if !session.privacy.is_identity() {
        // The noise of each release follows from these keys, among others.
        session.received.keys(&message.keys);
        keep_queries(session, &message.keys)?;
    }
    begin_links(session, message.keys, RowOrigin::New)
}

/// Answers a request for representations of new records.
pub(super) fn represent_new(session: &mut Session, message: Forward) -> Result<Reply, SecondaryError> {
    check_serving(session)?;
    check_batch(session, &message)?;
    if !session.validator.numbers_batches() {
        session.validator.check_new(&message)?;
        return represent_by_best(session, &message);
    }
    let asked = ReleaseRequest::Forward(message);
    if let Some(reply) = session.validator.repeated(&asked) {
        return Ok(reply);
    }
    let ReleaseRequest::Forward(message) = &asked else { unreachable!("it was made so above") };
    session.validator.check_new(message)?;
    let reply = represent_by_best(session, message)?;
    session.validator.answered(asked, &reply);
    Ok(reply)
}

/// Returns the representation of new records by the best model, and restores the current model
/// afterwards.
fn represent_by_best(session: &mut Session, message: &Forward) -> Result<Reply, SecondaryError> {
    if session.model.best.segments().is_empty() {
        return representation::represent_rows(session, message);
    }
    let current = session.model.encoder.learner().parameters().clone();
    session.model.encoder.learner_mut().load(&session.model.best)?;
    let reply = representation::represent_rows(session, message);
    session.model.encoder.learner_mut().load(&current)?;
    reply
}

/// Refuses a batch with more rows than the run's releases, for which the noise is too small.
fn check_batch(session: &Session, message: &Forward) -> Result<(), SecondaryError> {
    let most = most_rows(session.privacy.as_ref(), session.release.account.releases());
    if session.privacy.is_identity() || message.rows.len() <= most {
        return Ok(());
    }
    let rule = format!("must name at most {most} rows, as the run's releases do");
    Err(SecondaryError::Message { field: "rows", rule, value: format!("{} of them", message.rows.len()) })
}

/// Refuses predictions that the policy forbids, or that no account would count.
fn check_serving(session: &Session) -> Result<(), SecondaryError> {
    session.validator.predictions().check_allowed()?;
    if !session.privacy.is_identity() && !matches!(session.linking.run, RunLinks::Serving) {
        return Err(SecondaryError::UncountedPrediction);
    }
    session.validator.check_new_sums()?;
    Ok(())
}
