//! The behaviour of the async front, rule by rule. Time is virtual everywhere.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

/// How often attempts are polled.
mod discipline;
/// Engine rules that no scenario shows alone.
mod e_rules;
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
/// Impossible numbers are refused.
mod h_validation;
/// Who may import whom.
mod layers;
/// Accounts of what happens on many threads.
mod ledger;
/// The rules written down a second time, as an oracle for the engine.
mod model;
/// The future of a call: where it can go, what it borrows.
mod moving;
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
/// What once broke.
mod regressions;
/// The page of rules names tests that exist.
mod rules_page;
/// What happens when something is said twice.
mod setters;
/// What the tests share.
mod support;
