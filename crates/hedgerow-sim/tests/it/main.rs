//! The reference values, on runs small enough for every day, and what holds for every run.

#![expect(clippy::unwrap_used, reason = "a panic is how a test says that it failed")]

/// What is learned while hedges cut calls short.
mod estimators;
/// The learned policy under load, under change, and on little traffic.
mod learned;
/// Models and policies that several tests use.
mod support;
/// W1: a lognormal body with ten-fold stalls, without and with one hedge.
mod w1;
/// W2: the slowest of a hundred.
mod w2;
/// W3: queues, where hedging everything stops paying at a third of the capacity.
mod w3;
/// W4: a sick replica, and triggers that run away with it.
mod w4;
/// W5: everything slow at once, under a budget.
mod w5;
/// W6: what is slow because it is large cannot be hedged away.
mod w6;
/// Determinism, nothing lost, parts and wholes.
mod whole;
