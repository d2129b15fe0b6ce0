// The fleet: every device in one table, of which only the rows that can be seen are
// in the document.

import * as api from "./api.js";
import { later, make, text } from "./dom.js";
import { Fleet, sparks } from "./fleetdata.js";
import { age, bits, bytes, count, duration, many, percent, share } from "./format.js";
import { drawSpark } from "./spark.js";

const every = 10_000; // milliseconds between two rounds
const learnEvery = 120_000;
const sparkFor = 60_000; // milliseconds a spark line is good for
const rowHeight = 44; // as in page.css
const headHeight = 36;
const more = 8; // rows beyond those that can be seen, above and below

/** columns: id, heading, whether more is first when sorted, the value to sort by, the text. */
const columns = [
  { id: "state", name: "State", sort: (d) => d.bad, down: true },
  { id: "instance", name: "Device", sort: (d) => d.instance },
  { id: "cpu", name: "CPU", sort: (d) => d.values.cpu, down: true, show: (d) => percent(d.values.cpu) },
  { id: "core", name: "Worst core", sort: (d) => d.values.core, down: true, show: (d) => percent(d.values.core) },
  { id: "spark", name: "CPU, 1 h" },
  { id: "drops", name: "Drops", title: "Packets that softnet dropped in the last two minutes", sort: (d) => d.values.drops, down: true, show: (d) => count(Math.round(d.values.drops)) },
  { id: "receive", name: "Received", sort: (d) => d.values.receive, down: true, show: (d) => bits(d.values.receive) },
  { id: "transmit", name: "Sent", sort: (d) => d.values.transmit, down: true, show: (d) => bits(d.values.transmit) },
  { id: "memory", name: "Memory", title: "Share in use, or what is available where the size is not known", sort: (d) => d.values.memory ?? (d.values.available === undefined ? undefined : -1 / d.values.available), down: true,
    show: (d) => (d.values.memory === undefined ? `${bytes(d.values.available)} free` : percent(d.values.memory)) },
  { id: "celsius", name: "Temp.", sort: (d) => d.values.celsius, down: true, show: (d) => `${d.values.celsius.toFixed(0)} °C` },
  { id: "day", name: "Day", title: "Availability over the last day", sort: (d) => d.push?.availability.day, show: (d) => share(d.push.availability.day) },
  { id: "month", name: "Month", title: "Availability over the last month", sort: (d) => d.push?.availability.month, show: (d) => share(d.push.availability.month) },
  { id: "last", name: "Last push", title: "How long ago; in italics the newest sample of what does not push here", sort: (d) => (d.push ? Date.parse(d.push.lastPush) / 1000 : d.values.newest), down: true,
    show: (d) => age(api.now() - (d.push ? Date.parse(d.push.lastPush) / 1000 : d.values.newest)) },
  { id: "lag", name: "Lag", title: "How old the newest sample of the last push was", sort: (d) => d.push?.lagSeconds, down: true, show: (d) => duration(Math.max(0, d.push.lagSeconds)) },
  { id: "skew", name: "Clock", title: "How far its clock is ahead of the adapter's", sort: (d) => (d.push?.clockKnown ? Math.abs(d.push.clockSkewSeconds) : undefined), down: true, show: (d) => duration(d.push.clockSkewSeconds) },
];

/** order sorts a list by a column; devices without a value come last either way. */
export function order(list, column, down) {
  const key = new Map(list.map((d) => [d, column.sort(d)]));
  const byName = (a, b) => a.instance.localeCompare(b.instance, "en", { numeric: true });
  return list.sort((a, b) => {
    const [x, y] = [key.get(a), key.get(b)];
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined) || byName(a, b);
    const c = typeof x === "string" ? byName(a, b) : x - y;
    return (down ? -c : c) || byName(a, b);
  });
}

/** matcher reads a filter: words that are all to be found, or label=value. */
export function matcher(filter) {
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  return (d) => words.every((w) => {
    const [, name, value] = /^([a-z_][a-z0-9_]*)=(.*)$/.exec(w) ?? [];
    if (name) return String(name === "state" ? d.state : d.labels[name] ?? "").toLowerCase().replaceAll(" ", "-").includes(value.replaceAll(" ", "-"));
    return [d.instance, d.state, d.push?.address, d.push?.userAgent, ...d.why, ...Object.values(d.labels)].join(" ").toLowerCase().includes(w);
  });
}

class View {
  constructor(root, params, page) {
    Object.assign(this, { root, page });
    this.fleet = new Fleet();
    this.rows = new Map(); // elements by instance
    this.sparks = new Map();
    this.column = columns.find((c) => c.id === params.get("sort") && c.sort) ?? columns[0];
    this.down = params.has("down") ? params.get("down") === "1" : Boolean(this.column.down);
    this.stopped = false;
    this.loaded = false;
    this.build(params);
    this.onScroll = () => this.window();
    addEventListener("scroll", this.onScroll, { passive: true });
    addEventListener("resize", this.onScroll, { passive: true });
    this.onVisible = () => !document.hidden && this.round();
    document.addEventListener("visibilitychange", this.onVisible);
    this.askSparks = later(() => this.loadSparks(), 150);
    this.clock = setInterval(() => this.window(), 1000);
    this.round();
  }

  build(params) {
    this.search = make("input", { type: "search", id: "search", value: params.get("search") ?? "", autocomplete: "off", spellcheck: false, placeholder: "name, address, job=node, state=silent", oninput: () => this.changed() });
    this.label = make("select", { id: "label", onchange: () => this.pick() }, make("option", { value: "" }, "any label"));
    this.summary = make("p", { id: "summary", role: "status" }, "asking the adapter for devices…");
    this.head = make("tr", { role: "row" }, ...columns.map((c) => this.heading(c)));
    this.body = make("tbody");
    this.above = make("tbody", { className: "space", "aria-hidden": "true" }, make("tr", {}, make("td")));
    this.below = make("tbody", { className: "space", "aria-hidden": "true" }, make("tr", {}, make("td")));
    this.table = make("table", { id: "devices" },
      make("caption", { className: "hidden" }, "Devices; what is wrong comes first unless a heading is chosen"),
      make("thead", {}, this.head), this.above, this.body, this.below);
    this.empty = this.emptyState();
    this.none = make("p", { id: "none", hidden: true }, "No device matches. ", make("button", { type: "button", onclick: () => { this.search.value = ""; this.changed(); this.search.focus(); } }, "Show all"));
    this.root.append(
      make("div", { className: "bar" }, make("h1", {}, "Fleet"), this.summary,
        make("form", { role: "search", className: "tools", onsubmit: (e) => e.preventDefault() },
          make("label", { for: "search", className: "hidden" }, "Search devices"), this.search,
          make("label", { for: "label", className: "hidden" }, "Filter by label"), this.label)),
      this.empty, this.none, this.table);
    this.table.hidden = true;
  }

  heading(c) {
    const th = make("th", { scope: "col", className: `c-${c.id}`, title: c.title ?? "" });
    if (!c.sort) {
      th.textContent = c.name;
      return th;
    }
    th.append(make("button", { type: "button", onclick: () => this.sortBy(c) }, c.name));
    c === this.column && th.setAttribute("aria-sort", this.down ? "descending" : "ascending");
    return th;
  }

  emptyState() {
    const url = new URL("api/v1/write", location.href.split("#")[0]);
    return make("section", { id: "empty", hidden: true, className: "panel" },
      make("h2", {}, "No device has pushed yet"),
      make("p", {}, "Start an exporter on a router or any Linux machine and point it at this adapter:"),
      make("pre", {}, make("code", {}, `ticktier-exporter --remote-write.url=${url}`)),
      make("p", {}, "Prometheus, Alloy and vmagent can push here too: the same URL is a remote-write endpoint. The device appears here with its first push."));
  }

  sortBy(c) {
    this.down = c === this.column ? !this.down : Boolean(c.down);
    this.column = c;
    [...this.head.children].forEach((th, i) => {
      if (columns[i] === c) th.setAttribute("aria-sort", this.down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    });
    this.changed();
  }

  /** pick puts a label that was chosen into the search. */
  pick() {
    if (!this.label.value) return;
    this.search.value = `${this.search.value} ${this.label.value}`.trim();
    this.label.value = "";
    this.changed();
  }

  changed() {
    const p = new URLSearchParams();
    if (this.search.value.trim()) p.set("search", this.search.value.trim());
    if (this.column !== columns[0] || !this.down) {
      p.set("sort", this.column.id);
      p.set("down", this.down ? "1" : "0");
    }
    this.page.address(p);
    this.show();
  }

  async round() {
    if (this.running || this.stopped) return;
    this.running = true;
    clearTimeout(this.timer);
    try {
      if (!(Date.now() - this.learnt < learnEvery)) {
        await this.fleet.learn();
        this.learnt = Date.now();
      }
      await this.fleet.refresh(() => {
        if (this.stopped) return;
        this.loaded = true;
        this.show();
      });
      if (!this.stopped) this.page.report(null);
    } catch (err) {
      if (!this.stopped) this.page.report(err);
      if (!this.loaded && !this.stopped) text(this.summary, "no answer yet");
    } finally {
      this.running = false;
      if (!document.hidden && !this.stopped) this.timer = setTimeout(() => this.round(), every);
    }
  }

  /** show brings the list in line with what is known and asked for. */
  show() {
    if (!this.loaded) return;
    const all = [...this.fleet.devices.values()];
    this.list = order(all.filter(matcher(this.search.value)), this.column, this.down);
    const n = (f) => all.filter(f).length;
    const parts = [many(all.length, "device")];
    if (this.list.length !== all.length) parts.unshift(`${count(this.list.length)} of`);
    let s = parts.join(" ");
    const silent = n((d) => d.state === "silent");
    const alarmed = n((d) => d.bad > 1);
    if (silent > 0) s += `, ${count(silent)} silent`;
    if (alarmed > 0) s += `, ${many(alarmed, "needs", "need")} a look`;
    text(this.summary, s);
    this.labels(all);
    this.empty.hidden = all.length > 0;
    this.table.hidden = this.list.length === 0;
    this.none.hidden = this.list.length > 0 || all.length === 0;
    this.table.setAttribute("aria-rowcount", String(this.list.length + 1));
    this.window();
  }

  /** labels offers the labels that tell devices apart. */
  labels(all) {
    const found = new Map();
    for (const d of all) for (const [k, v] of Object.entries(d.labels)) if (k !== "instance") found.set(`${k}=${v}`, (found.get(`${k}=${v}`) ?? 0) + 1);
    for (const s of ["up", "silent", "lagging", "no push"]) {
      const n = all.filter((d) => d.state === s).length;
      if (n > 0) found.set(`state=${s.replaceAll(" ", "-")}`, n);
    }
    const wanted = [...found].filter(([k]) => !/\s/.test(k)).sort().slice(0, 200).map(([k, n]) => `${k} (${n})`);
    if (wanted.join() === this.offered) return;
    this.offered = wanted.join();
    this.label.replaceChildren(make("option", { value: "" }, "any label"), ...wanted.map((w) => make("option", { value: w.replace(/ \(\d+\)$/, "") }, w)));
  }

  /** window puts the rows that can be seen into the document. */
  window() {
    if (!this.list || this.table.hidden) return;
    const top = this.table.getBoundingClientRect().top + headHeight;
    const first = Math.max(0, Math.min(this.list.length - 1, Math.floor(-top / rowHeight)) - more);
    const last = Math.min(this.list.length, Math.ceil((innerHeight - top) / rowHeight) + more);
    const focused = document.activeElement?.closest?.("tr")?.dataset.instance;
    const shown = [];
    for (let i = first; i < last; i++) shown.push(this.row(this.list[i], i));
    const same = shown.length === this.body.children.length && shown.every((r, i) => r === this.body.children[i]);
    if (!same) {
      this.body.replaceChildren(...shown);
      if (focused && document.activeElement === document.body) this.rows.get(focused)?.root.querySelector("a")?.focus({ preventScroll: true });
    }
    const height = (e, rows) => {
      e.hidden = rows <= 0;
      e.firstChild.firstChild.style.height = `${rows * rowHeight}px`;
    };
    height(this.above, first);
    height(this.below, this.list.length - last);
    const kept = new Set(shown);
    for (const [instance, r] of this.rows) if (!kept.has(r.root)) this.rows.delete(instance);
    this.askSparks();
  }

  row(d, i) {
    let r = this.rows.get(d.instance);
    if (!r) {
      r = { cells: {} };
      r.root = make("tr", {}, ...columns.map((c) => (r.cells[c.id] = make(c.id === "instance" ? "th" : "td", { className: `c-${c.id}`, scope: c.id === "instance" ? "row" : undefined }))));
      r.root.dataset.instance = d.instance;
      r.link = make("a", { href: `#/device?${new URLSearchParams({ instance: d.instance })}` }, d.instance);
      r.why = make("small");
      r.cells.instance.append(r.link, r.why);
      r.canvas = make("canvas", { role: "img", "aria-label": "" });
      r.cells.spark.append(r.canvas);
      r.state = make("span", { className: "state" });
      r.cells.state.append(r.state);
      this.rows.set(d.instance, r);
    }
    r.root.setAttribute("aria-rowindex", String(i + 2));
    r.root.className = `bad${d.bad}${d.push ? "" : " quiet"}`;
    text(r.state, d.state);
    r.state.className = `state s-${d.bad >= 3 ? "bad" : d.bad === 2 ? "warn" : d.state === "up" ? "good" : "none"}`;
    text(r.why, d.why.filter((w) => w !== d.state).join(", "));
    for (const c of columns) {
      if (c.show) text(r.cells[c.id], c.sort(d) === undefined ? "–" : c.show(d));
    }
    r.cells.core.classList.toggle("high", d.values.core > 0.97);
    r.cells.drops.classList.toggle("high", d.values.drops >= 1);
    const s = this.sparks.get(d.instance);
    if (s && r.drawn !== s) {
      r.drawn = s;
      drawSpark(r.canvas, s);
    }
    return r.root;
  }

  /** loadSparks asks for the spark lines of the rows in the document that lack one. */
  async loadSparks() {
    if (this.sparking || this.stopped || document.hidden) return;
    const old = Date.now() - sparkFor;
    const wanted = [...this.rows.keys()].filter((i) => !(this.sparks.get(i)?.at > old)).slice(0, 40);
    if (wanted.length === 0) return;
    this.sparking = true;
    try {
      const at = Date.now();
      for (const [i, s] of await sparks(wanted)) this.sparks.set(i, Object.assign(s, { at }));
      if (!this.stopped) this.window();
    } catch {
      // The next round tells.
    } finally {
      this.sparking = false;
    }
  }

  stop() {
    this.stopped = true;
    clearTimeout(this.timer);
    clearInterval(this.clock);
    this.askSparks.cancel();
    removeEventListener("scroll", this.onScroll);
    removeEventListener("resize", this.onScroll);
    document.removeEventListener("visibilitychange", this.onVisible);
  }
}

/** fleet is the view of all devices. */
export function fleet(root, params, page) {
  const v = new View(root, params, page);
  return { title: "Fleet", stop: () => v.stop() };
}
