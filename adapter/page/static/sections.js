// What the device view shows: sections with charts, and the PromQL of each line.
//
// A query has by, the labels that tell its lines apart, and name, what one is called.
// rate is a function of a range that gives per-second values of counters; gauge is a
// selector whose samples are averaged.

import { quote } from "./api.js";

/** sections are all sections of a device's charts. sel is its label matcher. */
export function sections(instance) {
  const i = `instance=${quote(instance)}`;
  const wire = `device!~"lo|veth.*"`;
  const per = (metric, by, more = "", f = (e) => e) => (r) => f(`sum by (${by}) (rate(${metric}{${i}${more}}[${r}]))`);
  const net = (metric) => per(metric, "device", `,${wire}`);
  const named = (name) => () => name;
  return [
    { id: "cpu", title: "CPU by mode", unit: "percent", counter: "node_cpu_seconds_total", top: 1, queries: [
      { needs: "node_cpu_seconds_total", rate: (r) => `1 - avg(rate(node_cpu_seconds_total{mode="idle",${i}}[${r}]))`, name: named("busy") },
      { needs: "node_cpu_seconds_total", rate: (r) => `avg by (mode) (rate(node_cpu_seconds_total{mode!="idle",${i}}[${r}]))`, name: (l) => l.mode, zero: true },
    ] },
    { id: "cores", title: "CPU by core", unit: "percent", counter: "node_cpu_seconds_total", top: 1, queries: [
      { needs: "node_cpu_seconds_total", rate: (r) => `1 - sum by (cpu) (rate(node_cpu_seconds_total{mode="idle",${i}}[${r}]))`, name: (l) => `core ${l.cpu}` },
    ] },
    { id: "load", title: "Load", unit: "number", queries: [
      { needs: "node_load1", gauge: `node_load1{${i}}`, name: named("1 minute") },
      { needs: "node_load5", gauge: `node_load5{${i}}`, name: named("5 minutes") },
    ] },
    { id: "received", title: "Received by interface", unit: "bits", queries: [
      { needs: "node_network_receive_bytes_total", rate: (r) => `8 * ${net("node_network_receive_bytes_total")(r)}`, name: (l) => l.device },
    ] },
    { id: "sent", title: "Sent by interface", unit: "bits", queries: [
      { needs: "node_network_transmit_bytes_total", rate: (r) => `8 * ${net("node_network_transmit_bytes_total")(r)}`, name: (l) => l.device },
    ] },
    { id: "errors", title: "Errors and drops by interface", unit: "rate", queries: ["receive_errs", "receive_drop", "transmit_errs", "transmit_drop"].map((m) => (
      { needs: `node_network_${m}_total`, rate: net(`node_network_${m}_total`), name: (l) => `${l.device} ${m.replace("_", " ").replace("errs", "errors").replace("drop", "drops")}`, zero: true })) },
    { id: "softnet", title: "Packets through softnet", unit: "rate", queries: [
      { needs: "node_softnet_processed_total", rate: per("node_softnet_processed_total", "instance"), name: named("processed") },
      { needs: "node_softnet_dropped_total", rate: per("node_softnet_dropped_total", "instance"), name: named("dropped") },
      { needs: "node_softnet_times_squeezed_total", rate: per("node_softnet_times_squeezed_total", "instance"), name: named("squeezed") },
    ] },
    { id: "softirqs", title: "Softirqs", unit: "rate", queries: [
      { needs: "node_softirqs_functions_total", rate: per("node_softirqs_functions_total", "type"), name: (l) => l.type, zero: true },
    ] },
    { id: "interrupts", title: "Interrupts", unit: "rate", queries: [
      { needs: "node_interrupts_total", rate: per("node_interrupts_total", "type, devices"), name: (l) => `${l.type} ${l.devices ?? ""}`.trim(), zero: true },
    ] },
    { id: "conntrack", title: "Connections tracked", unit: "number", queries: [
      { needs: "node_nf_conntrack_entries", gauge: `node_nf_conntrack_entries{${i}}`, name: named("entries") },
    ] },
    { id: "memory", title: "Memory", unit: "bytes", queries: ["MemAvailable", "MemFree", "Cached", "Buffers", "Slab", "MemTotal"].map((m) => (
      { needs: `node_memory_${m}_bytes`, gauge: `node_memory_${m}_bytes{${i}}`, name: named({ MemAvailable: "available", MemFree: "free", MemTotal: "total" }[m] ?? m.toLowerCase()) })) },
    { id: "pressure", title: "Pressure", unit: "percent", queries: ["cpu_waiting", "io_waiting", "io_stalled", "memory_waiting", "memory_stalled"].map((m) => (
      { needs: `node_pressure_${m}_seconds_total`, rate: (r) => `rate(node_pressure_${m}_seconds_total{${i}}[${r}])`, name: named(m.replace("_", " ")) })) },
    { id: "disks", title: "Disks: read and written", unit: "bytesRate", queries: [
      { needs: "node_disk_read_bytes_total", rate: per("node_disk_read_bytes_total", "device"), name: (l) => `${l.device} read`, zero: true },
      { needs: "node_disk_written_bytes_total", rate: per("node_disk_written_bytes_total", "device"), name: (l) => `${l.device} written`, zero: true },
    ] },
    { id: "diskbusy", title: "Disks: time busy", unit: "percent", queries: [
      { needs: "node_disk_io_time_seconds_total", rate: per("node_disk_io_time_seconds_total", "device"), name: (l) => l.device, zero: true },
    ] },
    { id: "temperature", title: "Temperature", unit: "celsius", queries: [
      { needs: "node_hwmon_temp_celsius", gauge: `node_hwmon_temp_celsius{${i}}`, name: (l) => `${l.chip} ${l.sensor}` },
      { needs: "node_thermal_zone_temp", gauge: `node_thermal_zone_temp{${i}}`, name: (l) => `zone ${l.zone} ${l.type}` },
    ] },
    { id: "ping", title: "Ping: round trip", unit: "duration", queries: [
      { needs: "node_ping_last_round_trip_seconds", gauge: `node_ping_last_round_trip_seconds{${i}}`, name: (l) => l.target ?? l.host ?? "ping" },
      { needs: "ticktier_ping_rtt_seconds", gauge: `ticktier_ping_rtt_seconds{${i}}`, name: (l) => l.target ?? "ping" },
    ] },
    { id: "top", title: "What used the CPU: processes", unit: "percent", queries: [
      { needs: "node_top_processes_cpu_ratio", gauge: `node_top_processes_cpu_ratio{${i}}`, name: (l) => l.name },
    ] },
    { id: "cgroups", title: "What used the CPU: services and containers", unit: "percent", queries: [
      { needs: "node_cgroup_cpu_seconds_total", rate: (r) => `rate(node_cgroup_cpu_seconds_total{${i}}[${r}])`, name: (l) => l.cgroup ?? l.name ?? l.path ?? "cgroup", zero: true },
    ] },
    { id: "kmsg", title: "Kernel log records", unit: "rate", queries: [
      { needs: "node_kmsg_records_total", rate: per("node_kmsg_records_total", "level"), name: (l) => l.level, zero: true },
    ] },
  ];
}
