//! Colours and rules, for the light and the dark theme and for paper.

use std::fmt::Write;

use super::COLOURS;

/// The colours of a theme.
struct Theme {
    paper: &'static str,
    ink: &'static str,
    soft: &'static str,
    line: &'static str,
    series: [&'static str; COLOURS],
}

const LIGHT: Theme = Theme {
    paper: "#ffffff",
    ink: "#1a1f24",
    soft: "#57606a",
    line: "#d5dae0",
    series: ["#0b5cad", "#c2410c", "#0f7b5f", "#9333a8", "#8a6d00", "#0e7490", "#be185d", "#4b5563"],
};
const DARK: Theme = Theme {
    paper: "#12161b",
    ink: "#e6eaee",
    soft: "#9aa5b1",
    line: "#333c46",
    series: ["#7ab8f5", "#ff9f68", "#58d1aa", "#d9a0ea", "#e5c558", "#6bd3e8", "#f78fb8", "#b6c0cc"],
};
const PRINT: Theme = Theme { paper: "#ffffff", ink: "#000000", soft: "#444444", line: "#bbbbbb", ..LIGHT };

/// Style of a chart. The colour of a series is the current colour of its group.
const RULES: &str = r#"svg text { fill: var(--ink); font-family: system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif; font-size: 12.5px; }
svg text.tick { fill: var(--soft); font-variant-numeric: tabular-nums; }
svg text.label { fill: var(--soft); }
svg text.title { font-weight: 600; font-size: 14px; }
svg text.halo { fill: var(--paper); stroke: var(--paper); stroke-width: 4; stroke-linejoin: round; }
svg .ground { fill: var(--paper); }
svg .grid { stroke: var(--line); stroke-width: 1; fill: none; }
svg .base { stroke: var(--soft); stroke-width: 1.25; stroke-dasharray: 4 4; fill: none; }
svg .curve { fill: none; stroke: currentColor; stroke-width: 2; stroke-linejoin: round; }
svg .thin { fill: none; stroke: currentColor; stroke-width: 1; opacity: .35; }
svg .bar { fill: none; stroke: currentColor; stroke-width: 1.75; }
svg .seed { fill: currentColor; opacity: .5; }
svg .sign { fill: currentColor; stroke: var(--paper); stroke-width: 1; }
svg .paper { fill: var(--paper); stroke: var(--ink); stroke-width: 1.75; }
svg .bubble { fill: currentColor; fill-opacity: .2; stroke: currentColor; stroke-width: 1; }
svg .cell { fill: currentColor; }
svg .bin { fill: currentColor; fill-opacity: .65; stroke: var(--paper); stroke-width: .75; }
svg text.over { fill: var(--paper); }
svg .own { fill: none; stroke: var(--ink); stroke-width: 3; }
"#;

const DARK_MEDIA: &str = "@media (prefers-color-scheme: dark)";
const PRINT_MEDIA: &str = "@media print";

/// The style of a page with charts. The page may use the colours too: `--paper`, `--ink`, `--soft`, `--line`, and `--s0`
/// to `--s7` for series.
pub fn page() -> String {
    let root = |theme: &Theme| {
        let colours = theme.colours().into_iter();
        colours.fold(String::new(), |text, (name, colour)| format!("{text} {name}: {colour};"))
    };
    let mut text = format!(":root {{{} }}\n", root(&LIGHT));
    for (media, theme) in [(DARK_MEDIA, &DARK), (PRINT_MEDIA, &PRINT)] {
        let _ = writeln!(text, "{media} {{ :root {{{} }} }}", root(theme));
    }
    text + &rules()
}

/// Style of a picture file. It uses no variables, because many SVG programs do not support them.
pub(crate) fn file() -> String {
    let rules = rules();
    let of = |theme: &Theme| {
        let colours = theme.colours().into_iter();
        colours.fold(rules.clone(), |text, (name, colour)| text.replace(&format!("var({name})"), colour))
    };
    format!("{}{DARK_MEDIA} {{\n{}}}\n{PRINT_MEDIA} {{\n{}}}\n", of(&LIGHT), of(&DARK), of(&PRINT))
}

fn rules() -> String {
    (0..COLOURS)
        .fold(RULES.to_string(), |text, number| format!("{text}.s{number} {{ color: var(--s{number}); }}\n"))
}

impl Theme {
    /// Variable names and colours.
    fn colours(&self) -> Vec<(String, &'static str)> {
        let named = [("paper", self.paper), ("ink", self.ink), ("soft", self.soft), ("line", self.line)];
        let named = named.into_iter().map(|(name, colour)| (format!("--{name}"), colour));
        let series = self.series.iter().enumerate();
        named.chain(series.map(|(number, colour)| (format!("--s{number}"), *colour))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_needs_no_variables_and_a_page_defines_what_it_uses() {
        let file = file();
        assert!(!file.contains("var(") && !file.contains("--"), "{file}");
        for theme in [&LIGHT, &DARK, &PRINT] {
            for colour in [theme.ink, theme.series[COLOURS - 1]] {
                assert!(file.contains(colour), "{colour} in {file}");
            }
        }
        let page = page();
        for used in page.split("var(").skip(1).filter_map(|rest| rest.split(')').next()) {
            assert_eq!(page.matches(&format!("{used}:")).count(), 3, "{used} in each theme");
        }
    }
}
