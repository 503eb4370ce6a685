//! Run folders with a damaged file, and each command that reads them.

use crate::abuse::script::{Base, Expect, Script, Step};
use crate::mutate;
use rand::RngExt;

use Expect::{Accepted, Any, Either, Refused};

const AREA: &str = "run folder";

/// File of a finished run, and the expected results of each command after damage: R refused, A accepted, E
/// either, X either or failed. The second six letters are for one changed bit, which cannot be detected in a
/// text file.
///
/// Commands: the same run, a run with more epochs, `predict`, `explain`, `plot`, a run from it.
const FILES: &[(&str, &str, &str)] = &[
    ("report.json", "RRRRRR", "EEEEEE"),
    ("model.safetensors", "EXRRER", "EARRER"),
    ("checkpoint.safetensors", "ARAAAA", "ARAAAA"),
    ("predictions.csv", "EXAAAA", "EAAAAA"),
    ("model-card.md", "EXAAAA", "EAAAAA"),
    ("report.html", "EXAXAA", "EAAAAA"),
    ("data-folder", "EXEEEA", "EEEEEA"),
    ("parties/party1/model.safetensors", "EXRRER", "EARRER"),
    ("parties/party2/model.safetensors", "EXRRER", "EARRER"),
    ("parties/party1/state-1.safetensors", "ARAAAA", "ARAAAA"),
];

const COMMANDS: [(&str, &str); 6] = [
    ("run", "run shops.toml --out result"),
    ("go on", "run shops.toml --out result --set train.epochs=2"),
    ("predict", "predict result --rows shops.csv --out p.csv"),
    ("explain", "explain result --rows 5 --repeats 1"),
    ("plot", "plot result --out plots"),
    ("from", "run shops.toml --from result --out next"),
];

/// Kinds of damage, as shell lines with the file in `$F`.
const DAMAGE: &[(&str, &str)] = &[
    ("empty", ": > $F"),
    ("half", "head -c $(($(wc -c < $F) / 2)) $F > tmp/x; cat tmp/x > $F; rm tmp/x"),
    ("three bytes cut", "head -c $(($(wc -c < $F) - 3)) $F > tmp/x; cat tmp/x > $F; rm tmp/x"),
    ("zeros", "n=$(wc -c < $F); head -c $n /dev/zero > $F"),
    ("text", "echo hello > $F"),
    ("a folder", "rm $F; mkdir $F"),
    ("a full folder", "rm $F; mkdir -p $F/x"),
    ("deleted", "rm $F"),
    ("a FIFO", "rm $F; mkfifo $F"),
    ("a link to itself", "rm $F; ln -s $(basename $F) $F"),
    ("a link to nothing", "rm $F; ln -s nosuch $F"),
    ("doubled", "cat $F $F > tmp/x; cat tmp/x > $F; rm tmp/x"),
];

/// Invalid reports that are valid JSON: name, `sed` command, and expected result.
const REPORTS: &[(&str, &str, Expect)] = &[
    ("null", "echo null > $F", Refused),
    ("a list", "echo '[]' > $F", Refused),
    ("an object", "echo '{}' > $F", Refused),
    ("deep", "head -c 100000 /dev/zero | tr '\\0' '[' > $F", Refused),
    ("a NaN", "sed 's/\"seed\": 0/\"seed\": NaN/' $F > tmp/x; cat tmp/x > $F; rm tmp/x", Refused),
    ("a huge number", "sed 's/\"seed\": 0/\"seed\": 1e999/' $F > tmp/x; cat tmp/x > $F; rm tmp/x", Refused),
    ("another device", "sed 's/flex/gpu/' $F > tmp/x; cat tmp/x > $F; rm tmp/x", Refused),
    ("another linker", "sed 's/\"nearest\"/\"nosuch\"/' $F > tmp/x; cat tmp/x > $F; rm tmp/x", Refused),
    ("another width", "sed 's/\"hidden\": 8/\"hidden\": 16/' $F > tmp/x; cat tmp/x > $F; rm tmp/x", Refused),
    (
        "many parties",
        "sed 's/\"secondaries\": 2/\"secondaries\": 99999999/' $F > tmp/x; cat tmp/x > $F; rm tmp/x",
        Refused,
    ),
    ("a control character", "sed 's/streets/a\\\\u001bb/g' $F > tmp/x; cat tmp/x > $F; rm tmp/x", Refused),
];

/// Change of a finished run, command, and expected result.
const OTHERS: &[(&str, &str, &str, Expect, &str)] = &[
    ("the same run again", ":", "run shops.toml --out result", Accepted, ""),
    ("more epochs", ":", "run shops.toml --out result --set train.epochs=2", Accepted, ""),
    ("other settings", ":", "run shops.toml --out result --set method.hidden=16", Refused, "result"),
    ("fewer epochs", ":", "run long.toml --out result", Refused, "result"),
    (
        "other data",
        "sed 's/cafe/bar/' streets.csv > t; sed 's/gravel/sand/' t > streets.csv",
        "run shops.toml --out result",
        Refused,
        "result",
    ),
    (
        "predict, data changed",
        "sed 's/gravel/sand/' streets.csv > t; cat t > streets.csv",
        "predict result --rows shops.csv",
        Either,
        "streets.csv",
    ),
    (
        "predict, a data file lost",
        "rm streets.csv",
        "predict result --rows shops.csv",
        Refused,
        "streets.csv",
    ),
    (
        "predict, own data lost",
        "cp shops.csv new.csv; rm shops.csv",
        "predict result --rows new.csv",
        Either,
        "shops.csv",
    ),
    ("a folder with the party's name", "mkdir streets shops", "run shops.toml --out result", Accepted, ""),
    (
        "the parties swapped",
        "cd result/parties; mv party1 x; mv party2 party1; mv x party2",
        "predict result --rows shops.csv",
        Refused,
        "party",
    ),
    ("the parties lost", "rm -r result/parties", "predict result --rows shops.csv", Refused, "party"),
    (
        "the parties a file",
        "rm -r result/parties; echo > result/parties",
        "predict result --rows shops.csv",
        Refused,
        "part",
    ),
    (
        "the parties a file: go on",
        "rm -r result/parties; echo > result/parties",
        "run shops.toml --out result --set train.epochs=2",
        Refused,
        "part",
    ),
    (
        "the parties lost: go on",
        "rm -r result/parties",
        "run shops.toml --out result --set train.epochs=2",
        Refused,
        "part",
    ),
    (
        "a party's state lost: go on",
        "rm result/parties/party2/state-1.safetensors",
        "run shops.toml --out result --set train.epochs=2",
        Refused,
        "part",
    ),
    (
        "states swapped: go on",
        "cd result/parties; mv party1 x; mv party2 party1; mv x party2",
        "run shops.toml --out result --set train.epochs=2",
        Refused,
        "part",
    ),
    ("nothing left", "rm -r result; mkdir result", "predict result --rows shops.csv", Refused, "report.json"),
    ("explain: nothing left", "rm -r result; mkdir result", "explain result", Refused, "report.json"),
    ("plot: nothing left", "rm -r result; mkdir result", "plot result", Refused, "report.json"),
    (
        "from: nothing left",
        "rm -r result; mkdir result",
        "run shops.toml --from result --out next",
        Refused,
        "result",
    ),
    ("from itself", ":", "run shops.toml --from result --out result", Refused, "result"),
    (
        "report lost, checkpoint there",
        "rm result/report.json",
        "predict result --rows shops.csv",
        Refused,
        "not finished",
    ),
    (
        "a lock without a process",
        "echo 1 > result/lock; echo 1 > result/.lock",
        "run shops.toml --out result --set train.epochs=2",
        Accepted,
        "",
    ),
    (
        "a foreign file",
        "echo mine > result/notes.txt",
        "run shops.toml --out result --set train.epochs=2",
        Accepted,
        "",
    ),
    ("out is a file below it", ":", "run shops.toml --out result/report.json", Refused, "report.json"),
    ("out is below a file", ":", "run shops.toml --out result/report.json/x", Refused, "report.json"),
];

pub(crate) fn cases(seed: u64) -> Vec<Script> {
    let mut cases = Vec::new();
    let case = |name: String, prepare: String, command: &str, expect, names: &str| {
        Script::new(AREA, name, Base::Finished)
            .step(Step::new(command, expect).prepare(prepare).names(names).seconds(3))
    };
    for (name, prepare, command, expect, names) in OTHERS {
        cases.push(case((*name).to_string(), (*prepare).to_string(), command, *expect, names));
    }
    for (name, damage, expect) in REPORTS {
        for (by, command) in COMMANDS {
            // Only `predict` and a run from this run read the contents of such a report.
            let formed = ["another", "many", "a control"].iter().any(|start| name.starts_with(start));
            let expect = if *name == "many parties" || formed && !["predict", "from"].contains(&by) {
                Either
            } else {
                *expect
            };
            let prepare = format!("F=result/report.json; {damage}");
            cases.push(case(format!("report.json: {name}: {by}"), prepare, command, expect, "result"));
        }
    }
    for (file, right, right_flipped) in FILES {
        for (place, (by, command)) in COMMANDS.iter().enumerate() {
            // Without this file, `fet` searches the data in other folders.
            let names =
                if *file == "data-folder" { "result|shops.csv|streets.csv|buses.csv" } else { "result" };
            let expect = |marks: &str| match marks.as_bytes()[place] {
                b'R' => Refused,
                b'A' => Accepted,
                b'X' => Any,
                _ => Either,
            };
            // Without the report, the run is unfinished, and `fet` continues it or writes its text files
            // again.
            for (name, damage) in DAMAGE {
                let prepare = format!("F=result/{file}; {damage}");
                let missing = *name == "deleted" && *file == "report.json" && place < 2;
                let expect = if missing { Either } else { expect(right) };
                cases.push(case(format!("{file}: {name}: {by}"), prepare, command, expect, names));
            }
            let mut rng = mutate::generator(seed, file, place as u64);
            for _ in 0..4 {
                let (at, byte) = (rng.random_range(0..1000u32), rng.random_range(1..8u32));
                let prepare = format!("F=result/{file}; {}", flip(at, byte));
                let name = format!("{file}: bit {byte} at {at} per mille: {by}");
                cases.push(case(name, prepare, command, expect(right_flipped), names));
            }
        }
    }
    cases
}

/// Returns shell lines that flip a bit of the byte at `at` per mille of the file in `$F`.
pub(crate) fn flip(at: u32, bit: u32) -> String {
    format!(
        "p=$(($(wc -c < $F) * {at} / 1000)); b=$(od -An -tu1 -j $p -N 1 $F); \
         printf \"\\\\$(printf %03o $((b ^ {})))\" | dd of=$F bs=1 seek=$p conv=notrunc 2>/dev/null",
        1 << bit
    )
}
