//! `digits`: handwritten digits whose rows of pixels belong to eight parties.

use super::shuffled;
use crate::archive;
use crate::draw::Draw;
use crate::error::BenchmarkError;
use crate::package::Sources;
use crate::table::Table;

/// Pixels on a side of an image, and number of parties.
const SIDE: usize = 8;
/// Time between two scans, in seconds.
const BETWEEN: f64 = 10.0;
/// Standard deviation of a clock's error, in seconds.
const CLOCK: f64 = 3.0;

pub(super) fn prepare(sources: &Sources) -> Result<Vec<Table>, BenchmarkError> {
    let packed = sources.member("sklearn/datasets/data/digits.csv.gz")?;
    let lines = archive::gunzip(&packed, "digits.csv.gz")?;
    let header: Vec<String> =
        (0..SIDE * SIDE).map(|pixel| format!("p{pixel}")).chain(["digit".into()]).collect();
    let all = Table::read("digits.csv", &[header.join(",").into_bytes(), b"\n".to_vec(), lines].concat())?;
    let number = all.rows.len();
    let scanned = shuffled(number, "digits: order of the scans");

    let mut prepared = Vec::new();
    let mut truths = Vec::new();
    for party in 0..SIDE {
        let file = match party {
            0 => "top.csv".to_string(),
            party => format!("row{party}-true.csv"),
        };
        let pixels = &all.columns[party * SIDE..(party + 1) * SIDE];
        let label = (party == 0).then_some("digit");
        let mut table =
            Table::new(&file, ["seconds"].into_iter().chain(pixels.iter().map(String::as_str)).chain(label));
        let mut draw = Draw::new(&format!("digits: clock of party {party}"));
        for (scan, &row) in scanned.iter().enumerate() {
            let seconds = format!("{:.1}", BETWEEN * (scan + 1) as f64 + CLOCK * draw.normal());
            let cells = (party * SIDE..(party + 1) * SIDE).chain(label.map(|_| SIDE * SIDE));
            let cells = cells.map(|column| whole(&all.rows[row][column]));
            table.push([seconds].into_iter().chain(cells));
        }
        if party == 0 {
            prepared.push(table);
        } else {
            let order = shuffled(number, &format!("digits: order of party {party}"));
            prepared.push(table.picked(&format!("row{party}.csv"), &order));
            truths.push(table);
        }
    }
    prepared.extend(truths);
    Ok(prepared)
}

/// Returns a whole number, which the file writes as `5.000000000000000000e+00`.
fn whole(cell: &str) -> String {
    cell.parse::<f64>().map_or_else(|_| cell.to_string(), |value| value.to_string())
}
