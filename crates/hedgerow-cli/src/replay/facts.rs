//! What a scenario came to, as `--json` writes it and `expect` names it.

use hedgerow::Moment;
use hedgerow::testing::Timeline;
use serde::{Serialize, Serializer};

/// An attempt and a moment.
pub(super) type Mark = (u8, Millis);

/// The result of one scenario. The order of the fields is the documented one.
#[derive(Debug, Serialize)]
pub(super) struct Facts<'a> {
    pub(super) starts: Vec<Mark>,
    pub(super) events: Vec<String>,
    pub(super) returned: Returned<'a>,
    pub(super) cancelled: Vec<Mark>,
    pub(super) suppressed: &'a [u8],
}

/// What the call returned.
#[derive(Debug, Serialize)]
pub(super) struct Returned<'a> {
    pub(super) outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) value: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u8>,
    /// `null` says that the call hangs.
    pub(super) at: Option<Millis>,
}

/// A moment in milliseconds: a whole number where it is one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Millis(pub(super) Moment);

impl Serialize for Millis {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let nanos = self.0.as_nanos();
        if nanos.is_multiple_of(1_000_000) {
            serializer.serialize_u64(nanos / 1_000_000)
        } else {
            serializer.serialize_f64(self.0.as_millis_f64())
        }
    }
}

impl<'a> From<&'a Timeline> for Facts<'a> {
    fn from(timeline: &'a Timeline) -> Self {
        let marks = |marks: &[(u8, Moment)]| {
            let mark = |(attempt, at): &(u8, Moment)| (*attempt, Millis(*at));
            marks.iter().map(mark).collect()
        };
        let returned = &timeline.returned;
        Self {
            starts: marks(&timeline.starts),
            events: timeline.events_text(),
            returned: Returned {
                outcome: returned.kind.name(),
                value: returned.value.as_deref(),
                attempt: returned.attempt,
                at: returned.at.map(Millis),
            },
            cancelled: marks(&timeline.cancelled),
            suppressed: &timeline.suppressed,
        }
    }
}
