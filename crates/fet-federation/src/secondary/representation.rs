//! A party's training step, from a request to its reply and back.
//!
//! [`forward`] encodes the neighbours of a batch and clips the representations.
//! [`release`] adds noise, and masks the representations if they are part of a sum.
//! [`learn`] runs the backward pass. The party also releases parameters that the method averages.

use burn::tensor::{Int, Tensor, TensorData};
use fet_core::data::Matrix;
use fet_core::encoder::{NeighbourBatch, NeighbourLists};
use fet_core::message::{
    Backward, Block, Forward, LoadParameters, Masked, Reply, Round, ShareParameters, Words,
};
use fet_core::model::Pass;
use fet_core::parameters::{Parameters, host};
use fet_core::privacy::{Release, Share, unbounded_blocks};
use fet_core::rng::{Purpose, stream};
use fet_privacy::secure_sum::{SumError, Word};
use sha2::{Digest, Sha256};

use super::error::{SecondaryError, shortened};
use super::received::{self, update};
use super::selection::{Places, Sampler, linking_seed, select};
use super::session::{Bounded, Pending, RowOrigin, Session, SingleReleaseRecords};
use super::sums::{self, Attempt};
use super::validator::ReleaseRequest;
use crate::rows::{filled, gather};
use crate::secure_aggregation::{self, PARAMETER_RANGE, PARAMETERS, REPRESENTATION};

/// Representations and their shape, [B, K, H].
type Encoded = (Vec<f32>, [usize; 3]);

/// Answers a request for representations, if the request validator allows it.
pub(super) fn forward(session: &mut Session, message: Forward) -> Result<Reply, SecondaryError> {
    let asked = ReleaseRequest::Forward(message);
    if let Some(reply) = session.validator.repeated(&asked) {
        return Ok(reply);
    }
    let ReleaseRequest::Forward(message) = &asked else { unreachable!("it was made so above") };
    let rows = requested_rows(session, message)?;
    check_active(session, message.round, &message.active, message.attempt)?;
    session.validator.admit(message.round, Some(&rows), &message.active, message.attempt)?;
    let reply = represent_rows(session, message)?;
    session.validator.answered(asked, &reply);
    Ok(reply)
}

/// Encodes, clips and releases the neighbours of a message's rows.
pub(super) fn represent_rows(session: &mut Session, message: &Forward) -> Result<Reply, SecondaryError> {
    let rows = requested_rows(session, message)?;
    check_active(session, message.round, &message.active, message.attempt)?;
    session.linking.links(RowOrigin::from_round(message.round))?;
    let training = message.round.is_training();
    // Protected representations are computed only for the requested rows.
    let alone = training || !session.privacy.is_identity();
    if !alone && let Some((values, shape)) = encoded_once(session, message, &rows)? {
        return release(session, values, shape, message);
    }
    let batch = if alone {
        neighbour_batch(session, message, &rows)?
    } else {
        neighbour_batch(session, message, &filled(&rows))?
    };
    let available = batch.available;
    let mut pass = match message.round {
        Round::Train { step } => Pass::training(stream(
            session.terms.settings.seed,
            session.terms.party.number(),
            Purpose::Dropout,
            step,
        )),
        _ => Pass::evaluation(),
    };
    if training {
        // The encoder discards the last pass. If this pass is refused below, no pass can be learned from.
        session.model.pending = None;
    }
    let encoded = session.model.encoder.forward(&batch, &mut pass, training);
    let encoded = blank_padding(session, encoded, &batch);
    let encoded = if alone { encoded } else { encoded.narrow(0, 0, rows.len()) };
    let (shape, active) = (encoded.dims(), message.active.len());
    if !session.privacy.is_identity() {
        count_unbounded(session, &encoded);
    }
    let mut graph = None;
    let bounded = if session.privacy.is_identity() {
        encoded
    } else if training {
        // The gradient passes through the clipping; noise and rounding do not change it.
        let leaf = encoded.autodiff().require_grad();
        let bounded = session.privacy.clip(leaf.clone(), active);
        graph = Some(Bounded { encoded: leaf, bounded: bounded.clone() });
        bounded.without_autodiff()
    } else {
        session.privacy.clip(encoded, active)
    };
    let reply = release(session, host(bounded), shape, message)?;
    if training {
        let asked = received::forward(message);
        session.model.pending = Some(Pending { round: message.round, asked, shape, available, graph });
    }
    Ok(reply)
}

/// Returns the model's representations of the rows of an evaluation, if several of these rows have the
/// same neighbours.
fn encoded_once(
    session: &mut Session,
    message: &Forward,
    rows: &[usize],
) -> Result<Option<Encoded>, SecondaryError> {
    let Some(links) = session.linking.run.links().filter(|_| session.linking.queries.is_none()) else {
        return Ok(None);
    };
    let Some(plan) = session.model.cache.plan(message.round, rows, links, session.validator.schedule())
    else {
        return Ok(None);
    };
    let mut fresh = Vec::new();
    if !plan.fresh.is_empty() {
        let batch = neighbour_batch(session, message, &filled(&plan.fresh))?;
        let encoded = session.model.encoder.forward(&batch, &mut Pass::evaluation(), false);
        let encoded = blank_padding(session, encoded, &batch);
        let [_, positions, width] = encoded.dims();
        session.model.cache.set_block([positions, width]);
        fresh = host(encoded);
        fresh.truncate(plan.fresh.len() * positions * width);
    }
    let [positions, width] = session.model.cache.block();
    Ok(Some((session.model.cache.complete(&plan, fresh), [rows.len(), positions, width])))
}

/// Returns the model's representations of these rows' neighbours at evaluation, before clipping, noise
/// and mask: [n, K·H].
pub(super) fn encoded(session: &mut Session, rows: &[usize]) -> Result<Matrix<f32>, SecondaryError> {
    let (round, named) = (Round::Probe { batch: u32::MAX }, rows.iter().map(|&row| row as u32).collect());
    let message = Forward { round, rows: named, active: Vec::new(), attempt: None };
    let batch = neighbour_batch(session, &message, rows)?;
    let encoded = session.model.encoder.forward(&batch, &mut Pass::evaluation(), false);
    let encoded = blank_padding(session, encoded, &batch);
    let [_, positions, width] = encoded.dims();
    Ok(Matrix::new(positions * width, host(encoded)))
}

/// Returns the scaled features and keys of the record that is shown first for each of these rows. If no
/// record is shown for a row, the most similar record is used.
pub(super) fn nearest_records(session: &Session, rows: &[usize]) -> Result<[Matrix<f32>; 2], SecondaryError> {
    let links = session.linking.links(RowOrigin::Run)?;
    let shown = shown(session, rows)?.into_iter().zip(rows);
    let nearest: Vec<usize> =
        shown.map(|(shown, &row)| shown.first().copied().unwrap_or(links.row(row)[0] as usize)).collect();
    let scaled = &session.records.prepared.scaled;
    Ok([scaled.features.select_rows(&nearest), scaled.keys.select_rows(&nearest)])
}

/// Returns the records that are shown for each of these rows. If records are chosen again for each
/// release, the result is the choice from the whole table.
pub(super) fn shown(session: &Session, rows: &[usize]) -> Result<Vec<Vec<usize>>, SecondaryError> {
    let links = session.linking.links(RowOrigin::Run)?;
    let shown = |row: usize| -> Vec<usize> {
        match &session.release.chosen {
            Some(SingleReleaseRecords { places, .. }) => {
                places[row].iter().flatten().map(|&(record, _)| record as usize).collect()
            }
            None => links.row(row)[..links.available()].iter().map(|&record| record as usize).collect(),
        }
    };
    Ok(rows.iter().map(|&row| shown(row)).collect())
}

/// Counts the blocks that clipping sets to zero because they hold NaN or infinity. The party's operator
/// is warned at the first such block, and gets the total at the end.
fn count_unbounded(session: &mut Session, encoded: &Tensor<3>) {
    let found = host(unbounded_blocks(encoded).float()).iter().filter(|&&one| one > 0.0).count();
    if found > 0 && session.release.blanked == 0 {
        (session.tell)(format!(
            "{found} of {} blocks hold NaN or infinity and are sent as zeros: the model diverged, or a record holds \
             values that it cannot represent",
            encoded.dims()[0]
        ));
    }
    session.release.blanked += found as u64;
}

/// Runs the backward pass of the pending representation, and one step of the optimiser.
pub(super) fn learn(session: &mut Session, message: Backward) -> Result<(), SecondaryError> {
    let nothing = || SecondaryError::NothingToLearn { round: message.round };
    let pending = session.model.pending.take_if(|pending| pending.round == message.round);
    let Pending { asked, shape, available, graph, .. } = pending.ok_or_else(nothing)?;
    if message.gradient.shape() != shape {
        let rule = format!("must have the shape of the representation, {shape:?}");
        let value = format!("{:?}", message.gradient.shape());
        return Err(SecondaryError::Message { field: "gradient", rule, value });
    }
    if !message.gradient.is_finite() {
        let rule = "must be finite".to_string();
        return Err(SecondaryError::Message { field: "gradient", rule, value: "not".into() });
    }
    if !(message.learning_rate.is_finite() && message.learning_rate >= 0.0) {
        let rule = "must be a number of at least 0".to_string();
        let value = message.learning_rate.to_string();
        return Err(SecondaryError::Message { field: "learning_rate", rule, value });
    }
    if !session.privacy.is_identity() {
        session.received.gradient(&asked, &message);
    }
    let device = session.model.device.clone().without_autodiff();
    let gradient = message.gradient.into_values_by(fet_kernels::copy);
    let mut gradient = Tensor::from_data(TensorData::new(gradient, shape), &device);
    if let Some(Bounded { encoded, bounded }) = graph {
        let mut gradients = (bounded * gradient.autodiff()).sum().backward();
        gradient = encoded.grad_remove(&mut gradients).ok_or_else(nothing)?;
    }
    let [rows, neighbours, width] = shape;
    if available < neighbours && !session.method.pooled {
        let tail = [0..rows, available..neighbours, 0..width];
        gradient = gradient.slice_fill(tail, 0.0);
    }
    session.model.encoder.backward(gradient);
    session.model.encoder.learner_mut().step(message.learning_rate);
    Ok(())
}

/// Returns the rows of a message as indices, and checks that they are rows of the primary.
fn requested_rows(session: &Session, message: &Forward) -> Result<Vec<usize>, SecondaryError> {
    let rows: Vec<usize> = message.rows.iter().map(|&row| row as usize).collect();
    let all = match RowOrigin::from_round(message.round) {
        RowOrigin::Run => session.terms.rows,
        of => session.linking.links(of)?.rows(),
    };
    match rows.iter().find(|&&row| row >= all) {
        _ if rows.is_empty() || rows.len() > all => Err(SecondaryError::Message {
            field: "rows",
            rule: format!("must name 1 to {all} rows"),
            value: format!("{} of them", rows.len()),
        }),
        None => Ok(rows),
        Some(row) => Err(SecondaryError::Message {
            field: "rows",
            rule: format!("must be below {all}, the number of the primary's records"),
            value: row.to_string(),
        }),
    }
}

/// Returns each distinct neighbour of the batch once, and the neighbour of each place. `rows` are those
/// of the message, or more to fill a batch.
fn neighbour_batch(
    session: &mut Session,
    message: &Forward,
    rows: &[usize],
) -> Result<NeighbourBatch, SecondaryError> {
    if session.linking.queries.is_some() {
        return selected_batch(session, message);
    }
    let round = message.round;
    let links = session.linking.links(RowOrigin::from_round(round))?;
    let listed = links.neighbours();
    let shown = session.validator.schedule().shown(round, listed);
    let mut distinct: Vec<usize> = Vec::new();
    let mut slots: Vec<i32> = Vec::with_capacity(rows.len() * listed);
    for &row in rows {
        for &record in links.row(row) {
            let place = &mut session.model.scratch[record as usize];
            if *place == u32::MAX {
                *place = distinct.len() as u32;
                distinct.push(record as usize);
            }
            slots.push(*place as i32);
        }
    }
    for &record in &distinct {
        session.model.scratch[record] = u32::MAX;
    }
    if !round.is_training() {
        distinct = filled(&distinct);
    }
    let similarities: Option<Vec<f32>> = (session.method.pooled && links.all_similarities().is_some())
        .then(|| rows.iter().flat_map(|&row| links.similarities(row).unwrap_or_default()).copied().collect());
    let device = device_for(session, round);
    let tensor = |slots: &[i32]| Tensor::<1, Int>::from_data(TensorData::from(slots), &device);
    let (keys, features) = (&session.records.prepared.scaled.keys, &session.records.prepared.scaled.features);
    let (keys, features) = (gather(keys, &distinct, &device), gather(features, &distinct, &device));
    if let Some(places) = shown {
        return Ok(NeighbourBatch {
            keys,
            features,
            slots: tensor(&those(&slots, listed, &places)),
            rows: rows.len(),
            neighbours: places.len(),
            available: places.partition_point(|&place| place < links.available()),
            similarities: similarities.map(|all| those(&all, listed, &places)),
            listed: Some(NeighbourLists { slots: tensor(&slots), places }),
        });
    }
    Ok(NeighbourBatch {
        keys,
        features,
        slots: tensor(&slots),
        rows: rows.len(),
        neighbours: listed,
        available: links.available(),
        similarities,
        listed: None,
    })
}

/// Returns the batch of neighbours chosen for this release, where a place may be empty.
fn selected_batch(session: &mut Session, message: &Forward) -> Result<NeighbourBatch, SecondaryError> {
    let places = sampled_places(session, message)?;
    let mut distinct: Vec<usize> =
        places.iter().flatten().flatten().map(|&(record, _)| record as usize).collect();
    distinct.sort_unstable();
    distinct.dedup();
    for (place, &record) in distinct.iter().enumerate() {
        session.model.scratch[record] = place as u32;
    }
    let nobody = distinct.len() as i32;
    let slots: Vec<i32> = places
        .iter()
        .flatten()
        .map(|place| place.map_or(nobody, |(record, _)| session.model.scratch[record as usize] as i32))
        .collect();
    distinct.iter().for_each(|&record| session.model.scratch[record] = u32::MAX);
    // A blank record has no weight; without similarities all other records have equal weights.
    let similar = session.linking.linker.about().similarities;
    let similarity = |place: &Option<(u32, f32)>| match *place {
        Some((_, similarity)) if similar => similarity,
        Some(_) => 0.0,
        None => f32::NEG_INFINITY,
    };
    let similarities = session.method.pooled.then(|| places.iter().flatten().map(similarity).collect());
    let device = device_for(session, message.round);
    let with_nobody = |table: &Matrix<f32>| {
        let zeros = Tensor::zeros([1, table.columns()], &device);
        if distinct.is_empty() {
            zeros
        } else {
            Tensor::cat(vec![gather(table, &distinct, &device), zeros], 0)
        }
    };
    let (mut keys, mut features) = (
        with_nobody(&session.records.prepared.scaled.keys),
        with_nobody(&session.records.prepared.scaled.features),
    );
    let mut slots = Tensor::<1, Int>::from_data(TensorData::from(slots.as_slice()), &device);
    if message.round.is_training() {
        // A dropout mask belongs to a place, never to the n-th distinct record. Otherwise an added record
        // would shift the masks of all other records, and change rows that do not have it as a neighbour.
        (keys, features) = (keys.select(0, slots.clone()), features.select(0, slots));
        slots = Tensor::arange(0..keys.dims()[0] as i64, &device);
    }
    Ok(NeighbourBatch {
        keys,
        features,
        slots,
        rows: message.rows.len(),
        neighbours: session.method.neighbours,
        available: session.method.neighbours,
        similarities,
        listed: None,
    })
}

/// Returns the records that fill the places of the rows of a message. If every row is released once, in
/// several batches, the first batch selects for all rows, so that the limit on the rows of a record holds
/// over all batches.
fn sampled_places(session: &mut Session, message: &Forward) -> Result<Places, SecondaryError> {
    let Round::Once { .. } = message.round else {
        return choose(session, message, &session.sample(message));
    };
    let chosen = match session.release.chosen.take() {
        Some(chosen) => chosen,
        None => {
            let (round, rows) = (Round::Once { batch: 0 }, (0..session.terms.rows as u32).collect());
            let whole = Forward { round, rows, ..message.clone() };
            let sample = session.sample(&whole);
            SingleReleaseRecords { places: choose(session, &whole, &sample)?, sample }
        }
    };
    let places = message.rows.iter().map(|&row| chosen.places[row as usize].clone()).collect();
    session.release.chosen = Some(chosen);
    Ok(places)
}

/// Draws the records of a release. The draw is derived from a digest of everything that determines the
/// release: another release of the same round draws independently.
fn choose(session: &Session, message: &Forward, sample: &[u8; 32]) -> Result<Places, SecondaryError> {
    let rows: Vec<usize> = message.rows.iter().map(|&row| row as usize).collect();
    let queries = session.linking.queries.as_ref().ok_or(SecondaryError::NotLinked)?.select_rows(&rows);
    // A simulated seed is not a secret: its draw depends only on the round.
    let drawn_from: &[u8] = if session.credentials.seed.is_simulated() { &[] } else { sample };
    let mut sampling =
        session.credentials.seed.stream_over(Purpose::Sampling, message.round.key(), drawn_from);
    let mut sampler = Sampler {
        linker: session.linking.linker.as_ref(),
        neighbours: session.method.neighbours,
        selection: session.privacy.selection(),
        linking_seed: linking_seed(session.terms.settings.seed, session.terms.party),
        sampling: &mut sampling,
    };
    select(&mut sampler, &queries, &session.records.prepared.raw_keys)
        // Here the party's keys are on both sides of the linker: any error may quote them.
        .map_err(|error| {
            (session.tell)(error.to_string());
            SecondaryError::UnusableKeys
        })
}

/// Sets positions that only repeat a neighbour to zero; a pooled representation has no such position.
fn blank_padding(session: &Session, encoded: Tensor<3>, batch: &NeighbourBatch) -> Tensor<3> {
    if batch.available == batch.neighbours || session.method.pooled {
        return encoded;
    }
    let width = encoded.dims()[2];
    encoded.slice_fill([0..batch.rows, batch.available..batch.neighbours, 0..width], 0.0)
}

/// Returns the device for a round: with autodiff in training.
fn device_for(session: &Session, round: Round) -> burn::tensor::Device {
    if round.is_training() {
        session.model.device.clone()
    } else {
        session.model.device.clone().without_autodiff()
    }
}

/// Refuses a set of parties without this party, and an attempt that does not fit the aggregator.
pub(super) fn check_active(
    session: &Session,
    round: Round,
    active: &[u32],
    attempt: Option<u32>,
) -> Result<(), SecondaryError> {
    if !round.is_sound() || attempt.is_some_and(|attempt| attempt >= 1 << 20) {
        let rule = "must be a valid round and attempt of this run".to_string();
        let value = format!("{round}, attempt {attempt:?}");
        return Err(SecondaryError::Message { field: "round", rule, value });
    }
    session.terms.check_parties("active", active)?;
    if attempt.is_some() != session.method.sum.is_some() {
        let rule = "must be present if and only if the aggregator sees only sums".to_string();
        return Err(SecondaryError::Message { field: "attempt", rule, value: format!("{attempt:?}") });
    }
    if attempt.is_some() && active.len() < 2 {
        return Err(SecondaryError::Alone);
    }
    if attempt.is_some() {
        sums::check_quorum(session, round, active)?;
    }
    Ok(())
}

/// Returns the reply with the clipped representation: noisy, and masked if it is part of a sum.
pub(super) fn release(
    session: &mut Session,
    bounded: Vec<f32>,
    shape: [usize; 3],
    message: &Forward,
) -> Result<Reply, SecondaryError> {
    let block = |values| Block::new(shape, values).expect("a tensor fills its shape");
    let over = secure_aggregation::over_rows(&message.rows, shape);
    let attempt =
        message.attempt.map(|number| Attempt { round: message.round, active: &message.active, number, over });
    if session.privacy.is_identity() {
        session.release.account.unprotected(session.privacy.as_ref())?;
    }
    if session.privacy.is_identity() && attempt.is_none() {
        return Ok(Reply::Representation(block(bounded)));
    }
    // Another attempt at a round is another release with its own noise.
    let number = u64::from(message.attempt.unwrap_or(0));
    // New records have other keys in each request.
    let keys: &[u8] = match RowOrigin::from_round(message.round) {
        RowOrigin::Run => &[],
        RowOrigin::New => session.received.all(),
    };
    let mut drawn_from = content(keys, &over, &message.active, &[]);
    if !session.privacy.is_identity() {
        let context = session.release_context(attempt.is_some());
        let released = content(&context, &over, &message.active, &bounded);
        session.count_release(message, &released)?;
        // A simulated seed is not a secret. Its noise does not depend on the values, so that devices that
        // round differently can be compared.
        if !session.credentials.seed.is_simulated() {
            drawn_from = released;
        }
    }
    let round = message.round.key() ^ (number << 40);
    let mut noise = session.credentials.seed.stream_over(Purpose::Noise, round, &drawn_from);
    let mut release = Release {
        active: message.active.len(),
        summed: attempt.is_some(),
        block: shape[1] * shape[2],
        noise: &mut noise,
    };
    let share = session.privacy.add_noise(bounded, &mut release);
    if let Some(attempt) = &attempt {
        return hide(session, share, shape, attempt).map(Reply::Masked);
    }
    let values = match share {
        Share::Floats(values) => values,
        Share::Integers { values, scale } => {
            values.into_iter().map(|units| (f64::from(units) / scale) as f32).collect()
        }
    };
    Ok(Reply::Representation(block(values)))
}

/// Masks a part of a sum of representations.
fn hide(
    session: &mut Session,
    share: Share,
    shape: [usize; 3],
    attempt: &Attempt<'_>,
) -> Result<Masked, SecondaryError> {
    let sum = session.method.sum.ok_or(SumError::NotAgreed)?;
    let active = attempt.active.len();
    let form = session.privacy.form(active, shape[1] * shape[2]);
    let units = secure_aggregation::units(sum, form, active)?;
    let mut words: Vec<u32> = match share {
        Share::Integers { values, .. } => values.into_iter().map(|value| value as u32).collect(),
        Share::Floats(values) => {
            let range = if form.is_none() { sum.range } else { f64::INFINITY };
            check_range(&values, range, "representation")?;
            values.into_iter().map(|value| u32::from_signed(units.round(value))).collect()
        }
    };
    let commitment = sums::mask(session, &mut words, units.bits, attempt, REPRESENTATION)?;
    Ok(Masked { shape, words, bits: units.bits, commitment })
}

/// Returns the parameters that the method averages, in the clear or hidden in a sum.
pub(super) fn share_parameters(
    session: &mut Session,
    message: ShareParameters,
) -> Result<Reply, SecondaryError> {
    let asked = ReleaseRequest::Share(message.clone());
    if let Some(reply) = session.validator.repeated(&asked) {
        return Ok(reply);
    }
    let parameters = shared_parameters(session)?;
    check_active(session, message.round, &message.active, message.attempt)?;
    session.validator.admit(message.round, None, &message.active, message.attempt)?;
    let reply = shared_reply(session, &message, parameters)?;
    session.validator.answered(asked, &reply);
    Ok(reply)
}

/// Returns the averaged parameters in the clear, or masked for a sum.
fn shared_reply(
    session: &mut Session,
    message: &ShareParameters,
    parameters: Parameters,
) -> Result<Reply, SecondaryError> {
    let Some(number) = message.attempt else { return Ok(Reply::Parameters(parameters)) };
    let over = secure_aggregation::over_parameters(parameters.values().len());
    let attempt = Attempt { round: message.round, active: &message.active, number, over };
    let units = secure_aggregation::parameters(attempt.active.len())?;
    check_range(parameters.values(), PARAMETER_RANGE, "parameter")?;
    let mut words: Vec<u64> =
        parameters.values().iter().map(|&value| u64::from_signed(units.round(value))).collect();
    let commitment = sums::mask(session, &mut words, units.bits, &attempt, PARAMETERS)?;
    Ok(Reply::MaskedParameters(Words { words, commitment }))
}

/// Loads averaged parameters; refuses parameters that the method does not average.
pub(super) fn load_parameters(session: &mut Session, message: &LoadParameters) -> Result<(), SecondaryError> {
    let own = shared_parameters(session)?;
    let names = |parameters: &Parameters| -> Vec<(String, Vec<usize>)> {
        let segments = parameters.segments().iter();
        segments.map(|segment| (segment.name.clone(), segment.shape.clone())).collect()
    };
    let (expected, found) = (names(&own), names(&message.parameters));
    if expected != found {
        let rule = format!("must be those that the method averages, {}", list(&expected));
        return Err(SecondaryError::Message { field: "parameters", rule, value: list(&found) });
    }
    if !message.parameters.values().iter().all(|value| value.is_finite()) {
        let rule = "must be finite".to_string();
        return Err(SecondaryError::Message { field: "parameters", rule, value: "not".into() });
    }
    session.validator.averaged(message.round)?;
    if !session.privacy.is_identity() {
        session.received.averages(message);
    }
    Ok(session.model.encoder.learner_mut().load(&message.parameters)?)
}

/// Returns the parameters that the method averages.
fn shared_parameters(session: &Session) -> Result<Parameters, SecondaryError> {
    let prefix = session.method.averaged.ok_or(SecondaryError::NothingShared)?;
    Ok(session.model.encoder.learner().parameters().with_prefix(prefix))
}

/// Selects these places of rows of `width` values.
fn those<T: Copy>(rows: &[T], width: usize, places: &[usize]) -> Vec<T> {
    rows.chunks_exact(width).flat_map(|row| places.iter().map(|&place| row[place])).collect()
}

/// Returns a digest of a release and of everything that determines it. The noise is derived from the digest,
/// so that a repeated release has the same noise, and any other release has other noise. The values are
/// determined by the other content; they are included for devices that do not compute the same values every
/// time.
fn content(context: &[u8], over: &[u8; 32], active: &[u32], values: &[f32]) -> [u8; 32] {
    let mut hash =
        Sha256::new().chain_update(b"fet release, 2").chain_update((context.len() as u64).to_le_bytes());
    hash.update(context);
    hash.update(over);
    hash.update((active.len() as u64).to_le_bytes());
    active.iter().for_each(|party| hash.update(party.to_le_bytes()));
    update(&mut hash, values);
    hash.finalize().into()
}

fn list(names: &[(String, Vec<usize>)]) -> String {
    shortened(names.iter())
}

/// Refuses values outside the range of a sum before they wrap around.
fn check_range(values: &[f32], range: f64, what: &'static str) -> Result<(), SecondaryError> {
    // The refusal reaches the primary, so it does not contain the value.
    let outside = values.iter().any(|value| !value.is_finite() || f64::from(value.abs()) > range);
    if outside { Err(SecondaryError::OutOfRange { what, range }) } else { Ok(()) }
}
