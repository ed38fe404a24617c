//! The behaviour of the async front, rule by rule. Time is virtual everywhere.

/// Random policies and scripts: the fronts agree, and the invariants hold.
mod properties;
/// What the tests share.
mod support;
