//! Check of the imports between the files of a crate: files must not import each other in a circle.
//!
//! An import is a path in the code, in a `use` or inline, to an item that another file of the crate defines.
//! A name that passes through re-exports counts for the file that defines it. A `pub use` counts only if its
//! own file also uses the name. Tests do not count. A module and its direct part may import each other
//! (`join.rs` and `join/terms.rs`), if no other file is in the circle.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

use crate::prose::sources;

/// Place of a file among the modules of its crate; empty for the root.
type Module = Vec<String>;

/// Names that a file takes from each other file.
type Imports = BTreeMap<Module, BTreeSet<String>>;

/// Returns the circles of all crates, each as one message.
pub(crate) fn problems(root: &Path) -> Result<Vec<String>> {
    let mut paths = Vec::new();
    for folder in ["crates", "xtask/src"].map(|folder| root.join(folder)) {
        if folder.is_dir() {
            sources(&folder, &mut paths)?;
        }
    }
    let mut crates: BTreeMap<String, BTreeMap<String, String>> = BTreeMap::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string().replace('\\', "/");
        let tested = name.contains("/tests/") || name.ends_with("/tests.rs");
        if let Some((name, file)) = name.split_once("/src/").filter(|_| !tested) {
            let text = fs::read_to_string(&path).with_context(|| path.display().to_string())?;
            crates.entry(name.to_string()).or_default().insert(file.to_string(), text);
        }
    }
    let mut found = Vec::new();
    for (name, files) in &crates {
        let circles = circles(files).with_context(|| name.clone())?;
        found.extend(circles.into_iter().map(|circle| format!("{name}: {circle}")));
    }
    Ok(found)
}

/// Returns the circles of a crate with these files, by name below `src`.
fn circles(files: &BTreeMap<String, String>) -> Result<Vec<String>> {
    let is_program = |name: &str| name == "main.rs" && files.contains_key("lib.rs");
    let files = files.iter().filter(|(name, _)| !is_program(name));
    let parse = |(name, text): (&String, &String)| {
        Ok((module_of(name), Source::parse(text).with_context(|| name.clone())?))
    };
    let sources = Sources(files.map(parse).collect::<Result<_>>()?);
    let imports: BTreeMap<&Module, Imports> =
        sources.0.keys().map(|module| (module, sources.imports(module))).collect();
    let reachable: BTreeMap<&Module, BTreeSet<&Module>> =
        imports.keys().map(|&module| (module, reachable_from(module, &imports))).collect();
    let mut circles = Vec::new();
    let mut seen = BTreeSet::new();
    for (&module, reached) in &reachable {
        let members: Vec<&Module> =
            reached.iter().copied().filter(|other| reachable[other].contains(module)).collect();
        let is_pair =
            matches!(members[..], [whole, part] if part.split_last().is_some_and(|(_, of)| of == whole));
        if members.len() < 2 || is_pair || !seen.insert(members.clone()) {
            continue;
        }
        let mut message =
            format!("{} and {} more import each other in a circle", shown(members[0]), members.len() - 1);
        for &member in &members {
            for (other, names) in imports[member].iter().filter(|(other, _)| members.contains(other)) {
                let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
                message += &format!("\n  {} -> {}: {names}", shown(member), shown(other));
            }
        }
        circles.push(message);
    }
    Ok(circles)
}

/// Returns the files that a file imports, directly or through others.
fn reachable_from<'a>(start: &'a Module, imports: &'a BTreeMap<&Module, Imports>) -> BTreeSet<&'a Module> {
    let (mut reached, mut open) = (BTreeSet::new(), vec![start]);
    while let Some(module) = open.pop() {
        open.extend(imports[module].keys().filter(|other| reached.insert(*other)));
    }
    reached
}

/// Returns the module of a file.
fn module_of(name: &str) -> Module {
    let mut parts: Module = name.trim_end_matches(".rs").split('/').map(String::from).collect();
    if parts.last().is_some_and(|last| last == "mod") || ["lib", "main"].contains(&parts.join("/").as_str()) {
        parts.pop();
    }
    parts
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "lib".to_string() } else { module.join("/") }
}

/// Paths in a file.
#[derive(Default)]
struct Source {
    /// Path of each imported name; `*` stands for all names of a module.
    uses: Vec<(String, Vec<String>)>,
    /// Names of `pub use` that the file does not use itself.
    handed_on: BTreeSet<String>,
    /// Paths of several segments outside `use`.
    inline: Vec<Vec<String>>,
}

impl Source {
    fn parse(text: &str) -> Result<Self> {
        let mut owned = Vec::new();
        flatten(text.parse().map_err(|error| anyhow!("{error}"))?, &mut owned);
        let tokens: Vec<&str> = owned.iter().map(String::as_str).collect();
        let (mut source, mut published, mut words) = (Self::default(), Vec::new(), BTreeSet::new());
        // Depth of the code, and the depths of the modules within the file around it.
        let (mut depth, mut modules) = (0, Vec::new());
        let mut at = 0;
        while at < tokens.len() {
            let before = if at > 0 { tokens[at - 1] } else { "" };
            match tokens[at] {
                "use" if tokens.get(at + 1) != Some(&"<") => {
                    let known = source.uses.len();
                    at += 1;
                    tree(&tokens, &mut at, &[], &mut source.uses);
                    let new = &mut source.uses[known..];
                    new.iter_mut().for_each(|(_, path)| from_file(path, modules.len()));
                    if ["pub", ")"].contains(&before) {
                        published.extend(new.iter().map(|(name, _)| name.clone()));
                    }
                }
                "{" => {
                    depth += 1;
                    if at > 1 && tokens[at - 2] == "mod" {
                        modules.push(depth);
                    }
                }
                "}" => {
                    modules.retain(|own| *own < depth);
                    depth -= 1;
                }
                word if is_word(word) && !["::", ".", "mod"].contains(&before) => {
                    let mut path = vec![word.to_string()];
                    while tokens.get(at + 1) == Some(&"::")
                        && tokens.get(at + 2).is_some_and(|next| is_word(next))
                    {
                        path.push(tokens[at + 2].to_string());
                        at += 2;
                    }
                    words.insert(path[0].clone());
                    from_file(&mut path, modules.len());
                    source.inline.extend(Some(path).filter(|path| path.len() > 1));
                }
                _ => {}
            }
            at += 1;
        }
        source.handed_on = published.into_iter().filter(|name| !words.contains(name)).collect();
        Ok(source)
    }
}

/// Turns the path of an item in `nesting` modules within a file into the path from the file.
fn from_file(path: &mut Vec<String>, nesting: usize) {
    let supers = path.iter().take_while(|word| *word == "super").count();
    if nesting > 0 && supers > 0 {
        let own = (supers <= nesting).then(|| "self".to_string());
        path.splice(..supers.min(nesting), own);
    }
}

/// The files of a crate.
struct Sources(BTreeMap<Module, Source>);

impl Sources {
    /// Returns the imports of a file.
    fn imports(&self, module: &Module) -> Imports {
        let source = &self.0[module];
        let uses = source.uses.iter().filter(|(name, _)| !source.handed_on.contains(name));
        let mut imports = Imports::new();
        for path in uses.map(|(_, path)| path).chain(&source.inline) {
            let owner = self.absolute(module, path, 0).and_then(|path| self.owner(path, 0));
            if let Some((owner, name)) = owner.filter(|(owner, _)| owner != module) {
                imports.entry(owner).or_default().insert(name);
            }
        }
        imports
    }

    /// Returns a path from the root of the crate; `None` for a path that leads elsewhere.
    fn absolute(&self, module: &Module, path: &[String], depth: usize) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        let below = |base: &[String]| Some([base, rest].concat());
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            "self" => below(module),
            "super" => {
                let (_, parent) = module.split_last()?;
                let skipped = rest.iter().take_while(|word| *word == "super").count();
                let parent = &parent[..parent.len().checked_sub(skipped)?];
                Some([parent, &rest[skipped..]].concat())
            }
            _ => {
                let child = [module.as_slice(), std::slice::from_ref(first)].concat();
                if self.0.contains_key(&child) {
                    return below(&child);
                }
                let (_, path) =
                    self.0[module].uses.iter().find(|(name, path)| name == first && path[0] != *first)?;
                let path = if depth < 8 { self.absolute(module, path, depth + 1)? } else { return None };
                below(&path)
            }
        }
    }

    /// Returns the file that defines a path's item, and the item's name; `None` for a module as such.
    fn owner(&self, path: Vec<String>, depth: usize) -> Option<(Module, String)> {
        let length = (0..=path.len()).rev().find(|&length| self.0.contains_key(&path[..length]))?;
        let (module, name) = (path[..length].to_vec(), path.get(length)?.clone());
        let origin = self.0[&module].uses.iter().find(|(own, _)| *own == name && name != "*");
        let further = origin.filter(|_| depth < 8).and_then(|(_, origin)| {
            let origin = self.absolute(&module, origin, 0)?;
            self.owner([origin.as_slice(), &path[length + 1..]].concat(), depth + 1)
        });
        Some(further.unwrap_or((module, name)))
    }
}

/// Parses a tree of a `use`, and adds each name with its path.
fn tree(tokens: &[&str], at: &mut usize, prefix: &[String], found: &mut Vec<(String, Vec<String>)>) {
    let mut path = prefix.to_vec();
    let mut name = None;
    while let Some(&token) = tokens.get(*at) {
        match token {
            ";" | "," | "}" => break,
            "{" => {
                while tokens.get(*at).is_some_and(|token| *token != "}") {
                    *at += 1;
                    tree(tokens, at, &path, found);
                }
                *at += 1;
                return;
            }
            "as" => {
                *at += 1;
                name = tokens.get(*at).map(ToString::to_string);
            }
            "self" if !path.is_empty() => {}
            word if is_word(word) || word == "*" => path.push(word.to_string()),
            _ => {}
        }
        *at += 1;
    }
    if let Some(last) = path.last() {
        found.push((name.unwrap_or_else(|| last.clone()), path));
    }
}

/// Adds the words, `::` and other characters of a text, without literals, lifetimes and items of tests.
fn flatten(stream: TokenStream, found: &mut Vec<String>) {
    let mut trees = stream.into_iter().peekable();
    while let Some(tree) = trees.next() {
        match tree {
            TokenTree::Punct(sign) if sign.as_char() == '#' && is_test(trees.peek()) => {
                let is_end = |tree: &TokenTree| match tree {
                    TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
                    other => other.to_string() == ";",
                };
                trees.find(is_end);
            }
            TokenTree::Punct(sign) if sign.as_char() == '\'' => drop(trees.next()),
            TokenTree::Punct(sign) if sign.as_char() == ':' && sign.spacing() == Spacing::Joint => {
                trees.next();
                found.push("::".to_string());
            }
            TokenTree::Group(group) => {
                let [open, close] = match group.delimiter() {
                    Delimiter::Brace => ["{", "}"],
                    Delimiter::Bracket => ["[", "]"],
                    _ => ["(", ")"],
                };
                found.push(open.to_string());
                flatten(group.stream(), found);
                found.push(close.to_string());
            }
            TokenTree::Literal(_) => {}
            other => found.push(other.to_string()),
        }
    }
}

/// Returns true for the attribute of an item of tests.
fn is_test(attribute: Option<&TokenTree>) -> bool {
    attribute.is_some_and(|tree| tree.to_string().replace(' ', "") == "[cfg(test)]")
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the circles of a crate with these files.
    fn check(files: &[(&str, &str)]) -> Vec<String> {
        let files = files.iter().map(|(name, text)| (name.to_string(), text.to_string()));
        circles(&files.collect()).expect("Rust files")
    }

    #[test]
    fn finds_a_circle_through_every_form_of_import() {
        let lib = ("lib.rs", "mod a; mod b; pub use b::B;");
        for import in [
            "use crate::b::{B, C as D};",
            "use super::b::B;",
            "use super::B;",
            "fn f() -> crate::b::B { loop {} }",
            "use super::b; fn f() { b::f() }",
            "use super::b; fn f() { g!(b::f()) }",
            "use crate::b::*;",
        ] {
            let found = check(&[lib, ("a.rs", import), ("b.rs", "use super::a::A; pub struct B;")]);
            assert_eq!(found.len(), 1, "{import}");
            assert!(found[0].starts_with("a and 1 more") && found[0].contains("\n  b -> a: A"), "{found:?}");
        }
    }

    #[test]
    fn accepts_imports_in_one_direction_tests_and_other_crates() {
        let lib = ("lib.rs", "mod a; mod b; pub use b::B; pub use a::A;");
        for import in [
            "#[cfg(test)] mod tests { use crate::b::B; }",
            "#[cfg(test)] use crate::b::B; fn f() {}",
            "// use crate::b::B;\n/* use crate::b::B; */",
            "const T: &str = \"use crate::b::B;\"; const R: &str = r#\"\"use crate::b::B;\"#; const C: char = '\"';",
            "use other::b::B; fn f<'b>(x: &'b B) -> impl Sized + use<'b> { x.b::<B>() }",
        ] {
            let found = check(&[lib, ("a.rs", import), ("b.rs", "use super::A; pub struct B;")]);
            assert_eq!(found, Vec::<String>::new(), "{import}");
        }
    }

    #[test]
    fn allows_a_module_and_its_direct_part_only() {
        let whole = ("a.rs", "mod part; use part::P; pub struct A;");
        let part = ("a/part.rs", "use super::A; pub struct P;");
        assert_eq!(check(&[("lib.rs", "mod a;"), whole, part]), Vec::<String>::new());
        let other = ("a/other.rs", "use super::part::P; pub struct O;");
        let part = ("a/part.rs", "use super::A; use super::other::O; pub struct P;");
        let found = check(&[("lib.rs", "mod a;"), whole, part, other]);
        assert!(found[0].starts_with("a and 2 more"), "{found:?}");
    }

    #[test]
    fn counts_a_published_name_only_if_its_file_uses_it() {
        let users = [("a.rs", "use crate::L; pub struct A;"), ("b.rs", "")];
        let check =
            |lib| check(&[("lib.rs", lib), users[0], users[1], ("c.rs", "use crate::a::A; pub struct C;")]);
        assert_eq!(check("mod a; mod c; pub use c::C; pub struct L;"), Vec::<String>::new());
        assert_eq!(check("mod a; mod c; pub use c::C; pub struct L(C);").len(), 1);
    }
}
