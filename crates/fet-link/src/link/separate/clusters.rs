//! Clusters of matching rows in more than two tables; all rows of a cluster are candidates of each other.

use std::collections::{HashMap, HashSet};

use anyhow::Context;
use fet_linkage::threshold::FEWEST;

use super::encodings::Encodings;
use super::search::{LinkMatchArguments, search};
use crate::link::arguments::Threshold;
use crate::link::choice::{self, Choice};
use crate::link::pairs;
use fet_io::input::input;

/// Row of a table, as (table, row).
type Member = (usize, u32);

/// Finds and writes the clusters of `tables`, and returns the summary as text.
pub(super) fn write(arguments: &LinkMatchArguments, tables: &[Encodings]) -> anyhow::Result<String> {
    let LinkMatchArguments { encodings: names, out, all_pairs, .. } = arguments;
    let threshold = arguments.threshold;
    let mut text = String::new();
    let mut candidates: Vec<(Member, Member, f32)> = Vec::new();
    for first in 0..tables.len() {
        let (queries, mut own) = (&tables[first], None);
        for second in first + 1..tables.len() {
            let records = &tables[second].filters;
            let take = choice::CANDIDATES.min(records.rows());
            let links = search(queries, records, take, *all_pairs)?;
            let (floor, records) = (Some(0.0), records.rows());
            let (assign, probabilities) = (None, false);
            let choice =
                Choice { floor, probabilities, threshold, assign, wanted: take, searched: take, records };
            if own.is_none() && threshold == Threshold::Auto && queries.filters.rows() > 1 {
                own = Some(search(queries, &queries.filters, 2, *all_pairs)?);
            }
            let chosen = choice.select(&links, || Ok(own.clone()))?;
            if chosen.is_open() {
                return Err(input(format!(
                    "{}: no threshold can be estimated from {} rows (the estimate needs {FEWEST}). Set --threshold \
                     NUMBER.",
                    names[first].display(),
                    links.rows()
                )));
            }
            text += &format!("{} with {}: ", names[first].display(), names[second].display());
            text += &match chosen.threshold() {
                Some(at) if chosen.is_doubtful() => {
                    format!(
                        "threshold {at:.4}; this estimate is doubtful, so check some pairs or set --threshold NUMBER\n"
                    )
                }
                Some(at) => format!("threshold {at:.4}\n"),
                None if threshold == Threshold::Auto => "no match is expected\n".to_string(),
                None => "no threshold\n".to_string(),
            };
            let written = chosen.written(&links);
            for row in 0..links.rows() {
                let of_row = written.row(row).map(|(_, found)| {
                    ((first, row as u32), (second, found.record), found.similarity.unwrap_or_default())
                });
                candidates.extend(of_row);
            }
        }
    }
    let clusters = clusters(candidates);
    let rows = |file: &mut dyn std::io::Write| {
        writeln!(file, "cluster,file,row")?;
        for (cluster, members) in clusters.iter().enumerate() {
            for (table, row) in members {
                writeln!(file, "{cluster},{},{row}", pairs::quoted(&names[*table].display().to_string()))?;
            }
        }
        Ok(())
    };
    pairs::write_output(out, rows).with_context(|| format!("cannot write {}", out.display()))?;
    let whole = clusters.iter().filter(|members| members.len() == tables.len()).count();
    text += &format!("{} clusters, {whole} of them with a row of each table\n", clusters.len());
    Ok(text + &format!("clusters written to {}\n", out.display()))
}

/// Builds clusters, joining the most similar candidates first.
///
/// Two clusters merge if no table has a row in both, and every row of one cluster is a candidate of every row
/// of the other. Clusters and their members are in the order of tables and rows.
fn clusters(mut candidates: Vec<(Member, Member, f32)>) -> Vec<Vec<Member>> {
    candidates.sort_by(|a, b| b.2.total_cmp(&a.2).then((a.0, a.1).cmp(&(b.0, b.1))));
    let alike: HashSet<(Member, Member)> = candidates.iter().map(|&(a, b, _)| (a, b)).collect();
    let mut of: HashMap<Member, usize> = HashMap::new();
    let mut groups: Vec<Vec<Member>> = Vec::new();
    for (a, b, _) in candidates {
        let mut group = |member: Member| {
            *of.entry(member).or_insert_with(|| {
                groups.push(vec![member]);
                groups.len() - 1
            })
        };
        let (one, two) = (group(a), group(b));
        let may = |(a, b): (Member, Member)| a.0 != b.0 && alike.contains(&(a.min(b), a.max(b)));
        let all = || groups[one].iter().flat_map(|&a| groups[two].iter().map(move |&b| (a, b)));
        if one != two && all().all(may) {
            let joined = std::mem::take(&mut groups[two]);
            joined.iter().for_each(|member| {
                of.insert(*member, one);
            });
            groups[one].extend(joined);
        }
    }
    groups.retain(|group| group.len() > 1);
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups.sort_unstable();
    groups
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Member = (0, 0);
    const B: Member = (1, 0);
    const C: Member = (2, 0);

    #[test]
    fn equal_rows_form_one_cluster() {
        assert_eq!(clusters(vec![(A, B, 0.9), (A, C, 0.5), (B, C, 0.8)]), [vec![A, B, C]]);
        assert_eq!(clusters(vec![(A, B, 0.7), (B, C, 0.8)]), [vec![B, C]], "A and C are not candidates");
        assert!(clusters(Vec::new()).is_empty());
    }

    #[test]
    fn clusters_have_at_most_one_row_of_a_table() {
        let other = (1, 7);
        let found = clusters(vec![(A, B, 0.9), (A, other, 0.8), (A, C, 0.7), (other, C, 0.6), (B, C, 0.5)]);
        assert_eq!(found, [vec![A, B, C]]);
    }
}
