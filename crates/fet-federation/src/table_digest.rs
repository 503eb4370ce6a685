//! Digests of a party's table: all of its content that a run uses.
//!
//! A digest covers the values that the program read: the same table in another file or format has the same
//! digest. It also covers the owner's declarations about columns, because they determine the preparation.
//! Saved states hold the digest, so that a run does not continue with another table.

use fet_core::data::{Column, Features, Keys, Metadata, PartyTable};
use fet_core::message::Parts;
use fet_tables::Values;
use sha2::{Digest, Sha256};

/// Returns the digest of a party's keys, features and declarations.
pub fn of_table(table: &PartyTable) -> [u8; 32] {
    let mut hash = Hash::new(b"fet table, 1");
    hash.table(table);
    hash.0.finalize().into()
}

/// Returns the digest of a primary's table, labels and given split.
pub fn of_primary(table: &PartyTable, labels: &[f64], metadata: &Metadata, parts: &Parts) -> [u8; 32] {
    let mut hash = Hash::new(b"fet primary, 1");
    hash.table(table);
    hash.numbers(labels);
    hash.number(metadata.rows.len());
    metadata.rows.iter().for_each(|&row| hash.number(row));
    hash.number(metadata.columns.len());
    metadata.columns.iter().for_each(|column| hash.column(column));
    match parts {
        Parts::Random { validation, test } => hash.bytes(format!("random {validation} {test}").as_bytes()),
        Parts::Given(parts) => hash.bytes(parts),
    }
    hash.0.finalize().into()
}

/// Returns the first digits of a digest, for messages.
pub(crate) fn short(digest: &[u8; 32]) -> String {
    fet_io::hex(&digest[..4])
}

struct Hash(Sha256);

impl Hash {
    fn new(title: &[u8]) -> Self {
        Self(Sha256::new().chain_update(title))
    }

    fn number(&mut self, number: usize) {
        self.0.update((number as u64).to_le_bytes());
    }

    fn bytes(&mut self, bytes: &[u8]) {
        self.number(bytes.len());
        self.0.update(bytes);
    }

    /// Hashes a list of values of eight bytes each.
    fn words(&mut self, words: impl ExactSizeIterator<Item = [u8; 8]>) {
        self.number(words.len());
        let mut block = Vec::with_capacity(8192);
        for word in words {
            block.extend(word);
            if block.len() >= 8192 {
                self.0.update(&block);
                block.clear();
            }
        }
        self.0.update(&block);
    }

    fn numbers(&mut self, numbers: &[f64]) {
        self.words(numbers.iter().map(|number| number.to_le_bytes()));
    }

    fn table(&mut self, table: &PartyTable) {
        self.number(table.keys.columns());
        match &table.keys {
            Keys::Numbers(keys) => {
                self.bytes(b"numbers");
                self.numbers(keys.values());
            }
            Keys::Text(keys) => {
                self.bytes(b"text");
                self.number(keys.rows());
                keys.cells().into_iter().for_each(|cell| self.bytes(cell.as_bytes()));
            }
            Keys::Sealed(keys) => self.bytes(keys.bytes()),
        }
        match &table.features {
            Features::Numbers(numbers) => {
                self.bytes(b"numbers");
                self.number(numbers.columns());
                self.words(numbers.values().iter().map(|&number| f64::from(number).to_le_bytes()));
            }
            Features::Columns(columns) => {
                self.bytes(b"columns");
                self.number(columns.table.columns.len());
                columns.table.columns.iter().for_each(|column| self.column(column));
                let rules = serde_json::to_vec(&columns.rules).expect("rules are plain data");
                self.bytes(&rules);
            }
        }
        let bounds = table.bounds.iter().flat_map(|bounds| [&bounds.keys, &bounds.features]);
        for ranges in bounds {
            let ends: Vec<f64> = ranges.iter().flatten().copied().collect();
            self.numbers(&ends);
        }
    }

    fn column(&mut self, column: &Column) {
        self.bytes(column.name.as_bytes());
        match &column.values {
            Values::Number(numbers) => {
                self.bytes(b"number");
                // A missing number hashes as one fixed NaN, whatever its bits are.
                let bits = |number: &f64| if number.is_nan() { f64::NAN } else { *number }.to_le_bytes();
                self.words(numbers.iter().map(bits));
            }
            Values::Category { codes, names } => {
                self.bytes(b"category");
                self.words(codes.iter().map(|&code| u64::from(code).to_le_bytes()));
                self.number(names.len());
                names.iter().for_each(|name| self.bytes(name.as_bytes()));
            }
            Values::Date(dates) => {
                self.bytes(b"date");
                self.words(dates.iter().map(|date| date.to_le_bytes()));
            }
            Values::Text(texts) => {
                self.bytes(b"text");
                self.number(texts.len());
                for text in texts.iter() {
                    self.number(usize::from(text.is_some()));
                    self.bytes(text.unwrap_or_default().as_bytes());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fet_core::data::{Bounds, Columns, Matrix, TextTable};
    use fet_tables::Table;
    use fet_tables::prepare::{Declared, Rules};

    fn numbers(keys: Vec<f64>, features: Vec<f32>) -> PartyTable {
        PartyTable {
            name: "bank".into(),
            keys: Matrix::new(1, keys).into(),
            features: Matrix::new(1, features).into(),
            bounds: None,
        }
    }

    fn typed(values: Values, rules: Rules) -> PartyTable {
        let column = Column { name: "opened".into(), values };
        let table = Table {
            columns: vec![column],
            rows: 2,
            notes: Vec::new(),
            forms: Default::default(),
            styles: Default::default(),
        };
        PartyTable {
            name: "bank".into(),
            keys: Keys::Text(TextTable::new(1, vec!["a".into(), "bc".into()])),
            features: Features::Columns(Columns { table, rules }),
            bounds: None,
        }
    }

    #[test]
    fn differs_with_every_cell_key_and_declaration_and_not_with_the_name() {
        let table = numbers(vec![1.0, 2.0], vec![3.0, 4.0]);
        let bounds = Some(Bounds { keys: vec![[0.0, 9.0]], features: vec![[0.0, 9.0]] });
        let categories = |codes: [u32; 2], name: &str| Values::Category {
            codes: codes.to_vec(),
            names: vec!["a".into(), name.into()],
        };
        let declared = Rules {
            declared: [("opened".to_string(), Declared::Range([0.0, 1.0]))].into(),
            ..Rules::default()
        };
        let text = |cells: [Option<&str>; 2]| Values::Text(cells.into_iter().collect());
        let mut keys = typed(Values::Number(vec![1.0, 2.0]), Rules::default());
        keys.keys = Keys::Text(TextTable::new(1, vec!["ab".into(), "c".into()]));
        let all = [
            table.clone(),
            numbers(vec![1.0, 2.5], vec![3.0, 4.0]),
            numbers(vec![1.0, 2.0], vec![3.0, 4.5]),
            numbers(vec![2.0, 1.0], vec![4.0, 3.0]),
            PartyTable { bounds, ..table.clone() },
            typed(Values::Number(vec![1.0, 2.0]), Rules::default()),
            typed(Values::Number(vec![1.0, f64::NAN]), Rules::default()),
            typed(Values::Number(vec![1.0, 2.0]), declared),
            typed(Values::Date(vec![1, 2]), Rules::default()),
            typed(categories([0, 1], "b"), Rules::default()),
            typed(categories([1, 0], "b"), Rules::default()),
            typed(categories([0, 1], "c"), Rules::default()),
            typed(text([Some("a"), None]), Rules::default()),
            typed(text([Some("a"), Some("")]), Rules::default()),
            keys,
        ];
        let digests: Vec<_> = all.iter().map(of_table).collect();
        for (place, digest) in digests.iter().enumerate() {
            assert!(!digests[..place].contains(digest), "table {place} has the digest of an earlier one");
        }
        let named = PartyTable { name: "other".into(), ..table.clone() };
        assert_eq!(of_table(&named), of_table(&table));
        let nan = |bits: u64| typed(Values::Number(vec![1.0, f64::from_bits(bits)]), Rules::default());
        assert_eq!(of_table(&nan(0x7ff8_0000_0000_0001)), of_table(&nan(0xfff8_0000_0000_0000)));
    }
}
