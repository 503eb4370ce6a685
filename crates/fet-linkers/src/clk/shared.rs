//! The linkage schema of data holders who encode their tables separately.

use std::collections::BTreeMap;

use fet_core::data::TextTable;
use fet_core::linker::LinkError;
use fet_core::registry::{Recipe, Violation};
use fet_linkage::bits::BitTable;
use fet_linkage::clk::{Encoder, EncoderSettings, FieldPlan, MOST_HASHES, Rarity, Schema};
use fet_linkage::secret::{derive, for_project};
use serde::{Deserialize, Serialize};
use zeroize::Zeroizing;

use super::settings::{ClkSettings, Harden, Order, Sign, Weighting};
use super::{near, salt, schema, weights};
use crate::known;

/// Format of the file of a linkage schema.
const FORMAT: &str = "fet linkage schema 1";

/// Encoding of records for later comparison. All data holders need the same schema and the same secret.
///
/// The schema contains no text, but the frequencies of the q-grams and words of the records used for
/// learning. A party with the secret can look up each frequency. The schema is for data holders with the
/// secret, and not for the unit that compares.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LinkageSchema {
    format: String,
    /// Random salt that separates the encodings of one project from those of other projects under the same
    /// secret.
    salt: String,
    bits: usize,
    q: usize,
    weighting: Weighting,
    hardening: Harden,
    /// Number of bits that diffusion combines; 0 without diffusion. A setting that older schemas lack is not
    /// written if it has no effect, so that fingerprints stay the same.
    #[serde(default, skip_serializing_if = "is_default")]
    diffusion: usize,
    /// Column that salts the hashes, from 1; 0 for none.
    #[serde(default, skip_serializing_if = "is_default")]
    salt_column: usize,
    /// Number of its leading characters that count; 0 for all.
    #[serde(default, skip_serializing_if = "is_default")]
    salt_signs: usize,
    /// Declared forms of dates and numbers; omitted if each column's cells decide.
    #[serde(default, skip_serializing_if = "is_default")]
    date_order: Order,
    #[serde(default, skip_serializing_if = "is_default")]
    decimal: Sign,
    missing: Vec<String>,
    fields: Vec<Field>,
    /// Number of bits of each listed q-gram by its tag, in stored fractions of a bit.
    grams: BTreeMap<String, u16>,
}

/// A key column.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Field {
    name: String,
    group: u32,
    /// Number of bits that each q-gram sets, if all set the same number.
    hashes: usize,
    /// Number of bits of a q-gram that is not listed, in stored fractions of a bit.
    unknown: u16,
    /// Distance from which two numbers, or dates in days, have nothing in common; 0 for texts.
    #[serde(default, skip_serializing_if = "is_default")]
    near: f64,
    /// True if the column contains dates.
    #[serde(default, skip_serializing_if = "is_default")]
    dates: bool,
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl LinkageSchema {
    /// Returns the schema of these columns by `settings`, with weights from the records of `table`.
    ///
    /// # Errors
    /// If the number of weights or groups differs from the number of columns, or if the settings use match
    /// weights.
    pub fn learn(
        settings: &ClkSettings,
        names: &[String],
        salt: [u8; 16],
        secret: &[u8],
        table: &TextTable,
    ) -> Result<Self, LinkError> {
        weights::refuse(settings.scoring)?;
        let table = known(table, &settings.missing);
        let table = near::Forms::from_settings(settings).spelled(&table)?;
        let mut own = Self {
            format: FORMAT.to_string(),
            salt: fet_io::hex(&salt),
            bits: settings.bits,
            q: settings.q,
            weighting: settings.weighting,
            hardening: settings.hardening,
            diffusion: if settings.hardening == Harden::Diffusion { settings.diffusion } else { 0 },
            salt_column: settings.salt_column,
            salt_signs: settings.salt_signs,
            date_order: settings.date_order,
            decimal: settings.decimal,
            missing: settings.missing.clone(),
            fields: Vec::new(),
            grams: BTreeMap::new(),
        };
        let learned = schema(settings, &own.key(secret), &table)?;
        let unseen = learned.rarity.as_ref().map_or(&[][..], Rarity::unseen);
        let field = |(at, (name, plan)): (usize, (&String, &FieldPlan))| Field {
            name: name.clone(),
            group: plan.group,
            hashes: plan.hashes,
            unknown: unseen.get(at).copied().unwrap_or_default(),
            near: settings.near.get(at).copied().unwrap_or_default(),
            dates: settings.dates.contains(&(at + 1)),
        };
        own.fields = names.iter().zip(&learned.fields).enumerate().map(field).collect();
        let grams = learned.rarity.as_ref().map(Rarity::grams).unwrap_or_default();
        own.grams = grams.into_iter().map(|(tag, parts)| (format!("{tag:016x}"), parts)).collect();
        Ok(own)
    }

    /// Refuses a schema that [`LinkageSchema::learn`] cannot have made.
    ///
    /// # Errors
    /// If a field is invalid. The error names the first such field.
    pub fn check(&self) -> Result<(), Violation> {
        if self.format != FORMAT {
            return Err(Violation::new("format", format!("must be \"{FORMAT}\""), &self.format));
        }
        let settings = ClkSettings {
            bits: self.bits,
            q: self.q,
            weighting: self.weighting,
            groups: self.fields.iter().map(|field| field.group).collect(),
            near: self.near(),
            dates: self.dates(),
            ..ClkSettings::default()
        };
        settings.check()?;
        if !(128..=65_536).contains(&self.bits) {
            return Err(Violation::new("bits", "must be from 128 to 65536", self.bits));
        }
        if !(1..=8).contains(&self.q) {
            return Err(Violation::new("q", "must be from 1 to 8", self.q));
        }
        let diffused = self.hardening == Harden::Diffusion;
        let fits = if diffused { (2..=64).contains(&self.diffusion) } else { self.diffusion == 0 };
        if !fits {
            let rule = if diffused {
                "must be from 2 to 64"
            } else {
                "must be 0 without `hardening = \"diffusion\"`"
            };
            return Err(Violation::new("diffusion", rule, self.diffusion));
        }
        salt::check(self.salt_column, self.salt_signs)?;
        if self.salt_column > self.fields.len() {
            let rule = format!("must be at most {}, the number of fields", self.fields.len());
            return Err(Violation::new("salt_column", rule, self.salt_column));
        }
        let is_hex = self.salt.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        if self.salt.len() != 32 || !is_hex {
            let found = format!("{} characters", self.salt.chars().count());
            return Err(Violation::new("salt", "must have 32 hexadecimal digits (0-9, a-f)", found));
        }
        if self.fields.is_empty() {
            return Err(Violation::new("fields", "must name at least one field", "[]"));
        }
        if let Some(field) = self.fields.iter().find(|field| field.hashes > MOST_HASHES) {
            return Err(Violation::new("hashes", format!("must be at most {MOST_HASHES}"), field.hashes));
        }
        if !self.schema().is_sound() {
            let rule = "must set the same bits for a text in each field of a group";
            return Err(Violation::new("fields", rule, "fields of one group that differ"));
        }
        match self.grams.keys().find(|tag| tag.len() != 16 || u64::from_str_radix(tag, 16).is_err()) {
            Some(tag) => Err(Violation::new("grams", "must be named by 16 hexadecimal digits", tag)),
            None => Ok(()),
        }
    }

    /// Returns the names of the columns used for learning.
    pub fn names(&self) -> Vec<String> {
        self.fields.iter().map(|field| field.name.clone()).collect()
    }

    /// Returns true if encodings are hardened, so that their numbers of bits reveal nothing about the texts.
    pub fn is_hardened(&self) -> bool {
        self.hardening != Harden::None
    }

    /// Returns the distances of the fields; 0 for texts.
    fn near(&self) -> Vec<f64> {
        self.fields.iter().map(|field| field.near).collect()
    }

    /// Returns the fields with dates, from 1.
    fn dates(&self) -> Vec<usize> {
        self.fields.iter().zip(1..).filter(|(field, _)| field.dates).map(|(_, number)| number).collect()
    }

    /// Returns the number of q-grams and words that the schema lists.
    pub fn listed(&self) -> usize {
        self.grams.len()
    }

    /// Returns the encodings of a table with these columns, in this order.
    ///
    /// # Errors
    /// If dates or numbers fit two forms, or do not have the declared form.
    pub fn encode(&self, secret: &[u8], table: &TextTable) -> Result<BitTable, LinkError> {
        let (near, dates) = (self.near(), self.dates());
        let forms = near::Forms { near: &near, dates: &dates, order: self.date_order, sign: self.decimal };
        let table = known(table, &self.missing);
        let table = forms.spelled(&table)?;
        let code =
            EncoderSettings { bits: self.bits, q: self.q, hardening: self.hardening.with(self.diffusion) };
        let encoder = Encoder::new(code, &self.key(secret)[..], &self.schema());
        Ok(encoder
            .salted(salt::from_settings(self.salt_column, self.salt_signs))
            .near(near::distances(&near, &dates))
            .encode(&table.cells()))
    }

    fn schema(&self) -> Schema {
        let plan = |field: &Field| FieldPlan { group: field.group, hashes: field.hashes };
        let rarity = || {
            let gram = |(tag, &parts): (&String, &u16)| Some((u64::from_str_radix(tag, 16).ok()?, parts));
            let unseen = self.fields.iter().map(|field| field.unknown).collect();
            Rarity::new(self.grams.iter().filter_map(gram).collect(), unseen)
        };
        Schema {
            fields: self.fields.iter().map(plan).collect(),
            rarity: (self.weighting == Weighting::Rarity).then(rarity),
        }
    }

    /// Returns a fingerprint of encodings under this schema and this secret. The fingerprint reveals neither.
    pub fn fingerprint(&self, secret: &[u8]) -> String {
        let text = serde_json::to_string(self).unwrap_or_default();
        let key = for_project(secret, self.salt.as_bytes(), "fingerprint");
        fet_io::hex(&derive(&key[..], &text)[..16])
    }

    fn key(&self, secret: &[u8]) -> Zeroizing<[u8; 32]> {
        for_project(secret, self.salt.as_bytes(), "clk")
    }
}
