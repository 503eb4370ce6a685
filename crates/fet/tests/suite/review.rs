//! Tests `fet link --review` and `--decisions`: the selected pairs, the effect of decisions, and refusals.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::process::Output;

use regex::Regex;

use crate::command::{fet, read, text, write};
use crate::link::catalogues;

const TITLES: [&str; 8] = [
    "link",
    "ours.csv",
    "theirs.csv",
    "--keys=title",
    "--linker=clk",
    "--set=k=1",
    "--id=id",
    "--out=links.csv",
];

/// Links the tables, and returns the summary.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let output = fet(folder, arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    text(&output.stdout)
}

/// Returns two named columns of a table without quotes.
fn columns(table: &str, names: [&str; 2]) -> Vec<[String; 2]> {
    let mut lines = table.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let header = lines.next().expect("a header");
    let places = names.map(|name| header.iter().position(|column| *column == name).expect(name));
    lines.map(|cells| places.map(|place| cells[place].to_string())).collect()
}

const IDS: [&str; 2] = ["primary_id", "secondary_id"];

fn is_right([ours, theirs]: &[String; 2]) -> bool {
    theirs.starts_with('b') && ours[1..] == theirs[1..]
}

/// Returns the F1 of the written links; 60 pairs are right.
fn f1(folder: &Path) -> f64 {
    let links = columns(&read(folder, "links.csv"), IDS);
    2.0 * links.iter().filter(|pair| is_right(pair)).count() as f64 / (links.len() + 60) as f64
}

/// Fills in the sheet of a review with the truth, in the form that a spreadsheet would write.
fn decide(folder: &Path, sheet: &str, out: &str) -> HashSet<[String; 2]> {
    let asked = columns(&read(folder, sheet), IDS);
    let lines = asked
        .iter()
        .map(|pair| format!("{};{};{}\r\n", pair[0], pair[1], if is_right(pair) { "Yes" } else { "NO " }));
    write(folder, out, &format!("\u{feff}primary_id;secondary_id;decision\r\n{}", lines.collect::<String>()));
    asked.into_iter().collect()
}

#[test]
fn decisions_improve_links_and_are_not_requested_again() {
    for more in [&[][..], &["--assign=one-to-one"], &["--threshold=0.75"]] {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path();
        catalogues(path);
        let run = |extra: &[&str]| done(path, &[&TITLES, more, &["--truth=both.csv"], extra].concat());
        run(&[]);
        let (plain, before) = (read(path, "links.csv"), f1(path));
        let told = run(&["--review=first", "--review-pairs=30"]);
        assert!(told.contains("30 pairs to decide written to first/review.html and review.csv"), "{told}");
        assert_eq!(read(path, "links.csv"), plain, "a review changes no links");
        let threshold: f64 = told
            .lines()
            .find_map(|line| line.strip_prefix("threshold ")?.split(',').next()?.parse().ok())
            .unwrap_or(0.75);
        let asked = columns(&read(path, "first/review.csv"), ["similarity", "linked"]);
        let distances: Vec<f64> = asked
            .iter()
            .map(|[similarity, linked]| {
                let similarity: f64 = similarity.parse().expect("a number");
                assert_eq!(linked == "yes", similarity >= threshold - 1e-4, "{more:?}: {asked:?}");
                (similarity - threshold).abs()
            })
            .collect();
        assert!(distances.is_sorted(), "the most doubtful first: {distances:?}");
        let first = decide(path, "first/review.csv", "first.csv");
        assert!(first.iter().any(is_right) && !first.iter().all(is_right), "both words are tried: {first:?}");
        let told = run(&["--decisions=first.csv", "--review=second", "--review-pairs=30"]);
        let after = f1(path);
        assert!(after > before, "{more:?}: {after} after {before}: {told}");
        let shown = format!("F1 {after:.4}");
        assert!(told.lines().any(|line| line.starts_with("written at") && line.contains(&shown)), "{told}");
        assert!(told.contains("decisions: "), "{told}");
        let linked: HashSet<[String; 2]> = columns(&read(path, "links.csv"), IDS).into_iter().collect();
        for pair in &first {
            assert_eq!(linked.contains(pair), is_right(pair), "{pair:?}");
        }
        let second = decide(path, "second/review.csv", "second.csv");
        assert!(first.is_disjoint(&second) && second.len() == 30, "{first:?} {second:?}");
        run(&["--decisions=first.csv", "--decisions=second.csv"]);
        assert!(f1(path) >= after, "{}", f1(path));
    }
}

const OURS: &str = "id,name\na,anna miller\nb,bert jones\nc,carla stone\n";
const THEIRS: &str = "id,name\nx,anna miler\ny,anne miller\nz,bert jones\nw,unlike anything\n";
const SMALL: [&str; 7] =
    ["link", "a.csv", "b.csv", "--keys=name", "--linker=edit", "--set=k=1", "--out=links.csv"];

fn small() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a temporary folder");
    write(folder.path(), "a.csv", OURS);
    write(folder.path(), "b.csv", THEIRS);
    folder
}

/// Returns the first four cells of each link, without the digits of the similarity.
fn links(folder: &Path) -> Vec<String> {
    let table = read(folder, "links.csv");
    let short =
        |line: &str| line.split(',').map(|cell| cell.chars().take(4).collect::<String>()).collect::<Vec<_>>();
    table.lines().skip(1).map(|line| short(line).join(",")).collect()
}

#[test]
fn yes_ranks_first_and_no_frees_the_rank() {
    let folder = small();
    let path = folder.path();
    let linked = |decisions: &str, more: &[&str]| {
        write(path, "d.csv", &format!("primary_row,secondary_row,decision\n{decisions}"));
        let told = done(path, &[&SMALL[..], &["--threshold=0.8", "--decisions=d.csv"], more].concat());
        (links(path), told)
    };
    let (plain, told) = linked("2,2,\n2,2,unsure\n", &[]);
    assert_eq!(plain, ["0,0,1,0.98", "1,2,1,1"]);
    assert!(
        told.contains("decisions: 0 yes, 0 no, 1 unsure; 0 changed the links: 0 pairs added, 0 removed"),
        "{told}"
    );
    let (next, told) = linked("0,0,no\n", &[]);
    assert_eq!(next, ["0,1,1,0.95", "1,2,1,1"], "the next candidate takes the place");
    assert!(
        told.contains("decisions: 0 yes, 1 no, 0 unsure; 1 changed the links: 1 pairs added, 1 removed"),
        "{told}"
    );
    assert_eq!(linked("0,0,no\n0,1,no\n", &[]).0, ["1,2,1,1"], "the next pair is below the threshold");
    assert_eq!(linked("0,1,no\n", &[]).0, plain, "it was not linked");
    let (confirmed, told) = linked("2,3,yes\n0,1,yes\n", &[]);
    assert_eq!(
        confirmed,
        ["0,1,1,", "1,2,1,1", "2,3,1,"],
        "whatever the similarity, which only candidates have"
    );
    assert!(told.contains("2 changed the links: 2 pairs added, 1 removed"), "{told}");
    let two = linked("0,3,yes\n0,1,yes\n", &["--set=k=2"]).0;
    assert_eq!(two[..2], ["0,1,1,0.95", "0,3,2,"], "K of a row are confirmed");
    // With one pair per row, no other pair gets the row and the record of a confirmed pair.
    let one = |decisions: &str| linked(decisions, &["--assign=one-to-one"]).0;
    assert_eq!(one("2,0,yes\n"), ["0,1,2,0.95", "1,2,1,1", "2,0,1,0.58"]);
    assert_eq!(one("1,2,no\n0,3,yes\n"), ["0,3,1,0.55"]);
}

#[test]
fn refuses_senseless_decisions() {
    let refused = |decisions: &str, more: &[&str], parts: &[&str]| {
        let folder = small();
        write(folder.path(), "d.csv", decisions);
        write(folder.path(), "e.csv", "primary_row,secondary_row,decision\n0,0,yes\n");
        let output = fet(folder.path(), &[&SMALL[..], &["--decisions=d.csv"], more].concat());
        let message = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{decisions:?}: {message}");
        assert!(parts.iter().all(|part| message.contains(part)), "{decisions:?}: {parts:?} in {message}");
        assert_eq!(message.lines().count(), 1, "{message}");
        assert!(!folder.path().join("links.csv").exists());
    };
    let rows = "primary_row,secondary_row,decision\n";
    let one = &["--assign=one-to-one"][..];
    refused(
        &format!("{rows}0,0,yes\n0,4,no\n"),
        &[],
        &["d.csv row 1 (from 0)", "secondary table, 0 to 3", "\"4\""],
    );
    refused(&format!("{rows}-1,0,yes\n"), &[], &["d.csv row 0 (from 0)", "primary table, 0 to 2", "\"-1\""]);
    refused(
        &format!("{rows}0,0,maybe\n"),
        &[],
        &["d.csv row 0 (from 0)", "yes, no, unsure or empty", "\"maybe\""],
    );
    refused(
        &format!("{rows}0,0,yes\n1,2,yes\n0,0,no\n"),
        &[],
        &["d.csv row 2 (from 0)", "d.csv row 0 (from 0)", "row 0"],
    );
    refused(
        &format!("{rows}0,0,no\n"),
        &["--decisions=e.csv"],
        &["e.csv row 0 (from 0)", "d.csv row 0 (from 0)"],
    );
    refused("primary_row,decision\n0,yes\n", &[], &["d.csv", "primary_row and secondary_row"]);
    refused("primary_row,secondary_row\n0,0\n", &[], &["d.csv", "`decision`"]);
    refused("primary_id,secondary_id,decision\na,x,yes\n", &[], &["d.csv", "--id"]);
    refused(
        "primary_id,secondary_id,decision\na,q,yes\n",
        &["--id=id"],
        &["secondary table has the id \"q\""],
    );
    refused(rows, &[], &["d.csv", "is empty below its header"]);
    refused(
        &format!("{rows}0,0,yes\n0,1,yes\n"),
        one,
        &["d.csv row 1 (from 0)", "primary row 0", "secondary row 1", "row 0 (from 0) to secondary row 0"],
    );
    refused(
        &format!("{rows}1,2,yes\n0,2,yes\n"),
        one,
        &[
            "d.csv row 0 (from 0): secondary row 2 belongs to primary row 1",
            "row 1 (from 0) to primary row 0",
        ],
    );
    // Without an assignment a row may have several pairs.
    let folder = small();
    write(folder.path(), "d.csv", &format!("{rows}0,0,yes\n0,1,yes\n0,0,yes\n0,0,\n"));
    // Only searched records have a known similarity: two records per row if a threshold must be estimated.
    for (threshold, second) in [("--threshold=auto", "0,1,2,0.95"), ("--threshold=0.5", "0,1,2,")] {
        done(folder.path(), &[&SMALL[..], &["--decisions=d.csv", threshold]].concat());
        assert_eq!(links(folder.path())[..2], ["0,0,1,0.98", second], "{threshold}");
    }
}

/// Row numbers distinguish rows with the same id; an id takes precedence over an outdated row number.
#[test]
fn ids_and_row_numbers_name_the_same_rows() {
    let folder = small();
    let path = folder.path();
    write(path, "b.csv", &THEIRS.replace("y,", "x,"));
    let run = |decisions: &str| {
        write(
            path,
            "d.csv",
            &format!("primary_row,secondary_row,primary_id,secondary_id,decision\n{decisions}"),
        );
        fet(path, &[&SMALL[..], &["--id=id", "--threshold=0.8", "--decisions=d.csv"]].concat())
    };
    assert!(run("0,0,a,x,no\n").status.success());
    assert_eq!(links(path)[0], "0,1,1,0.95,a,x");
    let moved = run("2,0,b,z,no\n");
    assert!(moved.status.success(), "{moved:?}");
    assert_eq!(links(path).len(), 1, "the decision applies to the row with this id: {:?}", links(path));
    let output = run("0,3,a,x,no\n");
    assert!(text(&output.stderr).contains("the id \"x\" occurs in rows 0 and 1 (from 0)"), "{output:?}");
}

/// Text that HTML or a spreadsheet would interpret is shown verbatim.
#[test]
fn shows_hostile_cells_verbatim() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    let hostile = [
        "<script>alert(1)</script>",
        "\"><img src=x onerror=alert(1)>",
        "=cmd|' /C calc'!A0",
        "+49 30 1234",
        "-5",
        "{{ 7 * 7 }} {% raw %}",
        "</section></main><style>",
        "' onmouseover='alert(1)",
        "two\nlines",
    ];
    let cell = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let table = |end: &str| {
        let line = |text: &&str| format!("{},{}\n", cell(text), cell(&format!("{text}{end}")));
        format!("{},<i>name</i>\n{}", cell("=id"), hostile.iter().map(line).collect::<String>())
    };
    write(path, "a.csv", &table(" one"));
    write(path, "b.csv", &table(" two"));
    let link = ["link", "a.csv", "b.csv", "--keys=<i>name</i>", "--linker=edit", "--set=k=1", "--id==id"];
    let more = ["--threshold=0.9", "--out=links.csv"];
    done(path, &[&link[..], &more, &["--review=r"]].concat());

    let sheet = read(path, "r/review.csv");
    for safe in ["\"'=cmd|' /C calc'!A0 one\"", "'=cmd|' /C calc'!A0", ",'+49 30 1234,", ",-5,"] {
        assert!(sheet.contains(safe.trim_matches('"')), "{safe} in {sheet}");
    }
    assert!(!Regex::new(r"(^|,|\n)[=+@]").expect("a pattern").is_match(&sheet), "{sheet}");

    let page = read(path, "r/review.html");
    let tags: HashSet<&str> = Regex::new(r"<\s*/?([A-Za-z0-9!]+)")
        .expect("a pattern")
        .captures_iter(page.split("<script>").next().expect("the page before its script"))
        .map(|found| found.get(1).expect("a name").as_str())
        .collect();
    let known = [
        "!doctype", "html", "head", "meta", "link", "title", "style", "body", "header", "h1", "p", "b",
        "code", "noscript", "div", "button", "span", "main", "section", "h2", "table", "thead", "tbody",
        "tr", "td", "th", "mark", "fieldset", "legend", "label", "input",
    ];
    assert!(tags.iter().all(|tag| known.contains(tag)), "{tags:?}");
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
    let shown = Regex::new("<[^>]*>").expect("a pattern").replace_all(&page, "").into_owned();
    let shown =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&#x27;", "'"), ("&#x2f;", "/"), ("&amp;", "&")]
            .into_iter()
            .fold(shown, |text, (escaped, plain)| text.replace(escaped, plain));
    for text in hostile {
        assert!(shown.contains(&format!("{text} one")), "{text} in {shown}");
    }
    // The page's policy allows only its own script, by its checksum.
    let script =
        page.split("<script>").nth(1).and_then(|rest| rest.split("</script>").next()).expect("a script");
    use base64::Engine;
    let hash = base64::prelude::BASE64_STANDARD.encode(fet_io::sha256(script.as_bytes()));
    assert!(page.contains(&format!("default-src 'none'; script-src 'sha256-{hash}'")), "{hash}");
    assert!(!page.contains("http://") && !page.contains("https://"), "nothing is loaded");

    // The page saves the same lines as the sheet, and names the rows by ids with arbitrary characters.
    let lines: Vec<String> = Regex::new("data-line=\"([^\"]*)\"")
        .expect("a pattern")
        .captures_iter(&page)
        .map(|found| found[1].replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">"))
        .map(|line| line.replace("&#x27;", "'").replace("&#x2f;", "/").replace("&amp;", "&"))
        .collect();
    assert_eq!(lines.len(), hostile.len());
    assert!(lines.iter().all(|line| sheet.contains(line)), "{lines:?}");
    let decided: String = lines.iter().map(|line| format!("{line},no\n")).collect();
    write(
        path,
        "d.csv",
        &format!("primary_row,secondary_row,primary_id,secondary_id,compared,decision\n{decided}"),
    );
    let told = done(path, &[&link[..], &more, &["--decisions=d.csv"]].concat());
    assert!(told.contains(&format!("decisions: 0 yes, {} no", hostile.len())), "{told}");
}

fn refused(output: &Output, parts: &[&str]) {
    crate::command::refused(output, parts);
    assert_eq!(text(&output.stderr).lines().count(), 1, "{output:?}");
}

#[test]
fn unwritable_review_leaves_no_files() {
    let folder = small();
    let path = folder.path();
    write(path, "file", "mine");
    fs::create_dir_all(path.join("taken/review.csv")).expect("a folder");
    fs::create_dir_all(path.join("there")).expect("a folder");
    let given = "--threshold=0.8";
    let cases: [(&[&str], &[&str]); 10] = [
        (&[given, "--review=file"], &["--review file", "name a folder"]),
        (&[given, "--review=/proc/review"], &["--review /proc/review", "cannot be written"]),
        (&[given, "--review=no/such"], &["--review no/such", "does not exist"]),
        (&[given, "--review=taken"], &["--review taken/review.csv", "this is a folder"]),
        (&[given, "--review=there", "--out=there/review.csv"], &["there/review.csv", "--out"]),
        (&[given, "--review=new", "--out=new"], &["--review new", "--out"]),
        (&["--review=new"], &["--review", "could be estimated", "--threshold NUMBER", "0.9"]),
        (&["--threshold=none", "--review=new"], &["--review new", "add --threshold"]),
        (&["--set=k=2", "--review=new"], &["--review new", "add --threshold"]),
        (&["--review-pairs=5"], &["--review"]),
    ];
    for (more, parts) in cases {
        let named = more.iter().any(|argument| argument.starts_with("--out"));
        let small = if named { &SMALL[..6] } else { &SMALL };
        let output = fet(path, &[small, more].concat());
        assert_eq!(output.status.code(), Some(2), "{more:?}: {output:?}");
        let message = text(&output.stderr);
        assert!(parts.iter().all(|part| message.contains(part)), "{more:?}: {parts:?} in {message}");
        for left in ["links.csv", "new", "taken/review.html", "there/review.html", "there/review.csv"] {
            assert!(!path.join(left).exists(), "{more:?} left {left}");
        }
    }
    assert_eq!(read(path, "file"), "mine");
    let random = ["link", "a.csv", "b.csv", "--keys=name", "--linker=random", "--out=links.csv"];
    let output = fet(path, &[&random[..], &["--set=k=1", given, "--review=new"]].concat());
    refused(&output, &["--review new", "needs similarities"]);
    assert!(!path.join("links.csv").exists() && !path.join("new").exists());
    // An error in writing the links occurs before the review is written.
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("/dev/full", path.join("full.csv")).expect("a link");
        let output = fet(path, &[&SMALL[..6], &[given, "--review=new", "--out=full.csv"]].concat());
        assert_eq!(output.status.code(), Some(75), "the device is full: {output:?}");
        assert!(!path.join("new").exists());
    }
}

/// The command never overwrites a sheet with decisions.
#[test]
fn never_overwrites_decisions() {
    let folder = small();
    let path = folder.path();
    let review = [&SMALL[..], &["--threshold=0.8", "--review=r"]].concat();
    let told = done(path, &review);
    assert!(told.contains("3 pairs to decide, all that remain, written to r/review.html"), "{told}");
    let sheet = read(path, "r/review.csv");
    assert_eq!(sheet.lines().count(), 4);
    assert!(sheet.starts_with(
        "primary_row,secondary_row,compared,similarity,rank,linked,primary.name,secondary.name,decision\n"
    ));
    assert!(
        sheet.contains(",1,yes,anna miller,anna miler,\n") && sheet.contains(",1,no,carla stone,"),
        "{sheet}"
    );
    done(path, &review);
    assert_eq!(read(path, "r/review.csv"), sheet, "the same review again");
    let filled = sheet.replacen("miler,\n", "miler,yes\n", 1);
    write(path, "r/review.csv", &filled);
    refused(&fet(path, &review), &["r/review.csv", "contains decisions", "--decisions"]);
    let taken = [&review[..], &["--decisions=r/review.csv"]].concat();
    refused(&fet(path, &taken), &["--review r/review.csv", "would overwrite an input"]);
    let other = [&SMALL[..], &["--threshold=0.8", "--review=s", "--decisions=r/review.csv"]].concat();
    assert!(done(path, &other).contains("2 pairs to decide"));
    assert_eq!(read(path, "r/review.csv"), filled);
    write(path, "r/review.csv", "something\nelse\naltogether\n");
    refused(&fet(path, &review), &["r/review.csv", "move it away"]);
    // If all pairs have decisions, the review is empty but still written.
    let all: String = (0..3).flat_map(|a| (0..4).map(move |b| format!("{a},{b},unsure\n"))).collect();
    write(path, "d.csv", &format!("primary_row,secondary_row,decision\n{all}"));
    let none = [&SMALL[..], &["--threshold=0.8", "--review=t", "--decisions=d.csv"]].concat();
    for _ in 0..2 {
        assert!(done(path, &none).contains("0 pairs to decide, all that remain"));
    }
    assert!(read(path, "t/review.html").contains("No pair is left to decide."));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        for file in ["review.html", "review.csv"] {
            let mode = fs::metadata(path.join("s").join(file)).expect("there").permissions().mode();
            assert_eq!(mode & 0o077, 0, "{file} is its owner's alone");
        }
    }
}

/// Decisions about rows do not apply to other rows that have taken their positions.
#[test]
fn refuses_decisions_about_other_cells() {
    let folder = small();
    let path = folder.path();
    let link = [&SMALL[..], &["--threshold=0.8"]].concat();
    done(path, &[&link[..], &["--review=r"]].concat());
    let decided = read(path, "r/review.csv").replace(",\n", ",yes\n");
    write(path, "d.csv", &decided);
    let with = [&link[..], &["--decisions=d.csv"]].concat();
    let told = done(path, &with);
    assert!(told.contains("decisions: 3 yes") && !told.contains("number alone"), "{told}");
    let links = read(path, "links.csv");
    // The table in reverse order.
    write(path, "a.csv", "id,name\nc,carla stone\nb,bert jones\na,anna miller\n");
    let error = fet(path, &with);
    refused(
        &error,
        &["d.csv: 2 of 3 decisions do not match the present cells", "row 0, from 0", "`compared`"],
    );
    assert_eq!(read(path, "links.csv"), links, "nothing is written");
    write(path, "a.csv", &OURS.replace("anna miller", "anna myller"));
    refused(&fet(path, &with), &["of 3 decisions do not match the present cells"]);
    // Ids identify the moved rows.
    write(path, "a.csv", OURS);
    let by_id = [&link[..], &["--id=id"]].concat();
    done(path, &[&by_id[..], &["--review=s"]].concat());
    write(path, "e.csv", &read(path, "s/review.csv").replace(",\n", ",yes\n"));
    write(path, "a.csv", "id,name\nc,carla stone\nb,bert jones\na,anna miller\n");
    let told = done(path, &[&by_id[..], &["--decisions=e.csv"]].concat());
    assert!(told.contains("decisions: 3 yes"), "{told}");
    write(path, "f.csv", "primary_row,secondary_row,decision\n0,0,yes\n");
    let told = done(path, &[&link[..], &["--decisions=f.csv"]].concat());
    assert!(told.contains("1 name rows by number alone"), "{told}");
}

/// Number keys can be reviewed, and are shown as written in the tables.
#[test]
fn shows_numbers_verbatim_in_a_review() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path();
    write(path, "a.csv", "x,y\n1.50,-2\n9,9\n");
    write(path, "b.csv", "u,v\n01.6,-2.0\n5,5\n");
    let link = ["link", "a.csv", "b.csv", "--keys=x,y", "--secondary-keys=u,v", "--set=k=2", "--out=-"];
    done(path, &[&link[..], &["--threshold=-3", "--review=r", "--review-pairs=2"]].concat());
    let sheet = read(path, "r/review.csv");
    assert!(sheet.contains("primary.x,secondary.u,primary.y,secondary.v,decision"), "{sheet}");
    assert!(sheet.contains(",yes,1.50,01.6,-2,-2.0,\n"), "{sheet}");
    assert_eq!(sheet.lines().count(), 3);
    assert!(read(path, "r/review.html").contains("x &#x2f; u"));
}
