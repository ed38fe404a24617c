//! The span that all attempts of a call run in (K19, K20).

#[cfg(not(feature = "tracing"))]
mod none;
#[cfg(feature = "tracing")]
mod traced;

#[cfg(not(feature = "tracing"))]
pub(crate) use none::CallSpan;
#[cfg(feature = "tracing")]
pub(crate) use traced::CallSpan;

/// Whether a call has a span of its own, `hedged`, that all its attempts run in. Without the
/// feature `tracing` there are no spans.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum SpanMode {
    /// If it is made inside a span, as that one's child.
    #[default]
    IfParent,
    /// Always.
    Always,
    /// Never: attempts run in whatever span the call is polled in.
    Never,
}
