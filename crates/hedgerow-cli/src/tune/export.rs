//! `--export`: the advice as a configuration to be pasted.
//!
//! What a system cannot express is said in a comment, or beside the output where its format has no
//! comments.

use std::time::Duration;

use hedgerow::text::format_duration;
use hedgerow_sim::tune::{Advice, Plan, rounded};

use super::args::Export;

/// A configuration, and what has no place in it.
#[derive(Debug, PartialEq)]
pub(super) struct Snippet {
    pub(super) text: String,
    pub(super) notes: Vec<String>,
}

/// The advice for one system.
pub(super) fn snippet(export: Export, advice: &Advice, max_extra_load: f64) -> Snippet {
    let plan = match &advice.verdict {
        Ok(plan) => Paste::new(plan, max_extra_load),
        Err(reason) => return nothing(export, &format!("do not hedge: {reason}")),
    };
    match export {
        Export::Hedgerow => plain("# ", &plan.budgeted("max_extra_load"), &plan.hedgerow()),
        Export::Envoy => plain("# ", &plan.budgeted("the retry budget, roughly,"), &plan.envoy()),
        Export::Grpc => Snippet { text: plan.grpc(), notes: plan.grpc_notes() },
        Export::Finagle => plain("// ", &plan.finagle_notes(), &plan.finagle()),
        Export::Cassandra => plain("-- ", &plan.cassandra_notes(), &plan.cassandra()),
    }
}

fn plain(comment: &str, notes: &[String], text: &str) -> Snippet {
    let mut lines: Vec<String> = notes.iter().map(|note| format!("{comment}{note}\n")).collect();
    lines.push(text.to_owned());
    Snippet { text: lines.concat(), notes: Vec::new() }
}

/// What turns hedging off.
fn nothing(export: Export, why: &str) -> Snippet {
    let why = [why.to_owned()];
    match export {
        Export::Hedgerow => plain("# ", &why, "[hedge]\nmax_hedges = 0\n"),
        Export::Envoy => plain("# ", &why, ""),
        Export::Grpc => Snippet { text: "{}\n".to_owned(), notes: why.to_vec() },
        Export::Finagle => plain("// ", &why, ".nonIdempotent\n"),
        Export::Cassandra => {
            plain("-- ", &why, "ALTER TABLE keyspace.table WITH speculative_retry = 'NONE';\n")
        }
    }
}

/// A plan as configurations spell it.
struct Paste {
    delay: Duration,
    probability: f64,
    extra_load: f64,
    max_extra_load: f64,
}

impl Paste {
    fn new(plan: &Plan, max_extra_load: f64) -> Self {
        let Plan { probability, extra_load, .. } = *plan;
        Self { delay: rounded(plan.delay), probability, extra_load, max_extra_load }
    }

    /// That not every call which is late is to be hedged, and what sees to it instead.
    fn budgeted(&self, instead: &str) -> Vec<String> {
        if self.probability > 0.9995 {
            return Vec::new();
        }
        vec![format!(
            "the probability of {:.3} cannot be written; {instead} refuses the hedges beyond it",
            self.probability
        )]
    }

    fn unbudgeted(&self) -> Vec<String> {
        if self.probability > 0.9995 {
            return Vec::new();
        }
        vec![format!(
            "the probability of {:.3} cannot be written: expect {:.1} % more calls, not {:.1} %",
            self.probability,
            self.extra_load / self.probability * 100.0,
            self.extra_load * 100.0
        )]
    }

    fn hedgerow(&self) -> String {
        let (delay, load) = (format_duration(self.delay), percent(self.max_extra_load));
        format!("[hedge]\ndelay = \"{delay}\"\nmax_hedges = 1\nmax_extra_load = \"{load}%\"\n")
    }

    fn envoy(&self) -> String {
        format!(
            "\
# the route
route:
  retry_policy:
    retry_on: reset,connect-failure  # hedging takes at least one condition
    num_retries: 1
    per_try_timeout: {}
  hedge_policy:
    hedge_on_per_try_timeout: true
---
# the cluster
circuit_breakers:
  thresholds:
  - retry_budget:
      budget_percent:
        value: {}  # of the calls in flight, not of all calls
      min_retry_concurrency: 1
",
            seconds(self.delay),
            percent(self.max_extra_load)
        )
    }

    fn grpc(&self) -> String {
        format!(
            r#"{{
  "methodConfig": [
    {{
      "name": [{{}}],
      "hedgingPolicy": {{
        "maxAttempts": 2,
        "hedgingDelay": "{}",
        "nonFatalStatusCodes": ["UNAVAILABLE"]
      }}
    }}
  ],
  "retryThrottling": {{ "maxTokens": 10, "tokenRatio": 0.1 }}
}}
"#,
            seconds(self.delay)
        )
    }

    fn grpc_notes(&self) -> Vec<String> {
        let mut notes = self.unbudgeted();
        notes.push("the throttling counts failures: it does not bound the extra load".to_owned());
        notes.push("name only methods that may run twice; [{}] is all of them".to_owned());
        notes
    }

    fn finagle(&self) -> String {
        format!(".idempotent(maxExtraLoad = {})\n", fraction(self.max_extra_load))
    }

    fn finagle_notes(&self) -> Vec<String> {
        let delay = format_duration(self.delay);
        vec![
            format!("a delay of {delay} cannot be written: the client learns its own,"),
            "the latency that this share of calls exceeds".to_owned(),
        ]
    }

    fn cassandra(&self) -> String {
        let delay = self.delay.as_nanos().div_ceil(1_000_000).max(1);
        format!("ALTER TABLE keyspace.table WITH speculative_retry = '{delay}ms';\n")
    }

    fn cassandra_notes(&self) -> Vec<String> {
        let mut notes = self.unbudgeted();
        notes.push(format!("whole milliseconds: {} rounded up", format_duration(self.delay)));
        notes
    }
}

/// A duration as protocol buffers write it in JSON.
fn seconds(delay: Duration) -> String {
    format!("{}.{:09}s", delay.as_secs(), delay.subsec_nanos())
}

fn percent(share: f64) -> f64 {
    (share * 1e8).round() / 1e6
}

fn fraction(share: f64) -> f64 {
    (share * 1e9).round() / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_have_their_unit() {
        assert_eq!(seconds(Duration::from_micros(12_430)), "0.012430000s");
        let paste = |nanos: f64, probability: f64| {
            Paste::new(&Plan { delay: nanos, probability, extra_load: 0.05 }, 0.05)
        };
        assert!(paste(12_431_712.0, 0.9).hedgerow().contains("delay = \"12.43ms\""));
        assert!(paste(12_431_712.0, 0.9).cassandra().contains("'13ms'"));
        assert!(paste(200_000.0, 0.9).cassandra().contains("'1ms'"));
        assert!(paste(12e6, 0.9).hedgerow().contains("max_extra_load = \"5%\""));
        assert_eq!(paste(12e6, 1.0).unbudgeted(), [""; 0]);
        assert!(paste(12e6, 0.5).unbudgeted()[0].contains("10.0 % more calls"));
    }
}
