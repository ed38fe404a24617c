//! Reading a table key by key, without stopping at the first mistake.

use hedgerow_core::InvalidOption;

use super::value::{Value, brief};
use super::{ConfigError, HedgeConfig, Mistakes};

/// How many unknown keys are told one by one; past that the file is not what it should be.
const TOLD: usize = 10;

/// From which likeness on (1 is equal) a name is worth a question.
const LIKE: f64 = 0.8;

/// The keys of a table while they are read.
///
/// What is taken is known: [`finish`](Fields::finish) refuses every other key with the nearest
/// known one, together with every mistake that was found on the way.
///
/// ```
/// use hedgerow::HedgeConfig;
/// use hedgerow::config::{Fields, Value};
///
/// let value: Value = serde_json::from_str(r#"{ "delay": "50", "hosts": ["a"], "prot": 80 }"#)?;
/// let mut fields = Fields::new(&value)?;
/// let hedge = HedgeConfig::take_from(&mut fields);
/// let port = fields.take("port", |value| value.count(65_535));
/// let hosts = fields.take("hosts", |value| value.list(|host| host.text().map(str::to_owned)));
///
/// let error = fields.finish((hedge, port, hosts)).unwrap_err();
/// assert!(error.to_string().starts_with(r#"delay = "50": a duration needs a unit"#));
/// assert!(error.to_string().ends_with("prot = 80: unknown key; did you mean port?"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
#[must_use = "mistakes are told by `finish`"]
pub struct Fields<'a> {
    entries: &'a [(String, Value)],
    known: Vec<&'static str>,
    /// Known too, but never worth a hint where no key is near.
    misplaced: Vec<&'static str>,
    mistakes: Mistakes,
}

impl<'a> Fields<'a> {
    /// The keys of this table.
    ///
    /// # Errors
    ///
    /// Refuses what is no table.
    pub fn new(value: &'a Value) -> Result<Self, ConfigError> {
        match value {
            Value::Table(entries) => {
                let mistakes = Mistakes::default();
                Ok(Self { entries, known: Vec::new(), misplaced: Vec::new(), mistakes })
            }
            _ => Err(value.refused("write keys and their values")),
        }
    }

    /// Reads a key that may be left out. A mistake is kept for [`finish`](Fields::finish).
    pub fn take<T>(
        &mut self,
        key: &'static str,
        read: impl FnOnce(&'a Value) -> Result<T, ConfigError>,
    ) -> Option<T> {
        self.known.push(key);
        let mut given = self.given(key);
        let value = given.next()?;
        if let Some(again) = given.next() {
            self.mistakes.add(again.refused("given twice; leave one out"), key);
        }
        match read(value) {
            Ok(value) => Some(value),
            Err(error) => {
                self.mistakes.add(error, key);
                None
            }
        }
    }

    /// Reads a key that must be there; `remedy` says what to write if it is not.
    pub fn require<T>(
        &mut self,
        key: &'static str,
        remedy: &str,
        read: impl FnOnce(&'a Value) -> Result<T, ConfigError>,
    ) -> Option<T> {
        if self.given(key).next().is_none() {
            let missing = InvalidOption::new("", "", format!("missing; {remedy}"));
            self.mistakes.add(missing.into(), key);
        }
        self.take(key, read)
    }

    /// Refuses keys that are right in another place; `remedy` says where.
    pub fn misplaced(&mut self, keys: &[&'static str], remedy: &str) {
        for key in keys {
            for value in self.given(key) {
                self.mistakes.add(value.refused(remedy), key);
            }
        }
        self.misplaced.extend(keys);
    }

    /// What the key is given, as often as it is.
    fn given<'k>(&self, key: &'k str) -> impl Iterator<Item = &'a Value> + use<'a, 'k> {
        let entries = self.entries.iter();
        entries.filter_map(move |(name, value)| (name == key).then_some(value))
    }

    /// The whole that was read, if nothing is wrong with any part of it.
    ///
    /// # Errors
    ///
    /// Every mistake that was found, and every key that was not asked for.
    pub fn finish<T>(mut self, whole: T) -> Result<T, ConfigError> {
        let keys = [self.known.as_slice(), &self.misplaced].concat();
        let is_unknown = |(name, _): &&(String, Value)| !keys.contains(&name.as_str());
        let mut unknown = self.entries.iter().filter(is_unknown);
        let told: Vec<_> = unknown.by_ref().take(TOLD).collect();
        let more = unknown.count();
        for (name, value) in told {
            let hint = match nearest(name, keys.iter().copied()) {
                Some(nearest) => format!("did you mean {nearest}?"),
                None => one_of(self.known.iter().copied()),
            };
            self.mistakes.add(value.refused(format!("unknown key; {hint}")), shown(name));
        }
        if more > 0 {
            let remedy = "unknown too; is this the right file?";
            let mistake = InvalidOption::new("", "", remedy);
            self.mistakes.add(mistake.into(), format_args!("{more} more keys"));
        }
        self.mistakes.unless_any(whole)
    }
}

impl HedgeConfig {
    /// Reads the keys of a policy from a table that may hold others.
    pub fn take_from(fields: &mut Fields<'_>) -> Self {
        super::options::read(fields)
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

/// A question for the nearest of these names, or all of them if none is near.
pub(crate) fn did_you_mean<'n>(word: &str, names: impl Iterator<Item = &'n str> + Clone) -> String {
    match nearest(word, names.clone()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => one_of(names),
    }
}

/// The name that is meant, as far as one can tell.
pub(super) fn nearest<'n>(word: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let rated = names.map(|name| (likeness(word, name), name));
    let (likeness, nearest) = rated.max_by(|a, b| a.0.total_cmp(&b.0))?;
    (likeness >= LIKE).then_some(nearest)
}

/// What could be written, all of it.
pub(super) fn one_of<'n>(names: impl Iterator<Item = &'n str>) -> String {
    let names: Vec<_> = names.collect();
    match names.as_slice() {
        [] => "leave it out".to_owned(),
        [only] => format!("use {only}"),
        [others @ .., last] => format!("use {} or {last}", others.join(", ")),
    }
}

/// How alike two names are, however their words are joined. A word that repeats what the whole
/// section is about (`hedge_delay`) tells nothing, so it does not count.
fn likeness(word: &str, name: &str) -> f64 {
    // Nobody mistypes a name into a page of text; comparing one would take seconds.
    if word.len() > 64 {
        return 0.0;
    }
    let (word, name) = (plain(word), plain(name));
    let bare =
        ["hedge_", "hedging_"].iter().find_map(|prefix| word.strip_prefix(prefix)).unwrap_or(&word);
    strsim::jaro_winkler(&word, &name).max(strsim::jaro_winkler(bare, &name))
}

fn plain(name: &str) -> String {
    name.to_lowercase().replace(['-', ' ', '.'], "_")
}
