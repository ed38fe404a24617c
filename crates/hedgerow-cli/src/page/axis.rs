//! Axes: where a value lies on one, and which values are written at it.

/// Less than this between the ends of a logarithmic axis leaves no room for ticks.
const LEAST_RATIO: f64 = 3.0;
/// How much of an axis that has a place for zero is below its smallest value.
const ZERO: f64 = 0.1;

/// One axis.
#[derive(Debug)]
pub(crate) struct Axis {
    pub(super) label: String,
    scale: Scale,
    from: f64,
    to: f64,
    /// How a value is written.
    show: fn(f64) -> String,
}

#[derive(Debug)]
enum Scale {
    Log,
    /// Logarithmic, and zero at its foot.
    LogAndZero,
    Linear,
    /// A place for each of these, from 0.
    Named(Vec<String>),
}

impl Axis {
    /// A logarithmic axis that holds all of these values. What is not positive lies at its foot.
    pub(crate) fn log(
        label: impl Into<String>,
        values: impl Iterator<Item = f64>,
        show: fn(f64) -> String,
    ) -> Self {
        let (mut from, mut to) = (f64::INFINITY, 0.0_f64);
        for value in values.filter(|value| *value > 0.0 && value.is_finite()) {
            from = from.min(value);
            to = to.max(value);
        }
        if from > to {
            (from, to) = (1.0, 10.0);
        }
        // A single value needs room on both sides.
        let room = if to < from * LEAST_RATIO { LEAST_RATIO.sqrt() } else { 1.0 };
        Self { label: label.into(), scale: Scale::Log, from: from / room, to: to * room, show }
    }

    /// The same with a place for zero.
    pub(crate) fn log_and_zero(
        label: impl Into<String>,
        values: impl Iterator<Item = f64>,
        show: fn(f64) -> String,
    ) -> Self {
        Self { scale: Scale::LogAndZero, ..Self::log(label, values, show) }
    }

    /// A linear axis from one value to another.
    pub(crate) fn linear(
        label: impl Into<String>,
        from: f64,
        to: f64,
        show: fn(f64) -> String,
    ) -> Self {
        Self { label: label.into(), scale: Scale::Linear, from, to, show }
    }

    /// An axis with a place for each name; values are their numbers from 0.
    pub(crate) fn named(label: impl Into<String>, names: &[impl AsRef<str>]) -> Self {
        let names: Vec<_> = names.iter().map(|name| name.as_ref().to_owned()).collect();
        #[expect(clippy::cast_precision_loss, reason = "names on an axis are few")]
        let to = names.len().saturating_sub(1) as f64;
        let show = |_| String::new();
        Self { label: label.into(), scale: Scale::Named(names), from: 0.0, to, show }
    }

    /// The longest name, in characters; none on an axis of numbers.
    pub(super) fn longest_name(&self) -> Option<usize> {
        let Scale::Named(names) = &self.scale else { return None };
        names.iter().map(|name| shortened(name).chars().count()).max()
    }

    /// Where a value lies, from 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let inside = value.max(self.from).min(self.to);
        let log = || (inside / self.from).ln() / (self.to / self.from).ln();
        match self.scale {
            Scale::Log => log(),
            Scale::LogAndZero if value < self.from * 0.999 => 0.0,
            Scale::LogAndZero => ZERO + (1.0 - ZERO) * log(),
            Scale::Linear => (inside - self.from) / (self.to - self.from),
            // A name has room on both sides.
            Scale::Named(_) => (inside + 0.5) / (self.to + 1.0),
        }
    }

    /// Whether a value has a place of its own: it does not lie below the foot.
    pub(super) fn holds(&self, value: f64) -> bool {
        match self.scale {
            Scale::Log => value >= self.from * 0.999,
            _ => value >= 0.0,
        }
    }

    /// What is written at the axis, and where: at most so many.
    pub(super) fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let show = |values: Vec<f64>| values.into_iter().map(|value| (value, (self.show)(value)));
        match &self.scale {
            Scale::Log => show(self.powers(most)).collect(),
            Scale::LogAndZero => {
                [(0.0, "0".to_owned())].into_iter().chain(show(self.powers(most))).collect()
            }
            Scale::Linear => show(self.quarters()).collect(),
            Scale::Named(names) => {
                let every = names.len().div_ceil(most.max(1)).max(1);
                let each = names.iter().enumerate().step_by(every);
                #[expect(clippy::cast_precision_loss, reason = "names on an axis are few")]
                each.map(|(index, name)| (index as f64, shortened(name))).collect()
            }
        }
    }

    /// Round values, as many as there is room for: digits of every power of ten, or every so many
    /// powers of ten.
    fn powers(&self, most: usize) -> Vec<f64> {
        const DIGITS: [&[f64]; 4] = [
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0],
            &[1.0, 2.0, 3.0, 5.0, 7.0],
            &[1.0, 2.0, 5.0],
            &[1.0],
        ];
        #[expect(clippy::cast_possible_truncation, reason = "an exponent")]
        let (first, last) = (self.from.log10().floor() as i32, self.to.log10().ceil() as i32);
        let ticks = |digits: &[f64], every: i32| -> Vec<f64> {
            let powers = (first..=last).filter(|power| power.rem_euclid(every) == 0);
            let all = powers.flat_map(|power| digits.iter().map(move |digit| tick(*digit, power)));
            all.filter(|tick| (self.from * 0.999..=self.to * 1.001).contains(tick)).collect()
        };
        let dense = DIGITS.iter().map(|digits| ticks(digits, 1));
        let sparse = (2..=last.abs_diff(first).max(2))
            .map(|every| ticks(&[1.0], i32::try_from(every).unwrap_or(i32::MAX)));
        let fits = |ticks: &Vec<f64>| ticks.len() <= most;
        dense.chain(sparse).find(fits).unwrap_or_default()
    }

    /// Five values at equal distances.
    fn quarters(&self) -> Vec<f64> {
        (0..=4).map(|part| self.from + (self.to - self.from) * f64::from(part) / 4.0).collect()
    }
}

/// A digit before a power of ten, without a crumb that would show.
fn tick(digit: f64, power: i32) -> f64 {
    if power < 0 { digit / 10_f64.powi(-power) } else { digit * 10_f64.powi(power) }
}

/// As much of a name as has room under a plot.
fn shortened(name: &str) -> String {
    const MOST: usize = 16;
    if name.chars().count() <= MOST {
        return name.to_owned();
    }
    name.chars().take(MOST - 1).collect::<String>() + "\u{2026}"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log(values: &[f64]) -> Axis {
        Axis::log("", values.iter().copied(), |value| value.to_string())
    }

    fn ticks(axis: &Axis, most: usize) -> Vec<String> {
        axis.ticks(most).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_lie_on_the_axis_and_have_room() {
        assert_eq!(ticks(&log(&[3.0, 60.0]), 7), ["3", "5", "7", "10", "20", "30", "50"]);
        assert_eq!(ticks(&log(&[3.0, 60.0]), 6), ["5", "10", "20", "50"]);
        assert_eq!(ticks(&log(&[0.5, 2_000.0]), 7), ["1", "10", "100", "1000"]);
        assert_eq!(
            ticks(&log(&[0.001, 1e9]), 7),
            ["0.01", "1", "100", "10000", "1000000", "100000000"]
        );
        for (from, to) in [(1.01, 1.9), (2.1, 4.9), (5.0, 5.0), (1.0, 1e12), (9.0, 28.0)] {
            let axis = log(&[from, to]);
            let ticks = ticks(&axis, 7);
            assert!((2..=7).contains(&ticks.len()), "{from}..{to}: {ticks:?}");
        }
    }

    #[test]
    fn an_axis_without_values_or_with_one_has_room() {
        for values in [&[][..], &[0.0], &[5.0, 5.0], &[f64::NAN, -1.0, f64::INFINITY]] {
            let axis = log(values);
            assert!(axis.from > 0.0 && axis.to >= axis.from * 2.9);
            assert!(axis.place(5.0).is_finite() && axis.place(0.0).abs() < 1e-12);
            assert!(!axis.holds(0.0));
        }
    }

    #[test]
    fn zero_has_a_place_of_its_own_below_the_rest() {
        let axis = Axis::log_and_zero("", [0.0, 0.01, 1.0].into_iter(), |value| value.to_string());
        let places = [0.0, 0.01, 0.1, 1.0].map(|value| axis.place(value));
        for (place, wanted) in places.into_iter().zip([0.0, 0.1, 0.55, 1.0]) {
            assert!((place - wanted).abs() < 1e-9, "{places:?}");
        }
        assert_eq!(ticks(&axis, 4), ["0", "0.01", "0.1", "1"]);
        assert!(axis.holds(0.0));
    }

    #[test]
    fn names_lie_in_the_middle_of_their_share() {
        let axis = Axis::named("", &["a", "b"]);
        assert!((axis.place(0.0) - 0.25).abs() < 1e-9 && (axis.place(1.0) - 0.75).abs() < 1e-9);
        let names: Vec<String> = (0..40).map(|step| format!("step {step}")).collect();
        assert!(ticks(&Axis::named("", &names), 9).len() <= 9);
        assert!((Axis::named("", &["alone"]).place(0.0) - 0.5).abs() < 1e-9);
        assert_eq!(Axis::named("", &["x".repeat(99)]).longest_name(), Some(16));
    }
}
