// What the fleet view knows of each device: the adapter's own list of who pushes,
// joined with a few queries over the whole fleet at once.

import * as api from "./api.js";
import { age, duration } from "./format.js";

const known = 14 * 86400; // seconds back in which a device that does not push is looked for
const window = "2m"; // what rates are taken over: two samples of a device that sends every 30 s
const wire = `device!~"lo|veth.*|docker.*|br-.*|cni.*|virbr.*|ifb.*"`;

// Metrics of which every device has at least one, by which its labels are learnt.
const marks = ["node_load1", "node_uname_info", "node_boot_time_seconds"];

/** questions are the columns that come from one query each, by instance. */
const questions = {
  cpu: `1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle"}[${window}]))`,
  core: `1 - min by (instance) (rate(node_cpu_seconds_total{mode="idle"}[${window}]))`,
  drops: `sum by (instance) (increase(node_softnet_dropped_total[${window}]))`,
  receive: `8 * sum by (instance) (rate(node_network_receive_bytes_total{${wire}}[${window}]))`,
  transmit: `8 * sum by (instance) (rate(node_network_transmit_bytes_total{${wire}}[${window}]))`,
  available: `min by (instance) (node_memory_MemAvailable_bytes)`,
  memory: `1 - min by (instance) (node_memory_MemAvailable_bytes) / max by (instance) (node_memory_MemTotal_bytes)`,
  celsius: `max by (instance) (node_hwmon_temp_celsius or node_thermal_zone_temp)`,
  newest: `max by (instance) (timestamp(node_load1))`,
};

/** Fleet is the joined list; devices is by instance. */
export class Fleet {
  devices = new Map();

  /** learn asks who there is, with labels. It costs more than refresh and changes seldom. */
  async learn() {
    const end = api.now();
    const { data } = await api.series(marks.map((m) => m), end - known, end);
    for (const { __name__: _, ...labels } of data) {
      if (!labels.instance) continue;
      const d = this.get(labels.instance);
      for (const [k, v] of Object.entries(labels)) {
        // What only one metric has, such as the kernel's version, is no label of the device.
        if (_ === "node_load1" || k === "job" || k === "instance") d.labels[k] ??= v;
      }
    }
  }

  get(instance) {
    let d = this.devices.get(instance);
    if (!d) this.devices.set(instance, (d = { instance, labels: { instance }, push: null, alerts: [], values: {} }));
    return d;
  }

  /** refresh asks for everything that moves; onPart is called as answers come. */
  async refresh(onPart) {
    const list = await api.devices();
    for (const d of this.devices.values()) d.push = null;
    for (const push of list) this.get(push.instance).push = push;
    this.judge();
    onPart();
    const time = api.now();
    const part = async (name) => {
      const { data } = await api.query(questions[name], time);
      for (const d of this.devices.values()) delete d.values[name];
      for (const { metric, value } of data.result) {
        const v = Number(value[1]);
        if (metric.instance && Number.isFinite(v)) this.get(metric.instance).values[name] = v;
      }
    };
    const alerts = async () => {
      const all = await api.alerts();
      for (const d of this.devices.values()) d.alerts = [];
      for (const a of all) {
        if (a.state === "firing" && a.labels.instance) this.devices.get(a.labels.instance)?.alerts.push(a);
      }
    };
    const waiting = [alerts, ...Object.keys(questions).map((name) => () => part(name))];
    const work = async () => {
      for (let f = waiting.shift(); f; f = waiting.shift()) await f();
    };
    await Promise.all([work(), work(), work()]);
    this.judge();
    onPart();
  }

  judge() {
    for (const d of this.devices.values()) Object.assign(d, judge(d));
  }
}

/**
 * judge says how a device is: its state as a word, how bad that is, 0 for well and
 * 3 for the worst, and why.
 */
export function judge(d) {
  const { push, values: v } = d;
  const why = [];
  let bad = 0;
  const say = (level, s) => {
    bad = Math.max(bad, level);
    why.push(s);
  };
  if (push && !push.up) say(3, "silent");
  if (push?.clones?.length > 0) say(3, `${push.clones.length + 1} senders claim to be it`);
  if (push?.lastStatus >= 400) say(push.lastStatus >= 500 ? 3 : 2, `its last push was answered ${push.lastStatus}`);
  for (const a of d.alerts) say(a.labels.severity === "critical" ? 3 : 2, a.labels.alertname);
  if (push?.up && push.lagSeconds > 60) say(2, `samples come ${age(push.lagSeconds)} late`);
  if (push?.clockKnown && Math.abs(push.clockSkewSeconds) > 2) say(2, `its clock is off by ${duration(push.clockSkewSeconds)}`);
  if (v.drops >= 1) say(1, "drops packets");
  if (v.core > 0.97) say(1, "a core is busy");
  if (v.celsius > 90) say(1, "hot");
  const state = !push ? (v.newest ? "no push" : "no data") : !push.up ? "silent" : push.lagSeconds > 60 ? "lagging" : "up";
  return { state, bad, why };
}

/** sparks asks for the CPU of some devices over the last hour: Map of instance to points. */
export async function sparks(instances, signal) {
  const step = 60;
  const end = Math.floor(api.now() / step) * step;
  const start = end - 3600;
  const any = instances.map((i) => i.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|");
  const { data } = await api.range(
    `1 - avg by (instance) (rate(node_cpu_seconds_total{mode="idle",instance=~${api.quote(any)}}[${window}]))`, start, end, step, signal);
  const out = new Map(instances.map((i) => [i, { start, end, step, points: [] }]));
  for (const { metric, values } of data.result) {
    const spark = out.get(metric.instance);
    if (spark) spark.points = values.map(([t, v]) => [t, Number(v)]);
  }
  return out;
}
