//! Pages with plots: one file that needs nothing else, for `simulate --report` and `tune --report`.
//!
//! Whatever is put on a page is text: it is escaped here and nowhere else.

mod axis;
mod plot;
mod target;

use std::fmt::Write as _;
use std::time::Duration;

use hedgerow::text::format_duration;
use hedgerow_sim::tune::rounded;

pub(crate) use axis::Axis;
pub(crate) use plot::{Line, Plot, Stroke};
pub(crate) use target::{Target, Unwritable};

/// Survival curves begin where this share of all takes longer.
pub(crate) const FIRST: f64 = 0.98;
/// They end where fewer than so many do: those are no tail but an accident.
pub(crate) const LEAST: f64 = 3.0;

const STYLE: &str = include_str!("style.css");

/// A page that grows from top to bottom.
#[derive(Debug)]
pub(crate) struct Page {
    html: String,
}

impl Page {
    /// A page with nothing but its title.
    pub(crate) fn new(title: &str) -> Self {
        let title = escape(title);
        let html = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"/>\n\
             <title>{title}</title>\n<style>\n{STYLE}</style></head>\n<body><h1>{title}</h1>\n"
        );
        Self { html }
    }

    /// The heading of a section.
    pub(crate) fn heading(&mut self, text: &str) {
        self.element("h2", text);
    }

    /// A paragraph.
    pub(crate) fn paragraph(&mut self, text: &str) {
        self.element("p", text);
    }

    fn element(&mut self, name: &str, text: &str) {
        let _ = writeln!(self.html, "<{name}>{}</{name}>", escape(text));
    }

    /// Plots side by side as far as there is room, under one legend for all of them that stays in
    /// sight.
    pub(crate) fn plots(&mut self, plots: &[Plot]) {
        self.html.push_str("<section>");
        let mut told: Vec<(&str, Stroke)> = Vec::new();
        for line in plots.iter().flat_map(|plot| &plot.lines) {
            let each = (line.name.as_str(), line.stroke);
            if !told.contains(&each) {
                told.push(each);
            }
        }
        self.html.push_str("<p class=\"legend\">");
        for (name, stroke) in told {
            let _ = write!(
                self.html,
                "<span><svg viewBox=\"0 0 44 12\" aria-hidden=\"true\"><path class=\"line {stroke}\" \
                 d=\"M1 6H43\"/></svg>{}</span>",
                escape(name)
            );
        }
        self.html.push_str("</p>\n<div class=\"plots\">\n");
        for plot in plots {
            plot.draw(&mut self.html);
        }
        self.html.push_str("</div></section>\n");
    }

    /// A table. The first cell of each row is its head.
    pub(crate) fn table(
        &mut self,
        caption: &str,
        heads: &[impl AsRef<str>],
        rows: impl Iterator<Item = Vec<String>>,
    ) {
        self.html.push_str("<div class=\"scroll\"><table>");
        if !caption.is_empty() {
            self.element("caption", caption);
        }
        self.html.push_str("<thead><tr>");
        for head in heads {
            let _ = write!(self.html, "<th scope=\"col\">{}</th>", escape(head.as_ref()));
        }
        self.html.push_str("</tr></thead>\n<tbody>\n");
        for row in rows {
            self.html.push_str("<tr>");
            for (index, cell) in row.iter().enumerate() {
                let (open, close) =
                    if index == 0 { ("th scope=\"row\"", "th") } else { ("td", "td") };
                let _ = write!(self.html, "<{open}>{}</{close}>", escape(cell));
            }
            self.html.push_str("</tr>\n");
        }
        self.html.push_str("</tbody></table></div>\n");
    }

    /// Points, one under the other.
    pub(crate) fn list(&mut self, points: impl Iterator<Item = String>) {
        self.html.push_str("<ul>\n");
        points.for_each(|point| self.element("li", &point));
        self.html.push_str("</ul>\n");
    }

    /// Text as it is written, folded away.
    pub(crate) fn folded(&mut self, summary: &str, text: &str) {
        let (summary, text) = (escape(summary), escape(text));
        // The first line feed after the tag would be dropped.
        let _ = writeln!(
            self.html,
            "<details><summary>{summary}</summary><pre>\n{text}</pre></details>"
        );
    }

    /// All of it.
    pub(crate) fn finish(mut self) -> String {
        self.html.push_str("</body></html>\n");
        self.html
    }
}

/// A latency in nanoseconds, as axes and tables show it.
pub(crate) fn latency(nanos: f64) -> String {
    format_duration(rounded(nanos).max(Duration::from_nanos(1)))
}

/// A share, as axes show it.
pub(crate) fn share(share: f64) -> String {
    format!("{} %", (share * 1e10).round() / 1e8)
}

/// Text between tags or in an attribute. What would not be well-formed, or would move the cursor of
/// who reads the source, is replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            '\r' => {}
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                escaped.push('\u{fffd}');
            }
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_leaves_its_place() {
        let hostile = "</title><script>alert('1')</script>\u{7}&amp;\"";
        let mut page = Page::new(hostile);
        page.heading(hostile);
        page.paragraph(hostile);
        page.table(hostile, &[hostile], [vec![hostile.to_owned()]].into_iter());
        page.list([hostile.to_owned()].into_iter());
        page.folded(hostile, hostile);
        let line = Line { name: hostile.to_owned(), stroke: Stroke::Base, points: Vec::new() };
        let (x, y) =
            (Axis::log("", [].into_iter(), |_| String::new()), Axis::named("", &[hostile]));
        page.plots(&[Plot { title: hostile.to_owned(), x, y, lines: vec![line] }]);
        let html = page.finish();
        assert!(!html.contains("<script") && !html.contains('\u{7}'), "{html}");
        assert_eq!(html.matches("&amp;amp;&quot;").count(), 13, "{html}");
    }
}
