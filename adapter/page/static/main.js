// The page: it shows the view that the address names, and says whether the adapter
// answers. A view is a function of its root element and what the address asks; it
// returns {title, stop, params}.

import * as api from "./api.js";
import { alerts } from "./alerts.js";
import { device } from "./device.js";
import { fleet } from "./fleet.js";
import { clock, zone } from "./format.js";
import { live } from "./live.js";
import { query } from "./query.js";
import { text } from "./dom.js";

const views = { fleet, device, live, alerts, query };
const $ = (id) => document.getElementById(id);

let view = null; // that is shown: {name, key, stop, params}
let heard = 0; // when the adapter answered last

/** parse reads "#/device?instance=a" into a view's name and its parameters. */
function parse(hash) {
  const [, name = "", search = ""] = /^#\/?([a-z]*)\??(.*)$/.exec(hash) ?? [];
  return { name: name in views ? name : "fleet", params: new URLSearchParams(search) };
}

/** report is told by views whether the adapter answered: err is null if it did. */
function report(err) {
  if (api.aborted(err)) return;
  if (!err) heard = Date.now() / 1000;
  let s = "";
  if (err) {
    const what = err instanceof TypeError ? "The adapter cannot be reached" : `The adapter does not answer as it should: ${err.message}`;
    s = `${what}. ${heard ? `What is shown is from ${clock(heard)}. ` : ""}The page keeps trying; if this stays, look whether ticktier-adapter runs.`;
  }
  text($("trouble"), s);
  $("trouble").hidden = !err;
  document.body.classList.toggle("stale", Boolean(err));
  text($("heard"), heard ? `as of ${clock(heard)}` : "");
}

/** address puts a view's state into the address bar, without a step back for each. */
function address(name, params) {
  const search = params.toString();
  history.replaceState(null, "", `#/${name}${search ? `?${search}` : ""}`);
}

function show() {
  const { name, params } = parse(location.hash);
  if (location.hash === "#main") return;
  const root = $("main");
  const moved = view !== null;
  view?.stop();
  root.className = name;
  root.replaceChildren();
  for (const n of ["fleet", "alerts", "query"]) {
    const current = n === name || (n === "fleet" && (name === "device" || name === "live"));
    if (current) $(`nav-${n}`).setAttribute("aria-current", n === name ? "page" : "true");
    else $(`nav-${n}`).removeAttribute("aria-current");
  }
  view = views[name](root, params, { report, address: (p) => address(name, p) });
  document.title = `${view.title} – ticktier`;
  if (moved) {
    if (document.activeElement === root || !root.contains(document.activeElement)) root.focus({ preventScroll: true });
    scrollTo(0, 0);
  }
}

/** firing keeps the number of firing alerts in the navigation. */
async function firing() {
  try {
    const n = (await api.alerts()).filter((a) => a.state === "firing").length;
    text($("firing"), n > 0 ? String(n) : "");
    $("firing").hidden = n === 0;
    $("nav-alerts").setAttribute("aria-label", n > 0 ? `Alerts, ${n} firing` : "Alerts");
  } catch {
    // The view says so.
  }
  setTimeout(firing, 15_000);
}

text($("zone"), `Times are in ${zone()}.`);
document.querySelector(".skip").addEventListener("click", (e) => {
  e.preventDefault();
  $("main").focus();
});
addEventListener("hashchange", show);
show();
firing();
