//! The behaviour of the async front, rule by rule. Time is virtual everywhere.

/// Who may import whom.
mod layers;
/// The rules written down a second time, as an oracle for the engine.
mod model;
/// Random policies and scripts: the fronts agree, and the invariants hold.
mod properties;
/// What the tests share.
mod support;
