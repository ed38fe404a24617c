//! A result for a person: the drawing, and how it differs from what was expected.

use std::io::{self, Write};

use hedgerow::testing::Timeline;

use super::case::Case;
use super::expect::Difference;

/// How much of an id and a title is shown.
const HEADING: usize = 78;

/// Writes one result. `differences` is none if nothing was expected.
pub(super) fn write(
    out: &mut impl Write,
    name: &str,
    case: &Case,
    timeline: &Timeline,
    differences: Option<&[Difference]>,
) -> io::Result<()> {
    let title = case.title.as_ref().map(|title| format!(": {title}"));
    let heading = format!("{name}{}", title.unwrap_or_default());
    writeln!(out, "{}\n{timeline}", on_one_line(&heading))?;
    match differences {
        None => {}
        Some([]) => writeln!(out, "as expected")?,
        Some(differences) => {
            writeln!(out, "NOT AS EXPECTED")?;
            for Difference { field, expected, got } in differences {
                writeln!(out, "  {field}\n    expected {expected}\n    got      {got}")?;
            }
        }
    }
    writeln!(out)
}

/// The start of a text, without what would move the cursor.
fn on_one_line(text: &str) -> String {
    let plain = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    let mut line: String = text.chars().take(HEADING).map(plain).collect();
    if text.chars().nth(HEADING).is_some() {
        line.pop();
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_stay_on_their_line() {
        assert_eq!(on_one_line("S1: fast"), "S1: fast");
        assert_eq!(on_one_line("a\nb\u{1b}[2J\0"), "a\u{fffd}b\u{fffd}[2J\u{fffd}");
        assert_eq!(on_one_line(&"x".repeat(78)), "x".repeat(78));
        assert_eq!(on_one_line(&"x".repeat(79)), "x".repeat(77) + "…");
    }
}
