//! What is wrong with pipelines in files, and what is said of it.

use hedgerow::config::Value;
use hedgerow::pipeline::{AnyStrategy, Pipeline, Timeout};
use hedgerow::registry::PipelinesConfig;

use crate::registry::read;
use crate::support::{act, ms, ok};

/// The mistakes in a configuration, one a line.
pub(crate) fn refused(text: &str) -> Vec<String> {
    refused_value(&toml::from_str(text).unwrap())
}

/// The same of JSON, which may give a key twice.
fn refused_json(text: &str) -> Vec<String> {
    refused_value(&serde_json::from_str(text).unwrap())
}

fn refused_value(value: &Value) -> Vec<String> {
    let error = PipelinesConfig::try_from(value).unwrap_err();
    error.to_string().lines().map(str::to_owned).collect()
}

/// What is said of a strategy with these settings.
#[track_caller]
pub(crate) fn of_strategy(name: &str, settings: &str) -> String {
    let text = format!("[p]\nstrategies = [\"{name}\"]\n{name} = {settings}");
    let [told] = refused(&text).try_into().unwrap();
    told
}

#[test]
fn every_mistake_is_told_with_its_place() {
    let told = refused(
        r#"
        [search]
        strategies = ["timeout", "hegde", "hedge", "timeout", "slow"]
        slow = { kind = "timeuot" }
        attempt = { kind = "timeout", limit = "1s" }
        hedge = { dealy = "5ms" }
        max_extra_laod = "5%"
        [near]
        strategies = ["hedge"]
        hegde = {}
        [fine]
        strategies = []
        [none]
        timeout = "1s"
        [zero]
        strategies = ["timeout"]
        timeout = "0s"
        "#,
    );
    let expected = [
        r#"search.attempt = {"kind": "timeout", "limit": "1s"}: unknown key; "#,
        r#"search.max_extra_laod = "5%": unknown key; did you mean max_extra_load?"#,
        "search.timeout.limit: missing; ",
        r#"search.strategies[1] = "hegde": did you mean hedge?"#,
        r#"search.hedge.dealy = "5ms": unknown key; did you mean delay?"#,
        r#"search.strategies[3] = "timeout": named twice; "#,
        r#"search.slow.kind = "timeuot": did you mean timeout?"#,
        "near.hegde = {}: unknown key; did you mean hedge?",
        "none.strategies: missing; ",
        "zero.timeout.limit = 0s: nothing could ever answer",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for expected in expected {
        assert!(told.iter().any(|line| line.starts_with(expected)), "{expected}\n{told:#?}");
    }
}

#[test]
fn mistakes_of_every_kind_have_their_places() {
    let told = refused(
        r#"
        [all]
        strategies = ["retry", "circuit-breaker", "rate-limiter", "concurrency-limiter", "chaos", "linear"]
        retry = { backoff = "exponental", max_retries = "for ever", factor = "x" }
        linear = { kind = "retry", backoff = "linear", factor = 2 }
        circuit-breaker = { failure_ratio = 2, probes = 0 }
        concurrency-limiter = { limit = 0 }
        chaos = { latency = "1s", rate = 3 }
        "#,
    );
    let expected = [
        r#"all.retry.backoff = "exponental": did you mean exponential?"#,
        r#"all.retry.max_retries = "for ever": write a whole number, or "forever""#,
        r#"all.retry.factor = "x": "#,
        "all.linear.factor = 2: only an exponential back-off has a factor",
        "all.rate-limiter.permits: missing; ",
        "all.circuit-breaker.failure_ratio = 2: ",
        "all.circuit-breaker.probes = 0: ",
        "all.concurrency-limiter.limit = 0: ",
        "all.chaos.rate = 3: ",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for expected in expected {
        assert!(told.iter().any(|line| line.starts_with(expected)), "{expected}\n{told:#?}");
    }
    let row = "[all]\nstrategies = [\"circuit-breaker\"]\ncircuit-breaker = { consecutive = 3, window = \"1s\" }";
    assert!(refused(row)[0].ends_with("it is for a failure_ratio, which is not given"));
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    let told = refused(
        r#"
        [all]
        strategies = ["hedge", "retry", "concurrency-limiter"]
        max_extra_load = "5%"
        hedge = { max_extra_load = "10%" }
        retry = { base = "1m" }
        concurrency-limiter = { limit = 2, max_wait = "1s" }
        "#,
    );
    let expected = [
        r#"all.hedge.max_extra_load = "10%": the whole pipeline has one already; leave one of the two out"#,
        "all.retry.base = 60s: longer than the longest wait, max_delay = 30s; raise max_delay, or lower base",
        "all.concurrency-limiter.max_wait = 1s: nobody waits while max_queue is 0; say how many may",
    ];
    assert_eq!(told, expected);
}

#[test]
fn seeds_may_be_large() {
    let seeded = |seed: &str| {
        let chaos = format!(r#"{{ "latency": "1s", "seed": {seed} }}"#);
        format!(r#"{{ "all": {{ "strategies": ["chaos"], "chaos": {chaos} }} }}"#)
    };
    assert!(serde_json::from_str::<PipelinesConfig>(&seeded("18446744073709551615")).is_ok());
    for (seed, value) in [("-1", "-1"), ("18446744073709551616", "1.8446744073709552e19")] {
        let told = refused_json(&seeded(seed));
        assert!(
            told[0].starts_with(&format!("all.chaos.seed = {value}: write a whole number")),
            "{told:?}"
        );
    }
}

/// A pipeline of so many strategies, of the kinds in turn.
fn many(count: usize, kinds: &[&str]) -> String {
    let name = |index| format!("s{index}");
    let names: Vec<_> = (0..count).map(|index| format!("{:?}", name(index))).collect();
    let table = |(index, kind)| format!("{} = {kind}\n", name(index));
    let tables: String = kinds.iter().cycle().enumerate().take(count).map(table).collect();
    format!("[big]\nstrategies = [{}]\n{tables}", names.join(", "))
}

#[tokio::test(start_paused = true)]
async fn a_pipeline_has_64_strategies_at_most() {
    let kinds = [
        r#"{ kind = "timeout", limit = "60s" }"#,
        r#"{ kind = "retry", max_retries = 1 }"#,
        r#"{ kind = "hedge" }"#,
        r#"{ kind = "circuit-breaker" }"#,
        r#"{ kind = "concurrency-limiter", limit = 9 }"#,
    ];
    for kinds in kinds.chunks(1).chain([&kinds[..]]) {
        let most = read(&many(64, kinds)).get("big").unwrap().pipeline("big");
        assert_eq!(most.execute(|_| act(ok(5, "a"))).await, Ok("a"), "it fits on the stack");
    }
    let remedy = "a pipeline has at most 64 strategies; leave some out";
    assert_eq!(refused(&many(65, &kinds)), [format!("big.strategies = 65: {remedy}")]);
    let timeout = || ("a".into(), AnyStrategy::Timeout(Timeout::after(ms(1))));
    let built = |count| Pipeline::builder().build_dynamic((0..count).map(|_| timeout()).collect());
    assert_eq!(built(64).unwrap().strategies().len(), 64);
    assert_eq!(built(65).unwrap_err().to_string(), format!("strategies = 65: {remedy}"));
}

#[test]
fn a_file_of_mistakes_is_refused_in_few_words() {
    let join = |texts: Vec<String>| texts.join(",");
    let long = |index| format!("\"{}{index}\"", "\\u001b".repeat(1_000));
    let names = |count| join((0..count).map(long).collect());
    let unknown = |count| join((0..count).map(|index| format!("\"k{index}\":0")).collect());
    let pipelines = |inside: String| {
        let pipeline = |index| format!("\"p{index}\":{{{inside}}}");
        format!("{{{}}}", join((0..6_000).map(pipeline).collect()))
    };
    let strategies = |names: &str, more: &str| format!("\"strategies\":[{names}],{more}");
    let of_hedge = strategies("\"hedge\"", &format!("\"hedge\":{{{}}}", unknown(12)));
    let twice = strategies(&join(vec![names(32), names(32)]), "\"max_extra_load\":1");
    for (text, untold) in [
        (format!("{{\"p\":{{{}}}}}", strategies(&names(60), &unknown(50_000))), 51),
        (pipelines(unknown(12)), 5_980), // strategies are missing: that is one mistake
        (pipelines(strategies("", &unknown(12))), 65_980),
        (pipelines(of_hedge), 65_980),
        (format!("{{\"p\":{{{twice}}}}}"), 44),
    ] {
        let told = refused_json(&text);
        assert_eq!(told.last().unwrap(), &format!("and {untold} more mistakes"));
        assert_eq!(told.len(), 21);
        assert!(told.iter().all(|line| line.len() < 1_500), "{told:#?}");
        assert!(told.iter().all(|line| !line.contains('\u{1b}')), "{told:#?}");
    }
}

#[test]
fn what_is_given_twice_is_refused() {
    let told = refused_json(
        r#"{ "a": { "strategies": ["timeout", "slow", "retry"], "timeout": "1s", "timeout": "2s",
                    "slow": { "kind": "timeout", "kind": "retry", "limit": "1s" },
                    "retry": { "base": "1s", "base": "2s" } },
             "b": { "strategies": [] }, "b": { "strategies": [] } }"#,
    );
    assert_eq!(
        told,
        [
            r#"a.timeout = "2s": given twice; leave one out"#,
            r#"a.slow.kind = "retry": given twice; leave one out"#,
            r#"a.retry.base = "2s": given twice; leave one out"#,
            r#"b = {"strategies": []}: given twice; leave one out"#,
        ]
    );
}

/// Without the names nobody knows which tables are strategies: that is one mistake.
#[test]
fn without_a_list_of_strategies_their_tables_are_no_mistakes() {
    const NAMES: &str = r#"name them, the outermost first: ["timeout", "hedge"]"#;
    const TABLES: &str = "timeout = \"1s\"\nretry = {}\nslow = { kind = \"hedge\" }";
    let told = |keys: &str| refused(&format!("[p]\n{keys}\n{TABLES}"));
    assert_eq!(told(""), [format!("p.strategies: missing; {NAMES}")]);
    for given in ["\"retry\"", "5", "{}"] {
        let said = format!("p.strategies = {given}: {NAMES}");
        assert_eq!(told(&format!("strategies = {given}")), [said]);
    }
    let strategys = r#"p.strategys = ["retry"]: unknown key; did you mean strategies?"#;
    assert_eq!(told("strategys = [\"retry\"]"), [strategys], "they are not missing");
    let load = r#"p.max_extra_laod = "5%": unknown key; did you mean max_extra_load?"#;
    assert_eq!(told("strategys = [\"retry\"]\nmax_extra_laod = \"5%\""), [load, strategys]);
    assert_eq!(
        told("max_extra_laod = \"5%\""),
        [format!("p.strategies: missing; {NAMES}").as_str(), load]
    );
    let unread = told("max_extra_load = {}");
    assert!(unread.len() == 2 && unread[1].starts_with("p.max_extra_load = {}: "), "{unread:?}");
    // What is no name leaves the others in force.
    let told = refused("[p]\nstrategies = [\"retry\", 5]\nretry = { base = 1 }\nslow = {}");
    let starts: Vec<_> = told.iter().map(|line| line.split(": ").next().unwrap()).collect();
    assert_eq!(starts, ["p.strategies[1] = 5", "p.retry.base = 1", "p.slow = {}"], "{told:?}");
}

#[test]
fn a_first_wait_that_is_too_long_is_told_apart_from_a_longest_that_is_too_short() {
    let told = of_strategy("retry", r#"{ base = "40s" }"#);
    let long = "longer than the longest wait, max_delay = 30s; raise max_delay, or lower base";
    assert_eq!(told, format!("p.retry.base = 40s: {long}"));
    let told = of_strategy("retry", r#"{ max_delay = "1ms" }"#);
    let short = "less than the first wait, as base = 2s; raise it, or lower base";
    assert_eq!(told, format!("p.retry.max_delay = 1ms: {short}"));
}

#[test]
fn more_permits_than_a_period_has_nanoseconds_are_refused_with_both() {
    let told = of_strategy("rate-limiter", r#"{ permits = 5, period = "1ns" }"#);
    let remedy = "more than one a nanosecond, as period = 1ns, is no limit; make the period \
                  longer, or leave the limiter out";
    assert_eq!(told, format!("p.rate-limiter.permits = 5: {remedy}"));
}

#[test]
fn options_are_called_as_the_file_calls_them() {
    for (kind, settings) in [
        ("timeout", vec!["limit = \"0s\""]),
        ("retry", vec!["factor = 0.5", "jitter = 2", "max_delay = \"1ms\""]),
        (
            "rate-limiter",
            vec!["permits = 0", "period = \"0s\", permits = 1", "burst = 0, permits = 1"],
        ),
        ("concurrency-limiter", vec!["limit = 0", "max_wait = \"0s\", limit = 1"]),
        ("chaos", vec!["rate = 2, latency = \"1s\""]),
        (
            "circuit-breaker",
            vec![
                "failure_ratio = 0",
                "min_throughput = 0",
                "window = \"0s\"",
                "consecutive = 0",
                "probes = 0",
                "probe_lease = \"0s\"",
            ],
        ),
    ] {
        for settings in settings {
            let (key, _) = settings.split_once(' ').unwrap();
            let told = of_strategy(kind, &format!("{{ {settings} }}"));
            assert!(told.starts_with(&format!("p.{kind}.{key} = ")), "{told}");
        }
    }
}
