//! Tables in Markdown.

use std::iter;

use crate::contender::{Contender, Kind};

/// The figures of one contender.
pub struct Row {
    name: &'static str,
    kind: Kind,
    ours: bool,
    /// One per column; NaN where there is none.
    figures: Vec<f64>,
}

impl Row {
    /// The row of `C`.
    pub fn of<C: Contender>(figures: Vec<f64>) -> Self {
        Self { name: C::NAME, kind: C::KIND, ours: C::OURS, figures }
    }
}

/// Prints rows of text.
pub fn print(heads: &[&str], rows: impl IntoIterator<Item = Vec<String>>) {
    print_row(heads);
    println!("|---|{}", "---:|".repeat(heads.len() - 1));
    for row in rows {
        print_row(&row);
    }
}

/// Prints one row of a table.
pub fn print_row<T: AsRef<str>>(cells: &[T]) {
    let cells: Vec<&str> = cells.iter().map(AsRef::as_ref).collect();
    println!("| {} |", cells.join(" | "));
}

/// Prints figures, and the ratios of their first column to the bare call and to the best peer: the
/// best library, or for a pipeline the best pipeline, that is not Hedgerow.
pub fn print_ratios(title: &str, heads: &[&str], rows: &[Row]) {
    println!("\n### {title}\n");
    let heads = [&["contender"], heads, &["vs bare", "vs best peer"]].concat();
    let bare = best(rows.iter().filter(|row| row.kind == Kind::Bare));
    let cells = rows.iter().map(|row| {
        let peers = rows.iter().filter(|peer| !peer.ours && peer.kind == row.kind.rival());
        let first = row.figures[0];
        iter::once(row.name.to_owned())
            .chain(row.figures.iter().map(|figure| rounded(*figure)))
            .chain([ratio(first / bare), ratio(first / best(peers))])
            .collect()
    });
    print(&heads, cells);
}

/// The smallest first figure; NaN if there is none.
fn best<'a>(rows: impl Iterator<Item = &'a Row>) -> f64 {
    rows.map(|row| row.figures[0]).fold(f64::NAN, f64::min)
}

/// Three digits, or a dash for NaN.
fn rounded(figure: f64) -> String {
    match figure {
        figure if figure.is_nan() => "-".to_owned(),
        figure if figure >= 100.0 => format!("{figure:.0}"),
        figure if figure >= 10.0 => format!("{figure:.1}"),
        figure => format!("{figure:.2}"),
    }
}

fn ratio(ratio: f64) -> String {
    if ratio.is_nan() { "-".to_owned() } else { format!("{ratio:.2}x") }
}
