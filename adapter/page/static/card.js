// One device on the page. A client's words reach the document as text only.

import * as api from "./api.js";
import { Chart } from "./chart.js";
import { age, bytes, clock, count, many, percent } from "./format.js";

const span = 600; // seconds that a chart shows
const step = 2; // seconds between its points
const overlap = 60; // seconds that are asked for again: samples come late

/** make builds an element with a class, a text and children. */
function make(name, className = "", text = "", ...children) {
  const e = document.createElement(name);
  if (className) e.className = className;
  if (text) e.textContent = text;
  e.append(...children);
  return e;
}

export class Card {
  constructor(instance) {
    this.instance = instance;
    this.points = [];
    this.range = 0;
    this.asking = false;
    this.visible = false;
    this.pointed = null;

    this.chart = new Chart((p) => {
      this.pointed = p;
      this.caption();
    });
    this.busy = make("span", "busy");
    this.age = make("p", "age");
    this.nothing = make("div", "nothing", "asking for CPU samples…");
    this.left = make("span", "", `${span / 60} min ago`);
    this.right = make("span", "", "now");
    this.details = make("dl");
    this.root = make("li", "card", "",
      make("div", "head", "", make("h2", "", instance), this.busy),
      this.age,
      make("figure", "", "", make("div", "scale", "CPU, 100 %"), this.chart.svg, this.nothing,
        make("figcaption", "", "", this.left, this.right)),
      this.details);
  }

  /** update takes what the adapter says of the device now. */
  update(device, offset) {
    this.device = device;
    this.lastPush = Date.parse(device.lastPush) / 1000;
    this.tick(Date.now() / 1000 + offset);
    const rows = [
      ["Address", device.address],
      ["Sender", device.userAgent],
      ["Series", `${count(device.series)} by remote write ${device.protocol}`],
      ["Stored", `${many(device.samples, "sample")} in ${many(device.pushes, "push", "pushes")}, ${bytes(device.bytes)}`],
    ];
    if (device.rejected > 0) rows.push(["Refused", many(device.rejected, "sample")]);
    if (device.lastStatus >= 500) rows.push(["Trouble", `the last push could not be stored (${device.lastStatus})`]);
    if (device.lagSeconds < -1) rows.push(["Clock", `${age(-device.lagSeconds)} ahead`]);
    if (device.lagSeconds > 60) rows.push(["Lag", `newest sample ${age(device.lagSeconds)} old when it came`]);
    this.details.replaceChildren(...rows.filter(([, value]) => value).flatMap(([key, value]) => [make("dt", "", key), make("dd", "", value)]));
  }

  /** tick shows the age of the last push; now is the adapter's clock. */
  tick(now) {
    const text = age(now - this.lastPush);
    this.age.textContent = this.device.up ? `pushed ${text} ago` : `silent for ${text}`;
    this.root.classList.toggle("down", !this.device.up);
  }

  /** refresh asks for the points that are new, and draws. now is the adapter's clock. */
  async refresh(now) {
    if (this.asking) return;
    this.asking = true;
    try {
      const end = Math.floor(now / step) * step;
      const newest = this.points.at(-1)?.[0] ?? 0;
      const start = Math.max(end - span, Math.min(newest - overlap, end));
      const got = await api.busy(this.instance, newest ? start : end - span, end, step, this.range);
      const from = newest ? start : 0;
      this.points = [...this.points.filter(([t]) => t >= end - span && t < from), ...got.points];
      if (got.points.length > 0) this.range = got.range;
      this.draw(end);
    } finally {
      this.asking = false;
    }
  }

  draw(end) {
    this.chart.draw(this.points, end - span, end, step);
    this.nothing.hidden = this.points.length > 0;
    this.nothing.textContent = `no CPU samples in the last ${span / 60} minutes`;
    const last = this.points.at(-1);
    const fresh = last && end - last[0] <= 30;
    this.busy.textContent = fresh ? percent(last[1]) : "";
    this.chart.svg.setAttribute("aria-label",
      `CPU of ${this.instance} over the last ${span / 60} minutes` + (fresh ? `, now ${percent(last[1])}` : ""));
    this.caption();
  }

  /** caption names the point under the pointer, or the ends of the chart. */
  caption() {
    const p = this.pointed;
    this.left.textContent = p ? clock(p[0]) : `${span / 60} min ago`;
    this.right.textContent = p ? percent(p[1]) : "now";
  }
}
