// What fires, since when, on which device, and which rules there are.

import * as api from "./api.js";
import { make, text } from "./dom.js";
import { age, duration, many, moment } from "./format.js";

const every = 10_000;

/** runbook links to a page on what to do, where it is a web address, or names the file. */
function runbook(a) {
  const url = a.annotations?.runbook_url;
  if (!url) return "–";
  return /^https?:\/\//.test(url) ? make("a", { href: url, rel: "noreferrer" }, "runbook") : make("code", { title: "A file in ticktier's repository" }, url);
}

const weight = (a) => (a.state === "firing" ? 2 : 0) + (a.labels.severity === "critical" ? 1 : 0);

function alertRow(a) {
  const since = Date.parse(a.activeAt) / 1000;
  const { instance, alertname, severity, job: _, ...labels } = a.labels;
  const more = Object.entries(labels).map(([k, v]) => `${k}=${v}`).join(", ");
  return make("tr", {},
    make("td", {}, make("span", { className: `state s-${a.state !== "firing" ? "none" : severity === "critical" ? "bad" : "warn"}` }, a.state)),
    make("th", { scope: "row" }, alertname, make("br"), make("small", {}, [severity, more].filter(Boolean).join("; "))),
    make("td", {}, instance ? make("a", { href: `#/device?${new URLSearchParams({ instance })}` }, instance) : "–"),
    make("td", { className: "when", title: moment(since, 3600) }, `${age(api.now() - since)}, since ${moment(since, 3600)}`),
    make("td", { className: "wide" }, a.annotations?.summary ?? "", make("br"), make("small", {}, a.annotations?.description ?? "")),
    make("td", {}, runbook(a)));
}

function table(id, caption, heads, rows) {
  return make("div", { className: "scroll" }, make("table", { id, className: "rows" }, make("caption", { className: "hidden" }, caption),
    make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col", className: h.wide ? "wide" : "" }, h.name ?? h)))), make("tbody", {}, ...rows)));
}

function ruleRow(r) {
  const state = r.health === "err" ? "failing" : r.type === "alerting" ? r.state : r.health === "ok" ? "recording" : r.health;
  const kind = state === "failing" ? "bad" : state === "firing" ? "warn" : state === "inactive" || state === "recording" ? "good" : "none";
  return make("tr", {},
    make("td", {}, make("span", { className: `state s-${kind}` }, state)),
    make("th", { scope: "row" }, r.name, r.lastError ? make("small", {}, make("br"), r.lastError) : null),
    make("td", { className: "wide" }, make("code", {}, r.query)),
    make("td", {}, r.duration ? `for ${duration(r.duration)}` : ""),
    make("td", {}, r.type === "alerting" ? runbook(r) : ""));
}

/** alerts is the view of alerts and rules. */
export function alerts(root, params, page) {
  let timer = 0;
  let stopped = false;
  const summary = make("p", { id: "summary", role: "status" }, "asking the adapter…");
  const firing = make("div");
  const rules = make("div");
  const open = new Set();
  let shown = "";
  root.append(make("div", { className: "bar" }, make("h1", {}, "Alerts"), summary), firing, make("h2", {}, "Rules"), rules);

  const show = (list, groups) => {
    list.sort((a, b) => weight(b) - weight(a) || Date.parse(a.activeAt) - Date.parse(b.activeAt));
    const n = list.filter((a) => a.state === "firing").length;
    text(summary, list.length === 0 ? "nothing fires" : `${many(n, "alert")} firing${list.length > n ? `, ${list.length - n} pending` : ""}`);
    const key = JSON.stringify([list, groups.map((g) => g.rules.map((r) => [r.name, r.state, r.health])), Math.floor(Date.now() / 60_000)]);
    if (key === shown) return;
    shown = key;
    firing.replaceChildren(list.length > 0
      ? table("alerts", "Alerts that fire or are pending", ["State", "Alert", "Device", "For", { name: "What", wide: true }, "What to do"], list.map(alertRow))
      : make("p", { className: "panel" }, groups.length > 0 ? "No alert fires and none is pending." : "No rules are loaded. Start the adapter with --rules=FILE; ticktier's own are in its folder rules."));
    rules.replaceChildren(...groups.map((g) => {
      const bad = g.rules.filter((r) => r.health === "err" || r.state === "firing").length;
      const d = make("details", { open: open.has(g.name), ontoggle: () => (d.open ? open.add(g.name) : open.delete(g.name)) },
        make("summary", {}, `${g.name}: ${many(g.rules.length, "rule")}, every ${duration(g.interval)}`, bad > 0 ? `, ${bad} firing or failing` : ""),
        table("", `Rules of ${g.name}`, ["State", "Rule", { name: "Query", wide: true }, "", "What to do"], g.rules.map(ruleRow)));
      return d;
    }), groups.length === 0 ? make("p", {}, "None.") : "");
  };

  const round = async () => {
    clearTimeout(timer);
    try {
      const [list, groups] = await Promise.all([api.alerts(), api.rules()]);
      if (stopped) return;
      show(list, groups);
      page.report(null);
    } catch (err) {
      if (!stopped) page.report(err);
    }
    if (!stopped) timer = setTimeout(round, every);
  };
  round();
  return {
    title: "Alerts",
    stop() {
      stopped = true;
      clearTimeout(timer);
    },
  };
}
