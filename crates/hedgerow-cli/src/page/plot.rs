//! Line plots, as SVG.

use std::fmt::{self, Write as _};

use super::axis::Axis;
use super::escape;

/// The size of the drawing: as wide as a phone, so that its text is as large there as it is meant.
const SIZE: (f64, f64) = (380.0, 280.0);
/// Room for what stands at the axes: left, right, top, bottom.
const MARGINS: (f64, f64, f64, f64) = (70.0, 20.0, 10.0, 42.0);
/// How much of the last is the label's.
const LABEL: f64 = 16.0;
/// How many values fit along each axis.
const MOST_TICKS: (usize, usize) = (6, 8);
/// How many names do, and how many characters of a name fit without turning it.
const MOST_NAMES: usize = 12;
const MOST_ACROSS: usize = 36;
/// What a character of a name takes when it is turned: to the side and down.
const TURNED: f64 = 4.4;
/// Points that are closer than this to the one before are not seen.
const NEAR: f64 = 0.7;

/// How a line looks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Stroke {
    /// What others are compared with.
    Base,
    /// The others, from 0: neighbours differ in colour and in dash.
    Number(usize),
}

impl fmt::Display for Stroke {
    /// The classes of the style.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const COLOURS: usize = 7;
        const DASHES: usize = 6;
        match self {
            Self::Base => f.write_str("base"),
            Self::Number(number) => write!(f, "c{} d{}", number % COLOURS, number % DASHES),
        }
    }
}

/// One line.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) stroke: Stroke,
    /// In the order in which they are joined.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A plot.
#[derive(Debug)]
pub(crate) struct Plot {
    pub(crate) title: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) lines: Vec<Line>,
}

impl Plot {
    /// Adds the plot to a page.
    pub(super) fn draw(&self, html: &mut String) {
        let title = escape(&self.title);
        let label = if self.x.label.is_empty() { LABEL } else { 0.0 };
        let (width, height) = (SIZE.0, self.foot() + MARGINS.3 - label);
        let _ = writeln!(
            html,
            "<figure><figcaption>{title}</figcaption>\n<svg viewBox=\"0 0 {width} {height:.0}\" \
             role=\"img\" aria-label=\"{title}\">"
        );
        self.grid(html);
        let seen: usize = self.lines.iter().map(|line| self.line(html, line)).sum();
        if seen == 0 {
            let (x, y) = (f64::midpoint(MARGINS.0, SIZE.0 - MARGINS.1), SIZE.1 / 2.0);
            let _ = write!(html, "<text x=\"{x}\" y=\"{y}\" text-anchor=\"middle\">nothing</text>");
        }
        html.push_str("</svg></figure>\n");
    }

    /// Draws a line; how many of its points are seen.
    fn line(&self, html: &mut String, line: &Line) -> usize {
        // A line that leaves by the foot is drawn down to it; what follows there is not.
        let mut was_inside = false;
        let seen = line.points.iter().filter(|(x, y)| {
            let is_inside = self.y.holds(*y);
            let is_seen = is_inside || was_inside;
            was_inside = is_inside;
            is_seen && x.is_finite()
        });
        let mut points: Vec<_> = seen.map(|(x, y)| (self.left(*x), self.top(*y))).collect();
        let mut last = (f64::NEG_INFINITY, f64::NEG_INFINITY);
        let mut left = points.len();
        points.retain(|(x, y)| {
            left -= 1;
            let is_seen = (x - last.0).abs().max((y - last.1).abs()) >= NEAR || left == 0;
            last = if is_seen { (*x, *y) } else { last };
            is_seen
        });
        let (stroke, name) = (line.stroke, escape(&line.name));
        if points.len() > 1 {
            let _ = write!(html, "<path class=\"line {stroke}\" d=\"");
            for (index, (x, y)) in points.iter().enumerate() {
                let _ = write!(html, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
            }
            let _ = writeln!(html, "\"><title>{name}</title></path>");
        }
        // A line of one point is none, and steps are points.
        if points.len() == 1 || self.x.longest_name().is_some() {
            for (x, y) in &points {
                let _ = writeln!(
                    html,
                    "<circle class=\"{stroke}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3\">\
                     <title>{name}</title></circle>"
                );
            }
        }
        points.len()
    }

    fn grid(&self, html: &mut String) {
        let (end, base) = (SIZE.0 - MARGINS.1, SIZE.1 - MARGINS.3);
        let turned = self.is_turned();
        let most = if self.x.longest_name().is_some() { MOST_NAMES } else { MOST_TICKS.0 };
        for (value, text) in self.x.ticks(most) {
            let (x, y, text) = (self.left(value), base + 17.0, escape(&text));
            let _ = write!(html, "<path class=\"grid\" d=\"M{x:.1} {}V{base}\"/>", MARGINS.2);
            let at = if turned {
                format!(
                    "transform=\"translate({:.1} {y}) rotate(-45)\" text-anchor=\"end\"",
                    x + 5.0
                )
            } else {
                format!("x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\"")
            };
            let _ = writeln!(html, "<text {at}>{text}</text>");
        }
        for (value, text) in self.y.ticks(MOST_TICKS.1) {
            let (y, text) = (self.top(value), escape(&text));
            let _ = writeln!(
                html,
                "<path class=\"grid\" d=\"M{} {y:.1}H{end}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{text}</text>",
                MARGINS.0,
                MARGINS.0 - 6.0,
                y + 4.0
            );
        }
        let (middle, centre) = (f64::midpoint(MARGINS.0, end), f64::midpoint(MARGINS.2, base));
        let label = self.foot() + 34.0;
        let _ = writeln!(
            html,
            "<text x=\"{middle}\" y=\"{label:.0}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(13 {centre}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            escape(&self.x.label),
            escape(&self.y.label)
        );
    }

    /// Whether the names at the foot have no room beside each other.
    fn is_turned(&self) -> bool {
        let ticks = self.x.ticks(MOST_NAMES).len();
        self.x.longest_name().is_some_and(|longest| (longest + 1) * ticks > MOST_ACROSS)
    }

    /// Where names at the foot end: those that are turned take room below the base.
    fn foot(&self) -> f64 {
        let longest = if self.is_turned() { self.x.longest_name().unwrap_or(0) } else { 0 };
        #[expect(clippy::cast_precision_loss, reason = "a few characters")]
        let more = longest as f64 * TURNED;
        SIZE.1 - MARGINS.3 + more
    }

    fn left(&self, x: f64) -> f64 {
        MARGINS.0 + (SIZE.0 - MARGINS.0 - MARGINS.1) * self.x.place(x)
    }

    fn top(&self, y: f64) -> f64 {
        SIZE.1 - MARGINS.3 - (SIZE.1 - MARGINS.2 - MARGINS.3) * self.y.place(y)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn(points: Vec<(f64, f64)>) -> String {
        let show = |value: f64| value.to_string();
        let x = Axis::log("x", points.iter().map(|(x, _)| *x), show);
        let y = Axis::log("y", points.iter().map(|(_, y)| *y), show);
        let line = Line { name: "one".to_owned(), stroke: Stroke::Base, points };
        let mut html = String::new();
        Plot { title: "t".to_owned(), x, y, lines: vec![line] }.draw(&mut html);
        assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
        html
    }

    #[test]
    fn no_points_one_point_and_points_at_zero_are_drawn() {
        assert!(drawn(Vec::new()).contains(">nothing<"));
        assert!(drawn(vec![(0.0, 0.0)]).contains(">nothing<"));
        assert!(drawn(vec![(0.0, 1.0)]).contains("<circle"));
        let drop = drawn(vec![(5.0, 1.0), (5.0, 0.0), (6.0, 0.0)]);
        assert!(drop.contains("<path class=\"line base\"") && !drop.contains("<circle"), "{drop}");
        let html = drawn(vec![(0.0, 1.0), (5.0, 0.5)]);
        assert!(html.contains("<path class=\"line base\"") && !html.contains("<circle"), "{html}");
    }

    #[test]
    fn points_that_cannot_be_told_apart_are_left_out() {
        let many = (0..100_000).map(|i| (1.0 + f64::from(i) / 1e3, 1.0 / (1.0 + f64::from(i))));
        let html = drawn(many.collect());
        assert!(html.len() < 20_000, "{}", html.len());
    }

    #[test]
    fn every_line_is_drawn_and_names_have_room() {
        let lines = (0..7).map(|number| Line {
            name: format!("policy {number}"),
            stroke: Stroke::Number(number),
            points: vec![(0.0, 1.0), (1.0, 2.0)],
        });
        let (x, y) = (
            Axis::named("steps", &["a step of some length", "b", "c"]),
            Axis::linear("y", 0.0, 2.0, |value| value.to_string()),
        );
        let mut html = String::new();
        Plot { title: "t".to_owned(), x, y, lines: lines.collect() }.draw(&mut html);
        assert_eq!(html.matches("<path class=\"line").count(), 7);
        assert_eq!(html.matches("<circle").count(), 14);
        assert!(html.contains("viewBox=\"0 0 380 350\"") && html.contains("y=\"342\""), "{html}");
    }

    #[test]
    fn many_lines_look_different() {
        let mut looks: Vec<_> = (0..40).map(|number| Stroke::Number(number).to_string()).collect();
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 40);
    }
}
