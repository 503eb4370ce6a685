//! Runs the attack of [`fet_linkage::patterns`] on a table with known truth, and so measures how much filters
//! reveal to an attacker without the secret.
//!
//! ```text
//! grep -v dup dataset2.csv > public.csv
//! cargo run --release -p fet-linkage --example patterns -- dataset4a.csv public.csv columns=given_name,surname target=surname
//! cargo run --release -p fet-linkage --example patterns -- dataset4a.csv public.csv columns=given_name,surname,date_of_birth \
//!     target=surname none diffusion=10 salt=date_of_birth:4
//! ```
//!
//! The program encodes the first table under a secret that the attack does not have. The second table is
//! public: other people of the same population. Both are CSV files without quotes, like those of FEBRL.
//! Settings are `weighting` (entropy or rarity), `bits`, `q`, `load`, `values` (number of frequent values to
//! look for), `least` (minimum number of records of a pattern), `starts` (number of searches for each bit)
//! and `seed`. Each further word is a hardening, or several joined by `+`.
//!
//! For each hardening the program prints the number of patterns found, the number of patterns with a value,
//! the number of records that they name, and the share of these records named correctly. For the records with
//! a frequent value it prints the share named correctly, and as the baseline the share that is correct if
//! every record gets the most frequent value.

#![expect(clippy::print_stdout, reason = "a program answers on standard output")]

use std::collections::HashMap;
use std::time::Instant;

use fet_linkage::bits::BitTable;
use fet_linkage::clk::{Encoder, EncoderSettings, Hardening, Salt, Schema};
use fet_linkage::patterns::{Effort, Public, attack};
use fet_linkage::text::{TextRows, normalise};

fn main() {
    if let Err(problem) = run() {
        println!("{problem}");
        std::process::exit(2);
    }
}

fn run() -> Result<(), String> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [encoded, public, rest @ ..] = words.as_slice() else {
        return Err("usage: patterns ENCODED.csv PUBLIC.csv columns=A,B target=A".into());
    };
    let known = ["columns", "target", "weighting", "bits", "q", "load", "values", "least", "starts", "seed"];
    let pairs = rest.iter().filter_map(|word| word.split_once('='));
    let set: HashMap<&str, &str> = pairs.filter(|(key, _)| known.contains(key)).collect();
    let text = |key: &str, usual: &'static str| set.get(key).copied().unwrap_or(usual).to_string();
    let number = |key: &str, usual: &'static str| {
        text(key, usual)
            .parse::<f64>()
            .map_err(|_| format!("{key}: must be a number; it is {}", text(key, usual)))
    };
    let columns: Vec<String> = text("columns", "given_name,surname").split(',').map(str::to_string).collect();
    let target = text("target", "surname");
    let place = |name: &str| {
        columns
            .iter()
            .position(|column| column == name)
            .ok_or_else(|| format!("{name} must be among columns={columns:?}"))
    };
    let base = Encoding {
        bits: number("bits", "2048")? as usize,
        q: number("q", "3")? as usize,
        load: number("load", "0.2")?,
        rarity: text("weighting", "entropy") == "rarity",
        hardening: Hardening::None,
        salt: None,
    };
    let effort = Effort {
        values: number("values", "30")? as usize,
        least: number("least", "12")? as usize,
        starts: number("starts", "1")? as usize,
        seed: number("seed", "1")? as u64,
    };
    let mut variants: Vec<String> = rest
        .iter()
        .filter(|word| !set.contains_key(word.split('=').next().unwrap_or_default()))
        .cloned()
        .collect();
    if variants.is_empty() {
        variants = ["none", "balanced", "xor-fold", "rehash", "diffusion=10"].map(str::to_string).to_vec();
    }
    let (ours, theirs) = (read(public, &columns)?, read(encoded, &columns)?);
    let at = place(&target)?;
    let column = |cells: &[String], at: usize| -> Vec<String> {
        cells.chunks_exact(columns.len()).map(|row| normalise(&row[at])).collect()
    };
    println!(
        "| hardening | patterns | aligned | named | of these right | right of frequent | most frequent | seconds |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for variant in variants {
        let encoding = base.hardened(&variant, &place)?;
        let start = Instant::now();
        let strata: Vec<String> = match encoding.salt {
            None => vec![String::new(); ours.len() / columns.len()],
            Some(Salt { column: by, signs }) => {
                let cut = |value: String| if signs > 0 { value.chars().take(signs).collect() } else { value };
                column(&ours, by).into_iter().map(cut).collect()
            }
        };
        let filters = encoding.encode(b"the secret of the owners", &theirs, columns.len());
        let guessed = encoding.encode(b"a secret of the attacker", &ours, columns.len());
        let public = Public { filters: &guessed, values: &column(&ours, at), strata: &strata };
        let named = attack(&filters, &public, &effort);
        let score = named.score(&column(&theirs, at));
        println!(
            "| {variant} | {} | {} | {} | {:.3} | {:.3} of {} | {:.3} | {:.0} |",
            named.patterns,
            named.aligned,
            score.named,
            score.precision,
            score.right,
            score.records,
            score.baseline,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}

#[derive(Clone)]
struct Encoding {
    bits: usize,
    q: usize,
    load: f64,
    rarity: bool,
    hardening: Hardening,
    salt: Option<Salt>,
}

impl Encoding {
    /// Returns this encoding with the hardening that `words` describe.
    fn hardened(&self, words: &str, place: &dyn Fn(&str) -> Result<usize, String>) -> Result<Self, String> {
        let mut own = self.clone();
        for word in words.split('+') {
            let (name, value) = word.split_once('=').unwrap_or((word, ""));
            match (name, value) {
                ("none", "") => {}
                ("balanced", "") => own.hardening = Hardening::Balanced,
                ("xor-fold", "") => own.hardening = Hardening::XorFold,
                ("rehash", "") => own.hardening = Hardening::Rehash,
                ("diffusion", t) => {
                    own.hardening = Hardening::Diffusion(
                        t.parse().map_err(|_| format!("diffusion={t} must be a number"))?,
                    );
                }
                ("salt", by) => {
                    let (column, signs) = by.split_once(':').unwrap_or((by, "0"));
                    let signs = signs.parse().map_err(|_| format!("salt={by} must end in a number"))?;
                    own.salt = Some(Salt { column: place(column)?, signs });
                }
                _ => {
                    return Err(format!(
                        "{word} must be none, balanced, xor-fold, rehash, diffusion=T or salt=COLUMN:SIGNS"
                    ));
                }
            }
        }
        Ok(own)
    }

    /// Returns the filters of records of `fields` cells. The schema is learned from these records.
    fn encode(&self, secret: &[u8], cells: &[String], fields: usize) -> BitTable {
        let settings = EncoderSettings { bits: self.bits, q: self.q, hardening: self.hardening };
        let insertions = self.load * self.bits as f64;
        let schema = if self.rarity {
            let mut schema = Schema::of_groups(fields, &[]);
            let encoder = Encoder::new(settings.clone(), secret, &schema);
            schema.rarity = Some(encoder.rarity(cells, insertions, &[]));
            schema
        } else {
            Schema::fit(&TextRows { cells, fields }, self.q, insertions, &[], &[])
        };
        Encoder::new(settings, secret, &schema).salted(self.salt).encode(cells)
    }
}

/// Reads the named columns of a table, row by row.
fn read(path: &str, columns: &[String]) -> Result<Vec<String>, String> {
    let text = std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"))?;
    let mut lines = text.lines().map(|line| line.split(',').map(str::trim).collect::<Vec<_>>());
    let header = lines.next().unwrap_or_default();
    let place = |name: &String| {
        header
            .iter()
            .position(|cell| cell == name)
            .ok_or_else(|| format!("{path}: must have a column {name}"))
    };
    let places: Vec<usize> = columns.iter().map(place).collect::<Result<_, _>>()?;
    let cell = |row: &[&str], at: usize| row.get(at).copied().unwrap_or_default().to_string();
    Ok(lines.flat_map(|row| places.iter().map(move |&at| cell(&row, at)).collect::<Vec<_>>()).collect())
}
