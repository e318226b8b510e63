//! Small pieces of HTML.

use crate::escape::escape;

/// One cell of a table.
pub struct Cell {
    html: String,
    class: &'static str,
}

/// A cell of text.
pub fn cell(text: impl AsRef<str>) -> Cell {
    Cell { html: escape(text.as_ref()), class: "" }
}

/// A cell of text with a class.
pub fn marked(class: &'static str, text: impl AsRef<str>) -> Cell {
    Cell { html: escape(text.as_ref()), class }
}

/// A cell of markup that is safe already.
pub fn markup(class: &'static str, html: String) -> Cell {
    Cell { html, class }
}

/// A table whose first column names the rows; the rest is numbers unless a cell says `words`.
pub fn table(class: &str, caption: &str, headings: &[&str], rows: Vec<(&'static str, Vec<Cell>)>) -> String {
    let mut out =
        format!(r#"<div class="scroll"><table class="{class}"><caption>{}</caption><thead><tr>"#, escape(caption));
    for (at, heading) in headings.iter().enumerate() {
        // A heading stands where what is below it stands.
        let words = rows.first().and_then(|(_, cells)| cells.get(at)).is_some_and(|cell| cell.class.contains("words"));
        let class = if words { " class=\"words\"" } else { "" };
        out += &format!("<th scope=\"col\"{class}>{}</th>", escape(heading));
    }
    out += "</tr></thead><tbody>";
    for (class, cells) in rows {
        out += &format!("<tr class=\"{class}\">");
        for (at, cell) in cells.into_iter().enumerate() {
            let Cell { html, class } = cell;
            out += &if at == 0 {
                format!("<th scope=\"row\" class=\"{class}\">{html}</th>")
            } else {
                format!("<td class=\"{class}\">{html}</td>")
            };
        }
        out += "</tr>";
    }
    out + "</tbody></table></div>"
}

/// A part of the page that opens on demand.
pub fn details(title: &str, html: &str) -> String {
    format!("<details><summary>{}</summary>{html}</details>", escape(title))
}

/// Terms and what they mean.
pub fn terms<'a>(rows: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let rows =
        rows.into_iter().map(|(term, meaning)| format!("<dt>{}</dt><dd>{}</dd>", escape(term), escape(&meaning)));
    format!("<dl>{}</dl>", rows.collect::<String>())
}
