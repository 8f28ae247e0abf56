// The page: finds by the address what to show, keeps the connection, and says when it is lost.

import { h, fill, text, attr, learn } from "./dom.js";
import { Stream, ask } from "./live.js";
import { runs } from "./runs.js";
import { overview } from "./overview.js";
import { members, member } from "./members.js";
import { rounds, round } from "./rounds.js";
import { trust } from "./trust.js";
import { scores } from "./scores.js";
import { model } from "./model.js";
import { join } from "./join.js";

// A view is f(main, context) and returns {told(state), close()}, both optional. Context: {run, argument, state(), go(address)}.
const routes = [
  [/^\/$/, runs, "Runs"],
  [/^\/runs\/([^/]+)$/, overview, "Overview"],
  [/^\/runs\/([^/]+)\/members$/, members, "Members"],
  [/^\/runs\/([^/]+)\/members\/([^/]+)$/, member, "Member"],
  [/^\/runs\/([^/]+)\/rounds$/, rounds, "Rounds"],
  [/^\/runs\/([^/]+)\/rounds\/(\d+)$/, round, "Round"],
  [/^\/runs\/([^/]+)\/trust$/, trust, "Trust"],
  [/^\/runs\/([^/]+)\/scores$/, scores, "Scores"],
  [/^\/runs\/([^/]+)\/model$/, model, "Model"],
  [/^\/runs\/([^/]+)\/join$/, join, "Join"],
];
const tabs = [["", "Overview"], ["/members", "Members"], ["/rounds", "Rounds"], ["/trust", "Trust"], ["/scores", "Scores"], ["/model", "Model"], ["/join", "Join"]];

const main = document.getElementById("main");
const where = document.getElementById("where");
const link = document.getElementById("link");
const nav = document.getElementById("tabs");

let stream = null;
let shown = {};

const words = {
  live: "Live", connecting: "Connecting…", lost: "Disconnected. Trying again…",
  chain: "The chain does not answer. What is shown may be old.", "": "",
};

function setLink(how) {
  attr(link, "data-how", how);
  text(link, words[how]);
}

// tell hides the tabs that there is nothing for in this run.
function tell(state) {
  for (const a of nav.children) if (a.pathname.endsWith("/scores")) a.hidden = !(state && state.run.windows && state.run.windows.score_windows) && !a.hasAttribute("aria-current");
}

function navigate(first) {
  const path = location.pathname;
  let [match, view, name] = [null, null, ""];
  for (const [pattern, v, n] of routes) if ((match = path.match(pattern))) {
    [view, name] = [v, n];
    break;
  }
  const run = match && match[1] ? decodeURIComponent(match[1]) : "";
  const argument = match && match[2] ? decodeURIComponent(match[2]) : "";
  if (shown.close) shown.close();
  shown = {};
  if (stream && stream.run !== run) {
    stream.close();
    stream = null;
  }
  document.title = [argument.slice(0, 10) && `${name} ${argument.slice(0, 10)}`, !argument && run && name, run, "entrain"].filter(Boolean).join(" · ");
  fill(where, run ? [h("span", { class: "quiet" }, "Run "), h("a", { href: `/runs/${encodeURIComponent(run)}` }, run)] : "");
  nav.hidden = !run;
  if (run) {
    const base = `/runs/${encodeURIComponent(run)}`;
    fill(nav, tabs.map(([sub, label]) => {
      const on = sub === "" ? path === base : path.startsWith(base + sub);
      return h("a", { href: base + sub, "aria-current": on ? "page" : null }, label);
    }));
    tell(stream && stream.state.run ? stream.state : null);
  }
  fill(main, h("p", { class: "quiet" }, "Loading…"));
  if (!view) {
    fill(main, h("h1", {}, "No such page"), h("p", {}, h("a", { href: "/" }, "All runs")));
    return;
  }
  const context = { run, argument, state: () => (stream && stream.state.run ? stream.state : null), link: setLink };
  shown = view(main, context) || {};
  if (!run) setLink("");
  else if (!stream) stream = new Stream(run, (s) => { tell(s); if (shown.told) shown.told(s); }, setLink);
  else if (stream.state.run && shown.told) shown.told(stream.state);
  if (!first) {
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
  }
}

document.addEventListener("click", (e) => {
  const a = e.target.closest("a[href^='/']");
  if (!a || a.hasAttribute("download") || a.pathname.startsWith("/api/") || e.defaultPrevented || e.button || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  e.preventDefault();
  if (a.pathname !== location.pathname) history.pushState(null, "", a.href);
  navigate(false);
});
// Labels explain themselves, on hover, focus and tap, in one box that stays within the window.
const why = h("div", { id: "why", role: "tooltip", hidden: true });
document.body.append(why);
let explained = null;
function explain(e) {
  explained = e.target.closest && e.target.closest("[data-why]");
  place();
}
function place() {
  why.hidden = !explained || !explained.isConnected;
  if (why.hidden) return;
  text(why, explained.dataset.why);
  const at = explained.getBoundingClientRect(), box = why.getBoundingClientRect();
  const below = at.bottom + 6 + box.height < innerHeight;
  why.style.left = `${Math.max(8, Math.min(at.left, innerWidth - box.width - 8))}px`;
  why.style.top = `${below ? at.bottom + 6 : at.top - box.height - 6}px`;
}
for (const on of ["pointerover", "focusin", "click"]) document.addEventListener(on, explain);
document.addEventListener("keydown", (e) => e.key === "Escape" && explain({ target: document }));
addEventListener("scroll", place, { passive: true, capture: true });
// What keys are called changes seldom.
function names() {
  ask("/api/names").then(learn, () => {});
}
names();
setInterval(names, 30_000);
addEventListener("popstate", () => navigate(false));
navigate(true);
