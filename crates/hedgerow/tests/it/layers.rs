//! Who may import whom. The table is the one of CONTRIBUTING.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// A module of a crate, and what it must never name in a `use crate::`.
const FORBIDDEN: &[(&str, &str, &[&str])] = &[
    ("hedgerow-core", "time", &["call", "options", "budget", "delay", "event", "gate", "verdict"]),
    ("hedgerow-core", "text", &["call", "options", "budget", "delay", "event", "gate", "verdict"]),
    ("hedgerow-core", "budget", &["call", "options", "delay", "event", "gate", "verdict"]),
    ("hedgerow-core", "delay", &["call", "options", "budget", "event", "gate", "verdict"]),
    ("hedgerow-core", "event", &["call", "options", "budget", "delay"]),
    ("hedgerow-core", "verdict", &["call", "options", "budget", "delay", "event", "gate", "time"]),
    ("hedgerow-core", "quiet", &["call", "options", "budget", "delay", "event", "gate"]),
    ("hedgerow-core", "sync", &["call", "options", "budget", "delay", "event", "gate", "latency"]),
    ("hedgerow-core", "sharded", &["call", "options", "budget", "delay", "event", "latency"]),
    ("hedgerow-core", "latency", &["call", "options", "budget", "delay", "event"]),
    ("hedgerow-core", "options", &["call"]),
    (
        "hedgerow",
        "ring",
        &["clock", "attempt", "late", "rules", "hedge", "drive", "call", "report", "properties"],
    ),
    ("hedgerow", "clock", &["attempt", "late", "rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "properties", &["attempt", "late", "rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "late", &["attempt", "rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "abandoned", &["attempt", "late", "rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "failure", &["attempt", "rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "attempt", &["rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "extras", &["rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "rules", &["hedge", "drive", "call", "report"]),
    ("hedgerow", "handle", &["attempt", "rules", "drive", "call", "report", "testing", "config"]),
    ("hedgerow", "span", &["attempt", "rules", "hedge", "drive", "call", "report"]),
    ("hedgerow", "hedge", &["attempt", "rules", "drive", "call", "report", "testing", "config"]),
    ("hedgerow", "config", &["attempt", "rules", "drive", "call", "report", "testing"]),
    ("hedgerow", "drive", &["call", "report", "stream", "threads", "testing", "config"]),
    ("hedgerow", "report", &["call", "stream", "threads", "testing", "config"]),
    ("hedgerow", "call", &["cancel", "report", "stream", "threads", "testing", "config"]),
    ("hedgerow", "spawned", &["report", "stream", "threads", "testing", "config"]),
    ("hedgerow", "cancel", &["report", "stream", "threads", "testing", "config"]),
    ("hedgerow", "stream", &["report", "settle", "threads", "testing", "config"]),
    ("hedgerow", "settle", &["threads", "testing", "config"]),
    ("hedgerow", "threads", &["stream", "testing", "config", "pipeline"]),
    ("hedgerow", "drive", &["pipeline"]),
    ("hedgerow", "call", &["pipeline"]),
    ("hedgerow", "stream", &["pipeline"]),
    ("hedgerow", "hedge", &["pipeline"]),
    ("hedgerow", "pipeline", &["report", "settle", "testing", "config", "registry", "telemetry"]),
    ("hedgerow", "registry", &["drive", "call", "stream", "threads", "testing", "telemetry"]),
    ("hedgerow-core", "strategy", &["call", "options", "budget", "delay", "event", "gate"]),
];

/// What each crate may depend on, of the workspace's own crates.
const DEPENDS: &[(&str, &[&str])] = &[
    ("hedgerow-core", &[]),
    ("hedgerow", &["hedgerow-core"]),
    ("hedgerow-sim", &["hedgerow-core"]),
    ("hedgerow-cli", &["hedgerow", "hedgerow-sim"]),
];

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn sources(place: &Path) -> Vec<PathBuf> {
    if place.is_file() {
        return vec![place.to_owned()];
    }
    let Ok(entries) = fs::read_dir(place) else {
        return vec![];
    };
    entries.flat_map(|entry| sources(&entry.unwrap().path())).collect()
}

/// The files of a module: `name.rs`, or everything under `name/`.
fn module(krate: &str, name: &str) -> Vec<PathBuf> {
    let src = crates().join(krate).join("src");
    let files: Vec<_> = [src.join(format!("{name}.rs")), src.join(name)]
        .iter()
        .flat_map(|place| sources(place))
        .collect();
    assert!(!files.is_empty(), "{krate} has no module {name}");
    files
}

#[test]
fn lower_modules_never_import_upper_ones() {
    for (krate, name, forbidden) in FORBIDDEN {
        for file in module(krate, name) {
            let text = fs::read_to_string(&file).unwrap();
            for word in *forbidden {
                let import = format!("crate::{word}");
                let uses = text.lines().any(|line| {
                    let line = line.trim();
                    !line.starts_with("//")
                        && line.split(&import).skip(1).any(|rest| {
                            !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_')
                        })
                });
                assert!(!uses, "{} imports crate::{word}", file.display());
            }
        }
    }
}

#[test]
fn crates_depend_downwards_only_and_the_core_on_nothing() {
    for (krate, allowed) in DEPENDS {
        let manifest = fs::read_to_string(crates().join(krate).join("Cargo.toml")).unwrap();
        let (_, dependencies) = manifest.split_once("\n[dependencies]").unwrap();
        let dependencies = dependencies.split("\n[").next().unwrap();
        let names: BTreeSet<_> = dependencies
            .lines()
            .filter_map(|line| line.split(['.', ' ', '=']).next())
            .filter(|name| !name.is_empty() && !name.starts_with('#'))
            .collect();
        if *krate == "hedgerow-core" {
            assert!(names.is_empty(), "the core depends on {names:?}");
        }
        let own: Vec<_> = names.iter().filter(|name| name.starts_with("hedgerow")).collect();
        assert!(own.iter().all(|name| allowed.contains(name)), "{krate} depends on {own:?}");
    }
}

#[test]
fn the_core_reads_no_clock_and_spawns_nothing() {
    // The models of what threads do to each other start threads, of the model checker's own kind.
    let is_model = |file: &PathBuf| file.ends_with("models.rs");
    for file in sources(&crates().join("hedgerow-core/src")).into_iter().filter(|f| !is_model(f)) {
        let text = fs::read_to_string(&file).unwrap();
        for word in ["Instant", "SystemTime", "thread::spawn", "thread::sleep", "async fn", "tokio"]
        {
            let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
            let uses = code.filter(|line| line.contains(word)).count();
            assert_eq!(uses, 0, "{} names {word}", file.display());
        }
    }
}

#[test]
fn features_gate_modules_and_never_statements() {
    for krate in ["hedgerow-core", "hedgerow"] {
        for file in sources(&crates().join(krate).join("src")) {
            let text = fs::read_to_string(&file).unwrap();
            let inside = text.lines().filter(|line| {
                line.starts_with(' ') && line.trim_start().starts_with("#[cfg(feature")
            });
            assert_eq!(inside.count(), 0, "{} gates inside an item", file.display());
        }
    }
}
