//! Findings of people who tried to break the program, one entry each: the fault, the commands, and the
//! expected result.
//!
//! Each entry runs in its own folder with the same files. A unit test of the registry covers two plug-ins of
//! one name, and `fet-e2e fuzz` covers damaged files.
#![cfg(unix)]

use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::TINY;

use crate::support::message_lines;

const LINKED: &str = r#"
name = "linked"
data = { kind = "linked", task = "regression", label = "takings", primary = { file = "shops.csv", keys = ["lon", "lat"] }, secondaries = [{ name = "streets", file = "streets.csv", keys = ["lon", "lat"] }] }
linker = { kind = "nearest", neighbours = 3 }
method = { kind = "fet", hidden = 8, heads = 2 }
train = { epochs = 1 }
"#;

/// Observed fault, shell commands (`$FET` is the program), exit code, and parts of standard error.
type Finding = (&'static str, &'static str, i32, &'static [&'static str]);

/// All findings. `$LINK` is the start of a link command, up to the name of the output.
const FINDINGS: &[Finding] = &[
    (
        "link --out replaced a FIFO",
        r#"mkfifo pipe; cat pipe > got & $LINK --out pipe && wait && test -p pipe && test $(wc -l < got) = 61"#,
        0,
        &[],
    ),
    (
        "link --out replaced a symbolic link",
        "ln -s real.csv l.csv; $LINK --out l.csv && test -L l.csv && test -s real.csv",
        0,
        &[],
    ),
    (
        "link --out - made a file of that name",
        "$LINK --out - | grep -q ^primary_row && test ! -e ./-",
        0,
        &[],
    ),
    (
        "two processes shared a temporary file",
        "for i in 1 2 3 4; do $LINK --out l.csv & done; wait; test $(wc -l < l.csv) = 61 && test \"$(ls | grep -c part)\" = 0",
        0,
        &[],
    ),
    (
        "an output was found impossible after the work",
        "$LINK --out none/l.csv",
        2,
        &["--out none/l.csv", "does not exist"],
    ),
    (
        "a full disk left a part behind",
        "trap '' XFSZ; ulimit -f 1; $FET link shops.csv streets.csv --keys=lon,lat --set=k=60 --out l.csv; code=$?; ls | grep -q l.csv && exit 9; exit $code",
        1,
        &["l.csv"],
    ),
    (
        "one bad cell in a key turned the linker to text",
        "sed -i '5s/^[^,]*/x/' shops.csv; $FET link shops.csv streets.csv --keys=lon,lat --out l.csv",
        2,
        &["shops.csv row 3 (from 0)", "\"x\""],
    ),
    (
        "an unclosed quote cut a table to 20 rows",
        "sed -i '21s/,cafe,/,\"cafe,/;21s/,bar,/,\"bar,/;21s/,shop,/,\"shop,/' shops.csv; $FET run linked.toml --out r",
        2,
        &["shops.csv", "line 21", "never closed"],
    ),
    (
        "a run whose keys never match trained without a word",
        "sed -i 's/^\\([0-9]\\)\\./9\\1./' streets.csv; $FET run linked.toml --out r --set=linker.kind=exact",
        0,
        &["warning: streets: 60 of the primary's 60 records lack a link with it"],
    ),
    (
        "a flipped bit in a checkpoint was accepted",
        r#"$FET run tiny.toml --out r 2>/dev/null || exit 8
        size=$(wc -c < r/checkpoint.safetensors); refused=0
        for i in 0 1 2 3 4 5 6 7 8 9 10 11; do
            cp -r r r$i; at=$(( (size - 1) * i / 11 )); old=$(od -An -tu1 -j $at -N 1 r$i/checkpoint.safetensors)
            printf "\\$(printf %03o $((old ^ 4)))" | dd of=r$i/checkpoint.safetensors bs=1 seek=$at conv=notrunc 2>/dev/null
            $FET run tiny.toml --out r$i --set=train.epochs=3 2>/dev/null; [ $? = 2 ] && refused=$((refused + 1))
        done; test $refused = 12"#,
        0,
        &[],
    ),
    (
        "a report that cannot be read was overwritten",
        "mkdir r; echo mine > r/report.json; $FET run tiny.toml --out r; code=$?; grep -q mine r/report.json || exit 9; exit $code",
        2,
        &["r/report.json", "move it away"],
    ),
    (
        "ids of the truth that occur twice were counted twice",
        "printf 'a,b\\ncafe,0\\n' > truth.csv; $LINK --truth=truth.csv --id=kind,lines --out l.csv",
        2,
        &["\"cafe\" occurs in rows 0 and 3 (from 0) of the primary table", "--id"],
    ),
    (
        "a key was named twice",
        "sed -i 's/keys = \\[\"lon\", \"lat\"\\]/keys = [\"lon\", \"lon\"]/' linked.toml; $FET run linked.toml --out r",
        2,
        &["`data.primary.keys` must name each column once", "lon"],
    ),
    ("x.csv.gz was written plain", "$LINK --out l.csv.gz && gzip -t l.csv.gz", 0, &[]),
    (
        "a line end in a column's name",
        "printf '\"a\\nb\",lon,lat\\n1,1,1\\n' > shops.csv; $FET data show shops.csv",
        2,
        &["shops.csv", "control character"],
    ),
    (
        "an escape sequence in a party's name",
        "sed -i 's/name = \"streets\"/name = \"a\\\\u001bb\"/' linked.toml; $FET run linked.toml --out r",
        2,
        &["name", "u{1b}"],
    ),
    (
        "--set carried a second setting",
        "$FET show tiny.toml --set \"train.epochs=3\nseed=9\"",
        2,
        &["train.epochs=3\\nseed=9"],
    ),
    (
        "a folder with a party's name changed the checksum of the data",
        r#"ask() { echo '{"set":[],"seed":null}' | $FET show linked.toml --batch; }; before=$(ask); mkdir streets; echo 1 > streets/x; test "$(ask)" = "$before""#,
        0,
        &[],
    ),
    ("a closed pipe was a panic", "$FET list | head -1 > /dev/null; $FET help | head -1 > /dev/null", 0, &[]),
    (
        "a closed pipe stopped a training",
        "$FET run tiny.toml --log json --out r | head -1 > /dev/null; test -f r/report.json",
        0,
        &["done"],
    ),
    (
        "a huge width aborted",
        "$FET run tiny.toml --out r --set=method.hidden=1000000000",
        2,
        &["tiny.toml", "`method.hidden`", "1000000000"],
    ),
    (
        "many blocks aborted",
        "$FET run tiny.toml --out r --set=encoder.blocks=1000000000",
        2,
        &["`encoder.blocks`", "1000000000"],
    ),
    (
        "many neighbours aborted",
        "$FET run tiny.toml --out r --set=linker.neighbours=1000000000000",
        2,
        &["`linker.neighbours`"],
    ),
    (
        "a huge index of libsvm aborted",
        "echo '1 999999999999:1' > x.svm; $FET run tiny.toml --out r --set='data.source={kind=\"libsvm\",file=\"x.svm\"}'",
        2,
        &["x.svm", "999999999999", "GB"],
    ),
    (
        "a folder as data",
        "rm streets.csv; mkdir streets.csv; $FET run linked.toml --out r",
        2,
        &["streets.csv"],
    ),
    (
        "a FIFO as data waited for ever",
        "rm streets.csv; mkfifo streets.csv; timeout 9 $FET run linked.toml --out r",
        2,
        &["streets.csv", "FIFO"],
    ),
    (
        "links in a circle as data",
        "rm streets.csv; ln -s streets.csv streets.csv; timeout 9 $FET run linked.toml --out r",
        2,
        &["streets.csv"],
    ),
    (
        "20,000 columns",
        "awk 'BEGIN { for (r = 0; r < 4; r++) { for (i = 0; i < 20000; i++) printf \"%s%d,\", r ? \"\" : \"c\", i; print r ? r : \"y\" } }' > w.csv; timeout 20 $FET data show w.csv > /dev/null",
        0,
        &[],
    ),
    (
        "cells of 100,000 characters",
        "awk 'BEGIN { print \"a,b\"; for (r = 0; r < 9; r++) { for (i = 0; i < 100000; i++) printf \"%d\", r; print \",\" r } }' > w.csv; timeout 20 $FET data show w.csv | awk 'length > 100 { exit 1 }'",
        0,
        &[],
    ),
    (
        "a value beyond 32 bits was called a learning rate",
        "sed -i '7s/,[^,]*$/,1e300/' shops.csv; sed -i '1s/lat/y/' streets.csv; sed -i 's/label = \"takings\"/label = \"lat\"/;s/keys = \\[\"lon\", \"lat\"\\]/keys = [\"lon\"]/g' linked.toml; $FET run linked.toml --out r",
        2,
        &["shops.csv", "1e300 in row 5 (from 0) column `takings`", "1e38"],
    ),
    (
        "\"expected usize\"",
        "$FET show tiny.toml --set 'train.epochs=\"x\"'",
        2,
        &["`train.epochs` must be a whole number", "\"x\""],
    ),
    ("\"struct TrainSettings\"", "$FET show tiny.toml --set train=5", 2, &["`train` must be a table", "5"]),
    (
        "\"`.`: missing field\"",
        "sed -i /^name/d tiny.toml; $FET show tiny.toml",
        2,
        &["tiny.toml", "`name` is missing"],
    ),
    (
        "no word about the delimiter",
        "sed -i 's/,/:/g' streets.csv; $LINK --out l.csv",
        2,
        &["streets.csv", "`delimiter`"],
    ),
    (
        "a label that is not named was a column without a name",
        "sed -i 's/label = \"takings\"/label = \"\"/' linked.toml; $FET run linked.toml --out r",
        2,
        &["`data.label`: must name the primary's column"],
    ),
    (
        "a label that is a key as well",
        "sed -i 's/label = \"takings\"/label = \"lon\"/' linked.toml; $FET run linked.toml --out r",
        2,
        &["`data.label` must not be a key", "lon"],
    ),
    (
        "\"begins with [0,0,8,3], not [0,0,8,3]\"",
        "printf '\\0\\0\\010\\003\\0' > i; printf '\\0\\0\\010\\001\\0\\0\\0\\001\\0' > l; $FET run tiny.toml --out r --set='data.source={kind=\"idx\",images=[\"i\"],labels=[\"l\"]}'",
        2,
        &["i: is cut off", "5 bytes", "16"],
    ),
    (
        "a run overwrote its own table",
        "mkdir o; ln -s ../shops.csv o/predictions.csv; cp shops.csv before; $FET run linked.toml --out o; code=$?; cmp before shops.csv && exit $code",
        2,
        &["--out o", "predictions.csv", "overwritten"],
    ),
    (
        "a run overwrote a file that no run had written",
        "mkdir o; echo mine > o/model-card.md; $FET run linked.toml --out o; code=$?; grep -q mine o/model-card.md && exit $code",
        2,
        &["o/model-card.md", "no run has written it"],
    ),
    (
        "a file with the name of the parties' folder ended a run after its training",
        "mkdir r; touch r/parties; $FET run linked.toml --out r",
        2,
        &["r/parties must be a folder"],
    ),
    (
        "thousands separators were decimals",
        "sed -i 's/,/;/g' shops.csv; sed -i '3s/[^;]*$/1,033/;4s/[^;]*$/2,500/' shops.csv; $FET run linked.toml --out r",
        2,
        &["shops.csv", "takings", "thousands"],
    ),
    (
        "a year of two digits was the year 20",
        "sed -i '1s/$/,day/;2,$s/$/,03\\/04\\/2020/;9s/2020/20/' shops.csv; $FET run linked.toml --out r --set='data.primary.columns={day=\"date:%d/%m/%Y\"}'",
        2,
        &["shops.csv", "line 9", "day", "03/04/20"],
    ),
    (
        "a secondary had the label",
        "sed -i '1s/lines/takings/' streets.csv; $FET run linked.toml --out r",
        2,
        &["streets.csv", "`takings`", "label", "`drop`"],
    ),
    (
        "fet init gave the label to a secondary",
        "awk -F, -v OFS=, 'NR == 1 { print $0, \"rank\"; next } { print $0, NR * 7 % 11 }' shops.csv > others.csv; $FET init shops.csv others.csv --label takings --keys lon,lat --out i.toml > /dev/null && $FET run i.toml --set=train.epochs=1 --out s && grep -q 'drop = .\"takings' i.toml",
        0,
        &["done"],
    ),
    (
        "the column of parts was a feature",
        "awk -F, -v OFS=, 'NR == 1 { print $0, \"part\"; next } { print $0, NR < 40 ? \"train\" : NR < 50 ? \"validation\" : \"test\" }' shops.csv > s; mv s shops.csv; $FET run linked.toml --out s --set=split.kind=column --set=split.column=part && head -9 streets.csv > n.csv && printf 'lon,lat,kind\\n1,1,cafe\\n' > n.csv && $FET predict s --rows n.csv --out p.csv && test $(wc -l < p.csv) = 2",
        0,
        &["done"],
    ),
    (
        "a file of parts that names its rows went by position",
        "awk 'BEGIN { print \"row,part\"; for (i = 60; i > 0; i--) print i \",\" (i < 40 ? \"train\" : i < 50 ? \"validation\" : \"test\") }' > p.csv; $FET run linked.toml --out r --set=split.kind=file --set=split.file=p.csv",
        2,
        &["p.csv", "`row` is 60 in row 0", "sort"],
    ),
    (
        "rows that were trained on were explained as test rows",
        "$FET run linked.toml --out s 2>/dev/null && { head -1 shops.csv; tail -n +2 shops.csv | tac; } > t && mv t shops.csv && $FET explain s",
        2,
        &["s", "data files have changed"],
    ),
    (
        "a limit of a file's size was a signal",
        "ulimit -f 1; $FET link shops.csv streets.csv --keys=lon,lat --set=k=60 --out l.csv; code=$?; ls | grep -q l.csv && exit 9; exit $code",
        1,
        &["l.csv"],
    ),
    (
        "\"Rule(Balanced)\"",
        "$FET run linked.toml --out r --set=train.class_weights=balanced",
        2,
        &["`train.class_weights`", "it is \"balanced\""],
    ),
    (
        "a key that is dropped as well was not found",
        "sed -i 's/keys = \\[\"lon\", \"lat\"\\] }, sec/keys = [\"lon\", \"lat\"], drop = [\"lat\"] }, sec/' linked.toml; $FET run linked.toml --out r",
        2,
        &["`data.primary.drop` must not name a key", "lat"],
    ),
    (
        "\"missing field `program`\"",
        "mkdir r; echo '{}' > r/report.json; $FET run linked.toml --out r",
        2,
        &["r/report.json", "this program did not write it"],
    ),
    (
        "a run went on from a folder with another run's party model",
        "$FET run linked.toml --out o 2>/dev/null && $FET run linked.toml --out p --set=method.hidden=4 2>/dev/null && cp p/parties/party1/model.safetensors o/parties/party1/; $FET run linked.toml --from o --out r",
        2,
        &["party1/model.safetensors", "another run"],
    ),
    (
        "a run without its model was already done",
        "$FET run linked.toml --out o 2>/dev/null && rm o/model.safetensors && $FET run linked.toml --out o",
        2,
        &["o/model.safetensors", "remove its report.json"],
    ),
    (
        "a run without its predictions was already done",
        "$FET run linked.toml --out o 2>/dev/null && rm o/predictions.csv && $FET run linked.toml --out o",
        2,
        &["o/predictions.csv", "remove its report.json"],
    ),
    (
        "predict read 1,200 as 1.2",
        "sed -i '1s/lines/lines,x/;2,$s/$/,7/' streets.csv; awk -F, -v OFS=, 'NR == 1 { print $0, \"rent\"; next } { print $0, 500 + NR * 31 }' shops.csv > s; mv s shops.csv; $FET run linked.toml --out o 2>/dev/null && printf 'lon;lat;kind;rent\n1;1;cafe;1,200\n2;1;bar;996\n' > n.csv && $FET predict o --rows n.csv --out r.csv",
        2,
        &["n.csv", "`rent`", "thousands"],
    ),
    (
        "predict read a decimal comma where training had points",
        "$FET run linked.toml --out o 2>/dev/null && printf 'lon;lat;kind\n1,200;1;cafe\n' > n.csv && $FET predict o --rows n.csv --out p.csv",
        2,
        &["n.csv line 2 column `lon`: must be a number with a point before decimals", "1,200"],
    ),
    (
        "predict did not mention unknown categories",
        "$FET run linked.toml --out o 2>/dev/null && printf 'lon,lat,kind\n1,1,cafe\n2,1,zoo\n' > n.csv && $FET predict o --rows n.csv --out p.csv",
        0,
        &["warning: column `kind`: 1 of 2 rows has a value that no training row had (the first is row 1)"],
    ),
    (
        "predict called the file \"new records\"",
        "$FET run linked.toml --out o 2>/dev/null && printf 'lon,lat,kind\n,1,cafe\n2,1,bar\n' > n.csv && $FET predict o --rows n.csv --out r.csv",
        2,
        &["n.csv row 0 (from 0) column `lon`"],
    ),
    (
        "a prior that names one class answered with it always",
        "$FET run tiny.toml --out r --set=labels.kind=randomised-response --set=labels.prior=[1,0]",
        2,
        &["`labels.prior` must give at least two classes a positive probability"],
    ),
    (
        "a share of test rows was ignored with folds",
        "$FET run linked.toml --out r --set=split.folds=3 --set=split.test=0.4",
        2,
        &["`split.test` must be left out", "0.4"],
    ),
    (
        "the kind of a key was ignored",
        "sed -i 's/file = \"streets.csv\"/file = \"streets.csv\", columns = { lon = \"category\" }/' linked.toml; $FET run linked.toml --out r",
        2,
        &["`data.secondaries[0].columns` must not name a key", "\"lon\""],
    ),
    (
        "scores by groups of the label",
        "$FET run linked.toml --out r --set=scores.groups=takings",
        2,
        &["`scores.groups` must be a column other than the label", "\"takings\""],
    ),
    (
        "a quote within a cell in quotes was taken off",
        "sed -i '5s/,bar,/,\"b\"ar,/;5s/,cafe,/,\"c\"afe,/;5s/,shop,/,\"s\"hop,/' shops.csv; $FET run linked.toml --out r",
        2,
        &["shops.csv line 5", "quote within a quoted cell"],
    ),
    (
        "declared bounds of another unit made a column constant",
        "sed -i 's/file = \"streets.csv\"/file = \"streets.csv\", bounds = { lon = [0, 9], lat = [0, 9], lines = [1000, 2000] }/' linked.toml; $FET run linked.toml --out o",
        0,
        &["warning: streets: column `lines`: no value is within the declared range [1000, 2000]"],
    ),
    (
        "the same table was two parties",
        "sed -i 's/secondaries = \\[\\({[^}]*}\\)\\]/secondaries = [\\1, { name = \"again\", file = \"streets.csv\", keys = [\"lon\", \"lat\"] }]/' linked.toml; $FET run linked.toml --out r",
        2,
        &["`data.secondaries[1].file` must not be the table of secondaries[0] again"],
    ),
    (
        "init wrote an experiment for labels that are missing",
        "sed -i '3s/,[0-9]*$/,/' shops.csv; $FET init shops.csv streets.csv --label takings --out r.toml; code=$?; test -e r.toml && exit 9; exit $code",
        2,
        &["--label takings", "missing in 1 of 60 rows"],
    ),
    (
        "init --out - made a file of that name",
        "$FET init shops.csv streets.csv --label takings --out - | grep -q '^name = \"experiment\"' && test ! -e ./-",
        0,
        &[],
    ),
    (
        "events that could not be written caused no error",
        "test -c /dev/full || exit 1; $FET run tiny.toml --out o --log json > /dev/full; code=$?; test -e o/report.json || exit 9; exit $code",
        75,
        &["standard output", "o/report.json"],
    ),
    (
        "a refusal among JSON lines was plain text",
        "for more in --log=json '--log json --nope'; do $FET run none.toml $more 2> said; test $? = 2 || exit 9; \
         python3 -c 'import json; [json.loads(line) for line in open(\"said\")]' || exit 9; grep '\"event\":\"error\"' said >&2; done",
        0,
        &["none.toml", "--nope"],
    ),
    (
        "help that could not be written caused no error",
        "test -c /dev/full || exit 1; $FET --help > /dev/full",
        75,
        &["standard output"],
    ),
    ("a small stack was an abort", "ulimit -s 64; $FET run tiny.toml --out o", 0, &[]),
    (
        "100,000 threads took for ever",
        "RAYON_NUM_THREADS=100000 $FET run tiny.toml --out r",
        2,
        &["RAYON_NUM_THREADS must be at most 4096; it is 100000"],
    ),
    (
        "an argument was repeated in thousands of characters",
        "$FET run tiny.toml --seed=$(head -c 5000 /dev/zero | tr '\\0' x) 2> said; code=$?; test $(wc -c < said) -lt 2000 || exit 9; echo well >&2; exit $code",
        2,
        &["well"],
    ),
    (
        "a file to extend was there and was not found",
        "sed -i '1i extends = \"nope.toml\"' tiny.toml; $FET run tiny.toml --out r",
        2,
        &["tiny.toml: `extends`", "there is no file nope.toml"],
    ),
];

fn files(folder: &Path) {
    let (mut shops, mut streets) = (String::from("lon,lat,kind,takings\n"), String::from("lon,lat,lines\n"));
    for i in 0..60 {
        let (x, y) = (i % 8, i / 8);
        let kind = ["cafe", "bar", "shop"][i % 3];
        let _ = writeln!(shops, "{x}.1,{y}.2,{kind},{}", i * 7 % 50);
        let _ = writeln!(streets, "{x}.1,{y}.2,{}", i % 5);
    }
    for (name, text) in [
        ("shops.csv", shops.as_str()),
        ("streets.csv", &streets),
        ("tiny.toml", TINY),
        ("linked.toml", LINKED),
    ] {
        fs::write(folder.join(name), text).expect("written");
    }
}

#[test]
fn fixes_of_findings_hold() {
    let mut wrong = String::new();
    for (finding, lines, code, parts) in FINDINGS {
        let folder = tempfile::tempdir().expect("a folder");
        files(folder.path());
        let script = format!("LINK=\"$FET link shops.csv streets.csv --keys=lon,lat --set=k=1\"; {lines}");
        let ended = Command::new("sh")
            .args(["-c", &script])
            .current_dir(folder.path())
            .env("FET", env!("CARGO_BIN_EXE_fet"))
            .env("FET_DATA", folder.path())
            .output()
            .expect("there is a shell");
        let said = String::from_utf8_lossy(&ended.stderr);
        let told = parts.iter().all(|part| said.contains(part));
        // A refusal is one line and leaves no files.
        let plain =
            *code != 2 || (message_lines(&said) == 1 && !folder.path().join("r/model.safetensors").exists());
        if ended.status.code() != Some(*code) || !told || !plain || said.contains("panicked") {
            let _ = writeln!(wrong, "{finding}: {}, not {code} and {parts:?}: {said}", ended.status);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
