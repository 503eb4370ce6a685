//! Outputs that are not files, endless inputs, and arguments with invisible content: the program refuses them
//! at once and loses nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::command::{TINY, fet};

use crate::support::message_lines;

const SHOPS: &str = "lon,lat,name\n1,1,a\n2,2,b\n3,3,c\n4,4,d\n5,5,d\n";
const STREETS: &str = "lon,lat,kind\n1.1,1,x\n2.1,2,y\n3.2,3,z\n4.1,4,z\n";

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    for (name, text) in [("shops.csv", SHOPS), ("streets.csv", STREETS), ("tiny.toml", TINY)] {
        fs::write(folder.path().join(name), text).expect("written");
    }
    folder
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Checks that the command fails with one message that contains these parts.
fn refused(folder: &Path, arguments: &[&str], parts: &[&str]) {
    let output = fet(folder, arguments);
    let message = said(&output);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{arguments:?}: {parts:?} in {message}");
    assert_eq!(message_lines(&message), 1, "{arguments:?}: {message}");
}

const LINK: [&str; 6] = ["link", "shops.csv", "streets.csv", "--keys=lon,lat", "--set=k=1", "--out"];

#[cfg(unix)]
#[test]
fn writes_to_devices_and_keeps_them() {
    use std::os::unix::fs::{FileTypeExt, symlink};
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    symlink("real.csv", at("link.csv")).expect("a link");
    symlink("circle.csv", at("circle.csv")).expect("a link");
    symlink("/dev/full", at("full.csv")).expect("a link");
    assert!(fet(folder.path(), &[&LINK[..], &["link.csv"]].concat()).status.success());
    assert!(at("link.csv").is_symlink() && at("real.csv").is_file());
    refused(folder.path(), &[&LINK[..], &["circle.csv"]].concat(), &["--out circle.csv", "circle"]);
    assert!(at("circle.csv").is_symlink());
    let output = fet(folder.path(), &[&LINK[..], &["full.csv"]].concat());
    assert_eq!(output.status.code(), Some(75), "the device is full: {}", said(&output));
    assert!(
        fs::metadata("/dev/full").expect("there").file_type().is_char_device() && at("full.csv").is_symlink()
    );
    refused(folder.path(), &[&LINK[..], &["none/l.csv"]].concat(), &["--out none/l.csv", "does not exist"]);
}

#[test]
fn writes_links_to_standard_output_or_compressed() {
    let folder = folder();
    let output = fet(folder.path(), &[&LINK[..], &["-"]].concat());
    let links = String::from_utf8(output.stdout.clone()).expect("text");
    assert!(links.starts_with("primary_row,") && links.lines().count() == 6, "{links}");
    assert!(said(&output).contains("linked 5 with 4 rows"), "{}", said(&output));
    assert!(fet(folder.path(), &[&LINK[..], &["l.csv.gz"]].concat()).status.success());
    let bytes = fs::read(folder.path().join("l.csv.gz")).expect("there");
    assert_eq!(bytes[..2], [0x1f, 0x8b], "it is compressed");
    for name in ["l.parquet", "l.tsv", "l.arrow"] {
        refused(folder.path(), &[&LINK[..], &[name]].concat(), &["--out", name, "CSV"]);
    }
}

/// Reading any of these inputs would never end.
#[cfg(unix)]
#[test]
fn refuses_endless_inputs_at_once() {
    let folder = folder();
    let made = Command::new("mkfifo").arg(folder.path().join("fifo")).status();
    assert!(made.is_ok_and(|status| status.success()), "mkfifo");
    for never in ["fifo", "/dev/zero"] {
        let what = "a FIFO, a device or a socket";
        refused(folder.path(), &["data", "show", never], &[never, what]);
        refused(folder.path(), &["show", never], &[never, what]);
        refused(
            folder.path(),
            &["link", never, "streets.csv", "--keys=lon,lat", "--out=l.csv"],
            &[never, what],
        );
        let source = format!("data.source={{kind=\"libsvm\",file=\"{never}\"}}");
        refused(folder.path(), &["run", "tiny.toml", "--out=r", "--set", &source], &[never, what]);
    }
    for (name, text) in [("none.toml", "extends = \"\""), ("here.toml", "extends = \".\"")] {
        fs::write(folder.path().join(name), text).expect("written");
        refused(folder.path(), &["show", name], &[name, "extends", "must name a file"]);
    }
}

#[test]
fn refuses_control_characters_in_arguments() {
    let folder = folder();
    for set in ["linker.neighbours=1\nseed = 5", "name=a\u{1b}[31mb"] {
        refused(
            folder.path(),
            &["show", "tiny.toml", "--set", set],
            &["one line without control characters"],
        );
    }
    fs::write(folder.path().join("name.toml"), TINY.replace("name = \"", "name = \"a\\n")).expect("written");
    refused(folder.path(), &["show", "name.toml"], &["`name` must be a plain file name", "\\n"]);
}

#[test]
fn chooses_a_linker_only_for_keys_of_one_kind() {
    let folder = folder();
    fs::write(folder.path().join("bad.csv"), SHOPS.replace("3,3,c", "3x,3,c")).expect("written");
    let link = |files: [&'static str; 2], more: &[&'static str]| {
        [&["link", files[0], files[1], "--keys=lon,lat", "--set=k=1", "--out=l.csv"], more].concat()
    };
    let wrong = ["bad.csv row 2 (from 0) column `lon`", "must be a number", "\"3x\"", "--text"];
    refused(folder.path(), &link(["bad.csv", "streets.csv"], &[]), &wrong);
    assert!(fet(folder.path(), &link(["bad.csv", "streets.csv"], &["--linker=clk"])).status.success());
    let other = link(["shops.csv", "streets.csv"], &["--secondary-keys=lon,kind"]);
    refused(
        folder.path(),
        &other,
        &["lon, lat of shops.csv are numbers", "lon, kind of streets.csv are text", "--text"],
    );
    fs::write(folder.path().join("truth.csv"), "a,b\nd,z\n").expect("written");
    let twice = ["the id \"d\" occurs in rows 3 and 4 (from 0) of the primary table", "--id"];
    let truth = ["--truth=truth.csv", "--id=name,kind"];
    refused(folder.path(), &link(["shops.csv", "streets.csv"], &truth), &twice);
}

#[test]
fn keeps_an_unreadable_report() {
    let folder = folder();
    fs::create_dir_all(folder.path().join("r/report.json")).expect("a folder");
    refused(
        folder.path(),
        &["run", "tiny.toml", "--out=r"],
        &["r/report.json", "is a folder", "move it away"],
    );
    refused(
        folder.path(),
        &["run", "tiny.toml", "--out=tiny.toml"],
        &["--out tiny.toml: is a file; name a folder"],
    );
    #[cfg(unix)]
    {
        fs::create_dir_all(folder.path().join("s")).expect("a folder");
        std::os::unix::fs::symlink("nowhere", folder.path().join("s/report.json")).expect("a link");
        refused(folder.path(), &["run", "tiny.toml", "--out=s"], &["s/report.json", "move it away"]);
    }
}

/// A closed reader is not an error, a full disk is an error, and neither causes a panic.
#[cfg(unix)]
#[test]
fn accepts_closed_streams_and_reports_full_disks() {
    let folder = folder();
    let with = |arguments: &[&str], out: Stdio, error: Stdio| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_fet"));
        let child = command.args(arguments).current_dir(folder.path()).stdout(out).stderr(error).spawn();
        child.expect("it starts").wait_with_output().expect("it ends")
    };
    let full = || Stdio::from(fs::File::options().write(true).open("/dev/full").expect("there"));
    let closed = || {
        let (reader, writer) = std::io::pipe().expect("a pipe");
        drop(reader);
        Stdio::from(writer)
    };
    for arguments in [&["list"][..], &["schema"], &["show", "tiny.toml"], &["data", "show", "shops.csv"]] {
        let output = with(arguments, closed(), Stdio::piped());
        assert_eq!((output.status.code(), said(&output).as_str()), (Some(0), ""), "{arguments:?}");
        let output = with(arguments, full(), Stdio::piped());
        assert_eq!((output.status.code(), said(&output).lines().count()), (Some(75), 1), "{arguments:?}");
    }
    for (at, stderr) in [closed(), full()].into_iter().enumerate() {
        let out = format!("--out=r{at}");
        assert_eq!(with(&["run", "tiny.toml", &out], Stdio::null(), stderr).status.code(), Some(0));
    }
    assert_eq!(with(&["data", "show", "none.csv"], Stdio::null(), full()).status.code(), Some(2));
}

/// Each of these once requested more memory than any machine has and ended the process.
#[test]
fn refuses_work_that_exceeds_memory() {
    let folder = folder();
    let run = |set: &str, parts: &[&str]| {
        refused(folder.path(), &["run", "tiny.toml", "--out=r", "--set", set], parts);
        assert!(!folder.path().join("r").exists(), "{set}: a file was written");
    };
    run("method.hidden=4611686018427387904", &["`method.hidden` must be", "at most 1048576"]);
    run("method.agg_blocks=1000000", &["`method.agg_blocks` must be", "at most 1000"]);
    run("encoder.blocks=9223372036854775807", &["`encoder.blocks` must be", "at most 1000"]);
    run(
        "method={kind=\"solo\",hidden=[9223372036854775807]}",
        &["`method.hidden[0]` must be", "at most 1048576"],
    );
    run("train.class_weights=[1e300, 1]", &["`train.class_weights[0]` must be", "at most 1000000"]);
    run("data.key_noise=1e300", &["`data.key_noise` must be", "at most 1000000"]);
    if fet_io::memory::available().is_none() {
        return;
    }
    run("method.hidden=1048576", &["the model does not fit", "GB of memory are needed", "`method`"]);
    run("method={kind=\"solo\",hidden=[1000000, 1000000]}", &["the model does not fit", "GB of memory"]);
    fs::write(folder.path().join("pad.toml"), TINY.replace("[linker]", "[linker]\npad = true"))
        .expect("written");
    let most = ["run", "pad.toml", "--out=r", "--set", "linker.neighbours=1000000000000"];
    refused(folder.path(), &most, &["`linker.neighbours` must leave memory for the links of", "GB"]);
    let link = [&LINK[..5], &["--set=k=1000000000000", "--set=pad=true", "--out=l.csv"]].concat();
    refused(folder.path(), &link, &["--set neighbours=1000000000000", "must leave memory", "GB"]);
    for (name, text) in
        [("wide.svm", "1 100000000000:1\n-1 1:1\n"), ("widest.svm", "1 18446744073709551615:1\n")]
    {
        fs::write(folder.path().join(name), text).expect("written");
        run(
            &format!("data.source={{kind=\"libsvm\",file=\"{name}\"}}"),
            &[name, "memory", "the largest index"],
        );
    }
}

#[test]
fn escapes_and_shortens_input_in_messages() {
    let folder = folder();
    fs::write(folder.path().join("esc.csv"), "lon,la\u{1b}[31mt\n1,2\n").expect("written");
    for arguments in [
        &["data", "show", "esc.csv"][..],
        &["show", "a\u{1b}[31m.toml"],
        &["help", "train.\u{7}decay"],
        &["data", "show", "\u{1b}]0;x\u{7}.csv"],
    ] {
        let output = fet(folder.path(), arguments);
        let message = said(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {message}");
        assert!(!message.trim_end().contains(char::is_control), "{message:?}");
    }
    let long = "x".repeat(100_000);
    for set in [format!("train.epochs={long}"), format!("{long}=1"), format!("linker.kind={long}")] {
        let output = fet(folder.path(), &["show", "tiny.toml", "--set", &set]);
        assert_eq!(output.status.code(), Some(2));
        assert!(output.stderr.len() < 2_500, "{} bytes", output.stderr.len());
    }
}

#[test]
fn reports_a_damaged_run_and_leaves_no_files() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    assert!(fet(folder.path(), &["run", "tiny.toml", "--out=r", "--set=train.epochs=1"]).status.success());
    refused(folder.path(), &["explain", "r", "--repeats=18446744073709551615"], &["--repeats", "from 1 to"]);
    fs::rename(at("r/parties"), at("parties")).expect("moved");
    let longer = fet(folder.path(), &["run", "tiny.toml", "--out=r", "--set=train.epochs=2"]);
    assert_eq!(longer.status.code(), Some(2), "{}", said(&longer));
    assert!(!at("r/lock").exists(), "the lock is given back");
    fs::rename(at("parties"), at("r/parties")).expect("moved");
    let report = fs::read_to_string(at("r/report.json")).expect("there");
    let many = report.replacen("\"secondaries\": ", "\"secondaries\": 9999999", 1);
    assert_ne!(many, report);
    for (text, part) in
        [(many.as_str(), "secondaries"), ("3", "line 1 column 1"), ("[1, 2]", "line 1 column")]
    {
        fs::write(at("r/report.json"), text).expect("written");
        refused(folder.path(), &["plot", "r"], &["report.json", part]);
    }
}

#[test]
fn version_names_commit_and_features() {
    let folder = folder();
    let version = String::from_utf8(fet(folder.path(), &["--version"]).stdout).expect("text");
    assert!(
        version.starts_with("fet 0.")
            && version.contains("commit ")
            && version.contains("features: ")
            && version.contains("\nprotocol "),
        "{version}"
    );
}

#[test]
fn suggests_another_delimiter() {
    let folder = folder();
    let link = ["link", "bars.csv", "streets.csv", "--keys=lon,lat", "--linker=nearest", "--out=l.csv"];
    fs::write(folder.path().join("bars.csv"), SHOPS.replace(',', ":")).expect("written");
    refused(
        folder.path(),
        &link,
        &["bars.csv: lacks the column", "single name, \"lon:lat:name\"", "`delimiter`"],
    );
}
