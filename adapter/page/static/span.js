// The stretch of time that a view shows: a span that follows the clock, or one that
// stands still. It is kept in the address.

import { now } from "./api.js";

/** spans are those that can be chosen: seconds and what they are called. */
export const spans = [
  [1, "1 s"], [10, "10 s"], [60, "1 min"], [600, "10 min"], [3600, "1 h"], [6 * 3600, "6 h"], [86400, "1 d"],
  [7 * 86400, "1 w"], [30 * 86400, "30 d"], [90 * 86400, "90 d"], [365 * 86400, "1 y"],
];

const shortest = 0.1;
const longest = 10 * 365 * 86400;

export class Span {
  constructor(params) {
    const [from, to] = ["from", "to"].map((k) => Number(params.get(k)) / 1000);
    const span = Number(params.get("span"));
    this.fixed = null;
    this.length = span >= shortest && span <= longest ? span : 3600;
    if (from > 0 && to > from) this.set(from, to);
  }

  get follows() { return this.fixed === null; }

  /** lag is how far behind the clock the end is, as samples take their time. */
  lag = 0;

  get() {
    if (this.fixed) return this.fixed;
    const to = now() - this.lag;
    return { from: to - this.length, to };
  }

  follow(length = this.length) {
    this.fixed = null;
    this.length = Math.min(longest, Math.max(shortest, length));
  }

  set(from, to) {
    const middle = (from + to) / 2;
    const length = Math.min(longest, Math.max(shortest, to - from));
    const end = Math.min(middle + length / 2, now());
    this.fixed = { from: end - length, to: end };
    this.length = length;
  }

  /** pan moves by a share of the length; beyond the clock it follows again. */
  pan(share) {
    const { from, to } = this.get();
    const by = share * this.length;
    if (to + by >= now()) this.follow();
    else this.set(from + by, to + by);
  }

  /** zoom makes the length so many times as long: around its middle, or up to now. */
  zoom(factor) {
    if (this.follows) return this.follow(this.length * factor);
    const { from, to } = this.fixed;
    const middle = (from + to) / 2;
    this.set(middle - (this.length * factor) / 2, middle + (this.length * factor) / 2);
  }

  put(params) {
    if (this.fixed) {
      params.set("from", String(Math.round(this.fixed.from * 1000)));
      params.set("to", String(Math.round(this.fixed.to * 1000)));
    } else {
      params.set("span", String(Number(this.length.toFixed(3))));
    }
    return params;
  }
}
