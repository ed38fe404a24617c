//! The page that lists every rule with its test says nothing that is not so.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn page() -> String {
    fs::read_to_string(root().join("docs/rules.md")).unwrap()
}

/// The words that may stand in place of a test.
const INSTEAD: [&str; 3] = ["by type", "advice", "absent"];

/// Every Rust file of the crates, sources and tests.
fn sources() -> Vec<PathBuf> {
    let mut files = vec![];
    let mut places = vec![root().join("crates")];
    while let Some(place) = places.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("target") {
                places.push(path);
            } else if path.extension().is_some_and(|kind| kind == "rs") {
                files.push(path);
            }
        }
    }
    files
}

/// What a file is called in a test's name: `config/tests.rs` and `config/mod.rs` are `config`.
fn module(file: &Path) -> String {
    let name = |path: &Path| path.file_stem().unwrap().to_string_lossy().into_owned();
    match name(file).as_str() {
        "tests" | "mod" => name(file.parent().unwrap()),
        own => own.to_owned(),
    }
}

/// The functions of a source text that carry `#[test]`, `#[tokio::test]` and so on, or stand in
/// `proptest!`.
fn tests_in(source: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    let mut marked = false;
    for line in source.lines().map(str::trim) {
        let function = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
            marked = true;
        } else if let Some(function) = function
            && std::mem::take(&mut marked)
        {
            let name = function.split(|c: char| !(c.is_alphanumeric() || c == '_'));
            names.extend(name.take(1).map(str::to_owned));
        }
    }
    names
}

/// The tests of each module.
fn tests() -> BTreeMap<String, BTreeSet<String>> {
    let mut tests: BTreeMap<_, BTreeSet<_>> = BTreeMap::new();
    for file in sources() {
        let source = fs::read_to_string(&file).unwrap();
        tests.entry(module(&file)).or_default().extend(tests_in(&source));
    }
    tests
}

/// The tests that the page names.
fn named(page: &str) -> BTreeSet<(String, String)> {
    let code = page.split('`').skip(1).step_by(2);
    let is_test = |(module, test): &(&str, &str)| {
        let is_lower = |name: &str| name.starts_with(|c: char| c.is_ascii_lowercase());
        is_lower(module) && is_lower(test)
    };
    code.filter_map(|code| code.split_once("::"))
        .filter(is_test)
        .map(|(module, test)| (module.to_owned(), test.to_owned()))
        .collect()
}

/// The rows of the page: the rule's number, and what holds it.
fn rows(page: &str) -> Vec<(String, String)> {
    let row = |line: &str| {
        let cells: Vec<_> = line.strip_prefix("| ")?.strip_suffix(" |")?.split(" | ").collect();
        let [number, _, held] = cells[..] else { return None };
        let letters = number.trim_end_matches(|c: char| c.is_ascii_digit());
        let is_number =
            letters != number && ["K", "T", "M", "E", "G", "A", "H", "PR-"].contains(&letters);
        is_number.then(|| (number.to_owned(), held.to_owned()))
    };
    page.lines().filter_map(row).collect()
}

#[test]
fn every_rule_has_one_row() {
    let numbers = |letter: &str, last: u32| -> Vec<String> {
        (1..=last).map(|number| format!("{letter}{number}")).collect()
    };
    let cases = [
        1, 2, 5, 8, 10, 11, 17, 19, 22, 23, 25, 26, 28, 29, 31, 32, 34, 35, 38, 40, 41, 43, 50, 61,
        62, 64, 65, 67, 68, 70, 71, 73, 74, 76, 77, 79, 80, 92, 95,
    ];
    let expected: Vec<_> =
        [("K", 33), ("T", 54), ("M", 22), ("E", 14), ("G", 9), ("A", 34), ("H", 50)]
            .into_iter()
            .flat_map(|(letter, last)| numbers(letter, last))
            .chain(cases.map(|case| format!("PR-{case:02}")))
            .collect();
    let listed: Vec<_> = rows(&page()).into_iter().map(|(number, _)| number).collect();
    assert_eq!(listed, expected);
}

#[test]
fn every_row_says_what_holds_it() {
    for (number, held) in rows(&page()) {
        for part in held.split(", ") {
            let scenario = part.trim_start_matches("scenarios ").trim_start_matches("scenario ");
            let known = part.starts_with('`') && part.ends_with('`')
                || INSTEAD.contains(&part)
                || is_scenario(scenario);
            assert!(known, "{number}: {part:?}");
        }
    }
}

fn is_scenario(name: &str) -> bool {
    name.strip_prefix('S').is_some_and(|number| number.parse::<u32>().is_ok())
}

#[test]
fn every_test_that_the_page_names_exists() {
    let tests = tests();
    let named = named(&page());
    assert!(named.len() > 100, "the page names its tests: {}", named.len());
    for (module, test) in named {
        let exists = tests.get(&module).is_some_and(|tests| tests.contains(&test));
        assert!(exists, "there is no test {module}::{test}");
    }
}

#[test]
fn every_test_with_a_rules_number_is_on_the_page() {
    let page = named(&page());
    let numbered = |test: &str| {
        let number = |rest: &str| rest.chars().take_while(char::is_ascii_digit).count() == 2;
        let letter =
            |test: &str| test.starts_with(|c| "hktmeadg".contains(c)) && number(&test[1..]);
        letter(test) || test.strip_prefix("pr_").is_some_and(number)
    };
    let place = root().join("crates/hedgerow/tests/it");
    let mut checked = 0;
    for file in sources().iter().filter(|file| file.starts_with(&place)) {
        let module = module(file);
        for test in tests_in(&fs::read_to_string(file).unwrap()) {
            if numbered(&test) {
                checked += 1;
                assert!(page.contains(&(module.clone(), test.clone())), "{module}::{test}");
            }
        }
    }
    assert!(checked > 100, "the tests were found: {checked}");
}

#[test]
fn every_scenario_that_the_page_names_exists() {
    let file = root().join("crates/hedgerow-cli/tests/data/scenarios.jsonl");
    let known: BTreeSet<String> = fs::read_to_string(file)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap())
        .map(|scenario| scenario["id"].as_str().unwrap().to_owned())
        .collect();
    let page = page();
    let words = page.split(|c: char| !c.is_alphanumeric());
    let named: BTreeSet<&str> = words.filter(|word| is_scenario(word)).collect();
    assert!(named.len() > 40, "the page names scenarios: {named:?}");
    for scenario in named {
        assert!(known.contains(scenario), "there is no scenario {scenario}");
    }
}
