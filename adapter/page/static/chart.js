// One chart over time, drawn by uPlot: lines with a band from the lowest to the
// highest value, gaps as gaps, stretches in which the device was away, and alerts as
// marks along the top. A legend says what is at the pointer.

import uPlot from "./uPlot.js";
import { make, text } from "./dom.js";
import { moment, units } from "./format.js";

const most = 10; // lines that are told apart by colour
const height = 190;

const colour = (i) => getComputedStyle(document.documentElement).getPropertyValue(`--c${i % 10}`).trim();
const variable = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** biggest keeps the lines with the highest values, in their order, and counts the rest. */
function biggest(lines) {
  if (lines.length <= most) return { lines, left: 0 };
  const peak = (l) => (l.high ?? l.mean).reduce((m, v) => (v === null ? m : Math.max(m, Math.abs(v))), 0);
  const kept = new Set([...lines].sort((a, b) => peak(b) - peak(a)).slice(0, most));
  return { lines: lines.filter((l) => kept.has(l)), left: lines.length - most };
}

export class Chart {
  /** onZoom is called with two times once a stretch was chosen, onOut on a double click. */
  constructor({ title, unit, top, sync, onZoom, onOut }) {
    Object.assign(this, { title, top, onZoom, onOut });
    this.format = units[unit] ?? units.number;
    this.sync = sync;
    this.off = new Set(); // names of lines that are switched off
    this.tier = make("span", { className: "tier", hidden: true });
    this.note = make("p", { className: "note", hidden: true });
    this.legend = make("ul", { className: "legend" });
    this.host = make("div", { className: "plot", role: "img", "aria-label": title });
    this.root = make("section", { className: "panel chart", "aria-label": title },
      make("div", { className: "head" }, make("h2", {}, title), this.tier), this.host, this.legend, this.note);
    this.plot = null;
    this.observer = new ResizeObserver(() => {
      const width = this.host.clientWidth;
      if (this.plot && width > 0 && width !== this.plot.width) this.plot.setSize({ width, height });
    });
    this.observer.observe(this.host);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.onDark = () => this.data && this.draw(this.data, true);
    this.dark.addEventListener("change", this.onDark);
  }

  /** say shows a sentence in place of lines. */
  say(s) {
    text(this.note, s);
    this.note.hidden = !s;
  }

  /** draw shows {xs, lines, from, to, tiers, step, quiet, marks, away}. */
  draw(data, anew = false) {
    this.data = data;
    const { lines, left } = biggest(data.lines);
    this.lines = lines;
    const names = lines.map((l) => l.name).join("\n");
    const notes = [];
    if (lines.length === 0) notes.push(data.quiet > 0 ? `${data.quiet === 1 ? "The one line" : `All ${data.quiet} lines`} at 0 throughout.` : "No samples in this stretch of time. Zoom out, or look at another one.");
    else if (data.quiet > 0) notes.push(`${data.quiet} more at 0 throughout.`);
    if (left > 0) notes.push(`${left} smaller ones are not drawn.`);
    this.say(notes.join(" "));
    const tiers = [...data.tiers];
    text(this.tier, tiers.join(" + "));
    this.tier.hidden = tiers.length === 0;
    this.tier.title = `Read from ${tiers.map((t) => (t === "raw" ? "raw samples" : `buckets of ${t}`)).join(" and ")}, ${this.stepText(data.step)} a point`;
    const values = [data.xs, ...lines.flatMap((l) => [l.mean, l.low ?? l.mean, l.high ?? l.mean])];
    if (anew || !this.plot || names !== this.names) {
      this.names = names;
      this.make(values);
    } else {
      this.plot.setData(values, false);
    }
    this.plot.setScale("x", { min: data.from, max: data.to });
    this.describe();
    this.values(null);
  }

  stepText(s) {
    return s < 1 ? `${Math.round(s * 1000)} ms` : s < 60 ? `${s} s` : s < 3600 ? `${s / 60} min` : s < 86400 ? `${s / 3600} h` : `${s / 86400} d`;
  }

  /** describe tells those who cannot see the chart what it shows. */
  describe() {
    const parts = this.lines.map((l) => {
      const last = l.mean.findLast((v) => v !== null);
      const high = (l.high ?? l.mean).reduce((m, v) => (v === null ? m : Math.max(m, v)), -Infinity);
      return last === undefined ? `${l.name}: none` : `${l.name}: last ${this.format(last)}, highest ${this.format(high)}`;
    });
    const span = this.data.to - this.data.from;
    this.host.setAttribute("aria-label", `${this.title}, ${moment(this.data.from, span)} to ${moment(this.data.to, span)}. ${parts.join("; ")}`);
  }

  make(values) {
    this.plot?.destroy();
    const series = [{}];
    const bands = [];
    this.lines.forEach((l, i) => {
      const stroke = colour(i);
      const show = !this.off.has(l.name);
      series.push({ label: l.name, stroke, width: 1.5, spanGaps: false, show, points: { show: (u, s) => this.sparse(u, s), size: 4 } });
      // The band's edges are not drawn themselves.
      for (let side = 0; side < 2; side++) series.push({ stroke: "transparent", width: 0, points: { show: false }, show, spanGaps: false });
      bands.push({ series: [3 * i + 3, 3 * i + 2], fill: `${stroke}33` });
    });
    const axis = { stroke: variable("--quiet"), grid: { stroke: variable("--edge"), width: 1 }, ticks: { stroke: variable("--edge"), width: 1 }, font: "11px system-ui, sans-serif" };
    this.plot = new uPlot({
      width: Math.max(200, this.host.clientWidth), height, series, bands, legend: { show: false },
      scales: {
        x: { time: true, auto: false },
        y: { range: (u, min, max) => this.yRange(min, max) },
      },
      axes: [
        { ...axis, space: 90, values: (u, ts) => this.ticks(u, ts) },
        { ...axis, size: 78, values: (u, vs) => vs.map((v) => this.format(v)) },
      ],
      cursor: {
        sync: { key: this.sync }, drag: { x: true, y: false, setScale: false }, points: { size: 6 },
        bind: { dblclick: () => () => { this.onOut?.(); return null; } },
      },
      hooks: {
        drawClear: [(u) => this.drawAway(u)],
        draw: [(u) => this.drawMarks(u)],
        setCursor: [(u) => this.values(u.cursor.idx)],
        setSelect: [(u) => this.chosen(u)],
      },
    }, values, this.host);
    this.plot.root.querySelector("canvas")?.setAttribute("aria-hidden", "true");
    this.makeLegend();
  }

  /** sparse says whether single samples are drawn: where no line would show them. */
  sparse(u, s) {
    const v = u.data[s];
    const n = v.reduce((k, x) => k + (x !== null), 0);
    return n > 0 && n < 20;
  }

  yRange(min, max) {
    if (min === null || max === null || !Number.isFinite(min)) return [0, 1];
    // Temperatures and the like do not begin at zero; most else does.
    const low = this.format === units.celsius ? Math.floor(min - 1) : Math.min(0, min);
    let high = this.format === units.celsius ? Math.ceil(max + 1) : max * 1.08;
    if (this.top && high > 0.5 && high < 1.15) high = 1;
    return [low, high > low ? high : low + (this.format === units.percent ? 0.01 : 1)];
  }

  /** ticks names times as exactly as the distance between two of them asks. */
  ticks(u, ts) {
    const gap = ts.length > 1 ? ts[1] - ts[0] : 60;
    let day = "";
    return ts.map((t) => {
      const d = new Date(t * 1000);
      const date = d.toLocaleDateString("en-GB", { day: "numeric", month: "short", ...(gap >= 20 * 86400 ? { year: "2-digit" } : {}) });
      if (gap >= 86400) return date;
      const time = d.toLocaleTimeString("en-GB", gap >= 60 ? { hour: "2-digit", minute: "2-digit" }
        : { hour: "2-digit", minute: "2-digit", second: "2-digit", ...(gap < 1 ? { fractionalSecondDigits: gap < 0.1 ? 2 : 1 } : {}) });
      if (date === day) return time;
      day = date;
      return `${time}\n${date}`;
    });
  }

  chosen(u) {
    if (u.select.width < 6) return;
    const from = u.posToVal(u.select.left, "x");
    const to = u.posToVal(u.select.left + u.select.width, "x");
    u.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
    this.onZoom?.(from, to);
  }

  /** rectangle gives the left and width of a stretch in the canvas, or null outside. */
  rectangle(u, from, to) {
    const { left, width } = u.bbox;
    const a = Math.max(left, u.valToPos(from, "x", true));
    const b = Math.min(left + width, u.valToPos(to, "x", true));
    return b < left || a > left + width ? null : [a, Math.max(2, b - a)];
  }

  drawAway(u) {
    u.ctx.save();
    u.ctx.fillStyle = variable("--away");
    for (const s of this.data?.away ?? []) {
      const r = this.rectangle(u, s.from, s.to);
      if (r) u.ctx.fillRect(r[0], u.bbox.top, r[1], u.bbox.height);
    }
    u.ctx.restore();
  }

  drawMarks(u) {
    u.ctx.save();
    for (const m of this.data?.marks ?? []) {
      const r = this.rectangle(u, m.from, m.to);
      if (!r) continue;
      u.ctx.fillStyle = variable(m.severity === "critical" ? "--bad" : "--warn");
      u.ctx.fillRect(r[0], u.bbox.top, r[1], 4 * devicePixelRatio);
    }
    u.ctx.restore();
  }

  makeLegend() {
    this.items = this.lines.map((l, i) => {
      const value = make("span", { className: "value" });
      const swatch = make("span", { className: "swatch", "aria-hidden": "true" });
      swatch.style.background = colour(i);
      const button = make("button", { type: "button", "aria-pressed": String(!this.off.has(l.name)), title: "Show or hide this line" }, swatch, l.name);
      button.addEventListener("click", () => {
        const show = this.off.has(l.name);
        if (show) this.off.delete(l.name);
        else this.off.add(l.name);
        button.setAttribute("aria-pressed", String(show));
        for (let s = 3 * i + 1; s <= 3 * i + 3; s++) this.plot.setSeries(s, { show });
      });
      return { root: make("li", {}, button, value), value };
    });
    this.legend.replaceChildren(...this.items.map((it) => it.root));
  }

  /** values shows what is at an index of the data, or the newest. */
  values(i) {
    this.lines.forEach((l, k) => {
      const at = i ?? l.mean.findLastIndex((v) => v !== null);
      const v = l.mean[at];
      let s = v === null || v === undefined ? "–" : this.format(v);
      if (v !== null && v !== undefined && l.high && l.low?.[at] !== null && l.high[at] !== null) s += ` (${this.format(l.low[at])} to ${this.format(l.high[at])})`;
      if (this.items?.[k]) text(this.items[k].value, s);
    });
  }

  destroy() {
    this.observer.disconnect();
    this.dark.removeEventListener("change", this.onDark);
    this.plot?.destroy();
    this.plot = null;
  }
}
