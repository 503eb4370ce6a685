//! Undisturbed runs: all features of parties as processes give the bytes of the simulation.

use std::path::Path;

use anyhow::ensure;
use rand_chacha::ChaCha8Rng;

use crate::case::{Case, CaseEnd, CaseResult, FaultKind};
use crate::process::Process;
use crate::soak::compare::{OF_PRIMARY, differences};
use crate::soak::experiment::{Data, SoakExperiment};
use crate::soak::kit::Kit;
use crate::soak::world::SoakWorld;

const AREA: &str = "equal";

/// Name, data, and changed settings tables.
type Cell = (&'static str, Data, &'static [(&'static str, &'static str)]);

const FEDSIM: &str = r#"{ kind = "fedsim", local = { hidden = [8], width = 4 }, pair_hidden = [8], pair_outputs = 4, gate_hidden = 4, conv_channels = 2, conv_kernel = 2, conv_hidden = [8] }"#;
const TOP1SIM: &str = r#"{ kind = "top1sim", local = { hidden = [8], width = 4 }, hidden = [8] }"#;
const SECURE: &str = r#"{ kind = "secure-average" }"#;

const CELLS: &[Cell] = &[
    // Methods, on every kind of data.
    ("fet digits", Data::Digits, &[]),
    ("fet names", Data::Names, &[]),
    ("fet places", Data::Places, &[]),
    ("fet sales", Data::Sales, &[]),
    ("fet people", Data::People, &[]),
    ("fedsim digits", Data::Digits, &[("method", FEDSIM)]),
    ("fedsim places", Data::Places, &[("method", FEDSIM)]),
    ("fedsim sales", Data::Sales, &[("method", FEDSIM)]),
    ("fedsim people", Data::People, &[("method", FEDSIM)]),
    (
        "fet-pool digits",
        Data::Digits,
        &[
            ("method", "{ kind = \"fet-pool\", width = 4, hidden = [8] }"),
            ("linker", "{ kind = \"posterior\" }"),
        ],
    ),
    ("top1sim digits", Data::Digits, &[("method", TOP1SIM), ("linker", "{ kind = \"top1\" }")]),
    ("top1sim places", Data::Places, &[("method", TOP1SIM), ("linker", "{ kind = \"top1\" }")]),
    ("top1sim sales", Data::Sales, &[("method", TOP1SIM), ("linker", "{ kind = \"top1\" }")]),
    (
        "with-trees digits",
        Data::Digits,
        &[(
            "method",
            "{ kind = \"with-trees\", inner = { kind = \"fet-pool\", width = 4, hidden = [8] }, growth = { trees = 20 } }",
        )],
    ),
    (
        "with-linear digits, fitted",
        Data::Digits,
        &[(
            "method",
            "{ kind = \"with-linear\", share = \"fitted\", inner = { kind = \"fet\", hidden = 8, heads = 2 } }",
        )],
    ),
    ("gbdt-top1 places", Data::Places, &[("method", "{ kind = \"gbdt-top1\", trees = 20 }")]),
    ("gbdt-pooled sales", Data::Sales, &[("method", "{ kind = \"gbdt-pooled\", growth = { trees = 20 } }")]),
    (
        "fet-trees sales",
        Data::Sales,
        &[
            ("method", "{ kind = \"fet-trees\", growth = { trees = 40, leaves = 8 } }"),
            ("linker", "{ kind = \"posterior\" }"),
        ],
    ),
    (
        "fet-trees digits",
        Data::Digits,
        &[("method", "{ kind = \"fet-trees\", growth = { trees = 20, leaves = 8 } }")],
    ),
    // Linkers.
    ("aligned", Data::Digits, &[("linker", "{ kind = \"aligned\", neighbours = 1 }")]),
    ("aligned people", Data::People, &[("linker", "{ kind = \"aligned\", neighbours = 1 }")]),
    (
        "clk",
        Data::People,
        &[("linker", "{ kind = \"clk\", neighbours = 3, secret_env = \"FET_SOAK_SECRET\" }")],
    ),
    (
        "clk names",
        Data::Names,
        &[("linker", "{ kind = \"clk\", neighbours = 3, secret_env = \"FET_SOAK_SECRET\" }")],
    ),
    (
        "clk blocks",
        Data::People,
        &[(
            "linker",
            "{ kind = \"clk\", neighbours = 3, pad = true, hardening = \"balanced\", secret_env = \"FET_SOAK_SECRET\" }",
        )],
    ),
    (
        "clk weights",
        Data::People,
        &[(
            "linker",
            "{ kind = \"clk\", neighbours = 3, scoring = \"match-weights\", secret_env = \"FET_SOAK_SECRET\" }",
        )],
    ),
    (
        "clk diffusion and salt",
        Data::People,
        &[(
            "linker",
            "{ kind = \"clk\", neighbours = 3, hardening = \"diffusion\", salt_column = 1, salt_signs = 1, secret_env = \"FET_SOAK_SECRET\" }",
        )],
    ),
    ("edit pad", Data::People, &[("linker", "{ kind = \"edit\", neighbours = 3, pad = true }")]),
    ("tfidf", Data::People, &[("linker", "{ kind = \"tfidf\", neighbours = 3, pad = true }")]),
    ("exact", Data::Exact, &[("linker", "{ kind = \"exact\", neighbours = 2 }")]),
    ("exact people", Data::People, &[("linker", "{ kind = \"exact\", neighbours = 2 }")]),
    (
        "federal",
        Data::Places,
        &[("linker", "{ kind = \"federal\", neighbours = 3, secret_env = \"FET_SOAK_SECRET\" }")],
    ),
    ("grid", Data::Places, &[("linker", "{ kind = \"grid\", neighbours = 3 }")]),
    ("hnsw", Data::Digits, &[("linker", "{ kind = \"hnsw\", neighbours = 3 }")]),
    (
        "nearest haversine",
        Data::Places,
        &[("linker", "{ kind = \"nearest\", neighbours = 3, metric = \"haversine\" }")],
    ),
    ("nearest pad", Data::Digits, &[("linker", "{ kind = \"nearest\", neighbours = 3, pad = true }")]),
    (
        "noisy federal",
        Data::Places,
        &[
            (
                "linker",
                "{ kind = \"noisy\", leak = 0.1, inner = { kind = \"federal\", neighbours = 3, secret_env = \"FET_SOAK_SECRET\" } }",
            ),
            ("method", FEDSIM),
        ],
    ),
    (
        "noisy nearest",
        Data::Digits,
        &[
            ("linker", "{ kind = \"noisy\", leak = 0.95, inner = { kind = \"nearest\", neighbours = 3 } }"),
            ("method", FEDSIM),
        ],
    ),
    ("psi", Data::Exact, &[("linker", "{ kind = \"psi\", neighbours = 1 }")]),
    ("psi people", Data::People, &[("linker", "{ kind = \"psi\", neighbours = 2, pad = true }")]),
    ("random", Data::Digits, &[("linker", "{ kind = \"random\", neighbours = 3 }")]),
    (
        "rotation",
        Data::Places,
        &[("linker", "{ kind = \"rotation\", neighbours = 3, secret_env = \"FET_SOAK_SECRET\" }")],
    ),
    ("top1", Data::Places, &[("linker", "{ kind = \"top1\" }")]),
    // Aggregators.
    ("concat", Data::Digits, &[("aggregator", "{ kind = \"concat\" }")]),
    ("secure average", Data::Digits, &[("aggregator", SECURE)]),
    (
        "secure average 16 bits",
        Data::Places,
        &[("aggregator", "{ kind = \"secure-average\", bits = 16, range = 8.0 }")],
    ),
    ("secure average people", Data::People, &[("aggregator", SECURE)]),
    ("similarity-weighted", Data::Digits, &[("aggregator", "{ kind = \"similarity-weighted\" }")]),
    (
        "similarity-weighted people",
        Data::People,
        &[("aggregator", "{ kind = \"similarity-weighted\", sharpness = 3.0 }")],
    ),
    ("sum", Data::Places, &[("aggregator", "{ kind = \"sum\" }")]),
    // Privacy mechanisms.
    ("gaussian", Data::Digits, &[("privacy", "{ kind = \"gaussian\" }")]),
    ("discrete gaussian", Data::Digits, &[("privacy", "{ kind = \"discrete-gaussian\" }")]),
    (
        "discrete gaussian secure",
        Data::Digits,
        &[("privacy", "{ kind = \"discrete-gaussian\" }"), ("aggregator", SECURE)],
    ),
    (
        "discrete gaussian secure places",
        Data::Places,
        &[("privacy", "{ kind = \"discrete-gaussian\" }"), ("aggregator", SECURE)],
    ),
    (
        "discrete gaussian frozen",
        Data::Places,
        &[("privacy", "{ kind = \"discrete-gaussian\", learning = \"frozen\" }")],
    ),
    ("gaussian assumed", Data::People, &[("privacy", "{ kind = \"gaussian\", learning = \"assumed\" }")]),
    // Labels.
    ("labels compressed", Data::Digits, &[("labels", "{ kind = \"compressed-gradients\" }")]),
    ("labels laplace", Data::Sales, &[("labels", "{ kind = \"laplace\", low = 0.0, high = 5.0 }")]),
    ("labels max-norm", Data::Places, &[("labels", "{ kind = \"max-norm\" }")]),
    ("labels noisy gradients", Data::Digits, &[("labels", "{ kind = \"noisy-gradients\" }")]),
    ("labels randomised response", Data::Digits, &[("labels", "{ kind = \"randomised-response\" }")]),
    // Settings of training that change the messages between parties.
    (
        "party dropout",
        Data::Digits,
        &[("method", "{ kind = \"fet\", hidden = 8, heads = 2, party_dropout = 0.4 }")],
    ),
    (
        "party dropout secure",
        Data::Digits,
        &[
            ("method", "{ kind = \"fet\", hidden = 8, heads = 2, party_dropout = 0.3 }"),
            ("aggregator", SECURE),
        ],
    ),
    (
        "averaged encodings",
        Data::Digits,
        &[("method", "{ kind = \"fet\", hidden = 8, heads = 2, pe_average_every = 1, shared_norm = true }")],
    ),
    ("encoder mlp", Data::Digits, &[("encoder", "{ kind = \"mlp\", hidden = [8] }")]),
    ("no dynamic mask", Data::Digits, &[("encoder", "{ kind = \"transformer\", dynamic_mask = false }")]),
    ("poisson", Data::Digits, &[("train", "{ epochs = 2, batch_size = 64, batches = \"poisson\" }")]),
    ("early stopping", Data::Digits, &[("train", "{ epochs = 8, batch_size = 32, early_stopping = 1 }")]),
    ("log target", Data::Sales, &[("train", "{ epochs = 2, batch_size = 64, target = \"log\" }")]),
    ("keys only link", Data::People, &[("train", "{ epochs = 2, batch_size = 64, key_inputs = false }")]),
    ("recompute", Data::Digits, &[("train", "{ epochs = 2, batch_size = 64, recompute = true }")]),
    (
        "class weights",
        Data::Places,
        &[("train", "{ epochs = 2, batch_size = 64, class_weights = \"balanced\" }")],
    ),
    (
        "all digits",
        Data::Digits,
        &[
            ("train", "{ epochs = 2, batch_size = 128 }"),
            ("method", "{ kind = \"fet\", hidden = 32, heads = 4 }"),
        ],
    ),
];

/// Default plug-ins, which every cell without other settings uses.
const DEFAULTS: &[&str] = &["fet", "nearest", "transformer", "average", "none"];

/// Cells of the short form.
const SHORT: &[&str] = &[
    "fet digits",
    "fet people",
    "fedsim places",
    "top1sim sales",
    "gbdt-pooled sales",
    "fet-trees sales",
    "psi people",
    "clk",
    "hnsw",
    "secure average",
    "discrete gaussian secure places",
    "gaussian",
    "labels laplace",
    "party dropout secure",
    "poisson",
    "concat",
];

pub(super) fn cases() -> Vec<Case<Kit>> {
    let case = |&(name, data, tables): &Cell| {
        Case::new(AREA, name, move |kit, folder, _| {
            let mut experiment = SoakExperiment::new(data);
            for (table, text) in tables {
                experiment = experiment.with(table, *text);
            }
            if name == "all digits" {
                experiment = experiment.rows(0);
            }
            run(kit, folder, experiment)
        })
        .short(SHORT.contains(&name))
    };
    let again = |kit: &Kit, folder: &Path, _: &mut ChaCha8Rng| {
        let mut verdict = CaseResult::new(CaseEnd::Equal);
        let world = SoakWorld::new(kit, folder, SoakExperiment::new(Data::Digits), true, 20)?;
        let mut parties = world.parties()?;
        for time in ["first", "second"] {
            let ended = world.run(kit.patience(60))?;
            if ended.code != Some(0) {
                verdict.fault(
                    FaultKind::WrongCode,
                    format!("the {time} time: {}: {}", ended.describe(), ended.stderr),
                );
            }
        }
        world.compare(&mut verdict)?;
        let status = kit.output_of(&world.member_folder("p1"), &["status", "party.toml"])?;
        if !status.contains("lifetime account: ε = ") {
            verdict.fault(
                FaultKind::Unclear,
                format!("`fet status` of a party shows no lifetime account: {status}"),
            );
        }
        world.check(&mut parties, &mut verdict)?;
        Ok(verdict)
    };
    let others = [
        Case::new(AREA, "again", again).short(true),
        Case::new(AREA, "new secrets of the parties", new_secrets),
        Case::new(AREA, "every plug-in", every).short(true),
    ];
    CELLS.iter().map(case).chain(others).collect()
}

/// Runs twice outside a rehearsal, with new secrets of the parties the second time: the masks of secure
/// aggregation must cancel for any secrets. The case does not compare with the simulation, because the
/// primary sends its rows in a secret order.
fn new_secrets(kit: &Kit, folder: &Path, _: &mut ChaCha8Rng) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    let mut experiment = SoakExperiment::new(Data::Digits).with("aggregator", SECURE);
    experiment.rehearsal = false;
    let world = SoakWorld::new(kit, folder, experiment, true, 20)?;
    let (first, out) = (folder.join("first"), world.member_folder("primary").join("out"));
    for again in [false, true] {
        let mut parties = world.parties()?;
        let ended = world.run(kit.patience(60))?;
        if ended.code != Some(0) {
            verdict
                .fault(FaultKind::WrongCode, format!("the primary: {}: {}", ended.describe(), ended.stderr));
            return Ok(verdict);
        }
        world.check(&mut parties, &mut verdict)?;
        let models: Vec<_> = world.members()[1..].iter().map(|member| world.model(member)).collect();
        if again {
            for difference in differences(&first, &out, &models)? {
                verdict.fault(FaultKind::WrongBytes, difference);
            }
            break;
        }
        for (number, model) in (1..).zip(&models) {
            let kept = first.join(format!("parties/party{number}"));
            std::fs::create_dir_all(&kept)?;
            std::fs::copy(model, kept.join("model.safetensors"))?;
        }
        for name in OF_PRIMARY {
            std::fs::copy(out.join(name), first.join(name))?;
        }
        std::fs::remove_dir_all(&out)?;
        parties.iter_mut().for_each(Process::kill);
        for member in &world.members()[1..] {
            std::fs::remove_dir_all(world.member_folder(member).join("state"))?;
        }
        std::fs::remove_file(world.member_folder("primary").join("own.key.lifetimes.json"))?;
    }
    Ok(verdict)
}

/// Runs a cell with default settings for each plug-in without a cell, so that a new plug-in is covered at once.
/// Prints a note for a plug-in whose defaults do not suffice for an experiment.
fn every(kit: &Kit, folder: &Path, _: &mut ChaCha8Rng) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    for slot in ["method", "linker", "encoder", "aggregator", "privacy", "labels"] {
        let text = kit.output_of(folder, &["list", slot])?;
        let kinds = text.lines().filter_map(|line| line.strip_prefix("  ")?.split(' ').next());
        let kinds: Vec<&str> = kinds.filter(|kind| !kind.is_empty()).collect();
        ensure!(!kinds.is_empty(), "fet list {slot} lists nothing");
        for kind in kinds {
            let settings = format!("kind = \"{kind}\"");
            let mut tables = CELLS.iter().flat_map(|(_, _, tables)| *tables);
            if DEFAULTS.contains(&kind)
                || tables.any(|(table, text)| *table == slot && text.contains(&settings))
            {
                continue;
            }
            let cell = |data| SoakExperiment::new(data).with(slot, format!("{{ {settings} }}"));
            let cells = [Data::Digits, Data::Places, Data::Sales, Data::People, Data::Exact].map(cell);
            let Some(experiment) = cells.into_iter().find(|cell| kit.simulation(cell).is_ok()) else {
                let what = format!("the {slot} \"{kind}\" needs settings: add a cell to soak/areas/equal.rs");
                fet_io::note!("left out: {what}");
                verdict.note(what);
                continue;
            };
            // A method without other parties has no other models.
            if !kit.simulation(&experiment)?.join("parties").exists() {
                verdict.note(format!("the {slot} \"{kind}\" has no other parties"));
                continue;
            }
            verdict.note(format!("the {slot} \"{kind}\" with its defaults"));
            for fault in run(kit, &folder.join(format!("{slot}-{kind}")), experiment)?.faults {
                verdict.fault(fault.kind, format!("the {slot} \"{kind}\": {}", fault.what));
            }
        }
    }
    Ok(verdict)
}

/// Runs the experiment once, undisturbed.
pub(super) fn run(kit: &Kit, folder: &Path, experiment: SoakExperiment) -> anyhow::Result<CaseResult> {
    let mut verdict = CaseResult::new(CaseEnd::Equal);
    kit.simulation(&experiment)?;
    let world = SoakWorld::new(kit, folder, experiment, true, 20)?;
    let mut parties = world.parties()?;
    let ended = world.run(kit.patience(60))?;
    if ended.hung {
        verdict.fault(FaultKind::Hang, format!("the primary: {}", ended.stderr));
    } else if ended.code != Some(0) {
        verdict.fault(FaultKind::WrongCode, format!("the primary: {}: {}", ended.describe(), ended.stderr));
    } else {
        world.compare(&mut verdict)?;
    }
    world.check(&mut parties, &mut verdict)?;
    Ok(verdict)
}
