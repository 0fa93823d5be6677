"use strict";
// Everything here only adds to pages that work without it: plots from their tables, keys, choosing all, one-time submits.
(() => {
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function plot(figure) {
    const table = figure.querySelector("table");
    if (!table || figure.dataset.drawn || typeof uPlot === "undefined") return;
    const rows = [...table.tBodies[0].rows];
    if (rows.length < 2) return;
    figure.dataset.drawn = "1";
    figure.classList.add("ready");
    const heads = [...table.tHead.rows[0].cells];
    const value = (row, at) => Number(row.cells[at].dataset.value);
    const each = heads.some((head) => head.dataset.draw === "back"); // a bar for each row, however far apart in time
    const byTime = !each && value(rows[0], 0) > 1e11 && value(rows[rows.length - 1], 0) - value(rows[0], 0) > 6e4;
    const x = rows.map((row, at) => (byTime ? value(row, 0) / 1000 : at + 1));
    const drawn = heads.map((head, at) => at).filter((at) => at > 0 && heads[at].dataset.draw !== "note");
    const notes = heads.findIndex((head) => head.dataset.draw === "note");
    const marks = notes < 0 ? [] : rows.flatMap((row, at) => (row.cells[notes].textContent.trim() ? [x[at]] : []));
    const colours = [css("--accent"), css("--good"), css("--warn")];
    // "bars": how many, on an axis of their own. "back" and "front": two bars on the axis of the plot, one before the other.
    const bars = (at) => heads[at].dataset.draw === "bars";
    const solid = { back: ["--strong-line", [0.8, 34]], front: ["--accent", [0.5, 20]] };
    const series = drawn.map((at, place) => bars(at)
      ? { label: heads[at].textContent, scale: "count", fill: css("--sunken"), stroke: css("--strong-line"), width: 1, paths: uPlot.paths.bars({ size: [0.7, 24] }), points: { show: false } }
      : solid[heads[at].dataset.draw] ? { label: heads[at].textContent, fill: css(solid[heads[at].dataset.draw][0]), width: 0, paths: uPlot.paths.bars({ size: solid[heads[at].dataset.draw][1] }), points: { show: false } }
      : { label: heads[at].textContent, stroke: colours[place], width: 2, points: { show: rows.length < 40, size: 5, fill: colours[place] }, fill: place === 0 ? css("--accent-soft") : undefined });
    const axis = { stroke: css("--soft"), grid: { stroke: css("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
    // One unit for a whole axis: that of its highest tick.
    const whole = (_, ticks) => {
      const [size, unit] = [[1e9, " bn"], [1e6, " M"], [1e4, " k"]].find(([from]) => ticks[ticks.length - 1] >= from) ?? [1, ""];
      const by = size === 1e4 ? 1e3 : size;
      return ticks.map((tick) => Number.isInteger(tick) ? (tick && tick / by) + (tick ? unit : "") : "");
    };
    const within = byTime && x[x.length - 1] - x[0] < 2 * 86400;
    const when = (seconds, clock) => new Date(seconds * 1000).toLocaleString("en-GB", clock ? { hour: "2-digit", minute: "2-digit", timeZone: "UTC" } : { day: "numeric", month: "short", timeZone: "UTC" });
    // Within two days: the day at the first tick and at midnight, the time at the others.
    const times = (ticks) => ticks.map((tick, at) => when(tick, within && at > 0 && tick % 86400 !== 0));
    // Rows that are not spread over time: each has its own place, named by its time where it has one.
    const row = (tick) => !Number.isInteger(tick) || !rows[tick - 1] ? "" : value(rows[tick - 1], 0) > 1e11 ? when(value(rows[tick - 1], 0) / 1000, !each) : String(tick);
    const canvas = figure.querySelector(".canvas");
    const top = (_, low, high) => [0, Math.max(1, high * 1.1)];
    const dashes = (chart) => {
      const { ctx, bbox } = chart;
      ctx.save();
      ctx.strokeStyle = css("--warn");
      ctx.setLineDash([4, 4]);
      for (const mark of marks) {
        const left = Math.round(chart.valToPos(mark, "x", true)) + 0.5;
        ctx.beginPath(); ctx.moveTo(left, bbox.top); ctx.lineTo(left, bbox.top + bbox.height); ctx.stroke();
      }
      ctx.restore();
    };
    const order = [...drawn.keys()].sort((a, b) => bars(drawn[b]) - bars(drawn[a]));
    const chart = new uPlot({
      width: canvas.clientWidth, height: 170, legend: { show: false }, cursor: { drag: { x: false, y: false }, points: { size: 7 } },
      scales: { x: { time: byTime, ...(each ? { range: () => [0.4, rows.length + 0.6] } : {}) }, y: { range: top }, count: { range: (_, low, high) => [0, Math.max(1, high * 2.5)] } },
      series: [{}, ...order.map((at) => series[at])], hooks: { draw: [dashes], setCursor: [(now) => read(now.cursor.idx)] },
      axes: [{ ...axis, grid: { show: false }, size: 34, space: 60, values: (_, ticks) => byTime ? times(ticks) : ticks.map(row) }, { ...axis, size: 50, values: whole },
        ...(drawn.some(bars) ? [{ ...axis, scale: "count", side: 1, size: 50, grid: { show: false }, label: heads[drawn.find(bars)].textContent, labelSize: 16, labelFont: axis.font, values: whole }] : [])],
    }, [x, ...order.map((at) => rows.map((row) => value(row, drawn[at])))], canvas);
    const caption = figure.querySelector("small");
    const unit = caption.textContent;
    const read = (at) => {
      caption.textContent = at === null || at === undefined ? unit : [rows[at].cells[0].textContent, ...drawn.map((column) => `${heads[column].textContent} ${rows[at].cells[column].textContent}`)].join(" · ");
    };
    canvas.addEventListener("mouseleave", () => read(null));
    new ResizeObserver(() => chart.setSize({ width: canvas.clientWidth, height: 170 })).observe(canvas);
    if (drawn.length > 1) {
      const key = document.createElement("p");
      key.className = "key";
      drawn.forEach((at, place) => {
        const one = document.createElement("span");
        one.className = heads[at].dataset.draw ?? "abc"[place];
        one.textContent = heads[at].textContent;
        key.append(one);
      });
      canvas.after(key);
    }
  }

  const narrow = matchMedia("(max-width: 60rem)");
  const ready = () => {
    document.querySelectorAll("[data-plot]").forEach(plot);
    if (narrow.matches) document.querySelectorAll("details[data-narrow]").forEach((details) => { details.open = false; });
  };
  ready();
  // A swap replaces what has the focus: its successor, by id, address or name, gets it back.
  let focused = "";
  const nameOf = (element) => element.id ? `#${CSS.escape(element.id)}` : ["href", "name"].filter((name) => element.hasAttribute(name)).map((name) => `${element.localName}[${name}="${CSS.escape(element.getAttribute(name))}"]`)[0] ?? "";
  // An answer that is no part of this page is shown as a page of its own: the sign-in, or why the request was refused.
  document.addEventListener("htmx:before:response", (event) => {
    document.getElementById("unanswered")?.remove();
    const { request, response } = event.detail.ctx;
    if (response.raw.ok && !response.raw.redirected) return;
    event.preventDefault();
    location.assign(request.action);
  });
  document.addEventListener("htmx:error", (event) => {
    const results = document.getElementById("results");
    if (!results || !(event.detail.error instanceof TypeError) || document.getElementById("unanswered")) return;
    const note = document.createElement("p");
    Object.assign(note, { id: "unanswered", className: "note bad", role: "alert", textContent: "The host does not answer. What is shown here is not the result of your search." });
    results.before(note);
  });
  document.addEventListener("htmx:before:swap", () => { focused = document.activeElement === document.body ? "" : nameOf(document.activeElement); });
  document.addEventListener("htmx:after:swap", () => {
    ready();
    if (focused && document.activeElement === document.body) (document.querySelector(focused) ?? document.getElementById("main"))?.focus({ preventScroll: true });
  });

  document.addEventListener("change", (event) => {
    if (!event.target.matches("[data-choose-all]")) return;
    document.querySelectorAll("input[name=id]").forEach((box) => { box.checked = event.target.checked; });
  });
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post") return;
    setTimeout(() => form.querySelectorAll("button:enabled").forEach((button) => { button.disabled = true; button.dataset.sent = ""; }), 0);
  });
  window.addEventListener("pageshow", () => document.querySelectorAll("button[data-sent]").forEach((button) => { button.disabled = false; }));
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-copy]");
    if (!button || !navigator.clipboard) return;
    await navigator.clipboard.writeText(document.getElementById(button.dataset.copy).textContent.trim());
    button.textContent = "Copied";
  });

  document.querySelectorAll("[data-try]").forEach((form) => {
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
      event.preventDefault();
      let path = form.dataset.path;
      const query = new URLSearchParams();
      form.querySelectorAll("input[data-in]").forEach((input) => {
        if (input.dataset.in === "path") path = path.replace(`{${input.name}}`, encodeURIComponent(input.value));
        else if (input.value) query.append(input.name, input.value);
      });
      const body = form.querySelector("textarea");
      const headers = { "X-Reverie-Token": form.dataset.token, ...(body ? { "Content-Type": "application/json" } : {}) };
      let answer = { ok: false, status: "none" };
      let shown = "The host does not answer, or broke off its answer.";
      try {
        const got = await fetch(path + (query.size ? `?${query}` : ""), { method: form.dataset.method, headers, body: body ? body.value : undefined });
        shown = await got.text();
        answer = got;
        shown = JSON.stringify(JSON.parse(shown), null, 2);
      } catch { /* no answer; or not JSON: as it is */ }
      const result = form.querySelector(".result");
      result.hidden = false;
      const status = result.querySelector("[data-status]");
      status.textContent = String(answer.status);
      status.className = answer.ok ? "chip good" : "chip bad";
      result.querySelector("[data-answer]").textContent = shown;
    });
  });

  document.querySelector("nav [aria-current]")?.scrollIntoView({ block: "nearest", inline: "center" });

  let at = -1;
  const move = (step) => {
    const items = [...document.querySelectorAll("[data-item]")];
    if (!items.length) return;
    const here = items.findIndex((item) => item.contains(document.activeElement));
    at = Math.max(0, Math.min(items.length - 1, (here < 0 ? at : here) + step));
    const link = items[at].matches("a") ? items[at] : items[at].querySelector("a, summary, button");
    link?.focus();
    link?.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.key === "ArrowDown" && event.target.matches("[data-search]")) {
      event.preventDefault();
      at = -1;
      move(1);
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
    if (event.key === "/") {
      const search = document.querySelector("[data-search]");
      if (search) { event.preventDefault(); search.focus(); search.select(); }
      else location.assign("/memories#search");
    } else if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "?") document.getElementById("help")?.showModal();
  });

  // Going to an anchor takes the focus away from what has it, so the search gets it afterwards.
  window.addEventListener("load", () => setTimeout(() => {
    if (location.hash === "#search") document.querySelector("[data-search]")?.focus();
  }, 0));
})();
