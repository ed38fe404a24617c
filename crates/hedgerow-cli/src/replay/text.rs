//! A result for a person: the drawing, and how it differs from what was expected.

use std::io::{self, Write};

use hedgerow::testing::Timeline;
use unicode_width::UnicodeWidthStr;

use super::case::Case;
use super::expect::Difference;
use crate::output::is_unseen;

/// How many columns of an id and a title are shown.
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
                let (expected, got) = (escaped(expected), escaped(got));
                writeln!(out, "  {field}\n    expected {expected}\n    got      {got}")?;
            }
        }
    }
    writeln!(out)
}

/// The start of a text, without what would move the cursor or turn the text around.
fn on_one_line(text: &str) -> String {
    let mut line = String::new();
    // Where the text is cut if it turns out to be too long. Marks have no width, and a text may be
    // nothing else.
    let mut cut = 0;
    for c in text.chars() {
        line.push(if is_unseen(c) { '\u{fffd}' } else { c });
        let width = line.width();
        if width > HEADING || line.len() > 8 * HEADING {
            line.truncate(cut);
            line.push('…');
            break;
        }
        if width < HEADING {
            cut = line.len();
        }
    }
    line
}

/// JSON in which nothing is unseen.
fn escaped(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for c in json.chars() {
        if is_unseen(c) {
            let mut units = [0; 2];
            let escapes = c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}"));
            text.extend(escapes);
        } else {
            text.push(c);
        }
    }
    text
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
        assert_eq!(on_one_line(&"x".repeat(1_000_000)), "x".repeat(77) + "…");
    }

    #[test]
    fn headings_are_measured_in_columns() {
        assert_eq!(on_one_line(&"表".repeat(39)), "表".repeat(39));
        assert_eq!(on_one_line(&"表".repeat(40)), "表".repeat(38) + "…");
        for text in ["e\u{301}".repeat(100), "\u{301}".repeat(100_000), "❤\u{fe0f}".repeat(50)] {
            assert!(on_one_line(&text).width() <= HEADING);
        }
    }

    #[test]
    fn nothing_turns_a_text_around() {
        for c in ['\u{202e}', '\u{2066}', '\u{200b}', '\u{feff}', '\u{2028}', '\u{85}', '\u{e0001}']
        {
            assert_eq!(on_one_line(&format!("a{c}b")), "a\u{fffd}b");
            let json = serde_json::to_string(&format!("a{c}b")).unwrap();
            let read: String = serde_json::from_str(&escaped(&json)).unwrap();
            assert!(!escaped(&json).contains(c) && read.contains(c), "{json}");
        }
        assert_eq!(on_one_line("é表"), "é表");
        assert_eq!(escaped("[\"é\"]"), "[\"é\"]");
    }
}
