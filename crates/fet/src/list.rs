//! `fet list`: lists every setting with its default, and the plug-ins of each slot with their defaults.

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
use fet_core::release::Release;
use fet_core::schema::Setting;

use crate::help::{self, paragraph};

/// Plug-in in the list.
#[derive(Debug, Clone, PartialEq)]
pub struct PluginEntry {
    /// Slot of the plug-in.
    pub slot: &'static str,
    /// Name that selects the plug-in.
    pub kind: &'static str,
    /// One-line description of the plug-in.
    pub summary: &'static str,
    /// Settings of the plug-in with their defaults.
    pub defaults: toml::Table,
    /// For a linker, the keys that it takes and the information that it reveals to each party; one line each.
    pub reveals: Vec<String>,
}

/// Returns every plug-in in this program, by slot and name.
pub fn entries() -> Vec<PluginEntry> {
    [
        plugin_entries::<dyn Method>(),
        linkers(),
        plugin_entries::<dyn Encoder>(),
        plugin_entries::<dyn Aggregator>(),
        plugin_entries::<dyn PrivacyMechanism>(),
        plugin_entries::<dyn LabelProtection>(),
        plugin_entries::<dyn Release>(),
        plugin_entries::<dyn Attack>(),
        plugin_entries::<dyn Dataset>(),
        plugin_entries::<dyn Source>(),
    ]
    .concat()
}

/// Tables of an experiment that are not slots; "experiment" means the top-level settings.
const TABLES: [&str; 5] = ["experiment", "train", "split", "scores", "policy"];

/// Returns the list as text, limited to one table or slot if `slot` is given.
pub fn text(slot: Option<&str>) -> Result<String, String> {
    let entries = entries();
    let mut slots: Vec<&str> = TABLES.to_vec();
    slots.extend(entries.iter().map(|entry| entry.slot));
    slots.dedup();
    slots.push("device");
    if let Some(slot) = slot.filter(|slot| !slots.contains(slot)) {
        let hint = did_you_mean(slot, slots.iter().copied());
        return Err(format!(
            "there is no table or slot \"{slot}\". Choose one of {}{hint}",
            slots.join(", ")
        ));
    }
    let settings = help::all_settings();
    let mut out = String::new();
    for name in slots.into_iter().filter(|name| slot.is_none_or(|slot| slot == *name)) {
        let _ = writeln!(out, "{name}");
        if TABLES.contains(&name) {
            let prefix = if name == "experiment" { String::new() } else { format!("{name}.") };
            write_table(&settings, &prefix, 2, slot.is_some(), &mut out);
        }
        if slot.is_some() {
            for entry in entries.iter().filter(|entry| entry.slot == name) {
                paragraph(entry.summary, &format!("  {:<20} ", entry.kind), &" ".repeat(23), &mut out);
            }
            out += "\n";
        }
        for entry in entries.iter().filter(|entry| entry.slot == name) {
            paragraph(entry.summary, &format!("  {:<14} ", entry.kind), &" ".repeat(17), &mut out);
            for line in &entry.reveals {
                paragraph(line, "      ", "        ", &mut out);
            }
            write_table(&settings, &settings_prefix(entry), 6, slot.is_some(), &mut out);
        }
        if name == "device" {
            for device in fet_backends::NAMES {
                let built = if fet_backends::is_compiled(device) { "" } else { "  (not in this build)" };
                let _ = writeln!(out, "  {device}{built}");
            }
        }
    }
    if slot.is_none() {
        out += "\n`fet list SLOT` explains each setting of a slot, `fet help SETTING` lists its\nallowed values.\n";
    }
    Ok(out)
}

/// Returns the path of a slot. The source of a split table is a setting of its dataset.
fn path_of(slot: &str) -> &str {
    if slot == "data.source" { "data.split.source" } else { slot }
}

/// Returns the path of the setting that chooses a slot's plug-in.
pub(crate) fn kind_of(slot: &str) -> String {
    format!("{}.kind", path_of(slot))
}

/// Returns the prefix of a plug-in's settings.
pub(crate) fn settings_prefix(entry: &PluginEntry) -> String {
    format!("{}.{}.", path_of(entry.slot), entry.kind)
}

/// Returns the settings of a table, without the settings of slots inside the table.
pub(crate) fn settings_of_table<'a>(settings: &'a [Setting], prefix: &str) -> Vec<&'a Setting> {
    let own = |setting: &&Setting| {
        let rest = setting.path.strip_prefix(prefix);
        rest.is_some_and(|rest| {
            let table = rest.split('.').next().unwrap_or(rest);
            if prefix.is_empty() { !rest.contains('.') } else { table != "source" }
        })
    };
    settings.iter().filter(own).collect()
}

/// Writes the settings of a table; with their meaning if `explained`.
fn write_table(settings: &[Setting], prefix: &str, indent: usize, explained: bool, out: &mut String) {
    for setting in settings_of_table(settings, prefix) {
        let name = &setting.path[prefix.len()..];
        if explained {
            help::line(setting, indent, name, out);
        } else {
            let default = setting.default.as_deref().unwrap_or("(required)");
            let _ = writeln!(out, "{}{name} = {default}", " ".repeat(indent));
        }
    }
}

/// Returns the linkers with the information that they reveal beyond the links.
fn linkers() -> Vec<PluginEntry> {
    let mut entries = plugin_entries::<dyn Linker>();
    for entry in &mut entries {
        let Ok(linker) = Slot::<dyn Linker>::with_defaults(entry.kind).map(|slot| slot.build(&())) else {
            continue;
        };
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

fn plugin_entries<T>() -> Vec<PluginEntry>
where
    T: SlotKind + ?Sized,
    Plugin<T>: inventory::Collect,
{
    let entry = |plugin: &&Plugin<T>| PluginEntry {
        slot: T::SLOT,
        kind: plugin.kind,
        summary: plugin.summary,
        defaults: plugin.defaults(),
        reveals: Vec::new(),
    };
    plugins::<T>().iter().map(entry).collect()
}
