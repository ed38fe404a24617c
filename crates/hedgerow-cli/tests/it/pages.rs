//! The pages of `--report`: one file that needs nothing else, well-formed, with all that was asked
//! for in it and with nothing that a spec smuggled in.

use std::fs;
use std::path::Path;

use crate::run::{Ran, file, hedgerow};

/// Names that would be markup, many policies, a step without requests, latencies of zero.
const HOSTILE: &str = r#"
title = "</title><script>alert('t')</script> & more"
runs = 2
[load]
steps = [
    { rate = 1000, for = "500ms", name = "<b>bold</b>" },
    { rate = 0.001, for = "1s", name = "nobody comes" },
    { rate = 1000, for = "500ms", latency = { shape = "constant", value = "0ms" } },
]
[latency]
shape = "lognormal"
mean = "5ms"
sd = "2ms"
stalls = { chance = "5%", factor = 10 } # "quoted" & <tagged>
[[compare]]
name = "<script>alert(1)</script>"
delay = "10ms"
[[compare]]
name = "quotes \" and ' and &amp;"
delay = "11ms"
"#;

fn simulate(args: &[&str], spec: &str) -> Ran {
    hedgerow(&[&["simulate"], args, &["-"]].concat(), spec)
}

/// Runs a command that writes a page, and reads it.
#[track_caller]
fn page(name: &str, run: impl FnOnce(&str) -> Ran) -> (Ran, String) {
    let path = file(name, "what was there before");
    let ran = run(path.to_str().expect("the name is plain"));
    assert_eq!((ran.status, ran.err.as_str()), (Some(0), ""));
    (ran, fs::read_to_string(&path).expect("the page was written"))
}

#[test]
fn a_simulation_has_a_page_beside_its_table_or_its_json() {
    let more = (0..7).map(|policy| format!("[[compare]]\ndelay = \"{}ms\"\n", 12 + policy));
    let spec = HOSTILE.to_owned() + &more.collect::<String>();
    let (ran, html) = page("hostile.html", |path| simulate(&["--report", path], &spec));
    assert_eq!(ran.out, simulate(&[], &spec).out, "the table stays as it is");
    is_a_page_of_its_own(&html);
    for text in [
        "&lt;script&gt;alert(1)&lt;/script&gt;",
        "quotes &quot; and &#39; and &amp;amp;",
        "delay = &quot;18ms&quot;",
        "&lt;b&gt;bold&lt;/b&gt;",
        "nobody comes",
        "2 runs, seeds from 1",
        "# &quot;quoted&quot; &amp; &lt;tagged&gt;",
        "<details><summary>The spec</summary>",
    ] {
        assert!(html.contains(text), "{text}: {html}");
    }
    // p99 and extra load over the steps (all were in time), a curve for each step, four tables.
    assert_eq!(html.matches("<figure>").count(), 2 + 3, "{html}");
    assert_eq!(html.matches("<table>").count(), 4);
    let (ran, again) = page("json.html", |path| simulate(&["--json", "--report", path], &spec));
    assert_eq!(ran.out, simulate(&["--json"], &spec).out, "so does the JSON");
    assert!(again == html, "the same seed gives the same page");
}

#[test]
fn each_policy_has_a_line_that_looks_different() {
    let (_, html) = page("lines.html", |path| simulate(&["--report", path], HOSTILE));
    let looks = |class: &str| html.matches(&format!("class=\"line {class}\"")).count();
    // In each of the two legends, over the steps twice, and in two curves of three.
    for class in ["base", "c0 d0", "c1 d1"] {
        assert_eq!(looks(class), 2 + 2 + 2, "{class}: {html}");
    }
}

#[test]
fn many_steps_have_one_curve() {
    let step = "{ rate = 1000, for = \"100ms\" }";
    let steps = vec![step; 40].join(", ");
    let spec =
        format!("[load]\nsteps = [{steps}]\n[latency]\nshape = \"constant\"\nvalue = \"5ms\"\n");
    let (_, html) = page("steps.html", |path| simulate(&["--report", path], &spec));
    is_a_page_of_its_own(&html);
    assert_eq!(html.matches("<figure>").count(), 2 + 1, "{html}");
    assert!(html.contains("All steps"), "{html}");
}

#[test]
fn an_advice_has_a_page() {
    let latency = |call: u32| f64::from(call * 7_919 % 4_001) / 1e3 + 3.0;
    let stalled = |call: u32| if call % 40 == 7 { latency(call) + 80.0 } else { latency(call) };
    for (count, load, plots) in
        [(5_000, &[][..], 2), (5_000, &["--load", "50%"], 3), (20, &[], 1), (1, &[], 1)]
    {
        let log: String =
            (0..count).flat_map(|call| [stalled(call).to_string(), "\n".to_owned()]).collect();
        let args = ["tune", "--unit", "ms", "--report"];
        let name = format!("tune-{count}-{plots}.html");
        let (_, html) = page(&name, |path| hedgerow(&[&args, &[path][..], load].concat(), &log));
        is_a_page_of_its_own(&html);
        assert_eq!(html.matches("<figure>").count(), plots, "{html}");
        assert!(html.contains("<h2>Mind that</h2>"), "{html}");
        assert_eq!(html.contains("As simulated, servers 50 % busy"), !load.is_empty(), "{html}");
    }
}

#[test]
fn a_page_that_cannot_be_written_is_refused_before_any_work() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let inside = file("a-file", "").join("page.html");
    for (path, remedy) in [
        (Path::new("no/such/folder/a.html"), "make its folder first, or name another"),
        (folder, "name a file in it"),
        (&inside, "part of the path is a file; name another"),
    ] {
        let path = path.to_str().expect("the name is plain");
        for ran in [
            simulate(&["--report", path], HOSTILE),
            hedgerow(&["tune", "--unit", "ms", "--report", path], "5\n"),
        ] {
            assert_eq!((ran.status, ran.out.as_str()), (Some(1), ""), "{}", ran.err);
            let start = format!("error: cannot write the report to {path}: ");
            assert!(ran.err.starts_with(&start), "{}", ran.err);
            assert!(ran.err.trim_end().ends_with(remedy), "{}", ran.err);
        }
    }
}

#[test]
fn without_figures_there_is_no_page() {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("never.html");
    let ran = hedgerow(&["tune", "--unit", "ms", "--report", path.to_str().unwrap()], "five\n");
    assert_eq!((ran.status, path.exists()), (Some(2), false), "{}", ran.err);
}

/// Checks that tags are closed in the order in which they were opened, that nothing is loaded from
/// elsewhere, and that no script runs.
#[track_caller]
pub(crate) fn is_a_page_of_its_own(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html>\n<html ") && page.ends_with("</html>\n"), "{page}");
    for word in ["http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link", "NaN"] {
        assert!(!page.contains(word), "{word}: {page}");
    }
    let body = page.strip_prefix("<!DOCTYPE html>\n").unwrap_or_default();
    let mut open = Vec::new();
    let mut rest = body;
    while let Some((text, tagged)) = rest.split_once('<') {
        is_text(text);
        let (tag, after) = tagged.split_once('>').expect("a tag ends");
        rest = after;
        let name = tag.split_whitespace().next().unwrap_or_default();
        if let Some(name) = name.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "closed in order");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
        let (_, attributes) = tag.split_at(name.len());
        assert!(attributes.matches('"').count() % 2 == 0, "<{tag}>");
        is_text(attributes);
    }
    is_text(rest);
    assert!(open.is_empty(), "left open: {open:?}");
}

/// An ampersand begins an entity.
#[track_caller]
fn is_text(text: &str) {
    for (_, entity) in text.match_indices('&').map(|(at, _)| text.split_at(at + 1)) {
        let known = ["amp;", "lt;", "gt;", "quot;", "#39;"];
        assert!(known.iter().any(|name| entity.starts_with(name)), "{text}");
    }
}

#[test]
fn a_page_never_replaces_what_is_read() {
    let samples = "5ms\n7ms\n";
    let data = file("report-samples.txt", samples);
    let spec = "[load]\nrate = 1\nrequests = 1\n[latency]\nshape = \"samples\"\nfile = \"report-samples.txt\"\n";
    let spec_file = file("report-spec.toml", spec);
    let [data, spec_file] = [&data, &spec_file].map(|path| path.to_str().unwrap());
    let other = data.replace("report-samples", "./report-samples");
    for args in [
        ["tune", "--report", data, data],
        ["tune", "--report", &other, data],
        ["simulate", "--report", spec_file, spec_file],
        ["simulate", "--report", data, spec_file],
    ] {
        let ran = hedgerow(&args, "");
        assert_eq!((ran.status, ran.out.as_str()), (Some(2), ""), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("it is read from"), "{args:?}: {}", ran.err);
        assert_eq!(fs::read_to_string(data).unwrap(), samples, "{args:?}");
        assert_eq!(fs::read_to_string(spec_file).unwrap(), spec, "{args:?}");
    }
}
