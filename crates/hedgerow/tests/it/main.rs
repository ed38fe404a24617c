//! The behaviour of the async front, rule by rule. Time is virtual everywhere.

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
/// The rules written down a second time, as an oracle for the engine.
mod model;
/// Random policies and scripts: the fronts agree, and the invariants hold.
mod properties;
/// What the tests share.
mod support;
