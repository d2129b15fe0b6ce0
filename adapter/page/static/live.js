// The ticks of one device as they arrive, at its own rate: the last minute.

import { Chart } from "./chart.js";
import { make, text } from "./dom.js";
import { age, count, number } from "./format.js";

const keep = 60; // seconds that are shown

/** plots are the charts: which series, what a line is called, and how a value is made. */
const plots = [
  { id: "cores", title: "CPU by core", unit: "percent", top: 1, metric: /^node_cpu_seconds_total$/, name: (l) => `core ${l.cpu}`, rate: (r) => Math.max(0, 1 - r) },
  { id: "received", title: "Received by interface", unit: "bits", metric: /^node_network_receive_bytes_total$/, name: (l) => l.device, rate: (r) => 8 * r },
  { id: "sent", title: "Sent by interface", unit: "bits", metric: /^node_network_transmit_bytes_total$/, name: (l) => l.device, rate: (r) => 8 * r },
  { id: "softnet", title: "Packets through softnet by core", unit: "rate", metric: /^node_softnet_(processed|dropped)_total$/, name: (l) => `core ${l.cpu} ${/_([a-z]+)_total$/.exec(l.__name__)[1]}`, rate: (r) => r },
  { id: "conntrack", title: "Connections tracked", unit: "number", metric: /^node_nf_conntrack_entries$/, name: () => "entries" },
  { id: "load", title: "Load", unit: "number", metric: /^node_load1$/, name: () => "1 minute" },
];

class View {
  constructor(root, params, page) {
    this.page = page;
    this.instance = params.get("instance") ?? "";
    this.series = new Map(); // by labels: {labels, samples}
    this.charts = new Map();
    this.ticks = 0;
    this.status = make("p", { id: "summary", role: "status" }, "waiting for the first ticks…");
    this.pause = make("button", { type: "button", "aria-pressed": "false", onclick: () => this.toggle() }, "Pause");
    this.grid = make("div", { className: "charts" });
    root.append(make("div", { className: "bar" }, make("h1", {}, `${this.instance}, live`), this.pause,
      make("a", { href: `#/device?${new URLSearchParams({ instance: this.instance })}` }, "History"), this.status), this.grid);
    this.connect();
    this.timer = setInterval(() => this.say(), 1000);
  }

  connect() {
    clearTimeout(this.again);
    this.source = new EventSource(`api/v1/live?${new URLSearchParams({ instance: this.instance })}`);
    this.source.onopen = () => this.page.report(null);
    this.source.onmessage = (e) => this.take(JSON.parse(e.data));
    this.source.onerror = () => {
      if (this.stopped) return;
      this.page.report(new TypeError("the stream ended"));
      if (this.source.readyState !== EventSource.CLOSED) return; // the browser tries again
      this.again = setTimeout(() => this.connect(), 3000);
    };
  }

  toggle() {
    this.paused = !this.paused;
    this.pause.setAttribute("aria-pressed", String(this.paused));
    text(this.pause, this.paused ? "Go on" : "Pause");
    if (!this.paused) this.draw();
  }

  take({ lines }) {
    this.page.report(null);
    this.at = Date.now();
    for (const { labels, samples } of lines) {
      const key = JSON.stringify(labels);
      const s = this.series.get(key) ?? { labels, samples: [] };
      this.series.set(key, s);
      const newest = s.samples.at(-1)?.[0] ?? 0;
      s.samples.push(...samples.filter(([t]) => t > newest)); // after a new connection some come again
    }
    const clock = [...this.series.values()].filter((s) => s.labels.__name__ === "node_cpu_seconds_total");
    this.end = Math.max(...[...this.series.values()].map((s) => s.samples.at(-1)?.[0] ?? 0)) / 1000;
    for (const s of this.series.values()) s.samples = s.samples.filter(([t]) => t / 1000 > this.end - keep - 5);
    const ticks = clock[0]?.samples ?? [];
    const recent = ticks.filter(([t]) => t / 1000 > this.end - 10);
    this.rate = recent.length > 1 ? ((recent.length - 1) * 1000) / (recent.at(-1)[0] - recent[0][0]) : 0;
    this.ticks = ticks.length;
    this.say();
    if (!this.paused) this.draw();
  }

  say() {
    if (!this.at) {
      if (!this.hinted) this.hinted = setTimeout(() => text(this.status, this.at ? this.status.textContent : "no ticks yet: this device has not pushed within the last minute"), 5000);
      return;
    }
    const quiet = (Date.now() - this.at) / 1000;
    text(this.status, `${number(this.rate)} ticks a second, ${count(this.ticks)} of the last ${keep} s${quiet > 15 ? `; nothing for ${age(quiet)}` : ""}`);
  }

  draw() {
    if (!this.end) return;
    for (const p of plots) {
      const found = [...this.series.values()].filter((s) => p.metric.test(s.labels.__name__) && s.labels.device !== "lo" && s.samples.length > 1);
      if (found.length === 0) continue;
      let c = this.charts.get(p);
      if (!c) {
        c = new Chart({ ...p, sync: "live" });
        c.root.id = `live-${p.id}`;
        this.charts.set(p, c);
        this.grid.append(c.root);
      }
      c.draw({ ...align(found, p), from: this.end - keep, to: this.end, tiers: ["raw"], quiet: 0 });
    }
  }

  stop() {
    this.stopped = true;
    clearInterval(this.timer);
    clearTimeout(this.again);
    clearTimeout(this.hinted);
    this.source.close();
    for (const c of this.charts.values()) c.destroy();
  }
}

/** align puts lines on the times that any of them has, with a gap where ticks are missing. */
function align(found, p) {
  const times = [...new Set(found.flatMap((s) => s.samples.map(([t]) => t)))].sort((a, b) => a - b);
  const gaps = times.slice(1).map((t, i) => t - times[i]).sort((a, b) => a - b);
  const every = gaps[gaps.length >> 1] ?? 1000;
  const xs = [];
  times.forEach((t, i) => {
    if (i > 0 && t - times[i - 1] > 2.5 * every) xs.push(times[i - 1] + every);
    xs.push(t);
  });
  const index = new Map(xs.map((t, i) => [t, i]));
  const lines = found.map(({ labels, samples }) => {
    const mean = new Array(xs.length).fill(null);
    samples.forEach(([t, v], i) => {
      if (!p.rate) mean[index.get(t)] = v;
      else if (i > 0 && v >= samples[i - 1][1]) mean[index.get(t)] = p.rate(((v - samples[i - 1][1]) * 1000) / (t - samples[i - 1][0]));
    });
    return { name: p.name(labels), mean, low: null, high: null };
  });
  return { xs: xs.map((t) => t / 1000), lines, step: every / 1000 };
}

/** live is the view of one device's ticks as they arrive. */
export function live(root, params, page) {
  const v = new View(root, params, page);
  return { title: `${v.instance}, live`, stop: () => v.stop() };
}
