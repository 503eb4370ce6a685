//! Changes of files in members' folders that several topics use. Changes of a single topic are in its module.

use crate::soak::world::SoakWorld;

pub(super) fn write(world: &SoakWorld<'_>, path: &str, text: &str) -> anyhow::Result<()> {
    Ok(std::fs::write(world.folder.join(path), text)?)
}

pub(super) fn remove(world: &SoakWorld<'_>, path: &str) -> anyhow::Result<()> {
    Ok(std::fs::remove_file(world.folder.join(path))?)
}

pub(super) fn edit(world: &SoakWorld<'_>, path: &str, old: &str, new: &str) -> anyhow::Result<()> {
    let path = world.folder.join(path);
    let text = std::fs::read_to_string(&path)?;
    anyhow::ensure!(text.contains(old), "{} does not contain {old:?}", path.display());
    Ok(std::fs::write(&path, text.replacen(old, new, 1))?)
}

/// Edits the experiment of all members.
pub(super) fn everywhere(world: &SoakWorld<'_>, old: &str, new: &str) -> anyhow::Result<()> {
    world.members().into_iter().try_for_each(|member| edit(world, &format!("{member}/exp.toml"), old, new))
}

pub(super) fn secure(world: &SoakWorld<'_>) -> anyhow::Result<()> {
    everywhere(world, "method =", "aggregator = { kind = \"secure-average\" }\nmethod =")
}

pub(super) fn policy(world: &SoakWorld<'_>, rules: &str) -> anyhow::Result<()> {
    write(world, "p1/party.toml", &world.party_file("p1", "", &format!("\n[policy]\n{rules}\n")))
}

pub(super) fn signing(world: &SoakWorld<'_>, member: &str) -> anyhow::Result<String> {
    Ok(world.kit.public(member)?.lines().nth(1).unwrap_or_default().to_string())
}
