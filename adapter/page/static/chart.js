// A small chart of a ratio between 0 and 1 over time, drawn with inline SVG.

const width = 600;
const height = 100;
const top = 4; // room for the line's own width

/** element makes an SVG element with attributes. */
function element(name, attributes = {}) {
  const e = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) e.setAttribute(key, value);
  return e;
}

/** y is where a ratio is drawn. */
function y(ratio) {
  return height - Math.min(1, Math.max(0, ratio)) * (height - top);
}

/** runs splits points where more than one step is missing between two of them. */
export function runs(points, step) {
  const out = [];
  for (const p of points) {
    const run = out.at(-1);
    if (run && p[0] - run.at(-1)[0] <= step * 1.5) run.push(p);
    else out.push([p]);
  }
  return out;
}

/** Chart is one chart; it says through onPoint what the pointer is at, or null. */
export class Chart {
  constructor(onPoint) {
    this.svg = element("svg", { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img" });
    for (const ratio of [0.5, 1]) {
      this.svg.append(element("line", { class: "grid", x1: 0, x2: width, y1: y(ratio), y2: y(ratio) }));
    }
    this.area = element("path", { class: "area" });
    this.line = element("path", { class: "line" });
    this.mark = element("line", { class: "mark", y1: 0, y2: height, visibility: "hidden" });
    this.svg.append(this.area, this.line, this.mark);
    this.points = [];
    this.onPoint = onPoint;
    this.svg.addEventListener("pointermove", (e) => this.point(e));
    this.svg.addEventListener("pointerleave", () => this.leave());
  }

  /** draw shows points between two times, in Unix seconds. */
  draw(points, from, to, step) {
    Object.assign(this, { points, from, to });
    const x = (t) => ((t - from) / (to - from)) * width;
    let line = "";
    let area = "";
    for (const run of runs(points, step)) {
      const path = run.map(([t, v]) => `${x(t).toFixed(1)},${y(v).toFixed(2)}`).join("L");
      // A run of one point is a dot: a line without length has round ends only.
      line += `M${path}${run.length === 1 ? "h1" : ""}`;
      area += `M${x(run[0][0]).toFixed(1)},${height}L${path}V${height}Z`;
    }
    this.line.setAttribute("d", line);
    this.area.setAttribute("d", area);
  }

  /** point tells of the point nearest to the pointer. */
  point(event) {
    if (this.points.length === 0) return;
    const box = this.svg.getBoundingClientRect();
    const t = this.from + ((event.clientX - box.left) / box.width) * (this.to - this.from);
    const nearest = this.points.reduce((a, b) => (Math.abs(b[0] - t) < Math.abs(a[0] - t) ? b : a));
    const at = ((nearest[0] - this.from) / (this.to - this.from)) * width;
    this.mark.setAttribute("x1", at);
    this.mark.setAttribute("x2", at);
    this.mark.setAttribute("visibility", "visible");
    this.onPoint(nearest);
  }

  leave() {
    this.mark.setAttribute("visibility", "hidden");
    this.onPoint(null);
  }
}
