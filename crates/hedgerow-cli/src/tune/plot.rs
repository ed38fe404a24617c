//! Line plots on two logarithmic axes, as SVG.

use std::fmt::Write as _;

/// The size of the drawing, and of its margins: left, right, top, bottom.
const SIZE: (f64, f64) = (480.0, 330.0);
const MARGINS: (f64, f64, f64, f64) = (76.0, 26.0, 12.0, 46.0);

/// One axis.
pub(super) struct Axis {
    pub(super) label: &'static str,
    pub(super) from: f64,
    pub(super) to: f64,
    /// How a value is written.
    pub(super) show: fn(f64) -> String,
}

/// One line.
pub(super) struct Line {
    pub(super) name: String,
    /// `a` is what there is, `b` what is advised, `c` stands beside.
    pub(super) class: &'static str,
    pub(super) points: Vec<(f64, f64)>,
}

/// A plot.
pub(super) struct Plot {
    pub(super) title: &'static str,
    pub(super) x: Axis,
    pub(super) y: Axis,
    pub(super) lines: Vec<Line>,
}

impl Axis {
    /// An axis that holds all of these values.
    pub(super) fn around(
        label: &'static str,
        values: impl Iterator<Item = f64>,
        show: fn(f64) -> String,
    ) -> Self {
        let (mut from, mut to) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| *value > 0.0) {
            from = from.min(value);
            to = to.max(value);
        }
        if from > to {
            (from, to) = (1.0, 10.0);
        }
        // A single value needs room on both sides.
        let room = if to < from * 1.5 { 2.0 } else { 1.0 };
        Self { label, from: from / room, to: to * room, show }
    }

    /// Where a value lies, from 0 to 1.
    fn place(&self, value: f64) -> f64 {
        let value = value.max(self.from).min(self.to);
        (value / self.from).ln() / (self.to / self.from).ln()
    }

    /// Round values: whole powers of ten, and 2 and 5 between them where there is room.
    fn ticks(&self) -> Vec<f64> {
        let decades = (self.to / self.from).log10();
        let steps: &[f64] = if decades > 2.5 { &[1.0] } else { &[1.0, 2.0, 5.0] };
        #[expect(clippy::cast_possible_truncation, reason = "an exponent")]
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let all = (first..=last)
            .flat_map(|power| steps.iter().map(move |step| step * 10_f64.powi(power)));
        all.filter(|tick| (self.from * 0.999..=self.to * 1.001).contains(tick)).collect()
    }
}

impl Plot {
    /// The plot and its legend.
    pub(super) fn svg(&self) -> String {
        let mut svg = format!(
            "<figure><figcaption>{}</figcaption><svg viewBox=\"0 0 {} {}\" role=\"img\" \
             aria-label=\"{}\">",
            self.title, SIZE.0, SIZE.1, self.title
        );
        self.grid(&mut svg);
        for line in &self.lines {
            let mut path = String::new();
            let is_inside = |(x, y): &&(f64, f64)| *x > 0.0 && *y > self.y.from * 0.999;
            for (x, y) in line.points.iter().filter(is_inside) {
                let _ = write!(path, "{:.1},{:.1} ", self.left(*x), self.top(*y));
            }
            let _ =
                write!(svg, "<polyline class=\"{}\" points=\"{}\"/>", line.class, path.trim_end());
        }
        svg.push_str("</svg><p class=\"legend\">");
        for line in &self.lines {
            let _ = write!(svg, "<span class=\"{}\">{}</span> ", line.class, line.name);
        }
        svg + "</p></figure>"
    }

    fn grid(&self, svg: &mut String) {
        let (width, height) = SIZE;
        let (left, right, top, bottom) = MARGINS;
        let (end, base) = (width - right, height - bottom);
        for tick in self.x.ticks() {
            let (x, text) = (self.left(tick), (self.x.show)(tick));
            let _ = write!(
                svg,
                "<path d=\"M{x:.1} {top}V{base}\"/><text x=\"{x:.1}\" y=\"{}\" \
                 text-anchor=\"middle\">{text}</text>",
                base + 17.0
            );
        }
        for tick in self.y.ticks() {
            let (y, text) = (self.top(tick), (self.y.show)(tick));
            let _ = write!(
                svg,
                "<path d=\"M{left} {y:.1}H{end}\"/><text x=\"{}\" y=\"{:.1}\" \
                 text-anchor=\"end\">{text}</text>",
                left - 6.0,
                y + 4.0
            );
        }
        let (middle, label) = (f64::midpoint(left, end), height - 8.0);
        let _ = write!(
            svg,
            "<text x=\"{middle}\" y=\"{label}\" text-anchor=\"middle\">{}</text>\
             <text transform=\"translate(13 {}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            self.x.label,
            f64::midpoint(top, base),
            self.y.label
        );
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

    #[test]
    fn ticks_are_round_and_lie_on_the_axis() {
        let axis = |from, to| Axis { label: "", from, to, show: |_| String::new() };
        let near = |ticks: Vec<f64>, wanted: &[f64]| {
            assert_eq!(ticks.len(), wanted.len(), "{ticks:?}");
            for (tick, wanted) in ticks.iter().zip(wanted) {
                assert!((tick / wanted - 1.0).abs() < 1e-9, "{ticks:?}");
            }
        };
        near(axis(3.0, 60.0).ticks(), &[5.0, 10.0, 20.0, 50.0]);
        near(axis(0.5, 2_000.0).ticks(), &[1.0, 10.0, 100.0, 1_000.0]);
    }

    #[test]
    fn an_axis_without_values_or_with_one_has_room() {
        for values in [&[][..], &[0.0], &[5.0, 5.0]] {
            let axis = Axis::around("", values.iter().copied(), |_| String::new());
            assert!(axis.from > 0.0 && axis.to > axis.from * 2.0);
            assert!(axis.place(5.0).is_finite());
        }
    }
}
