//! Matching at the linkage unit: encodings of two tables become pairs, encodings of more tables become
//! clusters.

use std::time::Instant;

use anyhow::Context;

use super::clusters;
use super::encodings::Encodings;
use super::search::{LinkMatchArguments, search};
use crate::link::arguments::Threshold;
use crate::link::choice::{CANDIDATES, Choice};
use crate::link::{pairs, summary, truth};
use fet_io::input::input;
use fet_io::memory::peak_memory;

/// Compares the encodings, writes the result, and returns the summary as text.
pub(super) fn compare(arguments: &LinkMatchArguments) -> anyhow::Result<String> {
    pairs::check_output(&arguments.out, arguments.encodings.iter().chain(&arguments.truth))?;
    let tables =
        arguments.encodings.iter().map(|path| Encodings::read(path)).collect::<Result<Vec<_>, _>>()?;
    agree(arguments, &tables)?;
    if tables.len() > 2 {
        let of_two = [
            ("--assign", arguments.assign.is_some()),
            ("--truth", arguments.truth.is_some()),
            ("--neighbours", arguments.neighbours.get() > 1),
        ];
        if let Some((name, _)) = of_two.iter().find(|(_, given)| *given) {
            return Err(input(format!("{name}: works only with two tables; there are {}", tables.len())));
        }
        return clusters::write(arguments, &tables);
    }
    match_two(arguments, &tables[0], &tables[1])
}

/// Refuses encodings that cannot be compared.
fn agree(arguments: &LinkMatchArguments, tables: &[Encodings]) -> anyhow::Result<()> {
    if tables.len() < 2 {
        return Err(input("fet link match: name the encodings of two or more tables"));
    }
    let places: Vec<_> = arguments.encodings.iter().map(|path| path.canonicalize().ok()).collect();
    for (at, path) in arguments.encodings.iter().enumerate() {
        if places[at].is_some() && places[..at].contains(&places[at]) {
            return Err(input(format!("{}: is named twice; name each table once", path.display())));
        }
    }
    let (first, path) = (&tables[0], arguments.encodings[0].display());
    // Files from clkhash, and files under a short secret, lack the fingerprint of their schema and secret.
    let mut all = tables.iter().zip(&arguments.encodings);
    let named = all.clone().find(|(table, _)| table.fingerprint.is_some());
    if let Some((_, nameless)) = all.find(|(table, _)| table.fingerprint.is_none()) {
        fet_io::note!(
            "warning: {} does not name its schema and secret; the command cannot check that the encodings match",
            nameless.display()
        );
    }
    for (table, other) in tables.iter().zip(&arguments.encodings).skip(1) {
        let other = other.display();
        if (table.filters.bits(), table.score) != (first.filters.bits(), first.score) {
            return Err(input(format!(
                "{other}: must be encoded like {path}, with {} bits; it has {} bits, or another similarity measure",
                first.filters.bits(),
                table.filters.bits()
            )));
        }
        if let Some((named, path)) = named
            && table.fingerprint.is_some()
            && table.fingerprint != named.fingerprint
        {
            return Err(input(format!(
                "{other}: was encoded with another schema or secret than {}. Encode both with the same schema file and \
                 secret.",
                path.display()
            )));
        }
    }
    Ok(())
}

fn match_two(
    arguments: &LinkMatchArguments,
    primary: &Encodings,
    secondary: &Encodings,
) -> anyhow::Result<String> {
    let truth = arguments
        .truth
        .as_deref()
        .map(|path| truth::read(path, &None, primary.filters.rows(), secondary.filters.rows()))
        .transpose()?;
    let wanted = arguments.neighbours.get();
    let records = secondary.filters.rows();
    if wanted > records {
        return Err(input(format!(
            "--neighbours {wanted}: must be at most {records}, the number of rows of the second \
         table"
        )));
    }
    let start = Instant::now();
    let searched = if arguments.assign.is_some() { wanted.max(CANDIDATES.min(records)) } else { wanted };
    let all = arguments.all_pairs;
    let reached =
        if arguments.threshold == Threshold::Auto { searched.max(CANDIDATES.min(records)) } else { searched };
    let links = search(primary, &secondary.filters, reached, all)?;
    let seconds = start.elapsed().as_secs_f64();
    let choice = Choice {
        floor: Some(0.0),
        probabilities: false,
        threshold: arguments.threshold,
        assign: arguments.assign,
        wanted,
        searched,
        records,
    };
    let own = || (primary.filters.rows() > 1).then(|| search(primary, &primary.filters, 2, all)).transpose();
    let chosen = choice.select(&links, own)?;
    let count = pairs::write(&arguments.out, &chosen.written(&links), None)
        .with_context(|| format!("cannot write {}", arguments.out.display()))?;
    let mut text = format!(
        "compared {} with {records} rows: {seconds:.2} s, {:.0} rows/s, peak memory {:.0} MB\n",
        links.rows(),
        links.rows() as f64 / seconds.max(1e-9),
        peak_memory() as f64 / 1e6,
    );
    text += &summary::text(&chosen.written(&links), records);
    text += &chosen.describe(&links);
    text += &truth.as_ref().map(|truth| chosen.quality(&links, truth)).unwrap_or_default();
    Ok(text + &format!("{count} pairs written to {}\n", arguments.out.display()))
}
