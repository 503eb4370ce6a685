//! Links, disclosure and warnings of `clk`.

use super::*;
use fet_core::linker::link;

pub(super) fn text(columns: usize, cells: &[&str]) -> Keys {
    Keys::Text(TextTable::new(columns, cells.iter().map(|cell| cell.to_string()).collect()))
}

pub(super) fn clk(change: impl Fn(&mut ClkSettings)) -> Clk {
    let mut settings = ClkSettings { neighbours: 1, ..ClkSettings::default() };
    change(&mut settings);
    Clk(settings)
}

/// Every record contains the words "wireless", "mouse" and "black". A code that occurs once distinguishes the
/// records.
fn products() -> Vec<String> {
    (0..60).map(|row| format!("wireless optical mouse black usb edition model {}", code(row))).collect()
}

fn code(row: usize) -> String {
    let letter = |at: usize| char::from(b'a' + (row * 7 + at * 11) as u8 % 26);
    (0..5).map(letter).collect::<String>() + &format!("{:03}", (row * 37) % 1_000)
}

#[test]
fn rare_words_decide_and_common_ones_do_not() {
    let products = products();
    let records: Vec<String> = (0..60).map(|row| format!("{} mouse", code(row))).collect();
    // Mean margin of the right record over the next.
    let ahead = |weighting| {
        let linker = clk(|settings| (settings.weighting, settings.neighbours) = (weighting, 2));
        let keys = |cells: &[String]| Keys::Text(TextTable::new(1, cells.to_vec()));
        let links = link(&linker, &keys(&products), &keys(&records), 1, &|_| ()).expect("linkable");
        assert!((0..60).all(|row| links.row(row)[0] == row as u32), "{weighting:?}");
        (0..60).filter_map(|row| links.similarities(row)).map(|s| s[0] - s[1]).sum::<f32>() / 60.0
    };
    let (rarity, entropy) = (ahead(Weighting::Rarity), ahead(Weighting::Entropy));
    assert!(rarity > 1.5 * entropy, "{rarity} {entropy}");
}

#[test]
fn missing_cells_are_not_evidence_against_a_pair() {
    let rows = 60;
    let mut cells: Vec<String> = Vec::new();
    for row in 0..rows {
        cells.extend([code(row), format!("{}.{:02}", 10 + row, row), code(row + 100)]);
    }
    let mut other = cells.clone();
    for row in 0..rows {
        other[3 * row + 1 + row % 2].clear();
    }
    let linker = clk(|_| ());
    let keys = |cells: Vec<String>| Keys::Text(TextTable::new(3, cells));
    let links = link(&linker, &keys(cells), &keys(other), 1, &|_| ()).expect("linkable");
    assert!((0..rows).all(|row| links.row(row)[0] == row as u32));
    assert!((0..rows).all(|row| links.similarities(row).is_some_and(|s| s[0] > 0.5)));
}

/// Unknown names, in a column with few values and a column with many.
#[test]
fn swapped_texts_of_one_group_are_similar() {
    let names: Vec<[String; 2]> = (0..60).map(|row| [code(row % 5), code(row)]).collect();
    let table = |order: [usize; 2]| {
        let cells = names.iter().flat_map(|pair| order.map(|at| pair[at].clone())).collect();
        Keys::Text(TextTable::new(2, cells))
    };
    let similar = |groups: &[u32]| {
        let linker = clk(|settings| settings.groups = groups.to_vec());
        let links = link(&linker, &table([0, 1]), &table([1, 0]), 1, &|_| ()).expect("linkable");
        links.all_similarities().expect("similarities").iter().copied().fold(1.0, f32::min)
    };
    assert_eq!(similar(&[0, 0]), 1.0);
    assert!(similar(&[]) < 0.9);
}

#[test]
fn missing_marks_are_a_setting() {
    let (queries, records) = (["N/A", "smith", "Null"], ["n/a", "smith", "null"]);
    let similar = |missing: &[&str]| {
        let linker = clk(|settings| settings.missing = missing.iter().map(|cell| cell.to_string()).collect());
        let links = link(&linker, &text(1, &queries), &text(1, &records), 1, &|_| ()).expect("linkable");
        [0, 1, 2].map(|row| links.similarities(row).is_some_and(|s| s[0] > 0.99))
    };
    assert_eq!(similar(&[]), [true; 3], "a surname may be Null");
    assert_eq!(similar(&["n/a"]), [false, true, true]);
    assert_eq!(similar(&["NULL", "n/a"]), [false, true, false]);
}

/// A single record cannot reveal the rarity of its own q-grams, but is still found.
#[test]
fn a_single_row_is_linked() {
    let records = text(2, &["anna", "smith", "bert", "jones", "carl", "weber"]);
    let links = link(&clk(|_| ()), &text(2, &["bert", "jonas"]), &records, 1, &|_| ()).expect("linkable");
    assert_eq!(links.row(0), [1]);
    assert!(links.similarities(0).is_some_and(|s| s[0] > 0.3));
}

#[test]
fn warns_of_full_filters_and_useless_blocking() {
    let word = |at: u32| format!("{:x} ", at.wrapping_mul(2_654_435_761));
    let long: Vec<String> = (0..40).map(|row| (0..60).map(|at| word(row * 61 + at)).collect()).collect();
    let long = Keys::Text(TextTable::new(1, long));
    let warnings = |change: fn(&mut ClkSettings)| {
        let linker = clk(change);
        let (mut querier, mut data_holder) = (linker.querier(1), linker.data_holder(1));
        fet_core::linker::link_between(querier.as_mut(), data_holder.as_mut(), &long, &long, &|_| ())
            .expect("linkable");
        data_holder.warnings().join("\n")
    };
    assert_eq!(warnings(|_| ()), "");
    let full = |settings: &mut ClkSettings| (settings.weighting, settings.bits) = (Weighting::Entropy, 512);
    assert!(warnings(full).contains("40 of 40 primary records fill more than half of their 512 bits"));
    let blocks = warnings(|settings| settings.block_bits = 24);
    assert!(blocks.contains("`block_bits = 24`") && blocks.contains("all pairs"), "{blocks}");
}

/// Messages omit q-grams and words that occur in fewer than three records.
#[test]
fn messages_omit_rare_words() {
    let listed = |cells: &[&str]| {
        let Keys::Text(table) = text(1, cells) else { unreachable!("these are texts") };
        schema(&ClkSettings::default(), &[1; 32], &table)
            .expect("a schema")
            .rarity
            .expect("by rarity")
            .grams()
            .len()
    };
    assert_eq!(listed(&["alpha", "alpha", "index"]), 0);
    // A padded word of five letters has seven trigrams. The word itself counts, too.
    assert_eq!(listed(&["alpha", "alpha", "alpha", "index"]), 8);
}

/// Two data holders with a common schema and separate tables.
fn owners() -> (LinkageSchema, TextTable, TextTable) {
    let table = |cells: &[String]| TextTable::new(1, cells.to_vec());
    let (ours, theirs) = (products(), (0..60).map(|row| format!("{} mouse", code(row))).collect::<Vec<_>>());
    let names = ["product".to_string()];
    let learned =
        LinkageSchema::learn(&ClkSettings::default(), &names, [7; 16], b"a secret of two", &table(&ours));
    (learned.expect("a schema"), table(&ours), table(&theirs))
}

#[test]
fn separate_encodings_can_be_linked() {
    let (schema, ours, theirs) = owners();
    schema.check().expect("sound");
    let file = serde_json::to_string(&schema).expect("JSON");
    let copy: LinkageSchema = serde_json::from_str(&file).expect("a schema");
    let found = |secret: &[u8]| {
        let (a, b) = (
            schema.encode(b"a secret of two", &ours).expect("encodable"),
            copy.encode(secret, &theirs).expect("encodable"),
        );
        let found = Index::new(&b).search(&a, 1, Measure::Correlation(2_048), &|_| ());
        (0..60).filter(|&row| found.row(row) == [row as u32]).count()
    };
    assert_eq!(found(b"a secret of two"), 60);
    assert!(found(b"a secret of others") < 20);
    assert_eq!(copy.fingerprint(b"a secret of two"), schema.fingerprint(b"a secret of two"));
    assert_ne!(copy.fingerprint(b"a secret of others"), schema.fingerprint(b"a secret of two"));
    assert!(!file.contains("mouse") && !file.contains("wireless"));
}

#[test]
fn refuses_invalid_schemas() {
    let (schema, ..) = owners();
    let with = |name: &str, value: serde_json::Value| {
        let mut file = serde_json::to_value(&schema).expect("JSON");
        file[name] = value;
        let read: Result<LinkageSchema, _> = serde_json::from_value(file);
        read.expect("of the right types").check().expect_err("wrong").to_string()
    };
    assert!(with("format", "fet linkage schema 2".into()).contains("format"));
    assert!(with("bits", 1_000.into()).contains("power of two"));
    assert!(with("bits", 64.into()).contains("128"));
    assert!(with("q", 0.into()).contains("`q`"));
    assert!(with("salt", "00".into()).contains("salt"));
    assert!(with("fields", serde_json::json!([])).contains("fields"));
    assert!(with("grams", serde_json::json!({ "xyz": 3 })).contains("grams"));
}

/// A text has one hash for all fields of a group, so it must set the same bits whichever field comes first.
#[test]
fn bits_of_a_row_do_not_depend_on_other_rows() {
    for weighting in [Weighting::Entropy, Weighting::Rarity] {
        let linker = clk(|settings| {
            (settings.weighting, settings.groups) = (weighting, vec![0, 0]);
            settings.weights = vec![1.0, 5.0];
        });
        let names: Vec<[String; 2]> = (0..60).map(|row| [code(row), code(60 + (row * 7 + 3) % 60)]).collect();
        let table = |rows: &[[String; 2]]| Keys::Text(TextTable::new(2, rows.concat()));
        let backwards: Vec<[String; 2]> = names.iter().rev().cloned().collect();
        let links = link(&linker, &table(&names), &table(&backwards), 1, &|_| ()).expect("linkable");
        for row in 0..60 {
            assert_eq!(links.row(row), [59 - row as u32], "{weighting:?}");
            assert_eq!(links.similarities(row).expect("similarities"), [1.0], "{weighting:?}");
        }
    }
}

#[test]
fn refuses_schemas_with_inconsistent_groups() {
    let table = TextTable::new(2, (0..120).map(code).collect());
    let names = ["given".to_string(), "family".to_string()];
    let settings = ClkSettings { groups: vec![0, 0], ..ClkSettings::default() };
    let schema =
        LinkageSchema::learn(&settings, &names, [7; 16], b"a secret of two", &table).expect("a schema");
    schema.check().expect("sound");
    let mut file = serde_json::to_value(&schema).expect("JSON");
    file["fields"][1]["unknown"] = 1.into();
    let other: LinkageSchema = serde_json::from_value(file).expect("of the right types");
    let problem = other.check().expect_err("unsound").to_string();
    assert!(problem.contains("fields") && problem.contains("group"), "{problem}");
}

/// Returns names and dates of birth. In the second table, the last letter of each name differs.
fn people(mistyped: bool) -> Vec<String> {
    let last = |row: usize| if mistyped { "x".to_string() } else { code(row + 9)[..1].to_string() };
    (0..60)
        .flat_map(|row| {
            [format!("{} {}{}", code(row), code(row * 3), last(row)), format!("19{}-04-09", 40 + row % 3)]
        })
        .collect()
}

#[test]
fn diffused_filters_find_each_other_by_the_settings_they_share() {
    let similar = |diffusion: [usize; 2]| {
        let side = |diffusion| {
            clk(|settings| (settings.hardening, settings.diffusion) = (Harden::Diffusion, diffusion))
        };
        let table = |mistyped| Keys::Text(TextTable::new(2, people(mistyped)));
        let (mut querier, mut data_holder) =
            (side(diffusion[0]).querier(1), side(diffusion[1]).data_holder(1));
        let found = fet_core::linker::link_between(
            querier.as_mut(),
            data_holder.as_mut(),
            &table(false),
            &table(true),
            &|_| (),
        );
        let links = found.expect("linkable");
        let right = (0..60).filter(|&row| links.row(row)[0] == row as u32).count();
        (right, links.all_similarities().expect("similarities").iter().sum::<f32>() / 60.0)
    };
    let [(few, near), (more, far)] = [similar([4, 4]), similar([12, 12])];
    assert_eq!((few, more), (60, 60));
    assert!(near > 1.3 * far, "{near} {far}: combining more bits makes different records less similar");
    assert!(similar([4, 12]).0 < 20, "other places for each number of them");
}

#[test]
fn records_are_linked_within_their_stratum_only() {
    let mut theirs = people(true);
    // One record has another year, and one has none.
    (theirs[1], theirs[3]) = ("1999-04-09".into(), String::new());
    let linked = |change: fn(&mut ClkSettings)| {
        let keys = |cells: Vec<String>| Keys::Text(TextTable::new(2, cells));
        let links =
            link(&clk(change), &keys(people(false)), &keys(theirs.clone()), 1, &|_| ()).expect("linkable");
        (0..60)
            .map(|row| {
                (links.row(row)[0] == row as u32) && links.similarities(row).is_some_and(|s| s[0] > 0.5)
            })
            .collect::<Vec<_>>()
    };
    assert!(linked(|_| ()).iter().all(|linked| *linked));
    let salted = linked(|settings| (settings.salt_column, settings.salt_signs) = (2, 4));
    assert_eq!(salted[..2], [false; 2]);
    assert!(salted[2..].iter().all(|linked| *linked));
}

#[test]
fn refuses_salts_of_missing_columns() {
    let keys = || Keys::Text(TextTable::new(2, people(false)));
    let linker = clk(|settings| settings.salt_column = 3);
    let problem = link(&linker, &keys(), &keys(), 1, &|_| ()).expect_err("two columns").to_string();
    assert_eq!(problem, "`linker.salt_column` must be at most 2, the number of key columns; it is 3");
    let settings = ClkSettings { salt_signs: 4, ..ClkSettings::default() };
    let problem = settings.check().expect_err("of no column").to_string();
    assert!(problem.contains("salt_signs") && problem.contains("salt_column"), "{problem}");
}

#[test]
fn a_schema_says_how_encodings_are_diffused_and_salted() {
    let table = |mistyped| TextTable::new(2, people(mistyped));
    let names = ["name".to_string(), "born".to_string()];
    let learn = |change: fn(&mut ClkSettings)| {
        let mut settings = ClkSettings::default();
        change(&mut settings);
        LinkageSchema::learn(&settings, &names, [7; 16], b"a secret of two", &table(false)).expect("a schema")
    };
    let schema = learn(|settings| {
        (settings.hardening, settings.diffusion) = (Harden::Diffusion, 6);
        (settings.salt_column, settings.salt_signs) = (2, 4);
    });
    schema.check().expect("sound");
    let file = serde_json::to_string(&schema).expect("JSON");
    let copy: LinkageSchema = serde_json::from_str(&file).expect("a schema");
    assert_eq!(copy.fingerprint(b"a secret of two"), schema.fingerprint(b"a secret of two"));
    let encode = |schema: &LinkageSchema, mistyped| {
        schema.encode(b"a secret of two", &table(mistyped)).expect("texts")
    };
    let (a, b) = (encode(&schema, false), encode(&copy, true));
    let found = Index::new(&b).search(&a, 1, Measure::Correlation(2_048), &|_| ());
    assert!((0..60).all(|row| found.row(row) == [row as u32]));
    // The file omits settings without effect. Settings with an effect change the fingerprint.
    let plain = learn(|settings| settings.diffusion = 6);
    let text = serde_json::to_string(&plain).expect("JSON");
    assert!(!text.contains("diffusion") && !text.contains("salt_"), "{text}");
    assert_ne!(plain.fingerprint(b"a secret of two"), schema.fingerprint(b"a secret of two"));
    let with = |name: &str, value: usize| {
        let mut file = serde_json::to_value(&schema).expect("JSON");
        file[name] = value.into();
        let read: LinkageSchema = serde_json::from_value(file).expect("of the right types");
        read.check().expect_err("wrong").to_string()
    };
    assert!(with("diffusion", 1).contains("from 2 to 64"));
    assert!(with("salt_column", 3).contains("at most 2"));
    assert!(with("salt_column", 0).contains("salt_signs"));
}
