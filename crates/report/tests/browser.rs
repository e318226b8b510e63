//! The report in a real browser: its script runs, its figures are drawn, nothing sticks out of the page.
//!
//! Needs Chromium or Chrome; `make test` installs or asks for it.

#![allow(clippy::unwrap_used, clippy::panic)] // What supports tests may unwrap, too.

#[path = "../../analysis/tests/common/mod.rs"]
mod common;
#[path = "../../analysis/tests/scenario/mod.rs"]
mod scenario;

use std::{
    path::Path,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use brownout_analysis::findings;
use brownout_report::html;
use common::Synthetic;

/// Put into a copy of the page, before and after everything else: tells what went wrong as attributes of the root.
const WATCH: &str = r#"<script>
window.problems = [];
addEventListener("error", (event) => window.problems.push("error: " + event.message));
</script>"#;
const LOOK: &str = r#"<script>
addEventListener("load", () => {
  const problems = window.problems;
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) problems.push("the page is " + root.scrollWidth + " wide of " + root.clientWidth);
  for (const element of document.querySelectorAll("main *")) {
    const box = element.getBoundingClientRect();
    const scrolls = element.closest(".scroll") && !element.matches(".scroll");
    if (box.width > 0 && box.right > root.clientWidth + 1 && !scrolls) problems.push("sticks out: " + element.outerHTML.slice(0, 80));
  }
  // A usual screen shows every table whole.
  for (const box of document.querySelectorAll(".scroll")) {
    if (innerWidth >= 1280 && box.scrollWidth > box.clientWidth) problems.push("has to be scrolled: " + box.innerText.slice(0, 80));
  }
  const figures = [...document.querySelectorAll("svg.figure")];
  for (const figure of figures) {
    const lines = [...figure.querySelectorAll("g[clip-path] path.line")];
    if (lines.length === 0) problems.push("no line in " + figure.id);
    for (const line of lines) if (!Number.isFinite(line.getTotalLength())) problems.push("broken line in " + figure.id);
    const texts = [...figure.querySelectorAll("text")].map((text) => [text, text.getBoundingClientRect()]);
    const shown = texts.filter(([, box]) => box.width > 0);
    shown.forEach(([text, box], at) => {
      for (const [other, against] of shown.slice(at + 1)) {
        const apart = box.right <= against.left + 1 || against.right <= box.left + 1 || box.bottom <= against.top + 1 || against.bottom <= box.top + 1;
        if (!apart) problems.push("overlap in " + figure.id + ": " + text.textContent + " / " + other.textContent);
      }
    });
  }
  const tabs = [...document.querySelectorAll(".tabs button")];
  const chart = figures.find((figure) => figure.getBoundingClientRect().width > 0);
  const area = chart.getBoundingClientRect();
  chart.dispatchEvent(new PointerEvent("pointermove", { clientX: area.left + area.width / 2, clientY: area.top + 60, bubbles: true }));
  const box = chart.parentElement.querySelector(".read-out");
  if (box.style.visibility !== "visible" || box.querySelectorAll("tr").length === 0) problems.push("no read-out");
  tabs.at(-1)?.click();
  const visible = [...document.querySelectorAll(".trial")].filter((panel) => !panel.hidden).map((panel) => panel.dataset.trial);
  root.setAttribute("data-trials", [...new Set(visible)].join(","));
  root.setAttribute("data-figures", figures.length);
  root.setAttribute("data-problems", problems.join("; "));
});
</script>"#;

fn browser() -> &'static str {
    let there = |name: &&&str| {
        let mut command = Command::new(name);
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    };
    ["chromium", "chromium-browser", "google-chrome"].iter().find(there).unwrap_or_else(|| {
        panic!("no browser to look at the report with: install one (on Debian: apt-get install chromium)")
    })
}

/// The page as the browser has it after loading.
fn load(page: &Path, width: u32, dark: bool) -> String {
    let profile = tempfile::tempdir().unwrap();
    let out = profile.path().join("dom.html");
    let mut child = Command::new(browser())
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .arg(format!("--blink-settings=preferredColorScheme={}", if dark { 0 } else { 1 }))
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg(format!("--window-size={width},1200"))
        .args(["--virtual-time-budget=5000", "--dump-dom"])
        .arg(format!("file://{}", page.display()))
        .stdout(std::fs::File::create(&out).unwrap())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // A browser that hangs must not hang the test with it.
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not come back within two minutes");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    std::fs::read_to_string(&out).unwrap()
}

fn attribute<'a>(dom: &'a str, name: &str) -> &'a str {
    let (_, rest) =
        dom.split_once(&format!("{name}=\"")).unwrap_or_else(|| panic!("no {name}: the script did not run"));
    rest.split_once('"').unwrap().0
}

/// Writes the report of a run with the means to see what goes wrong in it.
fn watched(run: &brownout_record::Run, directory: &Path) -> std::path::PathBuf {
    let page = html(run, &findings(run).unwrap()).unwrap();
    let watched =
        page.replacen("<head>", &format!("<head>{WATCH}"), 1).replacen("</body>", &format!("{LOOK}</body>"), 1);
    let file = directory.join("report.html");
    std::fs::write(&file, watched).unwrap();
    file
}

#[test]
fn many_faults_and_their_witnesses_stay_legible() {
    let directory = tempfile::tempdir().unwrap();
    let run = scenario::many().run(directory.path());
    let file = watched(&run, directory.path());
    for (width, dark) in [(1000, true), (1600, false)] {
        let dom = load(&file, width, dark);
        assert_eq!(attribute(&dom, "data-problems"), "", "at {width} px");
        assert_eq!(attribute(&dom, "data-figures"), "8", "three, the percentiles, and clocks, answers, fsync, rate");
    }
}

#[test]
fn the_report_works_in_a_browser_at_usual_widths() {
    let directory = tempfile::tempdir().unwrap();
    let run = Synthetic { death: true, lag: 2, lateness: 6_000_000, flood: Some(3000), ..Synthetic::default() };
    let run = run.run(directory.path());
    let file = watched(&run, directory.path());
    for (width, dark) in [(1000, false), (1280, true), (1600, false)] {
        let dom = load(&file, width, dark);
        assert_eq!(attribute(&dom, "data-problems"), "", "at {width} px");
        assert_eq!(attribute(&dom, "data-ready"), "yes");
        assert_eq!(attribute(&dom, "data-figures"), "9", "four of each of two trials, and the percentiles");
        assert_eq!(attribute(&dom, "data-trials"), "2", "the last tab shows its trial and no other");
    }
}
