// One PromQL box with a chart and a table.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { make, text } from "./dom.js";
import { count, many, number } from "./format.js";
import { stepFor } from "./load.js";
import { Span, spans } from "./span.js";

const mostRows = 500;
const examples = [
  "topk(5, 1 - avg by (instance) (rate(node_cpu_seconds_total{mode=\"idle\"}[2m])))",
  "sum by (instance) (rate(node_network_receive_bytes_total[5m])) * 8",
  "max_over_time(node_load1[1h])",
];

const seriesName = ({ __name__: name = "", ...labels }) => {
  const l = Object.entries(labels).map(([k, v]) => `${k}=${JSON.stringify(v)}`).join(", ");
  return name + (l || !name ? `{${l}}` : "");
};

class View {
  constructor(root, params, page) {
    Object.assign(this, { page });
    this.span = new Span(params);
    this.box = make("textarea", { id: "promql", spellcheck: false, autocapitalize: "off", autocomplete: "off", rows: 2, value: params.get("q") ?? "", placeholder: examples[0],
      onkeydown: (e) => {
        if (e.key !== "Enter" || e.shiftKey) return;
        e.preventDefault();
        this.ask();
      } });
    this.over = make("select", { id: "over", onchange: () => { this.span.follow(Number(this.over.value)); this.ask(); } }, ...spans.map(([s, name]) => make("option", { value: String(s), selected: s === this.span.length }, `last ${name}`)));
    this.status = make("p", { id: "summary", role: "status" });
    this.problem = make("p", { id: "problem", role: "alert", hidden: true });
    this.chart = new Chart({ title: "Over time", unit: "number", sync: "query", onZoom: (a, b) => { this.span.set(a, b); this.ask(); }, onOut: () => { this.span.zoom(2); this.ask(); } });
    this.chart.root.hidden = true;
    this.table = make("div", { className: "scroll" });
    this.help = make("p", { className: "note" }, "Enter runs the query, Shift and Enter begin a line. For example: ",
      ...examples.flatMap((q, i) => [i > 0 ? " · " : "", make("a", { href: `#/query?${new URLSearchParams({ q })}` }, make("code", {}, q))]));
    root.append(make("div", { className: "bar" }, make("h1", {}, "Query"), this.status),
      make("form", { onsubmit: (e) => { e.preventDefault(); this.ask(); } },
        make("label", { for: "promql", className: "hidden" }, "PromQL"), this.box,
        make("label", { for: "over", className: "hidden" }, "Stretch of time of the chart"), this.over,
        make("button", { type: "submit", id: "run" }, "Run")),
      this.help, this.problem, this.chart.root, this.table);
    if (this.box.value) this.ask();
    else this.box.focus({ preventScroll: true });
  }

  async ask() {
    const q = this.box.value.trim();
    if (!q) return;
    this.page.address(this.span.put(new URLSearchParams({ q })));
    this.abort?.abort();
    const { signal } = (this.abort = new AbortController());
    text(this.status, "reading…");
    this.problem.hidden = true;
    const { from, to } = this.span.get();
    try {
      const instant = await api.query(q, to, signal);
      this.rows(instant.data);
      const plots = instant.data.resultType === "vector" || instant.data.resultType === "scalar";
      this.chart.root.hidden = !plots;
      if (plots) await this.plot(q, from, to, signal);
      const w = [...new Set(instant.warnings)];
      this.problem.hidden = w.length === 0;
      text(this.problem, w.join(" "));
      this.page.report(null);
    } catch (err) {
      if (api.aborted(err) || this.stopped) return;
      text(this.status, "no answer");
      if (!(err instanceof api.Refused)) return this.page.report(err);
      this.page.report(null);
      text(this.problem, err.message);
      this.problem.hidden = false;
      this.chart.root.hidden = true;
      this.table.replaceChildren();
    }
  }

  async plot(q, from, to, signal) {
    const step = stepFor(to - from, 400);
    const start = Math.ceil(from / step) * step;
    const n = Math.max(1, Math.floor((to - start) / step) + 1);
    const { data, tiers } = await api.range(q, start, start + (n - 1) * step, step, signal);
    const xs = Array.from({ length: n }, (_, i) => start + i * step);
    const lines = data.result.map(({ metric, values }) => {
      const mean = new Array(n).fill(null);
      for (const [t, v] of values) if (Number.isFinite(Number(v))) mean[Math.round((t - start) / step)] = Number(v);
      return { name: seriesName(metric), mean, low: null, high: null };
    });
    if (!this.stopped && !signal.aborted) this.chart.draw({ xs, lines, from, to, step, tiers: new Set(tiers), quiet: 0 });
  }

  /** rows shows the values at the end of the stretch. */
  rows({ resultType, result }) {
    const list = resultType === "scalar" || resultType === "string" ? [{ metric: {}, value: result }] : result;
    text(this.status, list.length === 0 ? "nothing was found: look whether the names are right and whether there are samples in this stretch of time" : many(list.length, "series", "series"));
    const value = (v) => {
      const n = Number(v);
      return resultType === "string" || !Number.isFinite(n) ? String(v) : Number.isInteger(n) && Math.abs(n) < 1e15 ? count(n) : `${n.toPrecision(6)} (${number(n)})`;
    };
    const row = (r) => make("tr", {}, make("th", { scope: "row" }, make("code", {}, seriesName(r.metric))),
      make("td", { className: "n" }, r.value ? value(r.value[1]) : r.values ? many(r.values.length, "sample") : "histogram"));
    this.table.replaceChildren(...(list.length === 0 ? [] : [
      make("table", { id: "answer", className: "rows" }, make("caption", { className: "hidden" }, "Values now"),
        make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "Series"), make("th", { scope: "col", className: "n" }, "Value"))),
        make("tbody", {}, ...list.slice(0, mostRows).map(row))),
      list.length > mostRows ? make("p", { className: "note" }, `The first ${mostRows} are shown.`) : ""]));
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    this.chart.destroy();
  }
}

/** query is the view of one query. */
export function query(root, params, page) {
  const v = new View(root, params, page);
  return { title: "Query", stop: () => v.stop() };
}
