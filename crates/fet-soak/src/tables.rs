//! Small tables of several organisations, made by a formula: places with coordinates, and people with names.

use std::fmt::Write;

/// Rows of each table.
const ROWS: usize = 240;

const STREETS: &str = r#"bounds = { lon = [7.9, 9.1], lat = [46.9, 48.1], lanes = [1.0, 6.0] }, categories = { surface = ["gravel", "tar"] }"#;
const BUSES: &str = r#"bounds = { lon = [8.0, 9.0], lat = [47.0, 48.0], seats = [0.0, 40.0] }, categories = { line = ["A", "B", "C"] }"#;
const SCHOOL: &str = r#"bounds = { years = [0.0, 13.0], grade = [0.0, 1.0] }"#;
const INSURER: &str = r#"bounds = { claims = [0.0, 7.0], since = [1950.0, 2020.0] }"#;

/// A party's table, and what an experiment says of it besides its file.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    /// The name of the organisation, and of its file without `.csv`.
    pub(crate) name: &'static str,
    /// The settings of the table but for its name and file: `key = value`, with commas between them.
    pub(crate) settings: &'static str,
    /// More settings, which declare the range of every column.
    pub(crate) declared: &'static str,
    pub(crate) text: String,
}

/// Shops, streets and bus stops: the first has the labels `busy` and `sales`.
pub(crate) fn places() -> Vec<Table> {
    let mut shops = "lon,lat,kind,size,sales,busy\n".to_string();
    let (mut streets, mut buses) =
        ("lon,lat,lanes,surface\n".to_string(), "lon,lat,line,seats\n".to_string());
    for row in 0..ROWS {
        let (lon, lat) = place(row);
        let (size, lanes) = (fraction(row, 7) * 90.0, 1.0 + 5.0 * fraction(row, 11));
        let busy = if 8.0 * lanes + size > 65.0 { "yes" } else { "no" };
        let kind = ["bakery", "cafe", "kiosk"][row % 3];
        let sales = 0.3 * lanes + size / 30.0;
        let _ = writeln!(shops, "{lon:.8},{lat:.8},{kind},{size:.8},{sales:.8},{busy}");
        let _ = writeln!(
            streets,
            "{:.8},{:.8},{lanes:.8},{}",
            lon + 1e-4,
            lat - 1e-4,
            ["gravel", "tar"][row % 2]
        );
        let _ =
            writeln!(buses, "{lon:.8},{lat:.8},{},{:.8}", ["A", "B", "C"][row % 3], 40.0 * fraction(row, 13));
    }
    let keys = "keys = [\"lon\", \"lat\"]";
    vec![
        Table { name: "shops", settings: keys, declared: "", text: shops },
        Table { name: "streets", settings: keys, declared: STREETS, text: streets },
        Table { name: "buses", settings: keys, declared: BUSES, text: buses },
    ]
}

/// Patients, and what a school and an insurer have on them under names with errors.
pub(crate) fn people() -> Vec<Table> {
    let mut patients = "name,age,weight,ill\n".to_string();
    let (mut school, mut insurer) = ("name,years,grade\n".to_string(), "name,claims,since\n".to_string());
    for row in 0..ROWS {
        let name = name(row);
        let (age, years, claims) =
            (fraction(row, 5) * 80.0, fraction(row, 17) * 13.0, fraction(row, 19) * 7.0);
        let ill = if age / 10.0 + claims > 8.0 { "yes" } else { "no" };
        let _ = writeln!(patients, "{name},{age:.8},{:.8},{ill}", 40.0 + 60.0 * fraction(row, 23));
        let _ = writeln!(school, "{},{years:.8},{:.8}", with_error(&name, row), fraction(row, 29));
        let _ = writeln!(insurer, "{},{claims:.8},{}", with_error(&name, row + 1), 1950 + row % 70);
    }
    let keys = "keys = [\"name\"]";
    vec![
        Table { name: "patients", settings: keys, declared: "", text: patients },
        Table { name: "school", settings: keys, declared: SCHOOL, text: school },
        Table { name: "insurer", settings: keys, declared: INSURER, text: insurer },
    ]
}

/// A number in [0, 1) with many digits.
fn fraction(row: usize, salt: u64) -> f64 {
    let mixed = (row as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_mul(2 * salt + 1);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    (mixed >> 11) as f64 / (1u64 << 53) as f64
}

fn place(row: usize) -> (f64, f64) {
    (8.0 + fraction(row, 1), 47.0 + fraction(row, 3))
}

fn name(row: usize) -> String {
    let syllables = ["ba", "ke", "lo", "mi", "nu", "ra", "so", "ti", "vu", "xe", "ya"];
    let of = |salt| syllables[(fraction(row, salt) * 11.0) as usize];
    format!("{}{}{} {}{}{}{}", of(31), of(37), of(41), of(43), of(47), of(53), of(59))
}

fn with_error(name: &str, row: usize) -> String {
    if !row.is_multiple_of(3) {
        return name.to_string();
    }
    let at = row % name.len();
    name.chars().enumerate().map(|(place, c)| if place == at { 'e' } else { c }).collect()
}
