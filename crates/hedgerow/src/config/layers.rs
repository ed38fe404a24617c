//! Settings from more than one place, and which of them are in effect.

use hedgerow_core::{ExtraLoad, InvalidOption, Policy};

use super::learning::DelayConfig;
use super::{ConfigError, HedgeConfig, Value, learning};

/// One setting of a policy, as it is in effect.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Setting {
    /// Its key.
    pub key: &'static str,
    /// Its value; [`Value::Null`] for a bound that there is not.
    pub value: Value,
    /// Whether the configuration gives it. If not, the value is the default.
    pub given: bool,
}

impl HedgeConfig {
    /// What this configuration gives, and `fallback` for the keys that it leaves out: the
    /// environment before a file, say.
    #[must_use]
    pub fn or(self, fallback: Self) -> Self {
        Self {
            delay: self.delay.or(fallback.delay),
            max_hedges: self.max_hedges.or(fallback.max_hedges),
            failure_start: self.failure_start.or(fallback.failure_start),
            exhausted: self.exhausted.or(fallback.exhausted),
            losers: self.losers.or(fallback.losers),
            rejected_hedge: self.rejected_hedge.or(fallback.rejected_hedge),
            hedge_rejections: self.hedge_rejections.or(fallback.hedge_rejections),
            panics: self.panics.or(fallback.panics),
            max_extra_load: self.max_extra_load.or(fallback.max_extra_load),
            dry_run: self.dry_run.or(fallback.dry_run),
            span: self.span.or(fallback.span),
        }
    }

    /// Reads a policy from variables such as those of the environment: `prefix` and the name of a
    /// key in capitals. `HEDGE_MAX_HEDGES=2` with the prefix `HEDGE_` is `max_hedges = 2`. Only
    /// what has one value can be given so: no lists and no tables.
    ///
    /// # Errors
    ///
    /// Every mistake, under the name of its variable: a variable with the prefix whose name is no
    /// key is one (PR-91).
    ///
    /// ```
    /// use hedgerow::HedgeConfig;
    ///
    /// let vars = |name: &str, value: &str| vec![(name.to_owned(), value.to_owned())];
    /// assert!(HedgeConfig::from_vars("HEDGE_", vars("HEDGE_DELAY", "50ms")).is_ok());
    /// assert!(HedgeConfig::from_vars("HEDGE_", vars("PATH", "/bin")).is_ok(), "not one of ours");
    ///
    /// let error = HedgeConfig::from_vars("HEDGE_", vars("HEDGE_DEALY", "50ms")).unwrap_err();
    /// let said = r#"HEDGE_DEALY = "50ms": unknown key; did you mean delay?"#;
    /// assert_eq!(error.to_string(), said);
    /// ```
    pub fn from_vars(
        prefix: &str,
        vars: impl IntoIterator<Item = (String, String)>,
    ) -> Result<Self, ConfigError> {
        let ours = vars.into_iter().filter_map(|(name, value)| {
            let key = name.strip_prefix(prefix)?.to_lowercase();
            Some((key, scalar(value)))
        });
        let mut ours: Vec<_> = ours.collect();
        ours.sort_by(|one, other| one.0.cmp(&other.0));
        let named = |mistake: &InvalidOption| {
            let name = format!("{prefix}{}", mistake.option().to_uppercase());
            InvalidOption::new(name, mistake.value(), mistake.remedy())
        };
        Self::try_from(&Value::Table(ours)).map_err(|error| ConfigError {
            mistakes: error.mistakes.iter().map(named).collect(),
            untold: error.untold,
        })
    }

    /// Every setting of the policy, in the order of [`KEYS`](HedgeConfig::KEYS), with defaults
    /// filled in.
    pub fn settings(&self) -> Vec<Setting> {
        let (Value::Table(given), Value::Table(all)) = (self.to_value(), self.filled().to_value())
        else {
            return Vec::new();
        };
        let value = |key: &str| {
            let found = all.iter().find(|(name, _)| name == key);
            found.map_or(Value::Null, |(_, value)| value.clone())
        };
        let setting = |key| Setting {
            key,
            value: match (key, &self.delay) {
                ("delay", Some(DelayConfig::Learned(learned))) => learning::table(learned, true),
                _ => value(key),
            },
            given: given.iter().any(|(name, _)| name == key),
        };
        Self::KEYS.map(setting).into()
    }

    /// The same with every default said.
    fn filled(&self) -> Self {
        let hedge = self.hedge();
        let policy: Policy = hedge.policy().clone();
        let learned = policy.learner.as_ref().map(|learner| learner.learning());
        let defaults = Self {
            delay: Some(DelayConfig::Scheduled(policy.schedule)),
            max_hedges: Some(policy.max_hedges),
            failure_start: Some(policy.failure_start),
            exhausted: Some(policy.exhausted),
            losers: Some(policy.losers),
            rejected_hedge: Some(policy.rejected_hedge),
            hedge_rejections: Some(policy.hedge_rejections),
            panics: Some(policy.panics),
            dry_run: Some(policy.dry_run),
            span: Some(hedge.span_mode()),
            max_extra_load: learned.and_then(|learned| ExtraLoad::at_most_one(learned.load).ok()),
        };
        self.clone().or(defaults)
    }
}

/// A variable's text as the value that it looks like.
fn scalar(text: String) -> Value {
    match text.as_str() {
        "true" => return Value::Bool(true),
        "false" => return Value::Bool(false),
        _ => {}
    }
    if let Ok(number) = text.parse() {
        return Value::Integer(number);
    }
    match text.parse::<f64>() {
        Ok(number) if number.is_finite() => Value::Float(number),
        _ => Value::Text(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vars(vars: &[(&str, &str)]) -> Result<HedgeConfig, ConfigError> {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        HedgeConfig::from_vars("HEDGE_", vars.iter().map(owned))
    }

    fn read(json: &str) -> HedgeConfig {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn pr_91_and_92_variables_mean_what_a_file_means() {
        let from_vars = vars(&[
            ("HEDGE_DELAY", "1.5s"),
            ("HEDGE_MAX_HEDGES", "3"),
            ("HEDGE_HEDGE_REJECTIONS", "true"),
            ("HEDGE_MAX_EXTRA_LOAD", "5%"),
            ("HOME", "/root"),
        ]);
        let from_file = read(
            r#"{"delay":"1.5s","max_hedges":3,"hedge_rejections":true,"max_extra_load":"5%"}"#,
        );
        assert_eq!(from_vars.unwrap(), from_file);
        assert_eq!(vars(&[("HEDGE_MAX_EXTRA_LOAD", "0.05")]).unwrap().max_extra_load, {
            from_file.max_extra_load
        });
    }

    #[test]
    fn pr_91_and_92_wrong_variables_are_refused_by_their_own_name() {
        let error = vars(&[
            ("HEDGE_DELAY", "100"),
            ("HEDGE_MAX_HEDGES", "eleven"),
            ("HEDGE_SPEED", "1"),
            ("HEDGE_", "1"),
        ]);
        let said = error.unwrap_err().to_string();
        for start in [
            "HEDGE_DELAY = 100: a duration needs a unit",
            r#"HEDGE_MAX_HEDGES = "eleven": write a whole number"#,
            "HEDGE_SPEED = 1: unknown key; use ",
        ] {
            assert!(said.lines().any(|line| line.starts_with(start)), "{start}\n{said}");
        }
        assert_eq!(said.lines().count(), 4, "{said}");
    }

    #[test]
    fn what_is_given_first_stands() {
        let (env, file) = (read(r#"{"max_hedges":2}"#), read(r#"{"max_hedges":1,"delay":"9ms"}"#));
        assert_eq!(env.or(file), read(r#"{"max_hedges":2,"delay":"9ms"}"#));
    }

    #[test]
    fn settings_in_effect_are_read_back_as_the_same_policy() {
        for json in [
            "{}",
            r#"{"delay":"adaptive"}"#,
            r#"{"delay":{"percentile":95,"initial":"100ms"},"max_extra_load":"10%"}"#,
            r#"{"delay":["1ms","on-failure"],"losers":{"join":"50ms"}}"#,
        ] {
            let config = read(json);
            let settings = config.settings();
            assert_eq!(settings.len(), HedgeConfig::KEYS.len());
            let entries = settings.iter().filter(|setting| setting.value != Value::Null);
            let entries = entries.map(|setting| (setting.key.to_owned(), setting.value.clone()));
            let again = HedgeConfig::try_from(&Value::Table(entries.collect())).unwrap();
            let text = |config: &HedgeConfig| format!("{:?}", config.hedge().policy());
            assert_eq!(text(&again), text(&config), "{json}");
        }
    }

    #[test]
    fn settings_say_what_was_given() {
        let given = |json| {
            let settings = read(json).settings().into_iter();
            settings.filter(|setting| setting.given).map(|setting| setting.key).collect::<Vec<_>>()
        };
        assert!(given("{}").is_empty());
        assert_eq!(given(r#"{"panics":"propagate","delay":"2s"}"#), ["delay", "panics"]);
    }
}
