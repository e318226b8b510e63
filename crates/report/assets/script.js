"use strict";
// Without this script the page is complete: all trials stand below each other, and figures are read by eye.
(() => {
  // Tabs: one bar per group of trials, all of them in step.
  const panels = [...document.querySelectorAll(".trial")];
  const trials = [...new Set(panels.map((panel) => panel.dataset.trial))];
  const buttons = [];
  const show = (trial) => {
    for (const panel of panels) panel.hidden = panel.dataset.trial !== trial;
    for (const button of buttons) button.setAttribute("aria-selected", String(button.dataset.trial === trial));
  };
  if (trials.length > 1) {
    for (const group of new Set(panels.map((panel) => panel.parentElement))) {
      const bar = document.createElement("div");
      bar.className = "tabs";
      bar.setAttribute("role", "tablist");
      for (const trial of trials) {
        const button = document.createElement("button");
        button.type = "button";
        button.dataset.trial = trial;
        button.textContent = panels.find((panel) => panel.dataset.trial === trial).dataset.name;
        button.setAttribute("role", "tab");
        button.addEventListener("click", () => {
          // The bar stays where it is under the pointer when panels above it change their height.
          const before = bar.getBoundingClientRect().top;
          show(trial);
          window.scrollBy(0, bar.getBoundingClientRect().top - before);
        });
        buttons.push(button);
        bar.append(button);
      }
      group.insertBefore(bar, group.querySelector(".trial"));
    }
    show(trials[0]);
  }

  // Read-out: the values nearest to the pointer, with a line through all figures that share its axis.
  const charts = [...document.querySelectorAll("figure.card")].map((figure) => {
    const data = JSON.parse(figure.querySelector("script").textContent);
    const svg = figure.querySelector("svg");
    const box = document.createElement("div");
    box.className = "read-out";
    figure.append(box);
    return { figure, data, svg, box, cross: svg.querySelector(".cross"), group: figure.closest(".trial") || figure };
  });
  const nearest = (places, x) => {
    let low = 0;
    let high = places.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (places[middle] < x) low = middle;
      else high = middle;
    }
    return Math.abs(places[low] - x) <= Math.abs(places[high] - x) ? low : high;
  };
  const line = (chart, at) => {
    const place = at === null ? null : chart.data.places[at];
    chart.cross.style.visibility = place === null ? "hidden" : "visible";
    if (place === null) return;
    chart.cross.setAttribute("x1", place);
    chart.cross.setAttribute("x2", place);
  };
  const fill = (chart, at) => {
    const [x, ...values] = chart.data.rows[at];
    const head = document.createElement("b");
    head.textContent = x;
    const table = document.createElement("table");
    values.forEach((value, index) => {
      const row = table.insertRow();
      const [name, ink] = chart.data.series[index];
      const dot = document.createElement("i");
      dot.className = ink;
      dot.textContent = "●";
      const cell = row.insertCell();
      cell.append(dot, name);
      row.insertCell().textContent = value;
    });
    chart.box.replaceChildren(head, table);
  };
  for (const chart of charts) {
    if (chart.data.places.length === 0) continue;
    const peers = charts.filter((other) => other.group === chart.group);
    chart.svg.addEventListener("pointermove", (event) => {
      const area = chart.svg.getBoundingClientRect();
      const scale = chart.data.width / area.width;
      const at = nearest(chart.data.places, (event.clientX - area.left) * scale);
      for (const peer of peers) line(peer, at < peer.data.places.length ? at : null);
      fill(chart, at);
      const frame = chart.figure.getBoundingClientRect();
      const x = chart.data.places[at] / scale + area.left - frame.left;
      const room = frame.width - chart.box.offsetWidth - 8;
      const left = x + 14 > room ? x - chart.box.offsetWidth - 14 : x + 14;
      chart.box.style.left = Math.max(8, left) + "px";
      chart.box.style.top = Math.max(8, event.clientY - frame.top - chart.box.offsetHeight - 12) + "px";
      chart.box.style.visibility = "visible";
    });
    chart.svg.addEventListener("pointerleave", () => {
      chart.box.style.visibility = "hidden";
      for (const peer of peers) line(peer, null);
    });
  }
  document.documentElement.dataset.ready = "yes";
})();
