// The front page of a chain: its runs, how to take part, and who has done the most.

import { h, fill, list, text, attr, card, copyable, scrolls, table, term, setPerson } from "./dom.js";
import { ask } from "./live.js";
import { count, si, loss, span, phase, plural } from "./text.js";

const install = "curl -fsSLO https://github.com/entrain-network/entrain/releases/latest/download/install.sh && sh install.sh";

export function runs(main, context) {
  const rows = h("ul", { class: "runs" });
  const title = h("h1", {}), sums = h("p", { class: "quiet" });
  const empty = h("p", { class: "quiet", hidden: true }, "This chain has no runs yet. One is created with ", h("code", {}, "entrain run create -f FILE"), ".");
  const command = h("div", { class: "command" });
  const take = card("Take part in two lines", "take", h("div", { class: "command" }, copyable(install, "the line that installs")), command,
    h("p", { class: "quiet" }, "Any 64-bit machine will do; no port needs to be open. Ctrl-C leaves cleanly."));
  const heads = h("tr", {}), top = h("tbody", {}), of = h("p", { class: "quiet" });
  const board = card("Leaderboard of all runs", "board", scrolls("Leaderboard of all runs", h("thead", {}, heads), top), of);
  const teams = h("tbody", {});
  const teamBoard = card("Teams", "board", table("Teams", [["Rank"], ["Team"], ["Keys", "num"], ["Work", "num"]], teams),
    h("p", { class: "quiet" }, "Anyone may join a team: ", h("code", {}, "entrain key --name NAME --team TEAM"), "."));
  let timer, closed = false, first = true;
  async function again() {
    try {
      const a = await ask("/api/runs");
      if (closed) return;
      if (first) fill(main, title, sums, h("div", { class: "front" }, h("div", { class: "stack" }, rows, empty), h("div", { class: "stack" }, take, board, teamBoard)));
      first = false;
      context.link(a.reachable ? "live" : "chain");
      a.runs.sort((x, y) => y.tokens - x.tokens); // anybody may open a run: the one with the most work comes first
      const going = a.runs.filter((r) => r.known && r.phase !== "Finished");
      text(title, `Chain ${a.chain}`);
      const speed = going.reduce((n, r) => n + r.tokens_per_second, 0);
      text(sums, [plural(going.length, "run") + " under way", a.runs.length > going.length && `${count(a.runs.length - going.length)} finished`,
        `${plural(going.reduce((n, r) => n + r.present, 0), "member")} now`, speed && `${si(speed)} tokens a second`].filter(Boolean).join(" · "));
      empty.hidden = a.runs.length > 0;
      list(rows, going.concat(a.runs.filter((r) => !going.includes(r))), (r) => r.name, (r) => make(r), update);
      take.hidden = going.length === 0;
      if (going.length && command.dataset.join !== going[0].join) {
        command.dataset.join = going[0].join;
        fill(command, copyable(`entrain join ${going[0].join}`, "the line that joins"));
      }
      leaders(heads, top, a);
      board.hidden = a.leaders.length === 0;
      teamBoard.hidden = a.teams.length === 0;
      list(teams, a.teams.map((t, i) => ({ ...t, rank: i + 1 })), (t) => t.team, () => h("tr", {}, h("td", {}), h("td", {}), h("td", { class: "num" }), h("td", { class: "num" })), (e, t) => {
        [t.rank, t.team, count(t.nodes), si(t.tokens)].forEach((v, i) => text(e.children[i], v));
      });
      text(of, `${a.members > a.leaders.length ? `The best ${count(a.leaders.length)} of ${count(a.members)}. ` : ""}${a.closed ? `With ${plural(a.closed, "run")} that the chain no longer has. ` : ""}Whoever opens a run decides who checks its results: work counts for as much as the run does.`);
    } catch (e) {
      if (closed) return;
      context.link("lost");
    }
    timer = setTimeout(again, 2000);
  }
  again();
  return { close: () => { closed = true; clearTimeout(timer); } };
}

function leaders(heads, top, a) {
  const paid = a.leaders.some((l) => l.earned);
  const columns = ["Rank", "Member", "Runs", ...(paid ? ["Earned"] : []), "Work"];
  const cls = (i) => (i < 2 ? "" : i === 2 && paid ? "num hide-s" : "num");
  if (heads.childElementCount !== columns.length) fill(heads, columns.map((x, i) => h("th", { scope: "col", class: cls(i) }, term(x))));
  list(top, a.leaders.map((l, i) => ({ ...l, rank: i + 1 })), (l) => `${l.key} ${paid}`,
    (l) => h("tr", {}, h("td", {}), h("td", {}, h("a", {}), " ", h("span", { class: "quiet" })), columns.slice(2).map((_, i) => h("td", { class: cls(i + 2) }))),
    (e, l) => {
      text(e.children[0], l.rank);
      setPerson(e.children[1].firstChild, l.key);
      attr(e.children[1].firstChild, "href", l.member ? `/runs/${encodeURIComponent(l.in)}/members/${l.member}` : null);
      text(e.children[1].lastChild, [l.nodes > l.runs.length && plural(l.nodes, "node"), l.team, l.active && "training"].filter(Boolean).join(", "));
      text(e.children[2], count(l.runs.length));
      if (paid) text(e.children[3], count(l.earned));
      text(e.lastChild, si(l.tokens));
    });
}

// about is what a run's owner tells of it.
export function about(a) {
  if (!a) return null;
  return h("div", { class: "about" }, a.description && h("p", {}, a.description),
    (a.license || a.links) && h("p", { class: "quiet" }, a.license && h("span", { class: "chip" }, a.license), (a.links || []).map((l) => h("a", { href: l, rel: "noopener noreferrer nofollow", target: "_blank" }, l.replace(/^https?:\/\//, "").replace(/\/$/, "")))));
}

function make(r) {
  const path = `/runs/${encodeURIComponent(r.name)}`;
  return h("li", { class: "card" },
    h("h2", {}, h("a", { href: path }, r.name)), h("span", { class: "chip" }), h("p", { class: "quiet" }),
    h("div", { class: "what" }), h("div", { class: "spark" }),
    h("progress", { max: 1, value: 0, "aria-label": `Steps done of ${r.name}` }), h("p", { class: "line" }));
}

function update(e, r) {
  const [, chip, model, what, curve, bar, line] = e.children;
  text(chip, r.known ? phase(r.phase) : "looking…");
  attr(chip, "data-phase", r.phase);
  text(model, r.params ? `${r.preset}, ${si(r.params)} parameters` : "");
  if (!what.firstChild && r.about) fill(what, about(r.about));
  const last = r.loss.at(-1);
  if (curve.dataset.at !== String(last)) {
    curve.dataset.at = String(last);
    fill(curve, spark(r.loss, r.held_out));
  }
  bar.max = r.steps || 1;
  bar.value = r.step;
  text(line, !r.known ? "" : [`step ${count(r.step)} of ${count(r.steps)} (${Math.floor((100 * r.step) / (r.steps || 1))} %)`, plural(r.present, "member"), `${si(r.tokens)} tokens`,
    r.tokens_per_second && `${si(r.tokens_per_second)} a second`, r.left_ms && r.phase !== "Finished" && `${span(r.left_ms)} left`].filter(Boolean).join(" · "));
}

// spark draws a run's loss without axes.
function spark(points, heldOut) {
  points = points.filter((p) => p[1] !== null);
  if (points.length < 2) return "";
  const [w, hgt] = [300, 48];
  const [x0, x1] = [points[0][0], points.at(-1)[0]];
  const ys = points.map((p) => p[1]), y0 = Math.min(...ys), y1 = Math.max(...ys);
  const d = points.map(([x, y], i) => `${i ? "L" : "M"}${((w * (x - x0)) / (x1 - x0 || 1)).toFixed(1)} ${(3 + ((hgt - 6) * (y1 - y)) / (y1 - y0 || 1)).toFixed(1)}`).join("");
  return [h("svg", { viewBox: `0 0 ${w} ${hgt}`, preserveAspectRatio: "none", "aria-hidden": "true" }, h("path", { class: "line c0", d })), h("span", {}, heldOut ? "held-out loss " : "training loss ", h("b", {}, loss(ys.at(-1))))];
}
