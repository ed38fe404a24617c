//! What is allowed and probably not meant.

use std::time::Duration;

use hedgerow_core::text::format_duration;

use super::pipeline::StrategyInfo;

/// What of these strategies, the outermost first, is allowed and probably not meant.
pub(super) fn warnings(strategies: &[StrategyInfo]) -> Vec<String> {
    let mut warnings = Vec::new();
    for (index, inner) in strategies.iter().enumerate() {
        for outer in &strategies[..index] {
            if let Some(limit) = outer.facts.limit {
                warnings.extend(never_hedges(outer, limit, inner));
                warnings.extend(never_retries(outer, limit, inner));
                warnings.extend(waits_for_losers(outer, inner));
            }
            warnings.extend(hides_failures(outer, inner));
        }
    }
    warnings
}

fn never_hedges(outer: &StrategyInfo, limit: Duration, inner: &StrategyInfo) -> Option<String> {
    let after = inner.facts.hedge_after.filter(|after| limit <= *after)?;
    let (limit, after) = (format_duration(limit), format_duration(after));
    Some(format!(
        "{} never starts a hedge by its delay of {after}: {} gives up after {limit}, and is around \
         it",
        inner.name, outer.name
    ))
}

fn never_retries(outer: &StrategyInfo, limit: Duration, inner: &StrategyInfo) -> Option<String> {
    let after = inner.facts.retry_after.filter(|after| limit <= *after)?;
    let (limit, after) = (format_duration(limit), format_duration(after));
    Some(format!(
        "{} never starts another try, as it waits {after} first: {} gives up after {limit}, and is \
         around it; give the retry a shorter base",
        inner.name, outer.name
    ))
}

fn waits_for_losers(outer: &StrategyInfo, inner: &StrategyInfo) -> Option<String> {
    inner.facts.joins.then(|| {
        format!(
            "{} waits for its losers, however long they take: {}, which is around it, may give up \
             on an answer that is there; give the wait a grace, or drop losers",
            inner.name, outer.name
        )
    })
}

fn hides_failures(outer: &StrategyInfo, inner: &StrategyInfo) -> Option<String> {
    (outer.facts.attempts != Some(1) && inner.facts.replaces).then(|| {
        format!(
            "{} replaces what {}, which is around it, is to make up for by another attempt; put it \
             around",
            inner.name, outer.name
        )
    })
}
