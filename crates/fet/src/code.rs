//! Marks of plug-ins in Python: the report, the card and the page of a run name their code.

use fet_core::experiment::Experiment;

/// Kind of plug-ins whose settings name Python code.
const PYTHON: &str = "python";

/// Returns a sentence for each plug-in in Python of an experiment, with the identity of its code.
pub(crate) fn python_code(experiment: &Experiment) -> Vec<String> {
    let mut found = Vec::new();
    if let Ok(settings) = toml::Value::try_from(experiment) {
        collect(&settings, &mut found);
    }
    found.dedup();
    found
}

fn collect(value: &toml::Value, found: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            let text = |name: &str| table.get(name).and_then(toml::Value::as_str);
            if let (Some(PYTHON), Some(plugin), Some(source)) = (text("kind"), text("plugin"), text("source"))
            {
                found.push(format!(
                    "This run used Python code: `{plugin}`, from a file with the SHA-256 `{source}`."
                ));
            }
            table.values().for_each(|value| collect(value, found));
        }
        toml::Value::Array(items) => items.iter().for_each(|item| collect(item, found)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_code_of_inner_plugins() {
        let settings = "kind = 'posterior'\ninner = { kind = 'python', plugin = 'a.b:C', source = '12' }";
        let mut found = Vec::new();
        collect(&toml::Value::Table(settings.parse().expect("TOML")), &mut found);
        assert_eq!(found.len(), 1);
        assert!(found[0].contains("`a.b:C`") && found[0].contains("`12`"), "{found:?}");
    }
}
