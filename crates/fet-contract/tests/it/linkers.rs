//! Linkers of numbers by the first key column, sound and with a planted fault.

use fet_contract::{linkers, slot};
use fet_core::data::KeyKind;
use fet_core::linker::{About, DataHolder, LinkError, LinkTask, Linker, Links, Reveals, check_numbers};
use fet_core::registry::{Plugin, Recipe, Violation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::panic_of;

/// Settings of `line`.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
struct LineSettings {
    /// Planted fault; empty for none.
    fault: String,
}

impl Recipe<dyn Linker> for LineSettings {
    fn build(&self, (): &()) -> Result<Box<dyn Linker>, Violation> {
        Ok(Box::new(Line { fault: self.fault.clone() }))
    }
}

inventory::submit! { Plugin::<dyn Linker>::new::<LineSettings>("line", "the nearest keys by the first column") }

#[derive(Clone)]
struct Line {
    fault: String,
}

impl Line {
    fn has(&self, fault: &str) -> bool {
        self.fault == fault
    }
}

impl Linker for Line {
    fn about(&self) -> About {
        let eavesdropper = if self.has("silent") { "" } else { "every key" };
        let reveals = Reveals { secondary: "every key", primary: "nothing", eavesdropper };
        About {
            independent: true,
            challenges: self.has("no challenge"),
            ..About::new(3, KeyKind::Numbers, reveals)
        }
    }

    fn data_holder(&self, _seed: u64) -> Box<dyn DataHolder> {
        Box::new(self.clone())
    }
}

impl DataHolder for Line {
    fn link(&mut self, task: &LinkTask<'_>) -> Result<Links, LinkError> {
        let least = if self.has("fewer") { 0 } else { 3 };
        let (queries, records) = check_numbers(task.queries, task.records, least, false)?;
        let (mut indices, mut similarities) = (Vec::new(), Vec::new());
        for query in 0..queries.rows() {
            let shift = if self.has("dependent") { queries.row(0)[0] } else { 0.0 };
            let distance =
                |&record: &u32| (queries.row(query)[0] + shift - records.row(record as usize)[0]).abs();
            let mut order: Vec<u32> = (0..records.rows() as u32).collect();
            order.sort_by(|a, b| distance(a).total_cmp(&distance(b)));
            order.truncate(3);
            order.resize(3, 0);
            match self.fault.as_str() {
                "unsorted" => order.reverse(),
                "repeated" => order[1] = order[0],
                _ => (),
            }
            similarities.extend(order.iter().map(|record| -distance(record) as f32));
            if self.has("out of range") {
                order[0] = records.rows() as u32;
            }
            indices.extend(order);
            (task.progress)(if self.has("silent progress") { 0 } else { 1 });
        }
        Ok(Links::new(3, 3, indices, similarities))
    }
}

#[test]
fn accepts_a_sound_linker_and_names_the_broken_law() {
    let check =
        |fault: &str| panic_of(|| linkers::check(&slot(&format!("kind = 'line'\nfault = '{fault}'"))));
    assert_eq!(check(""), "");
    for (fault, law) in [
        ("unsorted", "the order"),
        ("repeated", "names no record twice"),
        ("out of range", "an index beyond the records"),
        ("fewer", "fewer records than K"),
        ("silent progress", "progress"),
        ("no challenge", "`About::challenges`"),
        ("dependent", "claims to be independent"),
        ("silent", "`Reveals`"),
    ] {
        let message = check(fault);
        assert!(message.contains(law) && message.contains("line"), "{fault}: {message}");
    }
}

#[test]
fn refuses_settings_as_the_program_does() {
    let message = panic_of(|| drop(slot::<dyn Linker>("kind = 'line'\nfaults = ''")));
    assert!(message.contains("`faults` is not a setting"), "{message}");
}
