//! The page of a party's operator.
//!
//! The page is the template `page.html.jinja`, which escapes everything. It needs no script and loads nothing.

use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Context;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use chrono::DateTime;
use fet_net::{Activity, State};
use indicatif::HumanBytes;
use minijinja::Environment;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::json;

use super::super::approval::{Approval, Known, short};
use super::super::audit_log::AuditEvent;
use super::metrics::{OpenSession, RecentRefusal};
use super::state::{StateView, StoredRun};
use super::watched::Watched;
use crate::ledger::{AccountSummary, format_epsilon};

const TEMPLATE: &str = include_str!("page.html.jinja");
/// Seconds after which a browser loads the page again.
const AGAIN: u32 = 10;

/// Page and the value of its header `Content-Security-Policy`.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) policy: String,
}

/// Section of the page.
#[derive(Debug, Default, Serialize)]
struct Section {
    id: &'static str,
    title: &'static str,
    sentences: Vec<String>,
    header: Vec<&'static str>,
    lines: Vec<Vec<String>>,
    notes: Vec<String>,
}

/// Returns the page of a party.
pub(super) fn page(watched: &Watched) -> anyhow::Result<Page> {
    let state = watched.state.look();
    let readiness = watched.readiness();
    let sections = [
        link(watched, watched.link().as_ref()),
        sessions(&watched.metrics.sessions()),
        runs(&state),
        approvals(&state),
        predictions(&state),
        privacy(&state),
        events(&state),
        refusals(&watched.metrics.refusals()),
    ];
    let style = crate::page::style();
    let page = json!({
        "style": style,
        "again": AGAIN,
        "party": watched.names.party,
        "run": watched.names.run,
        "verdict": if readiness.is_ok() { "yes" } else { "no" },
        "health": match readiness {
            Ok(()) => format!("Ready for {}", watched.names.primary),
            Err(reason) => format!("Not ready: {reason}"),
        },
        "since": time(Some(watched.started)),
        "now": time(Some(SystemTime::now())),
        "program": format!("fet {}, commit {}", env!("CARGO_PKG_VERSION"), env!("FET_COMMIT")),
        "sections": sections,
    });
    let mut environment = Environment::new();
    environment.add_template("party.html", TEMPLATE).context("the template of the page")?;
    let template = environment.get_template("party.html").context("the template of the page")?;
    let text = template.render(Serde(page)).context("the page")?;
    Ok(Page { text, policy: content_policy(&style) })
}

/// Allows only the page's own style.
fn content_policy(style: &str) -> String {
    let digest = STANDARD.encode(fet_io::sha256(format!("\n{style}").as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{digest}'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    )
}

fn link(watched: &Watched, link: Option<&State>) -> Section {
    let names = &watched.names;
    let mut facts = vec![
        ("server", names.server.clone()),
        ("primary", names.primary.clone()),
        ("run in the roster", names.run.clone()),
    ];
    if let Some(link) = link {
        let milliseconds = |time: std::time::Duration| format!("{:.1} ms", 1e3 * time.as_secs_f64());
        facts.extend([
            ("connection", link.connection.to_string()),
            ("link", activity(link).to_string()),
            (
                "primary heard",
                link.heard.map_or_else(|| "not yet".into(), |heard| format!("{} s ago", heard.as_secs())),
            ),
            ("round trip", link.latency.map_or_else(|| "unknown".into(), milliseconds)),
            ("sent", HumanBytes(link.sent).to_string()),
            ("received", HumanBytes(link.received).to_string()),
            ("packets that could not be read", link.unreadable.to_string()),
        ]);
    }
    Section {
        id: "link",
        title: "Link",
        header: vec!["", "now"],
        lines: facts.into_iter().map(|(name, value)| vec![name.to_string(), value]).collect(),
        ..Section::default()
    }
}

/// Returns the activity of the link, as the party sees it.
fn activity(link: &State) -> &'static str {
    match link.doing {
        Activity::Joining => "waits for the primary",
        Activity::Idle => "the primary has the last answer",
        Activity::Computing => "the party computes an answer",
        Activity::Sending | Activity::Receiving => "an answer leaves, or the primary has not confirmed it",
    }
}

fn sessions(open: &[OpenSession]) -> Section {
    let line = |session: &OpenSession| {
        vec![
            session.purpose.to_string(),
            session.run.clone(),
            time(Some(session.since)),
            session.doing.clone(),
            session.program.clone(),
        ]
    };
    Section {
        id: "sessions",
        title: "Open sessions",
        sentences: none("No program of the primary has joined, or its run is over.", open.is_empty()),
        header: vec!["purpose", "run", "since", "now", "program"],
        lines: open.iter().map(line).collect(),
        ..Section::default()
    }
}

fn runs(state: &StateView) -> Section {
    let line = |run: &StoredRun| {
        vec![
            run.id.clone(),
            time(run.changed),
            if run.finished { "finished" } else { "not finished" }.to_string(),
            HumanBytes(run.bytes).to_string(),
        ]
    };
    Section {
        id: "runs",
        title: "Stored runs",
        sentences: none("The state folder contains no run.", state.runs.is_empty()),
        header: vec!["run", "last change", "state", "size"],
        lines: state.runs.iter().map(line).collect(),
        notes: vec![format!(
            "The state folder has {}. A finished run has a model, which answers \
             requests for predictions; \"fet party prune\" removes old files.",
            HumanBytes(state.bytes)
        )],
    }
}

fn predictions(state: &StateView) -> Section {
    let sentence = match (&state.predictions, state.most_predictions) {
        (Err(problem), _) => problem.clone(),
        (Ok(counted), Some(most)) => format!(
            "{counted} of {most} new records were linked (policy.most_predictions); {} are left.",
            most.saturating_sub(*counted)
        ),
        (Ok(counted), None) if state.allows_predictions => {
            format!("{counted} new records were linked. The policy sets no limit.")
        }
        (Ok(counted), None) => format!(
            "{counted} new records were linked. The policy allows no predictions (policy.predictions)."
        ),
    };
    Section { id: "predictions", title: "Predictions", sentences: vec![sentence], ..Section::default() }
}

fn approvals(state: &StateView) -> Section {
    let section = Section { id: "approvals", title: "Approvals of the owner", ..Section::default() };
    let known = match &state.approvals {
        Ok(known) => known,
        Err(problem) => return Section { sentences: vec![problem.clone()], ..section },
    };
    let line = |known: &Known| {
        let Approval { number, time, hash, limits, note, .. } = &known.approval;
        let note = note.clone().unwrap_or_default();
        let texts = [time.clone(), short(hash), known.state().into(), limits.to_string(), known.used(), note];
        std::iter::once(number.to_string()).chain(texts).collect()
    };
    Section {
        sentences: none("The owner has approved nothing (\"fet party approve\").", known.is_empty()),
        header: vec!["number", "time", "settings", "state", "allows", "used", "note"],
        lines: known.iter().rev().map(line).collect(),
        ..section
    }
}

fn events(state: &StateView) -> Section {
    let section = Section { id: "events", title: "Latest events of the audit log", ..Section::default() };
    let events = match &state.events {
        Ok(events) => events,
        Err(problem) => return Section { sentences: vec![problem.clone()], ..section },
    };
    let number = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    let line = |event: &AuditEvent| {
        vec![
            event.time.clone(),
            event.event.clone(),
            event.run.as_deref().map_or_else(String::new, short),
            number(event.rows),
            event.bytes.map_or_else(String::new, |bytes| HumanBytes(bytes).to_string()),
            event.epsilon.map_or_else(String::new, |epsilon| format!("{epsilon:.4}")),
            event.message.clone().unwrap_or_default(),
        ]
    };
    Section {
        sentences: none("The audit log is empty.", events.is_empty()),
        header: vec!["time", "event", "run", "rows", "sent", "ε", "text"],
        lines: events.iter().map(line).collect(),
        notes: vec!["\"fet log show\" prints all events, and \"fet log verify\" checks them.".into()],
        ..section
    }
}

fn privacy(state: &StateView) -> Section {
    let section = Section { id: "privacy", title: "Privacy loss over all runs", ..Section::default() };
    let account: &AccountSummary = match &state.account {
        Ok(Some(account)) => account,
        Ok(None) => {
            return Section { sentences: vec!["The lifetime account is empty.".into()], ..section };
        }
        Err(problem) => return Section { sentences: vec![problem.clone()], ..section },
    };
    let limit = account.limit.map_or_else(
        || "The policy sets no limit (policy.lifetime_epsilon).".to_string(),
        |limit| format!("The limit is {limit} (policy.lifetime_epsilon)."),
    );
    let total = format!("ε = {} at δ = {:e}. {limit}", format_epsilon(account.epsilon), account.delta);
    let lines = account.runs.iter().map(|run| {
        vec![run.name.clone(), run.day.clone(), format_epsilon(run.epsilon), run.releases.to_string()]
    });
    Section {
        sentences: vec![total],
        header: vec!["run in the account", "last record", "ε alone", "releases"],
        lines: lines.collect(),
        notes: account.notes.clone(),
        ..section
    }
}

fn refusals(recent: &[RecentRefusal]) -> Section {
    let line = |refusal: &RecentRefusal| {
        vec![time(Some(refusal.time)), refusal.request.to_string(), refusal.reason.clone()]
    };
    Section {
        id: "refusals",
        title: "Refusals of this process",
        sentences: none("This process has refused no request.", recent.is_empty()),
        header: vec!["time", "request", "reason"],
        lines: recent.iter().map(line).collect(),
        ..Section::default()
    }
}

/// Returns the sentence for an empty section.
fn none(sentence: &str, is_empty: bool) -> Vec<String> {
    if is_empty { vec![sentence.to_string()] } else { Vec::new() }
}

/// Returns a time in UTC.
fn time(time: Option<SystemTime>) -> String {
    let since = time.and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    let seconds = since.and_then(|since| i64::try_from(since.as_secs()).ok());
    let shown = seconds.and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    shown.map_or_else(|| "unknown".to_string(), |time| time.format("%Y-%m-%d %H:%M:%S UTC").to_string())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fet_core::policy::Policy;

    use super::super::metrics::PartyMetrics;
    use super::super::state::StateFolder;
    use super::super::watched::PartyNames;
    use super::*;

    /// Texts of the primary and of files could hold markup.
    #[test]
    fn every_text_is_escaped() {
        let folder = tempfile::tempdir().expect("a folder");
        let account = folder.path().join("party/lifetime.jsonl");
        std::fs::create_dir_all(account.parent().expect("a folder")).expect("made");
        std::fs::write(folder.path().join("party/predictions"), "<i>").expect("written");
        std::fs::write(folder.path().join("party/audit.jsonl"), "{\"event\":\"<u>event\"}\n")
            .expect("written");
        let metrics = Arc::new(PartyMetrics::default());
        let session = metrics.open("<u>program", "a run", "<u>run");
        session.does("<u>Forward");
        metrics.refused("Join", "it is \"<u onclick=x>\"");
        let names = PartyNames {
            party: "<u>party".into(),
            primary: "<u>primary".into(),
            run: "<u>run".into(),
            server: "<u>server".into(),
        };
        let state = StateFolder::new(folder.path().to_path_buf(), Policy::default());
        let page = page(&Watched::new(names, metrics, state)).expect("a page");
        assert!(!page.text.contains("<u>") && !page.text.contains("<u onclick"), "{}", page.text);
        for part in ["program", "party", "primary", "run", "server", "Forward", "event"] {
            assert!(page.text.contains(&format!("&lt;u&gt;{part}")), "{part} in {}", page.text);
        }
        assert!(page.text.contains("&lt;u onclick=x&gt;&quot;"), "{}", page.text);
    }

    /// A browser compares the style with the digest in the policy.
    #[test]
    fn policy_allows_the_style_of_the_page() {
        let folder = tempfile::tempdir().expect("a folder");
        let names = PartyNames {
            party: "streets".into(),
            primary: "bank".into(),
            run: "city".into(),
            server: "nats://hub".into(),
        };
        let state = StateFolder::new(folder.path().to_path_buf(), Policy::default());
        let page = page(&Watched::new(names, Arc::default(), state)).expect("a page");
        let (_, style) = page.text.split_once("<style>").expect("a style");
        let (style, _) = style.split_once("</style>").expect("its end");
        let digest = STANDARD.encode(fet_io::sha256(style.as_bytes()));
        assert!(page.policy.contains(&format!("style-src 'sha256-{digest}';")), "{}", page.policy);
    }
}
