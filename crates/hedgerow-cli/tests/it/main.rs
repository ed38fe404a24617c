//! The program as people run it.

/// What `hedgerow check` says of configurations.
mod check;
/// What `hedgerow demo` refuses, and the shape of what it prints.
mod demo;
/// The pages of `hedgerow simulate --report` and `hedgerow tune --report`.
mod pages;
/// Help, the version, wrong arguments: what belongs to no command.
mod program;
/// Every kind of bad input to `hedgerow replay`.
mod refusals;
/// What `hedgerow replay` makes of good input.
mod replay;
/// Runs the program and keeps what it said.
mod run;
/// What `hedgerow simulate` makes of specs, good and bad.
mod simulate;
/// What `hedgerow tune` makes of logs, good and bad.
mod tune;
