//! What somebody may have meant who made a mistake in a file, and what could be written.

use crate::registry::read;
use crate::registry_mistakes::{of_strategy, refused};

/// One mistake is told once, where it is, with the table that was meant.
#[test]
fn a_name_like_that_of_a_table_nobody_reads_means_it() {
    let named = |name: &str, tables: &str| {
        refused(&format!(
            "[search]\nstrategies = [\"timeout\", \"{name}\"]\ntimeout = \"2s\"\n{tables}"
        ))
    };
    let attempt = "attempt = { kind = \"timeout\", limit = \"1s\" }";
    for (name, tables, expected) in [
        ("rety", "", vec![r#"search.strategies[1] = "rety": did you mean retry?"#]),
        ("rety", "retry = {}", vec![r#"search.strategies[1] = "rety": did you mean retry?"#]),
        ("atempt", attempt, vec![r#"search.strategies[1] = "atempt": did you mean attempt?"#]),
        ("timeot", "", vec![r#"search.strategies[1] = "timeot": did you mean timeout?"#]),
        ("rety", "rety = {}", vec!["search.rety = {}: did you mean retry?"]),
    ] {
        assert_eq!(named(name, tables), expected);
    }
    let both = named("xyz", "retry = {}");
    let starts: Vec<_> = both.iter().map(|line| line.split(" = ").next().unwrap()).collect();
    assert_eq!(starts, ["search.strategies[1]", "search.retry"], "nothing alike: {both:?}");
}

#[test]
fn what_is_no_table_is_told_what_one_looks_like() {
    for (kind, given, example) in [
        ("retry", "3", "{ max_retries = 2 }"),
        ("hedge", "\"150ms\"", r#"{ delay = "150ms" }"#),
        ("circuit-breaker", "true", "{ failure_ratio = 0.5 }"),
        ("rate-limiter", "100", "{ permits = 100 }"),
        ("concurrency-limiter", "[100]", "{ limit = 100 }"),
        ("chaos", "\"1s\"", r#"{ latency = "1s" }"#),
    ] {
        let told = refused(&format!("[all]\nstrategies = [\"{kind}\"]\n{kind} = {given}"));
        let remedy = format!("write keys and their values, such as {example}");
        assert_eq!(told, [format!("all.{kind} = {given}: {remedy}")]);
        let (key, value) = example.trim_matches(['{', '}', ' ']).split_once(" = ").unwrap();
        read(&format!("[all]\nstrategies = [\"{kind}\"]\n{kind} = {{ {key} = {value} }}"));
    }
}

#[test]
fn what_only_code_can_have_is_told_where_it_goes() {
    for name in ["fallback", "cache"] {
        let code = format!(
            "a {name} needs code, which can put it around this pipeline: see Registry::live"
        );
        for given in ["{}", "5"] {
            assert_eq!(of_strategy(name, given), format!("p.{name} = {given}: {code}"));
        }
        let by_kind = of_strategy("mine", &format!("{{ kind = \"{name}\" }}"));
        assert_eq!(by_kind, format!("p.mine.kind = \"{name}\": {code}"));
    }
    let [named] = refused("[p]\nstrategies = [\"mine\"]").try_into().unwrap();
    let rest = "chaos, as name or as kind; any other strategy needs code, which can put it around \
                this pipeline: see Registry::live";
    let start = r#"p.strategies[0] = "mine": use timeout, "#;
    assert!(named.starts_with(start) && named.ends_with(rest), "{named}");
    assert_eq!(
        of_strategy("hedge", r#"{ losers = "detach" }"#),
        r#"p.hedge.losers = "detach": losers of a pipeline from a file cannot run on; write drop or join"#
    );
}

/// The file's own value is shown, and what to write in its place.
#[test]
fn what_is_of_no_kind_is_shown_as_it_is_given() {
    const KINDS: &str = "use timeout, retry, hedge, circuit-breaker, rate-limiter, \
                         concurrency-limiter or chaos";
    let missing = format!(
        "its kind is missing; {KINDS}; any other strategy needs code, which can put it around this \
         pipeline: see Registry::live"
    );
    assert_eq!(of_strategy("t", "{}"), format!("p.t = {{}}: {missing}"));
    let limit = of_strategy("t", r#"{ limit = "1s" }"#);
    assert_eq!(limit, format!(r#"p.t = {{"limit": "1s"}}: {missing}"#));
    let example = r#"a table with its kind, such as { kind = "timeout", limit = "2s" }"#;
    for given in ["5", "\"5s\"", "[]", "2026-01-01"] {
        let said = format!("p.t = {given}: write {example}; {KINDS}");
        assert_eq!(of_strategy("t", given), said);
        let said = format!("p.rety = {given}: did you mean retry? any other name needs {example}");
        assert_eq!(of_strategy("rety", given), said);
    }
    read("[p]\nstrategies = [\"t\"]\nt = { kind = \"timeout\", limit = \"2s\" }");
}

#[test]
fn words_of_the_builders_are_asked_about() {
    for (word, meant) in [
        ("breaker", "circuit-breaker"),
        ("limiter", "rate-limiter or concurrency-limiter"),
        ("rate", "rate-limiter"),
        ("concurrency", "concurrency-limiter"),
        ("bulkhead", "concurrency-limiter"),
    ] {
        let said = format!("p.{word} = {{}}: did you mean {meant}?");
        assert_eq!(of_strategy(word, "{}"), said);
    }
    for (kind, word, meant) in [
        ("retry", "delay", "base"),
        ("retry", "times", "max_retries"),
        ("retry", "retries", "max_retries"),
        ("retry", "attempts", "max_retries"),
        ("hedge", "after", "delay"),
        ("hedge", "attempts", "max_hedges"),
    ] {
        let said = format!("p.{kind}.{word} = \"5s\": unknown key; did you mean {meant}?");
        assert_eq!(of_strategy(kind, &format!("{{ {word} = \"5s\" }}")), said);
    }
    let chaos = of_strategy("chaos", r#"{ latency = "1s", delay = "1s" }"#);
    assert!(chaos.ends_with("did you mean latency?"), "{chaos}");
    let limiter = of_strategy("rate-limiter", "{ permits = 5, quantity = 5 }");
    assert!(limiter.ends_with("did you mean permits?"), "{limiter}");
}
