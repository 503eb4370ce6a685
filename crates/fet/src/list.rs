//! `fet list`: the plug-ins of each slot, with their settings and defaults.

use std::fmt::Write;

use fet_core::aggregator::Aggregator;
use fet_core::attack::Attack;
use fet_core::data::{Dataset, Source};
use fet_core::encoder::Encoder;
use fet_core::labels::LabelProtection;
use fet_core::linker::{About, Linker};
use fet_core::method::Method;
use fet_core::privacy::PrivacyMechanism;
use fet_core::registry::{Plugin, Slot, SlotKind, did_you_mean, plugins};

/// One plug-in in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// The slot.
    pub slot: &'static str,
    /// The name that selects the plug-in.
    pub kind: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Its settings with their defaults.
    pub defaults: toml::Table,
    /// For a linker, what it accepts and what it reveals to whom; one line each.
    pub reveals: Vec<String>,
}

/// Every plug-in in this program, by slot and name.
pub fn entries() -> Vec<Entry> {
    [
        of::<dyn Method>(),
        linkers(),
        of::<dyn Encoder>(),
        of::<dyn Aggregator>(),
        of::<dyn PrivacyMechanism>(),
        of::<dyn LabelProtection>(),
        of::<dyn Attack>(),
        of::<dyn Dataset>(),
        of::<dyn Source>(),
    ]
    .concat()
}

/// The list as text, of one slot if `slot` is given.
pub fn text(slot: Option<&str>) -> Result<String, String> {
    let entries = entries();
    let mut slots: Vec<&str> = entries.iter().map(|entry| entry.slot).collect();
    slots.dedup();
    slots.push("device");
    if let Some(slot) = slot.filter(|slot| !slots.contains(slot)) {
        let hint = did_you_mean(slot, slots.iter().copied());
        return Err(format!("there is no slot \"{slot}\"; the slots are {}{hint}", slots.join(", ")));
    }
    let mut out = String::new();
    for name in slots.into_iter().filter(|name| slot.is_none_or(|slot| slot == *name)) {
        let _ = writeln!(out, "{name}");
        for entry in entries.iter().filter(|entry| entry.slot == name) {
            let _ = writeln!(out, "  {:<14} {}", entry.kind, entry.summary);
            for line in &entry.reveals {
                let _ = writeln!(out, "  {:<14} {line}", "");
            }
            for line in entry.defaults.to_string().lines().filter(|line| !line.is_empty()) {
                let _ = writeln!(out, "  {:<14}   {line}", "");
            }
        }
        if name == "device" {
            for device in fet_backends::NAMES {
                let built = if fet_backends::is_compiled(device) { "" } else { "  (not in this build)" };
                let _ = writeln!(out, "  {device}{built}");
            }
        }
    }
    Ok(out)
}

/// What linkers reveal, beyond the links themselves.
fn linkers() -> Vec<Entry> {
    let mut entries = of::<dyn Linker>();
    for entry in &mut entries {
        let Ok(linker) = Slot::<dyn Linker>::of(entry.kind).map(|slot| slot.build(&())) else { continue };
        let Ok(linker) = linker else { continue };
        let About { takes, reveals, .. } = linker.about();
        entry.reveals = vec![
            format!("keys: {}", takes.name()),
            format!("the secondary learns: {}", reveals.secondary),
            format!("the primary learns: {}", reveals.primary),
            format!("an eavesdropper learns: {}", reveals.eavesdropper),
        ];
    }
    entries
}

fn of<T>() -> Vec<Entry>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let entry = |plugin: &&Plugin<T>| Entry {
        slot: T::SLOT,
        kind: plugin.kind,
        summary: plugin.summary,
        defaults: plugin.defaults(),
        reveals: Vec::new(),
    };
    plugins::<T>().iter().map(entry).collect()
}
