//! `--report`: the advice as a page of its own, with its curves.

use std::path::Path;
use std::{fs, io};

use hedgerow::text::format_duration;
use hedgerow_sim::tune::{Advice, Curves, rounded};

use super::plot::{Axis, Line, Plot};
use super::text;

/// The style: readable on a phone, in the dark, and on paper.
const STYLE: &str = "\
:root{color-scheme:light dark;--a:#b3261e;--b:#1b6e3c;--c:#3f5fa8;--grid:#8884;--soft:#8882}\
@media(prefers-color-scheme:dark){:root{--a:#ff8a80;--b:#6fd08c;--c:#9db8ff}}\
body{font:16px/1.5 system-ui,sans-serif;margin:0 auto;padding:1rem;max-width:72rem}\
h1{font-size:1.4rem;line-height:1.3}\
pre{overflow-x:auto;background:var(--soft);padding:.8rem;border-radius:.4rem;font-size:.85rem}\
.plots{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}\
figure{margin:0;max-width:40rem}figcaption{font-weight:600}svg{width:100%;height:auto}\
svg text{font-size:13px;fill:currentColor}svg path{stroke:var(--grid);fill:none}\
polyline{fill:none;stroke-width:2.2}polyline.a{stroke:var(--a)}polyline.b{stroke:var(--b)}\
polyline.c{stroke:var(--c);stroke-dasharray:6 4}\
.legend{margin:.2rem 0 0}.legend span{margin-right:1rem}.legend span::before{content:'\\2014\\a0'}\
.legend .a::before{color:var(--a)}.legend .b::before{color:var(--b)}\
.legend .c::before{color:var(--c);content:'--\\a0'}";

/// Writes the page.
pub(super) fn write(
    path: &Path,
    advice: &Advice,
    curves: &Curves,
    notes: &[String],
) -> io::Result<()> {
    fs::write(path, page(advice, curves, notes)?)
}

fn page(advice: &Advice, curves: &Curves, notes: &[String]) -> io::Result<String> {
    let mut said = Vec::new();
    text::write(&mut said, advice, notes)?;
    let said = escape(&String::from_utf8_lossy(&said));
    let (heading, rest) = said.split_once('\n').unwrap_or((&said, ""));
    let (figures, mind) = rest.split_once("\nMind that:\n").unwrap_or((rest, ""));
    let mind: String = mind.lines().map(|line| line.replacen("- ", "<li>", 1)).collect();
    let plots = [Some(survival(advice, curves)), trade(advice, curves)];
    let plots: String = plots.iter().flatten().map(Plot::svg).collect();
    Ok(format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>{heading}</title><style>{STYLE}</style></head>\n<body><h1>{heading}</h1>\n\
         <div class=\"plots\">{plots}</div>\n<pre>{figures}</pre>\n\
         <h2>Mind that</h2><ul>{mind}</ul>\n</body></html>\n"
    ))
}

/// How likely a call is to take longer than a latency.
fn survival(advice: &Advice, curves: &Curves) -> Plot {
    let points = &curves.survival;
    let mut lines = vec![Line {
        name: "without hedging".to_owned(),
        class: "a",
        points: points.iter().map(|(nanos, without, _)| (*nanos, *without)).collect(),
    }];
    if advice.verdict.is_ok() {
        lines.push(Line {
            name: "with hedging, predicted".to_owned(),
            class: "b",
            points: points.iter().map(|(nanos, _, with)| (*nanos, *with)).collect(),
        });
    }
    // The predicted curve may fall far below what the log can tell.
    let lowest = points.iter().map(|(_, without, _)| *without);
    Plot {
        title: "Calls that take longer",
        x: Axis::around("latency", points.iter().map(|(nanos, ..)| *nanos), latency),
        y: Axis::around("share of calls", lowest, share),
        lines,
    }
}

/// What each extra load buys.
fn trade(advice: &Advice, curves: &Curves) -> Option<Plot> {
    let plans: Vec<_> =
        curves.trade.iter().filter_map(|choice| Some((choice, choice.plan?))).collect();
    if plans.len() < 2 {
        return None;
    }
    let reached: Vec<_> =
        plans.iter().map(|(choice, _)| (choice.max_extra_load, choice.reached)).collect();
    let delays: Vec<_> =
        plans.iter().map(|(choice, plan)| (choice.max_extra_load, plan.delay)).collect();
    let latencies = reached.iter().chain(&delays).map(|(_, nanos)| *nanos);
    Some(Plot {
        title: "What extra load buys",
        x: Axis::around("extra load", reached.iter().map(|(load, _)| *load), share),
        y: Axis::around("latency", latencies, latency),
        lines: vec![
            Line { name: format!("{} with hedging", advice.target), class: "b", points: reached },
            Line { name: "best delay".to_owned(), class: "c", points: delays },
        ],
    })
}

fn latency(nanos: f64) -> String {
    format_duration(rounded(nanos))
}

fn share(share: f64) -> String {
    format!("{} %", (share * 1e10).round() / 1e8)
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
