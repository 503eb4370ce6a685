//! Experiments: a valid experiment with a replaced part, files that are not TOML, and seeded changes.

use crate::abuse::base::SHOPS;
use crate::abuse::script::{Base, Expect, Script, Step};
use crate::mutate;

use Expect::{Accepted, Any, Either, Refused};

const AREA: &str = "experiment";

/// Part of the experiment, its replacement, expected result, and text that a refusal must contain.
type ExperimentCase = (&'static str, &'static str, Expect, &'static str);

const PARTS: &[ExperimentCase] = &[
    ("epochs = 1", "epochs = \"one\"", Refused, "epochs"),
    ("epochs = 1", "epochs = 1.5", Refused, "epochs"),
    ("epochs = 1", "epochs = [1]", Refused, "epochs"),
    ("epochs = 1", "epochs = { a = 1 }", Refused, "epochs"),
    ("epochs = 1", "epochs = true", Refused, "epochs"),
    ("epochs = 1", "epochs = -1", Refused, "epochs"),
    ("epochs = 1", "epochs = 0", Refused, "epochs"),
    ("epochs = 1", "epochs = nan", Refused, "epochs"),
    ("epochs = 1", "epochs = inf", Refused, "epochs"),
    ("epochs = 1", "epochs = 99999999999999999999", Refused, "epochs|line 4"),
    ("epochs = 1", "epochs = ", Refused, "shops.toml"),
    ("epochs = 1", "epochs = 1 1", Refused, "shops.toml"),
    ("epochs = 1", "epochs = 2020-01-01", Refused, "epochs"),
    ("epochs = 1", "epochs = 1\nepochs = 2", Refused, "epochs"),
    ("epochs = 1", "epochz = 1", Refused, "epochz"),
    ("epochs = 1", "epochs = 1\n\"\" = 1", Refused, "shops.toml"),
    ("epochs = 1", "epochs = 1\n\"a\\u001bb\" = 1", Refused, "shops.toml"),
    ("epochs = 1", "epochs = 1\n\"a\\nb\" = 1", Refused, "shops.toml"),
    ("epochs = 1", "epochs.x = 1", Refused, "epochs"),
    ("batch_size = 32", "batch_size = 0", Refused, "batch_size"),
    ("batch_size = 32", "batch_size = -4", Refused, "batch_size"),
    ("batch_size = 32", "batch_size = \"x\"", Refused, "batch_size"),
    ("batch_size = 32", "batch_size = 1e300", Refused, "batch_size"),
    ("batch_size = 32", "batch_size = 9223372036854775807", Either, "batch_size"),
    ("batch_size = 32", "evaluation_batch_size = 0", Refused, "evaluation_batch_size"),
    ("batch_size = 32", "evaluation_batch_size = 9223372036854775807", Either, "evaluation_batch_size"),
    ("batch_size = 32", "decay = \"x\"", Refused, "decay"),
    ("batch_size = 32", "class_weights = [1, 2, 3]", Refused, "class_weights"),
    ("batch_size = 32", "class_weights = [0, 0]", Refused, "class_weights"),
    ("batch_size = 32", "class_weights = [-1, 1]", Refused, "class_weights"),
    ("batch_size = 32", "class_weights = [nan, 1]", Refused, "class_weights"),
    ("batch_size = 32", "class_weights = [inf, 1]", Refused, "class_weights"),
    ("batch_size = 32", "class_weights = [1e300, 1]", Any, "class_weights"),
    ("batch_size = 32", "class_weights = \"balance\"", Refused, "class_weights"),
    ("batch_size = 32", "class_weights = 5", Refused, "class_weights"),
    ("batch_size = 32", "early_stopping = -1", Refused, "early_stopping"),
    ("batch_size = 32", "factor = 0", Refused, "factor"),
    ("batch_size = 32", "factor = nan", Refused, "factor"),
    ("batch_size = 32", "wire = \"post\"", Refused, "wire"),
    ("batch_size = 32", "randomness = \"none\"", Refused, "randomness"),
    ("name = \"shops\"\n", "", Either, "name"),
    ("name = \"shops\"\n", "name = 5\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"../../up\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"/abs\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"a\\nb\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"a\\u001b[31mb\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"a\\u0000b\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"a\"\nname = \"b\"\n", Refused, "name"),
    ("name = \"shops\"\n", "name = \"é ü 名\"\n", Either, "name"),
    ("name = \"shops\"\n", "name = 'shops'\nseed = -1\n", Refused, "seed"),
    ("name = \"shops\"\n", "name = 'shops'\nseed = 1.5\n", Refused, "seed"),
    ("name = \"shops\"\n", "name = 'shops'\nseed = 9223372036854775807\n", Either, "seed"),
    ("name = \"shops\"\n", "name = 'shops'\ndevice = \"gpu\"\n", Refused, "device"),
    ("name = \"shops\"\n", "name = 'shops'\ndevice = \"\"\n", Refused, "device"),
    ("name = \"shops\"\n", "name = 'shops'\ndevice = 5\n", Refused, "device"),
    ("name = \"shops\"\n", "name = 'shops'\ntrain = 5\n", Refused, "train"),
    ("name = \"shops\"\n", "name = 'shops'\nfrom = \"nowhere\"\n", Refused, "nowhere"),
    ("name = \"shops\"\n", "name = 'shops'\nfrom = \"streets.csv\"\n", Refused, "streets.csv"),
    ("name = \"shops\"\n", "name = 'shops'\nfrom = 5\n", Refused, "from"),
    ("name = \"shops\"\n", "name = 'shops'\norigin = 5\n", Refused, "origin"),
    ("name = \"shops\"\n", "name = 'shops'\nablation = 5\n", Either, "ablation"),
    ("name = \"shops\"\n", "name = 'shops'\nprivacy = {}\n", Either, "privacy"),
    (
        "name = \"shops\"\n",
        "name = 'shops'\nprivacy = { kind = \"gaussian\", noise = -1 }\n",
        Refused,
        "noise",
    ),
    (
        "name = \"shops\"\n",
        "name = 'shops'\nprivacy = { kind = \"gaussian\", noise = 0 }\n",
        Refused,
        "noise",
    ),
    (
        "name = \"shops\"\n",
        "name = 'shops'\nprivacy = { kind = \"gaussian\", clip = inf }\n",
        Refused,
        "clip",
    ),
    (
        "name = \"shops\"\n",
        "name = 'shops'\nprivacy = { kind = \"gaussian\", delta = 1.0 }\n",
        Refused,
        "delta",
    ),
    (
        "name = \"shops\"\n",
        "name = 'shops'\nprivacy = { kind = \"gaussian\", delta = 0.0 }\n",
        Refused,
        "delta",
    ),
    ("name = \"shops\"\n", "name = 'shops'\npolicy = { least_rows = 1000 }\n", Refused, "rows"),
    ("name = \"shops\"\n", "name = 'shops'\npolicy = { linkers = [\"psi\"] }\n", Refused, "nearest"),
    (
        "name = \"shops\"\n",
        "name = 'shops'\npolicy = { linkers = [\"nosuch\"] }\n",
        Refused,
        "nosuch|nearest",
    ),
    ("name = \"shops\"\n", "name = 'shops'\npolicy = { most_epsilon = -1 }\n", Refused, "most_epsilon"),
    ("name = \"shops\"\n", "name = 'shops'\nencoder = { blocks = 0 }\n", Either, "blocks"),
    ("name = \"shops\"\n", "name = 'shops'\nencoder = { kind = \"nosuch\" }\n", Refused, "nosuch"),
    ("name = \"shops\"\n", "name = 'shops'\naggregator = { kind = 5 }\n", Refused, "aggregator|kind"),
    ("name = \"shops\"\n", "name = 'shops'\nlabels = { kind = \"laplace\" }\n", Refused, "labels|laplace"),
    ("name = \"shops\"\n", "name = 'shops'\n[[train]]\nepochs = 1\n", Refused, "train"),
    ("name = \"shops\"\n", "name = 'shops'\ntrain = { epochs = 1 }\n", Refused, "train"),
    ("[train]", "[trian]", Refused, "trian"),
    ("[train]", "[train", Refused, "shops.toml"),
    ("[train]", "[]", Refused, "shops.toml"),
    ("[train]", "[train]\n[train]", Refused, "train"),
    ("[data]", "[date]", Refused, "date"),
    ("kind = \"linked\"", "kind = \"linkd\"", Refused, "linkd"),
    ("kind = \"linked\"\n", "", Refused, "data"),
    ("kind = \"linked\"", "kind = [\"linked\"]", Refused, "kind"),
    ("task = \"binary\"", "task = \"regression\"", Refused, "busy"),
    ("task = \"binary\"", "task = \"sorting\"", Refused, "task"),
    ("task = \"binary\"", "task = 2", Refused, "task"),
    ("task = \"binary\"", "task = \"multiclass\"", Either, "busy|task"),
    ("label = \"busy\"\n", "", Refused, "label"),
    ("label = \"busy\"", "label = \"\"", Refused, "label"),
    ("label = \"busy\"", "label = \"nosuch\"", Refused, "nosuch"),
    ("label = \"busy\"", "label = \"lon\"", Refused, "lon"),
    ("label = \"busy\"", "label = \"kind\"", Refused, "kind"),
    ("label = \"busy\"", "label = \"size\"", Refused, "size"),
    ("label = \"busy\"", "label = \"opened\"", Refused, "opened"),
    ("label = \"busy\"", "label = [\"busy\"]", Refused, "label"),
    ("label = \"busy\"", "label = \"Busy\"", Refused, "Busy"),
    ("label = \"busy\"", "label = \"busy\"\nrows = -1", Refused, "rows"),
    ("label = \"busy\"", "label = \"busy\"\nrows = 1", Refused, "rows|record"),
    ("label = \"busy\"", "label = \"busy\"\nrows = 2", Either, "rows|record"),
    ("label = \"busy\"", "label = \"busy\"\nrows = 5", Either, "rows|record|class"),
    ("label = \"busy\"", "label = \"busy\"\nrows = 9223372036854775807", Either, "rows"),
    ("key_kind = \"numbers\"", "key_kind = \"text\"", Refused, "nearest|key"),
    ("key_kind = \"numbers\"", "key_kind = \"num\"", Refused, "key_kind"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [], drop", Refused, "keys"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"lon\"], drop", Refused, "key"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"lon\", \"lon\"], drop", Refused, "lon"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"lat\", \"lon\", \"size\"], drop", Refused, "key"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"lon\", \"nosuch\"], drop", Refused, "nosuch"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"lon\", \"busy\"], drop", Refused, "busy"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"lon\", \"kind\"], drop", Refused, "kind"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = \"lon\", drop", Refused, "keys"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [5, 6], drop", Refused, "keys"),
    ("keys = [\"lon\", \"lat\"], drop", "keys = [\"\", \"lat\"], drop", Refused, "key|column"),
    ("keys = [\"lon\", \"lat\"], drop", "key = [\"lon\", \"lat\"], drop", Refused, "key"),
    ("drop = []", "drop = [\"nosuch\"]", Refused, "nosuch"),
    ("drop = []", "drop = [\"busy\"]", Refused, "busy"),
    ("drop = []", "drop = [\"lon\"]", Refused, "lon"),
    ("drop = []", "drop = [\"size\", \"size\"]", Either, "size"),
    ("drop = []", "drop = [\"kind\", \"opened\", \"size\"]", Either, "column|shops"),
    ("drop = []", "drop = \"size\"", Refused, "drop"),
    ("drop = []", "scaling = \"x\"", Refused, "scaling"),
    ("drop = []", "one_hot = -1", Refused, "one_hot"),
    ("drop = []", "one_hot = 1000000000000", Either, "one_hot"),
    ("drop = []", "buckets = 0", Either, "buckets"),
    ("drop = []", "buckets = -1", Refused, "buckets"),
    ("drop = []", "delimiter = \"\"", Either, "delimiter"),
    ("drop = []", "delimiter = \";;\"", Refused, "delimiter"),
    ("drop = []", "delimiter = \"\\u0000\"", Refused, "delimiter|lon"),
    ("drop = []", "delimiter = \"\\n\"", Refused, "delimiter"),
    ("drop = []", "delimiter = \"\\\"\"", Refused, "delimiter"),
    ("drop = []", "delimiter = \"|\"", Refused, "delimiter"),
    ("drop = []", "missing = [\"yes\"]", Refused, "busy|missing"),
    ("drop = []", "missing = \"-\"", Refused, "missing"),
    ("drop = []", "missing = [5]", Refused, "missing"),
    ("drop = []", "clip = [\"kind\"]", Refused, "kind"),
    ("drop = []", "clip = [\"nosuch\"]", Refused, "nosuch"),
    ("drop = []", "columns = { kind = \"number\" }", Refused, "kind"),
    ("drop = []", "columns = { nosuch = \"text\" }", Refused, "nosuch"),
    ("drop = []", "columns = { opened = \"date:%Q\" }", Refused, "opened"),
    ("drop = []", "columns = { opened = \"date:\" }", Refused, "opened"),
    ("drop = []", "columns = { opened = \"date:%d/%m/%Y\" }", Refused, "opened"),
    ("drop = []", "columns = { size = \"nosuch\" }", Refused, "size|nosuch"),
    ("drop = []", "columns = { size = 5 }", Refused, "size|columns"),
    ("drop = []", "bounds = { size = [9, 1] }", Refused, "bounds"),
    ("scaling = \"standard\"", "bounds = { lanes = [9, 1] }", Refused, "bounds|lanes"),
    ("scaling = \"standard\"", "bounds = { lanes = [nan, 1] }", Refused, "bounds|lanes"),
    ("scaling = \"standard\"", "bounds = { lanes = [1] }", Refused, "bounds|lanes"),
    ("scaling = \"standard\"", "bounds = { lanes = 5 }", Refused, "bounds|lanes"),
    ("scaling = \"standard\"", "bounds = { nosuch = [0, 1] }", Refused, "bounds|nosuch"),
    ("scaling = \"standard\"", "categories = { surface = [] }", Either, "categories|surface"),
    ("scaling = \"standard\"", "dates = { lanes = [\"x\", \"y\"] }", Refused, "dates|lanes|bounds"),
    ("name = \"streets\"", "name = \"buses\"", Refused, "buses"),
    ("name = \"streets\"", "name = \"shops\"", Refused, "shops"),
    ("name = \"streets\"", "name = \"\"", Either, "name"),
    ("name = \"streets\"", "name = \"a\\u001bb\"", Refused, "control|name"),
    ("name = \"streets\"", "name = \"a\\nb\"", Refused, "control|name"),
    ("name = \"streets\"", "name = \"primary\"", Either, "name"),
    ("name = \"streets\"", "name = 5", Refused, "name"),
    ("file = \"streets.csv\"", "file = \"\"", Refused, "file|streets"),
    ("file = \"streets.csv\"", "file = \".\"", Refused, "file|streets|."),
    ("file = \"streets.csv\"", "file = \"/\"", Refused, "/"),
    ("file = \"streets.csv\"", "file = \"missing.csv\"", Refused, "missing.csv"),
    ("file = \"streets.csv\"", "file = \"strets.csv\"", Refused, "strets.csv"),
    ("file = \"streets.csv\"", "file = \"shops.toml\"", Refused, "shops.toml"),
    ("file = \"streets.csv\"", "file = \"images.idx\"", Refused, "images.idx"),
    ("file = \"streets.csv\"", "file = \"a\\u0000b\"", Refused, "file|missing"),
    ("file = \"streets.csv\"", "file = \"a\\u001bb\"", Refused, "file|missing"),
    ("file = \"streets.csv\"", "file = 5", Refused, "file"),
    ("secondaries = [", "secondariez = [", Refused, "secondariez"),
    ("kind = \"random\"", "kind = \"nosuch\"", Refused, "nosuch"),
    ("kind = \"random\"", "kind = \"random\"\nvalidation = 0", Either, "validation"),
    ("kind = \"random\"", "kind = \"random\"\nvalidation = 1", Refused, "validation"),
    ("kind = \"random\"", "kind = \"random\"\nvalidation = -0.1", Refused, "validation"),
    ("kind = \"random\"", "kind = \"random\"\nvalidation = nan", Refused, "validation"),
    ("kind = \"random\"", "kind = \"random\"\nvalidation = 0.9\ntest = 0.9", Refused, "validation|test"),
    ("kind = \"random\"", "kind = \"random\"\ntest = 0", Either, "test"),
    ("kind = \"random\"", "kind = \"random\"\ntest = inf", Refused, "test"),
    ("kind = \"random\"", "kind = \"random\"\nfolds = 5\nfold = 5", Refused, "fold"),
    ("kind = \"random\"", "kind = \"random\"\nfolds = 1", Refused, "folds"),
    ("kind = \"random\"", "kind = \"random\"\nfolds = 1000", Refused, "folds"),
    ("kind = \"random\"", "kind = \"time\"", Refused, "column"),
    ("kind = \"random\"", "kind = \"time\"\ncolumn = \"nosuch\"", Refused, "nosuch"),
    ("kind = \"random\"", "kind = \"time\"\ncolumn = \"kind\"", Refused, "kind"),
    ("kind = \"random\"", "kind = \"group\"\ncolumn = \"busy\"", Either, "busy|groups"),
    ("kind = \"random\"", "kind = \"column\"\ncolumn = \"kind\"", Refused, "kind"),
    ("kind = \"random\"", "kind = \"file\"", Refused, "file"),
    ("kind = \"random\"", "kind = \"file\"\nfile = \"nosuch.csv\"", Refused, "nosuch.csv"),
    ("kind = \"random\"", "kind = \"file\"\nfile = \"streets.csv\"", Refused, "streets.csv"),
    ("metric = \"accuracy\"", "metric = \"nosuch\"", Refused, "metric"),
    ("metric = \"accuracy\"", "metric = \"rmse\"", Refused, "metric"),
    ("metric = \"accuracy\"", "coverage = 0", Refused, "coverage"),
    ("metric = \"accuracy\"", "coverage = 1", Refused, "coverage"),
    ("metric = \"accuracy\"", "coverage = nan", Refused, "coverage"),
    ("metric = \"accuracy\"", "groups = \"nosuch\"", Refused, "nosuch"),
    ("metric = \"accuracy\"", "groups = 5", Refused, "groups"),
    ("kind = \"nearest\"", "kind = \"nearst\"", Refused, "nearst"),
    ("kind = \"nearest\"", "kind = \"edit\"", Refused, "key|edit"),
    ("kind = \"nearest\"", "kind = \"nearest\"\nmetric = \"x\"", Refused, "metric"),
    ("kind = \"nearest\"", "kind = \"hnsw\"\nsearch = 0", Refused, "search"),
    ("kind = \"nearest\"", "kind = \"federal\"\nbits = 9223372036854775807", Refused, "bits"),
    ("kind = \"nearest\"", "kind = \"federal\"\nthreshold = nan", Refused, "threshold"),
    ("kind = \"nearest\"", "kind = \"noisy\"\nleak = -1", Refused, "leak"),
    ("neighbours = 3", "neighbours = 0", Refused, "neighbours"),
    ("neighbours = 3", "neighbours = -1", Refused, "neighbours"),
    ("neighbours = 3", "neighbours = 61", Refused, "neighbours"),
    ("neighbours = 3", "neighbours = 61\npad = true", Either, "neighbours"),
    ("neighbours = 3", "neighbours = 3\nneighbors = 3", Refused, "neighbors"),
    ("kind = \"fet\"", "kind = \"fett\"", Refused, "fett"),
    ("kind = \"fet\"", "kind = \"solo\"", Refused, "heads|hidden"),
    ("hidden = 8", "hidden = 0", Refused, "hidden"),
    ("hidden = 8", "hidden = 7", Refused, "hidden|heads"),
    ("hidden = 8", "hidden = -8", Refused, "hidden"),
    ("hidden = 8", "hidden = [8]", Refused, "hidden"),
    ("hidden = 8", "hiden = 8", Refused, "hiden"),
    ("heads = 2", "heads = 0", Refused, "heads"),
    ("heads = 2", "heads = 16", Refused, "heads"),
    ("heads = 2", "agg_blocks = 0", Either, "agg_blocks"),
    ("heads = 2", "agg_blocks = -1", Refused, "agg_blocks"),
    ("heads = 2", "frequency_std = -1", Refused, "frequency_std"),
    ("heads = 2", "frequency_std = inf", Refused, "frequency_std"),
    ("heads = 2", "frequency_std = 1e300", Any, "frequency_std|diverged"),
    ("heads = 2", "party_dropout = 1.5", Refused, "party_dropout"),
    ("heads = 2", "optimizer = { learning_rate = -1 }", Refused, "learning_rate"),
    ("heads = 2", "optimizer = { learning_rate = nan }", Refused, "learning_rate"),
    ("heads = 2", "optimizer = { learning_rate = inf }", Refused, "learning_rate"),
    ("heads = 2", "optimizer = { learning_rate = 1e30 }", Any, "learning|epoch"),
    ("heads = 2", "optimizer = { learning_rate = 1e300 }", Any, "learning|epoch"),
    ("heads = 2", "optimizer = { beta1 = 1.0 }", Refused, "beta1"),
    ("heads = 2", "optimizer = { beta2 = -0.5 }", Refused, "beta2"),
    ("heads = 2", "optimizer = { epsilon = -1 }", Refused, "epsilon"),
    ("heads = 2", "optimizer = { kind = \"nosuch\" }", Refused, "nosuch"),
    ("heads = 2", "optimizer = { lr = 1 }", Refused, "lr"),
    ("heads = 2", "optimizer = 5", Refused, "optimizer"),
    ("dropout = 0.0", "dropout = 1.5", Refused, "dropout"),
    ("dropout = 0.0", "dropout = -0.1", Refused, "dropout"),
    ("dropout = 0.0", "dropout = nan", Refused, "dropout"),
    ("dropout = 0.0", "dropout = 1.0", Refused, "dropout"),
    ("dropout = 0.0", "dropout = \"0.1\"", Refused, "dropout"),
    ("dropout = 0.0", "dropout = 0,1", Refused, "shops.toml"),
    ("dropout = 0.0", "dropout = 0.0\n[optimizer]\nkind = \"lamb\"", Refused, "optimizer"),
];

/// Name of another file to extend, its text, the first line of `shops.toml`, and the expected result.
const EXTENDS: &[(&str, &str, &str, Expect)] = &[
    ("base.toml", "[train]\nbatch_size = 16\n", "base.toml", Accepted),
    ("base.toml", "extends = \"shops.toml\"\n", "base.toml", Refused),
    ("base.toml", "extends = \"base.toml\"\n", "base.toml", Refused),
    ("base.toml", "", "shops.toml", Refused),
    ("base.toml", "", "nosuch.toml", Refused),
    ("base.toml", "", "tmp", Refused),
    ("base.toml", "", ".", Refused),
    ("base.toml", "", "", Refused),
    ("base.toml", "", "/dev/null/x", Refused),
    ("base.toml", "[train\n", "base.toml", Refused),
    ("base.toml", "trian = 5\n", "base.toml", Refused),
    ("base.toml", "train = 5\n", "base.toml", Either),
    ("base.toml", "method = []\n", "base.toml", Either),
    ("base.toml", "", "shops.csv", Refused),
    ("base.toml", "", "images.idx", Refused),
    ("base.toml", "", "a\\u0000b", Refused),
    ("base.toml", "", "a\\u001bb", Refused),
];

pub(crate) fn cases(seed: u64) -> Vec<Script> {
    let run = |expect, names: &str| Step::new("run shops.toml --out out", expect).names(names);
    let parts = PARTS.iter().map(|(part, other, expect, names)| {
        let (one, two) = (part.trim().escape_debug(), other.trim().escape_debug());
        Script::on_tables(AREA, format!("{one} -> {two}"), run(*expect, names))
            .file("shops.toml", SHOPS.replacen(part, other, 1))
    });
    let extends = EXTENDS.iter().map(|(file, text, name, expect)| {
        let title = format!("extends {} of {}", name.escape_debug(), text.trim().escape_debug());
        let names = if name.len() > 1 {
            format!("{name}|extends|shops.toml")
        } else {
            "extends|shops.toml".to_string()
        };
        let names = if name.contains("\\u") { String::new() } else { names };
        Script::on_tables(AREA, title, run(*expect, &names))
            .file(*file, *text)
            .file("shops.toml", format!("extends = \"{name}\"\n{SHOPS}"))
    });
    let texts = texts().into_iter().map(|(name, bytes, expect)| {
        // An experiment with only default settings would train for minutes.
        let command =
            if name.starts_with("nothing") { "show shops.toml" } else { "run shops.toml --out out" };
        Script::on_tables(AREA, name, Step::new(command, expect).names("shops.toml"))
            .file("shops.toml", bytes)
    });
    let cut = (0..40).map(|at| {
        let end = SHOPS.len() * at / 40;
        let step = Step::new("data check shops.toml", Either).names("shops");
        Script::on_tables(AREA, format!("cut after {end} bytes"), step).file("shops.toml", &SHOPS[..end])
    });
    let mutated = (0..160u64).map(|number| {
        let mut rng = mutate::generator(seed, AREA, number);
        let bytes = match number % 2 {
            0 => mutate::bytes(SHOPS.as_bytes(), &mut rng),
            _ => mutate::values(SHOPS, &['='], &mut rng).into_bytes(),
        };
        let command = if number % 4 < 2 { "show shops.toml" } else { "data check shops.toml" };
        Script::on_tables(AREA, format!("change {number}"), Step::new(command, Either))
            .file("shops.toml", bytes)
    });
    let unmatched =
        Step::new("run shops.toml --out out --set linker.kind=exact --set linker.neighbours=1", Accepted);
    let unmatched =
        Script::new(AREA, "keys that never match", Base::Tables).step(unmatched.says("lack a link"));
    parts.chain(extends).chain(texts).chain([unmatched]).chain(cut).chain(mutated).collect()
}

fn texts() -> Vec<(&'static str, Vec<u8>, Expect)> {
    let wide = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let with = |extra: &str| format!("{extra}{SHOPS}").into_bytes();
    vec![
        ("BOM", with("\u{feff}"), Either),
        ("CRLF", SHOPS.replace('\n', "\r\n").into_bytes(), Accepted),
        ("CR", SHOPS.replace('\n', "\r").into_bytes(), Refused),
        ("tabs", SHOPS.replace(" = ", "\t=\t").into_bytes(), Accepted),
        ("UTF-16", [&[0xff, 0xfe][..], &wide(SHOPS)].concat(), Refused),
        ("NUL at the end", [SHOPS.as_bytes(), b"\0"].concat(), Refused),
        ("NUL in a comment", with("# \0\n"), Refused),
        ("ESC in a comment", with("# \u{1b}[31m\n"), Refused),
        ("invalid UTF-8", [SHOPS.as_bytes(), b"# caf\xe9\n"].concat(), Refused),
        ("nothing", Vec::new(), Either),
        ("nothing but a comment", b"# nothing\n".to_vec(), Either),
        ("nothing but NUL", vec![0; 4096], Refused),
        ("random bytes", (0..5000u32).map(|at| ((at * 2_654_435) >> 7) as u8).collect(), Refused),
        ("JSON", b"{\"name\": \"shops\"}".to_vec(), Refused),
        ("YAML", b"name: shops\ntrain:\n  epochs: 1\n".to_vec(), Refused),
        ("a table of CSV", crate::abuse::base::shops().into_bytes(), Refused),
        ("many comments", with(&"# a comment\n".repeat(100_000)), Accepted),
        ("one long comment", with(&format!("# {}\n", "x".repeat(5_000_000))), Accepted),
        ("a long name", SHOPS.replacen("shops", &"n".repeat(5000), 1).into_bytes(), Either),
        ("deep arrays", with(&format!("deep = {}{}\n", "[".repeat(50_000), "]".repeat(50_000))), Refused),
        ("deep tables", with(&format!("deep = {}1{}\n", "{a=".repeat(50_000), "}".repeat(50_000))), Refused),
        ("deep dotted name", with(&format!("{}a = 1\n", "a.".repeat(50_000))), Refused),
        ("deep header", with(&format!("[{}a]\n", "a.".repeat(50_000))), Refused),
        (
            "many unknown names",
            with(&(0..20_000).map(|n| format!("n{n} = 1\n")).collect::<String>()),
            Refused,
        ),
        ("a long unknown name", with(&format!("{} = 1\n", "n".repeat(100_000))), Refused),
        ("a long value", with(&format!("device = \"{}\"\n", "n".repeat(100_000))), Refused),
    ]
}
