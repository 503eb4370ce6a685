//! Opens a report in a real headless Chromium, wide and narrow, light and dark. The test checks that the
//! console shows no error, every chart is visible, no element is wider than the screen, and series can be
//! hidden.
//!
//! Without `chromium` (`.ci/chromium` installs Debian's) the test is skipped with a message. The test does
//! not judge the look of the page; a person did.

use std::fs;
use std::process::Command;

use serde_json::Value;

const STUDY: &str = r#"
# Question: does the page stand?
name = "tiny"
[ablation]
seeds = [0, 1, 2]
[ablation.axes]
"x.neighbours" = [1, 5, 10, 20, 40, 60, 80, 100]
[[ablation.variants]]
name = "Full"
[[ablation.variants]]
name = "A variant with a name that is much longer than a narrow screen is wide"
set = ["encoder.mask=false"]
[[ablation.paper]]
variant = "Full · neighbours=5"
value = 0.62
source = "a table"
"#;

/// Script that measures the loaded page.
const PROBE: &str = r#"
<script>
const errors = [];
addEventListener("error", event => errors.push(String(event.message)));
console.error = text => errors.push(String(text));
addEventListener("load", () => {
  // Collapsed parts must not be wider than the screen either.
  const folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach(one => one.open = true);
  const charts = [...document.querySelectorAll(".chart")];
  const shown = element => { const box = element.getBoundingClientRect(); return box.width > 50 && box.height > 50; };
  const figures = [...document.querySelectorAll("figure")];
  const box = document.querySelector("input[data-toggles]");
  const series = () => [...box.closest("figure").querySelectorAll(`[data-series="${box.dataset.toggles}"]`)]
    .filter(group => getComputedStyle(group).display !== "none").length;
  const before = series();
  box.click();
  const after = series();
  box.click();
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify({
    errors,
    width: innerWidth,
    overflow: document.documentElement.scrollWidth - document.documentElement.clientWidth,
    figures: figures.length,
    wide: figures.filter(figure => shown(figure.querySelector(".wide svg"))).length,
    narrow: figures.filter(figure => shown(figure.querySelector(".narrow svg"))).length,
    charts: charts.length,
    drawn: charts.filter(one => [...one.querySelectorAll("svg[role=img]")].some(svg => svg.getBoundingClientRect().width > 50)).length,
    cut: [...document.querySelectorAll("svg[role=img]")].filter(svg => svg.getBoundingClientRect().right > innerWidth).length,
    before, after, again: series(),
    background: getComputedStyle(document.body).backgroundColor,
    ink: getComputedStyle(document.querySelector("svg text")).fill,
    reachable: [...document.querySelectorAll("a[href], input, summary, [tabindex='0']")].filter(e => e.tabIndex >= 0).length,
  });
  document.body.append(out);
});
</script>
"#;

#[test]
fn report_renders_in_chromium() {
    if Command::new("chromium").arg("--version").output().is_err() {
        fet_testing::left_out("chromium", "there is no chromium here; `.ci/chromium` installs it");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("tiny.toml"), STUDY).expect("written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_fet-study-in-tests"));
    command.current_dir(folder.path()).arg("tiny.toml");
    command.env("FET_BIN", env!("CARGO_BIN_EXE_fet-stand-in"));
    command
        .env("FAKE_FET", "fail=neighbours=100 --seed 2")
        .env("FAKE_FET_CALLS", folder.path().join("calls"));
    assert_eq!(command.output().expect("ran").status.code(), Some(1), "two cells are made to fail");
    let page = fs::read_to_string(folder.path().join("runs/tiny/report.html")).expect("a report");

    let look = |width: u32, dark: bool| {
        let probed = folder.path().join("probed.html");
        fs::write(&probed, page.replacen("<head>", &format!("<head>{PROBE}"), 1)).expect("written");
        // A window cannot be as narrow as a phone, but a frame can.
        let frame = format!(
            "<!doctype html><iframe id=f width={width} height=3000 style='border:0'></iframe>\
             <script>f.srcdoc = decodeURIComponent('{}'); \
             setInterval(() => {{ const probe = f.contentDocument.getElementById('probe');\
             if (probe) document.title = probe.textContent; }}, 20);</script>",
            fs::read_to_string(&probed)
                .expect("there")
                .bytes()
                .map(|byte| format!("%{byte:02x}"))
                .collect::<String>()
        );
        let outer = folder.path().join("outer.html");
        fs::write(&outer, frame).expect("written");
        let scheme = format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 });
        let profile = format!("--user-data-dir={}", folder.path().join("profile").display());
        let output = Command::new("chromium")
            .args([
                "--headless=new",
                "--no-sandbox",
                "--disable-gpu",
                "--enable-logging=stderr",
                "--dump-dom",
            ])
            .args(["--virtual-time-budget=3000", "--window-size=1400,3000", &scheme, &profile])
            .arg(format!("file://{}", outer.display()))
            .output()
            .expect("chromium ran");
        let log = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!log.contains("CONSOLE"), "the console is silent: {log}");
        let dom = String::from_utf8_lossy(&output.stdout).into_owned();
        let title =
            dom.split_once("<title>").and_then(|(_, rest)| rest.split_once("</title>")).expect("a probe").0;
        serde_json::from_str::<Value>(&title.replace("&quot;", "\"").replace("&amp;", "&")).expect("JSON")
    };
    for (width, dark) in [(1280, false), (1280, true), (400, false), (400, true)] {
        let seen = look(width, dark);
        let number = |name: &str| seen[name].as_i64().unwrap_or(-1);
        assert_eq!(seen["errors"], Value::Array(Vec::new()), "{seen}");
        assert_eq!((number("width"), number("overflow"), number("cut")), (i64::from(width), 0, 0), "{seen}");
        // One axis, and the learning curves of 16 variants with 8 per chart.
        let is_wide = width > 640;
        let expected = if is_wide { (3, 3, 0) } else { (3, 0, 3) };
        assert_eq!((number("figures"), number("wide"), number("narrow")), expected, "{seen}");
        // A matrix and a curve for each of 16 variants, one of which lacks a seed.
        assert_eq!((number("charts"), number("drawn")), (32, 32), "{seen}");
        assert_eq!(
            (number("before"), number("after"), number("again")),
            (2, 0, 2),
            "a series is hidden: {seen}"
        );
        let (paper, ink) = if dark {
            ("rgb(18, 22, 27)", "rgb(154, 165, 177)")
        } else {
            ("rgb(255, 255, 255)", "rgb(87, 96, 106)")
        };
        assert_eq!((seen["background"].as_str(), seen["ink"].as_str()), (Some(paper), Some(ink)), "{seen}");
        assert!(number("reachable") > 10, "links, boxes and tables are reached by keyboard: {seen}");
    }
}
