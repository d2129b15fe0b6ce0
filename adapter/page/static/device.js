// One device on one time axis, from a second to a year.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { later, make, text } from "./dom.js";
import { age, bytes, count, duration, moment, share } from "./format.js";
import { cadence, load } from "./load.js";
import { sections } from "./sections.js";
import { Span, spans } from "./span.js";

const atOnce = 3; // sections that are read at the same time

class View {
  constructor(root, params, page) {
    Object.assign(this, { root, page });
    this.instance = params.get("instance") ?? "";
    this.span = new Span(params);
    this.sections = sections(this.instance);
    this.charts = new Map(); // by section
    this.every = new Map(); // the time between a section's samples
    this.visible = new Set();
    this.turn = 0; // counts what was asked, so that late answers are dropped
    this.build();
    this.observer = new IntersectionObserver((es) => this.seen(es), { rootMargin: "150px" });
    this.onKey = (e) => this.key(e);
    document.addEventListener("keydown", this.onKey);
    this.onVisible = () => !document.hidden && this.span.follows && this.refresh();
    document.addEventListener("visibilitychange", this.onVisible);
    this.soon = later(() => this.refresh(true), 120);
    this.refresh(true);
  }

  build() {
    const button = (label, name, f) => make("button", { type: "button", "aria-label": name, title: name, onclick: f }, label);
    this.presets = spans.map(([s, name]) => make("button", { type: "button", onclick: () => this.change(() => this.span.follow(s)) }, name));
    this.nowButton = make("button", { type: "button", title: "Follow the clock (Home)", onclick: () => this.change(() => this.span.follow()) }, "now");
    this.when = make("p", { id: "when", role: "status" });
    this.facts = make("dl", { className: "facts" });
    this.marks = make("ul", { className: "marks", "aria-label": "Alerts in this stretch of time" });
    this.left = make("p", { id: "left-out" });
    this.grid = make("div", { className: "charts" });
    const q = new URLSearchParams({ instance: this.instance });
    this.root.append(
      make("div", { className: "bar" }, make("h1", {}, this.instance), make("a", { href: `#/live?${q}` }, "Live ticks"), make("a", { href: `#/fleet` }, "All devices")),
      this.facts,
      make("div", { className: "axis", role: "group", "aria-label": "Time axis" },
        make("div", { className: "presets" }, ...this.presets),
        make("div", { className: "moves" },
          button("◀", "Earlier (arrow left)", () => this.change(() => this.span.pan(-0.5))),
          button("▶", "Later (arrow right)", () => this.change(() => this.span.pan(0.5))),
          button("+", "Zoom in (+)", () => this.change(() => this.span.zoom(0.5))),
          button("−", "Zoom out (−)", () => this.change(() => this.span.zoom(2))),
          this.nowButton),
        this.when),
      this.marks, this.grid, this.left,
      make("p", { className: "note" }, "Drag over a chart to zoom in, double-click to zoom out. Keys: arrow left and right move, + and − zoom, Home follows the clock."));
  }

  /** change moves the axis, and reads again. */
  change(f) {
    f();
    this.page.address(this.span.put(new URLSearchParams({ instance: this.instance })));
    this.say();
    this.soon();
  }

  key(e) {
    if (e.ctrlKey || e.altKey || e.metaKey || e.target.closest?.("input, textarea, select")) return;
    const does = {
      ArrowLeft: () => this.span.pan(-0.25), ArrowRight: () => this.span.pan(0.25), Home: () => this.span.follow(),
      "+": () => this.span.zoom(0.5), "=": () => this.span.zoom(0.5), "-": () => this.span.zoom(2),
    }[e.key];
    if (!does) return;
    e.preventDefault();
    this.change(does);
  }

  /** say names the stretch of time. */
  say() {
    const { from, to } = this.span.get();
    text(this.when, this.span.follows ? `the last ${duration(this.span.length)}, up to ${moment(to, this.span.length)}` : `${moment(from, this.span.length)} to ${moment(to, this.span.length)} (${duration(this.span.length)})`);
    spans.forEach(([s], i) => this.presets[i].setAttribute("aria-pressed", String(this.span.follows && Math.abs(this.span.length / s - 1) < 0.01)));
    this.nowButton.setAttribute("aria-pressed", String(this.span.follows));
  }

  /** refresh reads what can be seen; all anew where the axis was moved. */
  async refresh(moved = false) {
    if (this.stopped || (this.running && !moved)) return;
    this.running = true;
    clearTimeout(this.timer);
    this.abort?.abort();
    const abort = (this.abort = new AbortController());
    const turn = ++this.turn;
    this.say();
    const range = this.span.get();
    try {
      if (moved || !(Date.now() - this.factsAt < 10_000)) await this.about(range, abort.signal);
      if (turn !== this.turn || this.stopped) return;
      this.range = this.span.get();
      this.page.report(null);
      for (const c of this.charts.values()) c.stale = true;
      await this.loadVisible(abort.signal);
      if (turn === this.turn && !this.stopped) this.page.report(null);
    } catch (err) {
      if (turn === this.turn && !this.stopped) this.page.report(err);
    } finally {
      if (turn === this.turn) {
        this.running = false;
        // As often as a point comes to be, but not more often than every second.
        if (this.span.follows && !document.hidden && !this.stopped) {
          this.timer = setTimeout(() => this.refresh(), Math.min(30_000, Math.max(1000, this.span.length * 5)));
        } else if (!this.stopped && document.getElementById("trouble").hidden === false) {
          this.timer = setTimeout(() => this.refresh(true), 5000);
        }
      }
    }
  }

  /** about asks what the device is, which of its metrics are there, and which alerts fired. */
  async about({ from, to }, signal) {
    const selector = `{instance=${api.quote(this.instance)}}`;
    const [device, names, alerts] = await Promise.all([
      api.device(this.instance, signal),
      api.names(selector, Math.min(from, to - 600), to + 1, signal),
      this.alertsIn(from, to, signal),
    ]);
    this.factsAt = Date.now();
    this.span.lag = device?.up ? Math.max(0, Math.min(15, (device.intervalSeconds || 0) + Math.max(0, device.lagSeconds))) : 0;
    this.tell(device);
    this.away = (device?.outages ?? []).map((o) => ({ from: Date.parse(o.from) / 1000, to: Date.parse(o.to) / 1000 }));
    if (device && !device.up) this.away.push({ from: Date.parse(device.lastPush) / 1000, to: api.now() });
    this.alerts = alerts;
    this.tellAlerts(to - from);
    this.arrange(new Set(names.data));
  }

  async alertsIn(from, to, signal) {
    const step = Math.max(15, (to - from) / 500);
    const { data } = await api.range(`ALERTS{alertstate="firing",instance=${api.quote(this.instance)}}`, from, to, step, signal);
    const out = [];
    for (const { metric, values } of data.result) {
      let last = null;
      for (const [t] of values) {
        if (last && t - last.to < 1.6 * step) last.to = t;
        else out.push((last = { name: metric.alertname, severity: metric.severity, from: t, to: Math.min(t + step / 2, to) }));
      }
    }
    return out.sort((a, b) => b.from - a.from);
  }

  tellAlerts(span) {
    const shown = this.alerts.slice(0, 8).map((a) => make("li", {}, make("span", { className: `state s-${a.severity === "critical" ? "bad" : "warn"}` }, a.name), ` from ${moment(a.from, span)} to ${moment(a.to, span)}`));
    if (this.alerts.length > 8) shown.push(make("li", {}, `and ${this.alerts.length - 8} more`));
    this.marks.replaceChildren(...shown);
    this.marks.hidden = shown.length === 0;
  }

  tell(d) {
    const rows = d ? [
      ["State", d.up ? "up" : `silent for ${age(d.ageSeconds)}`], ["Availability", `${share(d.availability.day)} of the day, ${share(d.availability.month)} of the month`],
      ["Last push", `${age(d.ageSeconds)} ago from ${d.address}`], ["Sender", d.userAgent], ["Series", count(d.series)],
      ["Lag", duration(Math.max(0, d.lagSeconds))], d.clockKnown ? ["Clock", `${duration(Math.abs(d.clockSkewSeconds))} ${d.clockSkewSeconds < 0 ? "behind" : "ahead"}`] : null,
      ["Stored", `${count(d.samples)} samples in ${bytes(d.bytes)} of pushes`], d.lostTicks > 0 ? ["Lost ticks", count(d.lostTicks)] : null,
      d.clones?.length ? ["Clones", d.clones.map((c) => c.address).join(", ")] : null,
    ] : [["State", "does not push here; what is stored of it is shown"]];
    this.facts.replaceChildren(...rows.filter((r) => r?.[1]).map(([k, v]) => make("div", {}, make("dt", {}, k), make("dd", {}, v))));
  }

  /** arrange makes charts of the sections that have data, and names the others. */
  arrange(names) {
    const left = [];
    for (const s of this.sections) {
      const queries = s.queries.filter((q) => names.has(q.needs));
      let c = this.charts.get(s);
      if (queries.length === 0) {
        left.push(s.title);
        if (c) this.drop(s, c);
        continue;
      }
      if (!c) {
        c = new Chart({ ...s, sync: "device", onZoom: (a, b) => this.change(() => this.span.set(a, b)), onOut: () => this.change(() => this.span.zoom(2)) });
        c.root.id = `chart-${s.id}`;
        c.say("reading…");
        c.stale = true;
        this.charts.set(s, c);
        const next = this.sections.slice(this.sections.indexOf(s) + 1).map((n) => this.charts.get(n)).find(Boolean);
        this.grid.insertBefore(c.root, next?.root ?? null);
        this.observer.observe(c.root);
      }
      c.queries = queries;
    }
    text(this.left, this.charts.size === 0
      ? `Nothing is stored of ${this.instance} in this stretch of time. Zoom out, or see whether the name is right.`
      : left.length > 0 ? `Left out, as there is no data in this stretch of time: ${left.join(", ")}.` : "");
  }

  drop(s, c) {
    this.observer.unobserve(c.root);
    c.root.remove();
    c.destroy();
    this.visible.delete(s);
    this.charts.delete(s);
  }

  seen(entries) {
    for (const e of entries) {
      for (const [s, c] of this.charts) {
        if (c.root !== e.target) continue;
        if (e.isIntersecting) this.visible.add(s);
        else this.visible.delete(s);
      }
    }
    if (this.range && this.abort) this.loadVisible(this.abort.signal).catch((err) => this.page.report(err));
  }

  /** loadVisible reads the sections in sight that are not up to date, a few at a time. */
  async loadVisible(signal) {
    const work = async () => {
      for (;;) {
        const s = this.sections.find((s) => this.visible.has(s) && this.charts.get(s)?.stale);
        if (!s || signal.aborted) return;
        this.charts.get(s).stale = false;
        await this.loadOne(s, this.charts.get(s), signal);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
  }

  async loadOne(s, c, signal) {
    const { from, to } = this.range;
    try {
      let every = 30;
      if (to - from < 86400) {
        if (!(Date.now() - c.everyAt < 60_000)) {
          c.every = await cadence(c.queries[0], to, signal);
          c.everyAt = Date.now();
        }
        every = c.every;
      }
      const points = Math.max(60, Math.min(500, Math.round(c.host.clientWidth / 3)));
      const data = await load(s, c.queries, from, to, points, every, signal);
      if (!signal.aborted && c.host.isConnected) c.draw({ ...data, from, to, marks: this.alerts, away: this.away });
    } catch (err) {
      if (api.aborted(err)) return;
      c.stale = true;
      if (!(err instanceof api.Refused)) throw err;
      c.stale = false;
      c.say(`The adapter refused to answer: ${err.message}. A shorter stretch of time asks for less.`);
    }
  }

  stop() {
    this.stopped = true;
    this.abort?.abort();
    clearTimeout(this.timer);
    this.soon.cancel();
    this.observer.disconnect();
    document.removeEventListener("keydown", this.onKey);
    document.removeEventListener("visibilitychange", this.onVisible);
    for (const c of this.charts.values()) c.destroy();
  }
}

/** device is the view of one device. */
export function device(root, params, page) {
  const v = new View(root, params, page);
  return { title: v.instance, stop: () => v.stop() };
}
