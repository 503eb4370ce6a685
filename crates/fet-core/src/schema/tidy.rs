//! Simplifies the schema that a derive generates for readers.

use serde_json::{Map, Value, json};

use super::words::{KINDS, MEANINGS, OPTIONAL};

/// Removes keywords that concern only Rust and merges lists of choices, here and in the schemas below.
pub(super) fn tidy(schema: &mut Value) {
    for_each_below(schema, &mut tidy);
    let Some(words) = schema.as_object_mut() else { return };
    words.remove("title");
    without_null(words);
    choices(words);
    let format = words.remove("format");
    if format.as_ref().and_then(Value::as_str) == Some("uint32") {
        words.entry("maximum").or_insert(json!(u32::MAX));
    }
    if let Some(Value::String(description)) = words.get_mut("description") {
        *description = plain(description);
    }
}

/// Calls `visit` on the schemas directly below `schema`.
fn for_each_below(schema: &mut Value, visit: &mut dyn FnMut(&mut Value)) {
    let Some(words) = schema.as_object_mut() else { return };
    for (word, value) in words {
        match (word.as_str(), value) {
            ("properties" | KINDS, Value::Object(named)) => named.values_mut().for_each(&mut *visit),
            ("oneOf" | "anyOf" | "allOf", Value::Array(list)) => list.iter_mut().for_each(&mut *visit),
            ("items" | "additionalProperties", value @ Value::Object(_)) => visit(value),
            _ => {}
        }
    }
}

/// Removes null from the types: TOML has no null, and a setting that may be null may be left out.
fn without_null(words: &mut Map<String, Value>) {
    let null = json!({ "type": "null" });
    let mut optional = false;
    if let Some(Value::Array(types)) = words.get_mut("type") {
        optional = types.iter().any(|name| name == "null");
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            words.insert("type".into(), only);
        }
    }
    if words.get("default").is_some_and(Value::is_null) {
        words.remove("default");
    }
    if let Some(Value::Array(choices)) = words.get("anyOf") {
        optional |= choices.contains(&null);
    }
    if optional && !words.contains_key("default") {
        words.insert(OPTIONAL.into(), true.into());
    }
    let Some(Value::Array(choices)) = words.get_mut("anyOf") else { return };
    choices.retain(|choice| *choice != null);
    if let [Value::Object(only)] = choices.as_slice() {
        let only = only.clone();
        words.remove("anyOf");
        for (word, value) in only {
            words.entry(word).or_insert(value);
        }
    }
}

/// Turns a list of constants with their meanings into an `enum`.
fn choices(words: &mut Map<String, Value>) {
    let Some(Value::Array(choices)) = words.get("oneOf") else { return };
    let (mut names, mut meanings) = (Vec::new(), Vec::new());
    for choice in choices {
        let meaning = choice.get("description").cloned().unwrap_or_else(|| "".into());
        match (choice.get("const"), choice.get("enum")) {
            (Some(name), _) => {
                names.push(name.clone());
                meanings.push(meaning);
            }
            (None, Some(Value::Array(several))) => {
                meanings.extend(several.iter().map(|_| meaning.clone()));
                names.extend(several.iter().cloned());
            }
            _ => return,
        }
    }
    words.remove("oneOf");
    words.insert("type".into(), "string".into());
    words.insert("enum".into(), names.into());
    words.insert(MEANINGS.into(), meanings.into());
}

/// Converts a doc comment to one paragraph without links.
fn plain(doc: &str) -> String {
    let joined = doc.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut out = String::with_capacity(joined.len());
    let mut rest = joined.as_str();
    // "[`name`]" and "[`name`](target)" are links; a bracket without backticks is text ("[0, 1]").
    while let Some(at) = rest.find("[`") {
        let (before, link) = rest.split_at(at);
        let Some(end) = link.find("`]") else { break };
        out += before;
        out += &link[1..=end];
        rest = &link[end + 2..];
        if let Some(target) = rest.strip_prefix('(')
            && let Some(end) = target.find(')')
        {
            rest = &target[end + 1..];
        }
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn docs_lose_their_links_and_lines() {
        assert_eq!(plain("Two\n lines, [0, 1]."), "Two lines, [0, 1].");
        assert_eq!(plain("See [`a`](crate::a) and [`B`], not [`c"), "See `a` and `B`, not [`c");
    }

    #[test]
    fn constants_become_choices_and_null_goes() {
        let mut schema = json!({
            "title": "Kind",
            "anyOf": [
                { "oneOf": [
                    { "description": "One\nway.", "const": "a", "type": "string" },
                    { "enum": ["b", "c"], "type": "string" },
                ] },
                { "type": "null" },
            ],
            "default": null,
        });
        tidy(&mut schema);
        let expected = json!({ "type": "string", "enum": ["a", "b", "c"], MEANINGS: ["One way.", "", ""], OPTIONAL: true });
        assert_eq!(schema, expected);
        let mut schema = json!({ "type": ["integer", "null"], "format": "uint32", "minimum": 0 });
        tidy(&mut schema);
        assert_eq!(schema, json!({ "type": "integer", "minimum": 0, "maximum": u32::MAX, OPTIONAL: true }));
        let mut schema = json!({ "type": ["string", "null"], "default": "a" });
        tidy(&mut schema);
        assert_eq!(schema, json!({ "type": "string", "default": "a" }));
    }
}
