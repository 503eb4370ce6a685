//! Settings that require more memory or time than available: `fet` must refuse them before it computes.

use crate::abuse::script::{Base, Expect, Script, Step};

use Expect::{Either, Refused};

const AREA: &str = "memory";
/// Limit of the address space in KiB: 4 GB.
const LIMIT: &str = "ulimit -v 4000000;";

/// Experiment, settings, expected result, and text that a refusal must contain.
const SETTINGS: &[(&str, &str, Expect, &str)] = &[
    ("shops.toml", "method.hidden=100000", Refused, "hidden|memory"),
    ("shops.toml", "method.hidden=1000000", Refused, "hidden|memory"),
    ("shops.toml", "method.hidden=2147483648", Refused, "hidden|memory"),
    ("shops.toml", "method.hidden=4294967296", Refused, "hidden|memory"),
    ("shops.toml", "method.hidden=4611686018427387904", Refused, "hidden|memory"),
    ("shops.toml", "method.agg_blocks=1000000", Refused, "agg_blocks|memory"),
    ("shops.toml", "method.agg_blocks=9223372036854775807", Refused, "agg_blocks|memory"),
    ("shops.toml", "encoder.blocks=1000000", Refused, "blocks|memory"),
    ("shops.toml", "encoder.blocks=9223372036854775807", Refused, "blocks|memory"),
    ("shops.toml", "linker.neighbours=1000000000", Refused, "neighbours"),
    ("shops.toml", "linker.neighbours=9223372036854775807", Refused, "neighbours"),
    (
        "shops.toml",
        "linker={ kind = \"nearest\", neighbours = 1000000000, pad = true }",
        Refused,
        "neighbours|memory",
    ),
    ("shops.toml", "linker={ kind = \"random\", neighbours = 1000000000000 }", Refused, "neighbours|memory"),
    ("shops.toml", "linker={ kind = \"aligned\", neighbours = 1000000000000 }", Refused, "neighbours|memory"),
    (
        "shops.toml",
        "linker={ kind = \"hnsw\", neighbours = 3, construction = 1000000000000 }",
        Either,
        "construction|memory",
    ),
    (
        "shops.toml",
        "linker={ kind = \"hnsw\", neighbours = 3, search = 1000000000000 }",
        Either,
        "search|memory",
    ),
    (
        "shops.toml",
        "linker={ kind = \"federal\", neighbours = 3, bits = 1000000000000 }",
        Refused,
        "bits|memory",
    ),
    (
        "shops.toml",
        "linker={ kind = \"federal\", neighbours = 3, epsilon = 1e-9 }",
        Refused,
        "bits|epsilon|memory",
    ),
    (
        "shops.toml",
        "linker={ kind = \"federal\", neighbours = 3, threshold = 1e-12 }",
        Either,
        "bits|threshold|memory",
    ),
    ("shops.toml", "train.batch_size=9223372036854775807", Either, "batch_size"),
    ("shops.toml", "train.evaluation_batch_size=9223372036854775807", Either, "evaluation_batch_size"),
    ("shops.toml", "data.primary.buckets=1000000000", Either, "buckets|memory"),
    ("shops.toml", "data.primary.columns={ kind = \"text\" }", Expect::Accepted, ""),
    ("text.toml", "data.primary.buckets=1000000000", Refused, "buckets|memory"),
    ("text.toml", "data.primary.buckets=9223372036854775807", Refused, "buckets|memory"),
    ("shops.toml", "data.primary.one_hot=9223372036854775807", Either, "one_hot"),
    ("shops.toml", "method={ kind = \"solo\", hidden = [1000000000] }", Refused, "hidden|memory"),
    ("shops.toml", "method={ kind = \"solo\", hidden = [1000000, 1000000] }", Refused, "hidden|memory"),
    ("shops.toml", "method={ kind = \"solo\", hidden = [9223372036854775807] }", Refused, "hidden|memory"),
    ("shops.toml", "method={ kind = \"top1sim\", hidden = [1000000000] }", Refused, "hidden|memory"),
    (
        "shops.toml",
        "method={ kind = \"top1sim\", local = { hidden = [1000000000] } }",
        Refused,
        "hidden|memory",
    ),
    (
        "shops.toml",
        "method={ kind = \"top1sim\", local = { width = 1000000000000 } }",
        Refused,
        "width|memory",
    ),
    ("shops.toml", "method={ kind = \"fedsim\", pair_hidden = [1000000000] }", Refused, "hidden|memory"),
    (
        "shops.toml",
        "method={ kind = \"fedsim\", pair_outputs = 1000000000000 }",
        Refused,
        "pair_outputs|memory",
    ),
    (
        "shops.toml",
        "method={ kind = \"fedsim\", conv_channels = 1000000000000 }",
        Refused,
        "conv_channels|memory",
    ),
    (
        "shops.toml",
        "method={ kind = \"fedsim\", conv_kernel = 1000000000000 }",
        Refused,
        "conv_kernel|memory",
    ),
    (
        "shops.toml",
        "method={ kind = \"fedsim\", gate_hidden = 1000000000000 }",
        Refused,
        "gate_hidden|memory",
    ),
    ("shops.toml", "method={ kind = \"fedsim\", mlp_hidden = [1000000000] }", Either, "hidden|memory"),
    (
        "shops.toml",
        "method={ kind = \"gbdt-solo\", depth = 9223372036854775807, trees = 20 }",
        Either,
        "depth",
    ),
    ("shops.toml", "encoder={ kind = \"mlp\", hidden = [1000000000] }", Refused, "hidden|memory"),
    ("shops.toml", "split={ kind = \"random\", folds = 9223372036854775807 }", Refused, "folds"),
    ("images.toml", "data.parties=9223372036854775807", Refused, "parties"),
    ("images.toml", "data.key_dims=9223372036854775807", Refused, "key_dims"),
    ("images.toml", "data.rows=9223372036854775807", Either, "rows"),
    ("sparse.toml", "data.source.columns=1000000000", Refused, "columns|memory"),
    ("sparse.toml", "data.source.columns=100000000", Refused, "columns|memory"),
    ("clk.toml", "linker.bits=1000000000000", Refused, "bits|memory"),
    ("clk.toml", "linker.bits=9223372036854775807", Refused, "bits|memory"),
    ("clk.toml", "linker.q=9223372036854775807", Either, "q"),
    ("clk.toml", "linker.block_bits=9223372036854775807", Either, "block_bits"),
];

/// Arguments that require too much memory.
const COMMANDS: &[(&str, Expect, &str)] = &[
    (
        "link shops.csv streets.csv --keys lon,lat --out l.csv --set k=9223372036854775807",
        Refused,
        "neighbours",
    ),
    (
        "link shops.csv streets.csv --keys lon,lat --out l.csv --linker nearest --set pad=true --set k=1000000000000",
        Refused,
        "neighbours|memory",
    ),
    (
        "link shops.csv streets.csv --keys lon,lat --out l.csv --linker random --set k=1000000000000",
        Refused,
        "neighbours|memory",
    ),
    (
        "link names.csv names.csv --keys name --out l.csv --linker clk --set bits=1000000000000",
        Refused,
        "bits|memory",
    ),
    ("explain result --repeats 18446744073709551615", Refused, "repeats"),
    ("explain result --rows 18446744073709551615 --repeats 1", Either, "rows"),
    ("account --noise 4 --delta 1e-5 --steps 18446744073709551615", Either, "steps"),
    ("account --noise 4 --delta 1e-5 --steps 9007199254740993 --rate 0.001", Either, "steps"),
    ("account --noise 1e-300 --delta 1e-5 --rate 0.5 --steps 10", Either, "noise"),
    ("account --epsilon 1e-300 --delta 1e-300", Either, "epsilon|delta"),
];

pub(crate) fn cases() -> Vec<Script> {
    let text = crate::abuse::base::SHOPS.replacen("drop = []", "columns = { kind = \"text\" }", 1);
    let clk = crate::abuse::base::SHOPS
        .replace("\"numbers\"", "\"text\"")
        .replace("kind = \"nearest\"", "kind = \"clk\"");
    let settings = SETTINGS.iter().map(|(file, set, expect, names)| {
        let command = format!("run {file} --out out --set '{set}'");
        let step = Step::new(command, *expect).names(*names).before(LIMIT).seconds(10);
        let case = Script::on_tables(AREA, format!("{file} {set}"), step);
        match *file {
            "text.toml" => case.file(*file, text.clone()),
            "clk.toml" => case.file(*file, clk.clone()),
            _ => case,
        }
    });
    let commands = COMMANDS.iter().map(|(command, expect, names)| {
        let step = Step::new(*command, *expect).names(*names).before(LIMIT).seconds(10);
        Script::new(AREA, *command, Base::Finished).step(step)
    });
    settings.chain(commands).collect()
}
