// A spark line: a ratio between 0 and 1 over the last hour, without axes.

import { percent } from "./format.js";

const width = 120;
const height = 28;

/** drawSpark draws {start, end, step, points}; steps without a point are gaps. */
export function drawSpark(canvas, { start, end, step, points }) {
  const scale = devicePixelRatio || 1;
  canvas.width = width * scale;
  canvas.height = height * scale;
  const style = getComputedStyle(canvas);
  const c = canvas.getContext("2d");
  c.scale(scale, scale);
  const x = (t) => 1 + ((t - start) / (end - start)) * (width - 2);
  const y = (v) => height - 2 - Math.min(1, Math.max(0, v)) * (height - 4);
  const runs = [];
  for (const p of points) {
    const run = runs.at(-1);
    if (run && p[0] - run.at(-1)[0] <= 1.5 * step) run.push(p);
    else runs.push([p]);
  }
  c.strokeStyle = style.getPropertyValue("--edge");
  c.beginPath();
  c.moveTo(0, height - 1.5);
  c.lineTo(width, height - 1.5);
  c.stroke();
  c.lineWidth = 1.4;
  c.lineJoin = "round";
  c.lineCap = "round";
  c.strokeStyle = style.getPropertyValue("--c0");
  c.fillStyle = style.getPropertyValue("--c0");
  for (const run of runs) {
    c.beginPath();
    for (const [t, v] of run) c.lineTo(x(t), y(v));
    if (run.length === 1) c.lineTo(x(run[0][0]) + 0.1, y(run[0][1]));
    c.stroke();
    c.globalAlpha = 0.14;
    c.lineTo(x(run.at(-1)[0]), height - 2);
    c.lineTo(x(run[0][0]), height - 2);
    c.fill();
    c.globalAlpha = 1;
  }
  const last = points.at(-1);
  const most = points.reduce((m, [, v]) => Math.max(m, v), 0);
  canvas.setAttribute("aria-label", last ? `CPU over the last hour: now ${percent(last[1])}, highest ${percent(most)}` : "no CPU samples in the last hour");
}
