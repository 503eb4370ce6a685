//! Tests refusals: one message for each invalid input, and no change of files.

use std::fs;

use fet_linkage::psi::labelled;

use super::{ANSWER, ASK, body, done, exchange, refused, tables, text};

/// Every invalid input gets one message and writes nothing; not even a secret is erased.
#[test]
fn refuses_invalid_input_without_writing_files() {
    let folder = tables();
    let path = folder.path();
    for (form, more) in [("links", &[][..]), ("payload", &["--payload=note"]), ("cardinality", &[])] {
        exchange(path, form, more, form);
    }
    exchange(path, "links", &[], "other");
    done(path, &["ask", "numbers.csv", "--keys=x", "--out=numbers.psi", "--secret=numbers.secret"]);
    fs::write(path.join("codes.csv"), "id\n0042\nA7\n").expect("writable");
    fs::write(path.join("letters.csv"), "id\nabcdef\n").expect("writable");
    done(path, &["ask", "letters.csv", "--keys=id", "--out=letters.psi", "--secret=letters.secret"]);
    let bytes = |name: &str| fs::read(path.join(name)).expect("readable");
    let put = |name: &str, bytes: &[u8]| fs::write(path.join(name), bytes).expect("writable");
    // Recompute the checksum, as an attacker would after changing a file.
    let signed = |mut bytes: Vec<u8>| {
        bytes.truncate(bytes.len() - 32);
        bytes.extend(fet_io::sha256(&bytes));
        bytes
    };
    for name in ["links.psi", "links.answer", "links.secret"] {
        let whole = bytes(name);
        let mut flipped = whole.clone();
        flipped[whole.len() / 2] ^= 1;
        put(&format!("flipped.{name}"), &flipped);
        put(&format!("cut.{name}"), &whole[..whole.len() - 40]);
        let cut = [&whole[..whole.len() - 40], &[0; 32]].concat();
        put(&format!("short.{name}"), &signed(cut));
    }
    let request = bytes("links.psi");
    put("old.psi", &[b"fet psi request 1\n", &request[18..]].concat());
    let mut altered = request.clone();
    altered[body(&request)] ^= 1;
    put("altered.psi", &signed(altered));
    // An invalid element, in a request whose id matches its elements, and in an answer.
    let mut none = request.clone();
    none[body(&request) + 32..][..32].fill(0);
    let id = fet_io::hex(&labelled::identity(&none[body(&none)..none.len() - 32]));
    let old = text(&request[..body(&request)]);
    let place = old.find("\"id\":\"").expect("an id") + 6;
    none[place..place + 64].copy_from_slice(id.as_bytes());
    put("none.psi", &signed(none));
    let answer = bytes("links.answer");
    let mut none = answer.clone();
    none[body(&answer) + 64..][..32].fill(0xff);
    put("none.answer", &signed(none));
    let mut twice = answer.clone();
    twice.copy_within(body(&answer)..body(&answer) + 32, body(&answer) + 32);
    put("twice.answer", &signed(twice));
    let columns = text(&answer[..body(&answer)]).replace("\"columns\":[]", "\"columns\":[\"note\"]");
    put("columns.answer", &signed([columns.as_bytes(), &answer[body(&answer)..]].concat()));
    #[cfg(unix)]
    std::os::unix::fs::symlink("y", path.join("leads-to-y")).expect("a link");
    let payload = bytes("payload.answer");
    let columns = text(&payload[..body(&payload)]).replace("[\"note\"]", "[\"note\",\"note\"]");
    put("double.answer", &signed([columns.as_bytes(), &payload[body(&payload)..]].concat()));
    // No record with a matching tag can be opened.
    let mut sealed = answer.clone();
    let records = body(&answer) + 60 * 32;
    for record in sealed[records..answer.len() - 32].chunks_mut(40) {
        record[39] ^= 1;
    }
    put("sealed.answer", &signed(sealed));

    let gives = text(&answer[..body(&answer)]).replace("\"gives\":\"links\"", "\"gives\":\"payload\"");
    put("payload.links.answer", &signed([gives.as_bytes(), &answer[body(&answer)..]].concat()));
    // A data holder whose only row claims to be its hundredth.
    let elements = &request[body(&request)..request.len() - 32];
    let id = fet_io::hex(&labelled::identity(elements));
    let header = format!(r#"{{"request":"{id}","gives":"links","rows":1,"columns":[],"padded":8}}"#);
    let (keys, payloads) = (&[Some(labelled::key(b"person 0\ntown 0"))], &[vec![99, 0, 0, 0]]);
    let row = labelled::KeyedPayloads { keys, payloads };
    let hundredth = labelled::Answer::sealed(elements, &row, header.as_bytes(), &mut rand::rng(), &|_| ());
    let hundredth = hundredth.expect("a request");
    let first = format!("fet psi answer 3\n{header}\n");
    let parts = [first.as_bytes(), &hundredth.evaluated, &hundredth.records, &[0; 32]];
    put("hundredth.answer", &signed(parts.concat()));

    let give = "--give=links";
    let ask = |more: &[&'static str]| [&ASK[..], more].concat();
    let answer = |request: &'static str, more: &[&'static str]| {
        let columns =
            if more.iter().any(|word| word.starts_with("--keys")) { "--payload=" } else { ANSWER[3] };
        let mut all = vec!["answer", request, "b.csv"];
        all.extend((columns != "--payload=").then_some(columns));
        all.extend(more);
        all.push("--out=x");
        all
    };
    let open = |answer: &'static str, secret: &'static str| vec!["open", answer, secret, "--out=x.csv"];
    let cases = [
        (ask(&["--out=x", "--secret=links.secret"]), "--secret links.secret: exists already"),
        (ask(&["--out=x", "--secret=./x"]), "is also the file of the request"),
        (ask(&["--out=-", "--secret=y"]), "--out -: is standard output"),
        (ask(&["--out=x", "--secret=y.gz"]), "--secret y.gz: cannot be compressed"),
        (ask(&["--out=a.csv", "--secret=y"]), "--out a.csv: this would overwrite an input"),
        (ask(&["--out=none/x", "--secret=y"]), "the folder none does not exist"),
        (vec!["ask", "a.csv", "--keys=name,street", "--out=x", "--secret=y"], "street"),
        (
            ask(&["--out=other.secret", "--secret=y"]),
            "--out other.secret: contains the secret of a request without an answer",
        ),
        (ask(&["--out=leads-to-y", "--secret=y"]), "--out leads-to-y: leads to the file of the secret"),
        (vec!["ask", "gone.csv", "--keys=name", "--out=x", "--secret=y"], "gone.csv"),
        (
            vec!["answer", "numbers.psi", "codes.csv", "--keys=id", give, "--out=x"],
            "codes.csv, column `id`: the request compares this column as numbers, but no cell is a number",
        ),
        (
            vec!["answer", "letters.psi", "codes.csv", "--keys=id", give, "--out=x"],
            "codes.csv, column `id`: the request ignores case, accents and punctuation; the cells look like identifiers",
        ),
        (
            answer("links.psi", &[give, "--at-most=59"]),
            "links.psi: asks about 60 rows, and --at-most refuses more than 59 (this table has 45)",
        ),
        (answer("flipped.links.psi", &[give]), "flipped.links.psi: is damaged"),
        (answer("cut.links.psi", &[give]), "cut.links.psi: is damaged"),
        (answer("short.links.psi", &[give]), "short.links.psi: declares 60 rows, but has 1912 bytes"),
        (
            answer("old.psi", &[give]),
            "old.psi: must be a request from `fet psi ask`; it is from another version",
        ),
        (answer("links.answer", &[give]), "it is an answer"),
        (answer("links.secret", &[give]), "it is a secret"),
        (answer("a.csv", &[give]), "it is something else"),
        (answer("altered.psi", &[give]), "altered.psi: has a wrong id for its elements"),
        (answer("none.psi", &[give]), "none.psi: element 1 of a message is not a valid element"),
        (answer("links.psi", &["--give=cardinality"]), "wants links, but --give is cardinality"),
        (answer("links.psi", &["--give=payload", "--payload=note"]), "wants links, but --give is payload"),
        (answer("payload.psi", &["--give=payload"]), "--payload: must name the columns"),
        (answer("links.psi", &[give, "--payload=note"]), "--payload: is only for --give payload"),
        (answer("payload.psi", &["--give=payload", "--payload=debts"]), "debts"),
        (answer("payload.psi", &["--give=payload", "--payload=note,note"]), "--payload note: is named twice"),
        (
            answer("payload.psi", &["--give=payload", "--payload=rank"]),
            "--payload rank: is also a column of the links",
        ),
        (
            answer("links.psi", &[give, "--keys=place"]),
            "--keys: must name as many columns as links.psi has key columns (2)",
        ),
        (
            answer("links.psi", &[give, "--at-least=61"]),
            "links.psi: has 60 rows; --at-least refuses fewer than 61",
        ),
        (
            [&["answer", "links.psi"], &ANSWER[2..], &[give, "--out=other.secret"]].concat(),
            "--out other.secret: contains the secret of a request without an answer",
        ),
        (
            vec!["open", "links.answer", "--secret=links.secret", "--out=other.secret"],
            "--out other.secret: contains the secret of a request without an answer",
        ),
        (open("twice.answer", "--secret=links.secret"), "twice.answer: element 1 of a message is repeated"),
        (
            open("double.answer", "--secret=payload.secret"),
            "gives payload, but names columns that do not fit",
        ),
        (open("columns.answer", "--secret=links.secret"), "gives links, but names columns that do not fit"),
        (open("flipped.links.answer", "--secret=links.secret"), "flipped.links.answer: is damaged"),
        (open("short.links.answer", "--secret=links.secret"), "declares 45 records for 60 rows, but has"),
        (
            open("links.psi", "--secret=links.secret"),
            "links.psi: must be an answer from `fet psi answer`; it is a request",
        ),
        (open("links.answer", "--secret=cut.links.secret"), "--secret cut.links.secret: is damaged"),
        (
            open("links.answer", "--secret=short.links.secret"),
            "short.links.secret: does not have the content that its header declares",
        ),
        (
            open("links.answer", "--secret=links.answer"),
            "must be a secret from `fet psi ask`; it is an answer",
        ),
        (
            open("links.answer", "--secret=other.secret"),
            "links.answer: answers another request than the one of other.secret",
        ),
        (
            open("none.answer", "--secret=links.secret"),
            "none.answer: element 2 of a message is not a valid element",
        ),
        (
            open("sealed.answer", "--secret=links.secret"),
            "cannot be opened: it differs from the record that its data holder sealed",
        ),
        (
            open("payload.links.answer", "--secret=links.secret"),
            "payload.links.answer: gives payload; the request wants links",
        ),
        (
            open("hundredth.answer", "--secret=links.secret"),
            "a record for row 0 (from 0) contains no row of the other table",
        ),
        (open("cardinality.answer", "--secret=cardinality.secret"), "--out: is only for links and payload"),
        (vec!["open", "links.answer", "--secret=links.secret"], "--out: must name the file for the links"),
        (vec!["open", "links.answer", "--secret=links.secret", "--out=x.json"], "links are written as CSV"),
        (
            vec!["open", "links.answer", "--secret=links.secret", "--out=links.secret"],
            "would overwrite an input",
        ),
    ];
    for (arguments, told) in cases {
        refused(path, &arguments, told);
    }
    // After all these refusals the secret still opens its answer, and is then erased.
    let used = open("links.answer", "--secret=links.secret");
    done(path, &used);
    refused(path, &used, "--secret links.secret: has already opened an answer");
    let left = bytes("links.secret");
    assert!(text(&left).contains("\"used\":true") && left.len() < 250, "no exponent and no key is left");
}
