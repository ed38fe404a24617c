//! Reading a table key by key, without stopping at the first mistake.

use std::collections::BTreeMap;
use std::fmt;

use hedgerow_core::InvalidOption;

use super::hints::{did_you_mean, shown};
use super::value::Value;
use super::{ConfigError, HedgeConfig, Mistakes};

/// How many unknown keys are told one by one; past that the file is not what it should be.
const TOLD: usize = 10;

/// What to do about a key that is given more than once.
pub(crate) const TWICE: &str = "given twice; leave one out";

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
    /// What each key is given, as often as it is.
    given: BTreeMap<&'a str, Vec<&'a Value>>,
    known: Vec<&'a str>,
    /// Known too, but never worth a hint where no key is near.
    misplaced: Vec<&'a str>,
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
                let mut given = BTreeMap::<_, Vec<_>>::new();
                for (key, value) in entries {
                    given.entry(key.as_str()).or_default().push(value);
                }
                let (known, misplaced, mistakes) = Default::default();
                Ok(Self { entries, given, known, misplaced, mistakes })
            }
            _ => Err(value.refused("write keys and their values")),
        }
    }

    /// Reads a key that may be left out. A mistake is kept for [`finish`](Fields::finish).
    pub fn take<T>(
        &mut self,
        key: &'a str,
        read: impl FnOnce(&'a Value) -> Result<T, ConfigError>,
    ) -> Option<T> {
        self.take_or(key, None, read)
    }

    /// Reads a key, or the default in its place if there is one.
    pub(crate) fn take_or<T>(
        &mut self,
        key: &'a str,
        default: Option<&'a Value>,
        read: impl FnOnce(&'a Value) -> Result<T, ConfigError>,
    ) -> Option<T> {
        self.known.push(key);
        let given = self.given(key);
        let (value, again) = (given.first().copied().or(default)?, given.get(1).copied());
        if let Some(again) = again {
            self.refuse(again.refused(TWICE), shown(key));
        }
        read(value).map_err(|error| self.refuse(error, shown(key))).ok()
    }

    /// Reads a key that must be there; `remedy` says what to write if it is not.
    pub fn require<T>(
        &mut self,
        key: &'a str,
        remedy: &str,
        read: impl FnOnce(&'a Value) -> Result<T, ConfigError>,
    ) -> Option<T> {
        if self.given(key).is_empty() {
            let missing = InvalidOption::new("", "", format!("missing; {remedy}"));
            self.refuse(missing.into(), shown(key));
        }
        self.take(key, read)
    }

    /// Refuses keys that are right in another place; `remedy` says where.
    pub fn misplaced(&mut self, keys: &[&'static str], remedy: &str) {
        for key in keys {
            for value in self.given.get(key).into_iter().flatten() {
                self.mistakes.add(value.refused(remedy), key);
            }
        }
        self.misplaced.extend(keys);
    }

    /// Keeps a mistake for [`finish`](Fields::finish).
    pub(crate) fn refuse(&mut self, error: ConfigError, place: impl fmt::Display) {
        self.mistakes.add(error, place);
    }

    fn given(&self, key: &str) -> &[&'a Value] {
        self.given.get(key).map_or(&[], Vec::as_slice)
    }

    /// The whole that was read, if nothing is wrong with any part of it.
    ///
    /// # Errors
    ///
    /// Every mistake that was found, and every key that was not asked for.
    pub fn finish<T>(mut self, whole: T) -> Result<T, ConfigError> {
        for key in self.known.iter().chain(&self.misplaced) {
            self.given.remove(key);
        }
        let is_unknown = |(name, _): &&(String, Value)| self.given.contains_key(name.as_str());
        let mut unknown = self.entries.iter().filter(is_unknown);
        let told: Vec<_> = unknown.by_ref().take(TOLD).collect();
        let more = unknown.count();
        for (name, value) in told {
            let hint = did_you_mean(name, &self.known, &self.misplaced);
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

#[cfg_attr(not(feature = "pipeline"), expect(dead_code, reason = "for pipelines"))]
impl<'a> Fields<'a> {
    /// The keys that are there.
    pub(crate) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.given.keys().copied()
    }

    /// Whether this key is there.
    pub(crate) fn has(&self, key: &str) -> bool {
        self.given.contains_key(key)
    }

    /// Whether a key with such a value is there.
    pub(crate) fn any(&self, is_it: impl Fn(&str, &Value) -> bool) -> bool {
        self.entries.iter().any(|(key, value)| is_it(key, value))
    }

    /// Passes over all keys but these: enough was said.
    pub(crate) fn only(&mut self, told: impl Fn(&str, &Value) -> bool) {
        self.given.retain(|key, values| values.iter().any(|value| told(key, value)));
    }

    /// Passes over a key: enough was said of it.
    pub(crate) fn ignore(&mut self, key: &'a str) {
        self.known.push(key);
    }
}

impl HedgeConfig {
    /// Reads the keys of a policy from a table that may hold others.
    pub fn take_from(fields: &mut Fields<'_>) -> Self {
        super::options::read(fields)
    }
}
