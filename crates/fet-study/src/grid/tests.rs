//! Tests of the grid: its order, selections, exclusions and bases.

use super::*;

fn grid(text: &str, scope: &Scope) -> Result<StudyGrid> {
    StudyGrid::parse(text, scope)
}

const GRID: &str = "name = 'x'\n[ablation]\nseeds = [0, 1]\n\
    [[ablation.variants]]\nname = 'A'\nset = ['a=1']\n[[ablation.variants]]\nname = 'B'\n\
    [ablation.axes]\n'linker.kind' = ['nearest', 'grid']\n'x.k' = [1, 0.5]\n";

#[test]
fn grids_are_expanded_in_order() {
    let check = |text: &str, seeds: &[u64], expected: &[(&str, &[&str])]| {
        let grid = grid(text, &Scope::default()).expect(text);
        assert_eq!(grid.seeds, seeds, "{text}");
        let found: Vec<(&str, Vec<&str>)> = grid
            .variants
            .iter()
            .map(|variant| (variant.name.as_str(), variant.sets.iter().map(String::as_str).collect()))
            .collect();
        let expected: Vec<(&str, Vec<&str>)> =
            expected.iter().map(|(name, sets)| (*name, sets.to_vec())).collect();
        assert_eq!(found, expected, "{text}");
    };
    check("name = 'x'", &[0], &[("x", &[])]);
    check("seed = 7", &[7], &[("stem", &[])]);
    check("name = 'x'\n[ablation]\nseeds = [2]", &[2], &[("x", &[])]);
    check(
        GRID,
        &[0, 1],
        &[
            ("A · kind=nearest · k=1", &["a=1", "linker.kind=\"nearest\"", "x.k=1"]),
            ("A · kind=nearest · k=0.5", &["a=1", "linker.kind=\"nearest\"", "x.k=0.5"]),
            ("A · kind=grid · k=1", &["a=1", "linker.kind=\"grid\"", "x.k=1"]),
            ("A · kind=grid · k=0.5", &["a=1", "linker.kind=\"grid\"", "x.k=0.5"]),
            ("B · kind=nearest · k=1", &["linker.kind=\"nearest\"", "x.k=1"]),
            ("B · kind=nearest · k=0.5", &["linker.kind=\"nearest\"", "x.k=0.5"]),
            ("B · kind=grid · k=1", &["linker.kind=\"grid\"", "x.k=1"]),
            ("B · kind=grid · k=0.5", &["linker.kind=\"grid\"", "x.k=0.5"]),
        ],
    );
}

#[test]
fn selections_choose_variants() {
    let check = |seeds: Option<&[u64]>, only: &[&str], variants: usize, seeds_left: usize| {
        let only = only.iter().map(ToString::to_string).collect();
        let scope = Scope { seeds: seeds.map(<[u64]>::to_vec), only, ..Scope::default() };
        let grid = grid(GRID, &scope).expect("a grid");
        assert_eq!((grid.variants.len(), grid.seeds.len()), (variants, seeds_left), "{scope:?}");
    };
    check(None, &[], 8, 2);
    check(Some(&[4]), &["A"], 4, 1);
    check(None, &["B · kind=grid · k=1"], 1, 2);
    check(None, &["A", "B · kind=grid · k=1"], 5, 2);
}

#[test]
fn a_profile_is_a_smaller_study() {
    let text = format!(
        "{GRID}[profile.quick]\nset = ['data.rows=5']\nseeds = [4]\nonly = ['B']\naxes = {{ 'x.k' = [2] }}"
    );
    let picked = |profile: Option<&str>, only: &[&str]| {
        let only = only.iter().map(ToString::to_string).collect();
        grid(&text, &Scope { only, profile: profile.map(str::to_string), ..Scope::default() })
    };
    let quick = picked(Some("quick"), &[]).expect("a grid");
    let names: Vec<&str> = quick.variants.iter().map(|variant| variant.name.as_str()).collect();
    assert_eq!(names, ["B · kind=nearest · k=2", "B · kind=grid · k=2"]);
    assert_eq!((quick.seeds.as_slice(), quick.sets.join(" ")), (&[4][..], "data.rows=5 name=x-quick".into()));
    assert_eq!(picked(Some("quick"), &["A"]).expect("a grid").variants.len(), 2);
    assert_eq!(picked(None, &[]).expect("a grid").variants.len(), 8);
    let message = picked(Some("quik"), &[]).expect_err("refused").to_string();
    assert!(message.contains("--profile") && message.contains("\"quick\""), "{message}");
}

#[test]
fn refuses_unknown_selections() {
    let check = |text: &str, seeds: Option<&[u64]>, only: &[&str], parts: &[&str]| {
        let only = only.iter().map(ToString::to_string).collect();
        let scope = Scope { seeds: seeds.map(<[u64]>::to_vec), only, ..Scope::default() };
        let message = grid(text, &scope).expect_err("refused").to_string();
        for part in parts {
            assert!(message.contains(part), "{message:?} lacks {part:?}");
        }
    };
    check(GRID, Some(&[1, 1]), &[], &["--seeds", "1 appears twice"]);
    check(GRID, None, &["C"], &["--only", "\"C\"", "A · kind=nearest"]);
    check("[ablation]\nseeds = [0]\n[ablation.axes]\na = [1, '1']", None, &[], &["a=1", "twice"]);
}

#[test]
fn leaves_out_excluded_combinations() {
    let names = |exclude: &str, scope: &Scope| {
        let text = GRID.replace(
            "[[ablation.variants]]\nname = 'A'",
            &format!("exclude = [{exclude}]\n[[ablation.variants]]\nname = 'A'"),
        );
        let grid = grid(&text, scope)?;
        Ok::<_, anyhow::Error>(grid.variants.into_iter().map(|variant| variant.name).collect::<Vec<_>>())
    };
    let check = |exclude: &str, expected: usize, gone: &str| {
        let names = names(exclude, &Scope::default()).expect(exclude);
        assert_eq!(names.len(), expected, "{exclude}: {names:?}");
        assert!(!names.iter().any(|name| name == gone), "{exclude}: {names:?}");
    };
    check("{ variant = 'A' }", 4, "A · kind=grid · k=1");
    check("{ 'x.k' = 0.5 }", 4, "B · kind=grid · k=0.5");
    check("{ variant = 'B', 'linker.kind' = 'grid', 'x.k' = [1, 0.5] }", 6, "B · kind=grid · k=1");
    check("{ variant = 'B', 'x.k' = 1 }, { variant = 'A', 'x.k' = 1 }", 4, "B · kind=grid · k=1");
    let refused = |exclude: &str, part: &str| {
        let message = names(exclude, &Scope::default()).expect_err(exclude).to_string();
        assert!(message.contains("ablation.exclude") && message.contains(part), "{message}");
    };
    refused("{ variant = 'C' }", "\"variant\" = \"C\"");
    refused("{ variant = 'B', 'x.k' = 7 }", "\"x.k\" = 7");
    refused("{ variant = ['A', 'B'] }", "excludes all variants");
}

#[test]
fn variant_can_be_left_without_attacks() {
    let text = |variant: &str, axes: &str| {
        format!(
            "[ablation]\nseeds = [0]\nvariants = [{{ name = 'A' }}, {{ name = 'Solo'{variant} }}]\n[ablation.axes]\n{axes}"
        )
    };
    let names = |text: &str| -> Vec<String> {
        let grid = grid(text, &Scope::default()).expect(text);
        grid.variants.into_iter().map(|variant| variant.name).collect()
    };
    let axis = "'attack.kind' = ['linkage', 'backdoor']\n";
    let alone = text(", attacked = false", axis);
    assert_eq!(names(&alone), ["A · kind=linkage", "A · kind=backdoor", "Solo"]);
    let whole = ["A · kind=linkage", "A · kind=backdoor", "Solo · kind=linkage", "Solo · kind=backdoor"];
    assert_eq!(names(&text("", axis)), whole);
    // Excluding all values of the axis removes the whole variant.
    let exclude = text("", axis)
        .replace("seeds", "exclude = [{ variant = 'Solo', 'attack.kind' = ['linkage', 'backdoor'] }]\nseeds");
    assert_eq!(names(&exclude), &whole[..2]);
    // Other axes still apply to a variant that is not attacked.
    let both = text(", attacked = false", "'attack.kind' = ['linkage', 'backdoor']\nk = [1, 2]\n");
    let grid = grid(&both, &Scope::default()).expect("a grid");
    let solo: Vec<&Variant> = grid.variants.iter().filter(|variant| variant.root == "Solo").collect();
    let sets: Vec<&[String]> = solo.iter().map(|variant| variant.sets.as_slice()).collect();
    assert_eq!(sets, [["k=1"], ["k=2"]]);
    // Its base is the first variant with equal values on the axes that both have.
    let bases: Vec<_> = (0..grid.variants.len()).map(|index| grid.base_of(index)).collect();
    assert_eq!(bases, [None, Some(0), Some(0), Some(0), Some(0), Some(1)]);
    let message = StudyGrid::parse(&text(", attacked = false", "k = [1]"), &Scope::default());
    let message = message.expect_err("nothing is attacked").to_string();
    assert!(message.contains("\"Solo\"") && message.contains("[\"k\"]"), "{message}");
}

#[test]
fn each_variant_has_its_base() {
    let check = |text: &str, only: &[&str], expected: &[Option<usize>]| {
        let only = only.iter().map(ToString::to_string).collect();
        let grid = grid(text, &Scope { only, ..Scope::default() }).expect(text);
        let bases: Vec<_> = (0..grid.variants.len()).map(|index| grid.base_of(index)).collect();
        assert_eq!(bases, expected, "{text}");
    };
    let flat = "[ablation]\nseeds = [0]\nvariants = [{ name = 'A' }, { name = 'B' }, { name = 'C' }]\n";
    check(flat, &[], &[None, Some(0), Some(0)]);
    check(flat, &["B", "C"], &[None, Some(0)]);
    check(&flat.replace("seeds", "base = 'B'\nseeds"), &[], &[Some(1), None, Some(1)]);
    // Two variants and an axis: a variant is compared with the base at the same value, and the base at other
    // values with its first value.
    let two = "[ablation]\nseeds = [0]\naxes = { k = [1, 2] }\nvariants = [{ name = 'A' }, { name = 'B' }]";
    check(two, &[], &[None, Some(0), Some(0), Some(1)]);
    check(&two.replace("seeds", "base = 'B'\nseeds"), &[], &[Some(2), Some(3), None, Some(2)]);
    check("[ablation]\nseeds = [0]\naxes = { k = [1, 2, 3] }", &[], &[None, Some(0), Some(0)]);
    let named = "[ablation]\nseeds = [0]\nbase = 'stem · k=2'\naxes = { k = [1, 2, 3] }";
    check(named, &[], &[Some(1), None, Some(1)]);
    // No variant is compared with a base that the selection leaves out.
    check(&flat.replace("seeds", "base = 'A'\nseeds"), &["B", "C"], &[None, None]);
}

/// The repository's studies are valid, in full and quick form, and their published figures match a variant.
#[test]
fn accepts_the_studies_of_the_repository() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../experiments");
    let (mut studies, mut published) = (0, 0);
    let entries = |folder: &Path| std::fs::read_dir(folder).expect("the folder of experiments");
    for entry in entries(&folder).chain(entries(&folder.join("benchmark"))) {
        let path = entry.expect("readable").path();
        if path.is_dir() {
            continue;
        }
        let file = StudyFile::read(&path).expect("a sound file");
        let profiles: Vec<Option<String>> =
            std::iter::once(None).chain(file.profile.keys().cloned().map(Some)).collect();
        for profile in profiles {
            let grid = StudyGrid::read(&path, &Scope { profile: profile.clone(), ..Scope::default() });
            let grid = grid.unwrap_or_else(|error| panic!("{}, {profile:?}: {error:#}", path.display()));
            published += grid.paper.len();
            if file.ablation.is_some() {
                assert!(grid.head.question.is_some(), "{}: the header states a question", path.display());
                let compared =
                    (0..grid.variants.len()).filter(|&index| grid.base_of(index).is_some()).count();
                assert!(compared > 0, "{}, {profile:?}: something is compared", path.display());
                studies += 1;
            }
        }
    }
    assert!(studies > 20 && published == 12, "{studies} studies, {published} figures of the paper");
}

/// The guide's first study has the number of cells stated in the guide.
#[test]
fn accepts_the_study_of_the_guide() {
    let guide = include_str!("../../../../docs/first-ablation.md");
    let study = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a study");
    for (profile, cells) in [(None, 20), (Some("quick"), 12)] {
        let scope = Scope { profile: profile.map(str::to_string), ..Scope::default() };
        let grid = grid(study, &scope).expect("a grid");
        assert_eq!(grid.variants.len() * grid.seeds.len(), cells, "{profile:?}");
        assert!(guide.contains(&format!("{cells} ")), "the guide says how many cells there are");
    }
}

/// The study of the guide that compares the value of the federation: it must be next to the experiment that
/// it extends.
#[test]
fn accepts_the_study_of_the_gain() {
    let guide = include_str!("../../../../docs/worth-it.md");
    let study = guide.split("```toml\n").nth(1).and_then(|rest| rest.split("```").next()).expect("a study");
    let folder = tempfile::tempdir().expect("a temporary folder");
    let hdb = include_str!("../../../../experiments/hdb.toml");
    std::fs::write(folder.path().join("hdb.toml"), hdb).expect("writable");
    let path = folder.path().join("worth-it.toml");
    std::fs::write(&path, study).expect("writable");
    let grid = StudyGrid::read(&path, &Scope::default()).expect("a grid");
    let cells = grid.variants.len() * grid.seeds.len();
    assert!(guide.contains(&format!("{cells} cells")), "the guide says how many cells there are: {cells}");
    let controls = (0..grid.variants.len()).filter(|&index| grid.control_of(index).is_some()).count();
    assert_eq!(controls, 2, "FeT-Pool with right links and with wrong ones");
}
