//! What somebody may have meant, and what could be written.

use super::value::brief;

/// From which likeness on (1 is equal) a name is worth a question.
const LIKE: f64 = 0.8;

/// Nobody mistypes a name into a page of text; comparing one would take seconds.
const LONGEST: usize = 64;

/// How many names are listed.
const LISTED: usize = 12;

/// Words from elsewhere (the builders' methods, other libraries) for names that are unlike them:
/// asked about, never taken.
const MEANT: [(&str, &str); 14] = [
    ("after", "delay"),
    ("attempts", "max_hedges"),
    ("attempts", "max_retries"),
    ("breaker", "circuit-breaker"),
    ("bulkhead", "concurrency-limiter"),
    ("concurrency", "concurrency-limiter"),
    ("delay", "base"),
    ("delay", "latency"),
    ("limiter", "rate-limiter"),
    ("limiter", "concurrency-limiter"),
    ("quantity", "permits"),
    ("rate", "rate-limiter"),
    ("retries", "max_retries"),
    ("times", "max_retries"),
];

/// A question for what is meant by a word that is none of these names and none of the `others`, or
/// a list of the names.
pub(super) fn did_you_mean(word: &str, names: &[&str], others: &[&str]) -> String {
    question(word, names, others).unwrap_or_else(|| one_of(names))
}

/// The question alone, as far as one can tell what is meant.
pub(crate) fn question(word: &str, names: &[&str], others: &[&str]) -> Option<String> {
    let known = || names.iter().chain(others).copied();
    let word = Some(word).filter(|word| word.len() <= LONGEST).map(plain)?;
    let meant = MEANT.iter().filter(|(said, name)| word == *said && names.contains(name));
    let mut meant: Vec<_> = meant.map(|(_, name)| *name).collect();
    if meant.is_empty() {
        meant.extend(nearest(&word, known()));
    }
    (!meant.is_empty()).then(|| format!("did you mean {}?", listed(&meant, meant.len())))
}

/// The name that is meant, as far as one can tell.
fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let rated = names.map(|name| (likeness(word, name), name));
    let (likeness, nearest) = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= LIKE).then_some(nearest)
}

/// What could be written.
pub(crate) fn one_of(names: &[&str]) -> String {
    match names {
        [] => "leave it out".to_owned(),
        names => format!("use {}", listed(names, LISTED)),
    }
}

/// The first of these names, and how many more there are.
fn listed(names: &[&str], most: usize) -> String {
    let told = names.iter().take(most).map(|name| shown(name));
    let mut told: Vec<_> = told.collect();
    if let more @ 1.. = names.len() - told.len() {
        told.push(format!("{more} more"));
    }
    match told.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} or {last}", others.join(", ")),
        _ => told.concat(),
    }
}

/// A key as an error shows it: in quotes if it is no plain word.
pub(crate) fn shown(key: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "_-.".contains(c);
    if !key.is_empty() && key.chars().take(100).all(plain) {
        brief(&key)
    } else {
        brief(&format_args!("{key:?}"))
    }
}

/// How alike two names are, however their words are joined. A word that repeats what the whole
/// section is about (`hedge_delay`) tells nothing, so it does not count.
fn likeness(word: &str, name: &str) -> f64 {
    if name.len() > LONGEST {
        return 0.0;
    }
    let name = plain(name);
    let bare =
        ["hedge_", "hedging_"].iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(word);
    strsim::jaro_winkler(word, &name).max(strsim::jaro_winkler(bare, &name))
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', ' ', '.'], "_")
}
