//! The behaviour of the async front, rule by rule. Time is virtual everywhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// How often attempts are polled.
mod discipline;
/// What tests of threads wait at.
mod doors;
/// Engine rules that no scenario shows alone.
mod e_rules;
/// Gates: each is counted once a call, and told.
mod g_counted;
/// Everything is decided and nothing is sent.
mod g_dry_run;
/// A target asks for quiet: what that means for its own call.
mod g_pushback;
/// What it means for later calls.
mod g_quiet;
/// Attempts that block the thread.
mod h_blocking;
/// Losers that run on in the background.
mod h_detaching;
/// Outcomes that nobody will see.
mod h_discarding;
/// Dropped and cancelled calls, and the tokens of attempts.
mod h_dropping;
/// What an observer is told.
mod h_events;
/// What a hedge does instead of the same work.
mod h_generator;
/// Asynchronous hooks.
mod h_hooks;
/// Losers that are told to stop and waited for.
mod h_joining;
/// The numbers of attempts, and how many there are.
mod h_numbers;
/// What happens in which order when a hedge starts.
mod h_order;
/// Panics in attempts, predicates, hooks and delay functions.
mod h_panics;
/// Properties: copied to each attempt, merged from the winner.
mod h_properties;
/// The first item of a stream decides.
mod h_streams;
/// Impossible numbers are refused.
mod h_validation;
/// Calls of a key: learned apart, under the policy they share.
mod keys;
/// Who may import whom.
mod layers;
/// Accounts of what happens on many threads.
mod ledger;
/// The rules written down a second time, as an oracle for the engine.
mod model;
/// The future of a call: where it can go, what it borrows.
mod moving;
/// The circuit breaker.
mod p_breaker;
/// The cache.
mod p_cache;
/// What a cache drops.
mod p_cache_drops;
/// Trouble made on purpose.
mod p_chaos;
/// Every two and every three strategies, one inside the other.
mod p_compositions;
/// Random strategies of each kind.
mod p_compositions_draw;
/// What attempts and callers do, at random.
mod p_compositions_plan;
/// Pipelines that are put together while the test runs.
mod p_compositions_stack;
/// Executions whose attempts keep account of themselves.
mod p_compositions_world;
/// The concurrency limiter.
mod p_concurrency;
/// The concurrency limiter, under load and with panics.
mod p_concurrency_cases;
/// What the observer of a pipeline is told.
mod p_events;
/// The end of time.
mod p_extremes;
/// The fallback.
mod p_fallback;
/// Where executions can go.
mod p_moving;
/// Panics that meet.
mod p_panics;
/// The pipeline itself: order, numbers, contexts, outcomes.
mod p_pipeline;
/// What strategies have of their places.
mod p_places;
/// Races as strategies around them and actions inside see them.
mod p_races;
/// The rate limiter.
mod p_rate;
/// Waiting for the rate limiter.
mod p_rate_waits;
/// The retry.
mod p_retry;
/// A pipeline of a hedge does what the hedge does.
mod p_same;
/// The limiters, in every order in which things can happen to three callers.
mod p_schedules;
/// Pipelines as they are put together.
mod p_shapes;
/// One pipeline in several places.
mod p_shared;
/// Streams through a pipeline.
mod p_streams;
/// Several targets.
mod p_targets;
/// Pipelines of work that blocks.
mod p_threads;
/// What strategies tell.
mod p_told;
/// Scripted calls that keep account of everything they make.
mod points_world;
/// Budgets and durations as people write them.
mod pr_budget;
/// Losers and dropped calls stop everything.
mod pr_cancel;
/// Random calls on many threads: every attempt ends once.
mod pr_ends;
/// One error names every failed attempt.
mod pr_errors;
/// Zero, one nanosecond and the longest duration there is.
mod pr_extremes;
/// Everything fails, in every order.
mod pr_orders;
/// Panics at every place of an attempt.
mod pr_panics;
/// Calls dropped at every await point.
mod pr_points;
/// Two attempts that end together, or while another is set up.
mod pr_races;
/// Any window of a budget, and who shares it.
mod pr_shared_budget;
/// When attempts start and who answers.
mod pr_start;
/// `Hedge::abandoning`.
mod presets_abandoning;
/// `Hedge::strategy`.
mod presets_strategy;
/// `Hedge::structured`.
mod presets_structured;
/// Random policies and scripts: the fronts agree, and the invariants hold.
mod properties;
/// Named pipelines from one configuration.
mod registry;
/// What somebody may have meant in a file.
mod registry_hints;
/// What is wrong with them.
mod registry_mistakes;
/// What once broke.
mod regressions;
/// Policies that are changed while they are used.
mod reload;
/// The ring timer inside tokio.
mod ring_timer;
/// The page of rules names tests that exist.
mod rules_page;
/// What happens when something is said twice.
mod setters;
/// Where a call is polled so many times and then dropped.
mod stage;
/// Scripted streams.
mod streams;
/// What a call of streams shares with every call.
mod streams_calls;
/// Items that say nothing, and how many are kept.
mod streams_commit;
/// Streams dropped at every await point; random scripts.
mod streams_points;
/// Scripted streams that keep account of everything they make.
mod streams_world;
/// What the tests share.
mod support;
/// Metrics and traces.
mod telemetry;
/// `Hedge::abandoning`, on threads.
mod threads_abandoning;
/// What a blocking call can say.
mod threads_calls;
/// Losers that are threads.
mod threads_losers;
/// Where the attempts of blocking calls run.
mod threads_places;
/// Random calls on threads leave nothing behind.
mod threads_random;
