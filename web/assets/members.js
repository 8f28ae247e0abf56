// The table of members, and the page of one.

import { h, fill, text, attr, list, card, facts, table, copyable, setPerson } from "./dom.js";
import { ask } from "./live.js";
import { Table } from "./table.js";
import { count, si, percent, moment, loss, bytes, plural, span, day, standing } from "./text.js";

// memberLink puts a link to a member into a cell.
export function memberLink(td, base, key, own) {
  if (!td.firstChild) td.append(h("a", {}), h("span", { class: "quiet hide-s" }));
  attr(td.firstChild, "href", `${base}/members/${key}`);
  setPerson(td.firstChild, key);
  text(td.lastChild, own ? " this node" : "");
}

function chip(td, status, phase) {
  if (!td.firstChild) td.append(h("span", { class: "chip" }));
  attr(td.firstChild, "data-status", status);
  text(td.firstChild, standing(status, phase));
}

// checkChip puts what is known of the check of a result into a cell.
export function checkChip(td, check) {
  if (!td.firstChild) td.append(h("span", {}));
  attr(td.firstChild, "class", check ? "chip" : "quiet");
  attr(td.firstChild, "data-check", check || null);
  text(td.firstChild, { right: "right", open: "being checked", disputed: "in dispute", convicted: "convicted" }[check] || "–");
}

// score is a score with its sign.
export const score = (v) => (v > 0 ? "+" : v < 0 ? "−" : "") + Math.abs(v).toFixed(2);

// filled shows the table around a body of rows only if there are any.
export const filled = (body, rows) => { body.closest(".tablebox").hidden = !rows; };

// throttle calls f at most every ms milliseconds, and a last time afterwards.
export function throttle(f, ms) {
  let timer = 0, last = 0;
  const g = () => {
    clearTimeout(timer);
    const wait = last + ms - Date.now();
    if (wait > 0) timer = setTimeout(g, wait);
    else {
      last = Date.now();
      f();
    }
  };
  g.stop = () => clearTimeout(timer);
  return g;
}

export function members(main, context) {
  let phase = "";
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const find = h("input", { type: "search", id: "find", autocomplete: "off", spellcheck: "false", placeholder: "a name, a team or a part of a key" });
  const status = h("select", { id: "status" }, [["", "all"], "active", "ready", "waiting", "dropped", "withdrawn", "ejected", "replaced"].map((s) => (Array.isArray(s) ? h("option", { value: s[0] }, s[1]) : h("option", { value: s }, s))));
  const table = new Table([
    { label: "Rank", sort: "rank", up: true, cls: "num", cell: (m) => count(m.rank) },
    { label: "Member", sort: "key", up: true, cell: (m, td) => memberLink(td, base, m.key, m.own) },
    { label: "Status", sort: "status", cell: (m, td) => chip(td, m.status, phase) },
    { label: "This round", cls: "hide-s", cell: (m) => m.status === "active" && m.role || "–" },
    { label: "Points", sort: "points", cls: "num unpaid", cell: (m) => count(m.points) },
    { label: "Share", cls: "num hide-s", cell: (m) => percent(m.share, 1) },
    { label: "Score", sort: "score", cls: "num hide-s scored", cell: (m) => m.scored ? score(m.score) : "–" },
    { label: "Earned", sort: "earned", cls: "num scored", cell: (m) => count(m.earned) },
    { label: "Results", sort: "results", cls: "num hide-s", cell: (m) => count(m.results) },
    { label: "Missed", sort: "missed", cls: "num hide-m", cell: (m) => count(m.missed) },
    { label: "Stake", sort: "stake", cls: "num hide-m", cell: (m) => count(m.stake) },
    { label: "Doubt", sort: "doubt", cls: "num hide-m checked", cell: (m) => count(m.doubt) },
    { label: "Passed", sort: "passed", cls: "num hide-m checked", cell: (m) => count(m.passed) },
    { label: "Loss", cls: "num hide-m", cell: (m) => loss(m.loss) },
    { label: "Joined", sort: "joined", cls: "hide-m", cell: (m, td) => {
      text(td, day(m.joined_ms));
      attr(td, "title", moment(m.joined_ms));
    } },
  ], (from, n, o) => ask(`/api${base}/members?` + new URLSearchParams({ from, count: n, sort: o.sort, up: o.up ? 1 : 0, find: find.value.trim().toLowerCase(), status: status.value })),
  { label: "Members", key: (m) => m.index, sort: "rank", up: true, says: (n) => plural(n, "member") });
  const search = throttle(() => table.reset(), 150);
  find.addEventListener("input", search);
  status.addEventListener("change", () => table.reset());
  fill(main, h("h1", {}, "Members"),
    h("form", { class: "filters", role: "search", onsubmit: (e) => e.preventDefault() }, h("label", { for: "find" }, "Find", find), h("label", { for: "status" }, "Status", status)), table.el);
  const again = throttle(() => table.refresh(), 1000);
  const told = ({ run: r }) => {
    phase = r.phase;
    table.el.classList.toggle("unscored", !(r.windows && r.windows.score_windows));
    table.el.classList.toggle("unchecked", !(r.trust && r.trust.percent));
    again();
  };
  return { told, close: () => { again.stop(); search.stop(); } };
}

export function member(main, context) {
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const el = { title: h("h1", {}), about: h("div", {}), work: h("tbody", {}), turns: h("ol", { class: "log" }), now: h("p", {}) };
  let shown = false, closed = false, phase = "", checked = true;
  async function load() {
    try {
      const d = await ask(`/api${base}/members/${encodeURIComponent(context.argument)}`);
      if (closed) return;
      if (!shown) fill(main, el.title, el.now, h("div", { class: "columns" }, card("Standing", "", el.about), card("Comings and goings", "", el.turns)),
        card("What it did, and earned", "wide", table("Rounds of this member", [["Round"], ["Step", "hide-s"], ["Result"], ["Points", "num hide-s"], ["Check", "hide-s"], ["Why"], ["As a witness", "hide-s"]], el.work)));
      shown = true;
      draw(d);
    } catch (e) {
      if (!closed && !shown) fill(main, h("h1", {}, "Member"), h("p", {}, e.message), h("p", {}, h("a", { href: `${base}/members` }, "All members")));
    }
  }
  function draw(d) {
    const m = d.member;
    setPerson(el.title, m.key);
    const sequences = d.sequences.reduce((n, s) => n + s.Count, 0);
    const here = phase !== "Finished" && ["waiting", "ready", "active"].includes(m.status);
    text(el.now, phase === "Finished" ? "The run has finished." : !here ? "It takes no part now." : [sequences ? `This round it trains ${plural(sequences, "sequence")}: ${d.sequences.map((s) => `${count(s.Start)} to ${count(s.Start + s.Count - 1)}`).join(", ")}.` : "It has no share of this round.", d.seat ? "It is one of the witnesses." : ""].join(" "));
    fill(el.about, facts(
      ["Status", h("span", { class: "chip", "data-status": m.status }, standing(m.status, phase))],
      ["Key", copyable(m.key, "the key", m.key)],
      m.name && ["Name", [m.name, h("span", { class: "quiet" }, " first taken by this key on this chain; that proves nothing else")]],
      m.team && ["Team", m.team],
      ["Points", `${count(m.points)}, ${percent(m.share, 1)} of all; rank ${count(m.rank)}`],
      ["Results accepted", count(m.results)],
      ["Missed in a row", `${plural(m.missed, "round")}, ${plural(m.idle, "election")} without a report`],
      (m.stake || d.due || m.claimed) && ["Balance", `${count(m.stake)} at stake, ${count(d.due)} to claim${d.rate ? `; ${count(m.settled)} points settled, ${count(m.claimed)} of them paid` : ""}`],
      m.scored && ["Score", `${score(m.score)} so far: ${count(m.earned)} tokens earned by scores, of which ${count(m.unvested)} are not yet vested`],
      d.score && ["Last period", `${d.score.scored ? score(d.score.score) : "not scored"}: ${d.score.penalty ? `${count(d.score.penalty)} tokens taken back` : `${percent(d.score.weight, 1)} of the emission, ${plural(d.score.reward, "token")}`}${d.score.said.length ? `; validators said ${d.score.said.map((s) => score(s.score)).join(", ")}` : ""}`],
      m.doubt && checked && ["Doubt", `${m.doubt} of 16: how likely its results are to be checked; ${plural(m.passed, "check")} passed${m.strikes ? `, ${plural(m.strikes, "strike")} for not serving` : ""}`],
      ...d.convictions.map((c) => ["Convicted", `of ${c.offence} in round ${count(c.round)}${c.by >= 0 ? `, shown by member ${c.by}` : ""}${c.slashed ? `; lost ${plural(c.slashed, "token")}` : ""}${c.results ? `; ${plural(c.results, "result")} of rounds ${count(c.first_round)} to ${count(c.last_round)} entered the model` : ""}`]),
      m.speed && ["Speed", `${si(m.speed)} tokens a second, as it states`],
      m.loss && ["Loss of its last share", loss(m.loss)],
      m.bytes && ["Payloads seen here", bytes(m.bytes)],
      ["Joined", moment(m.joined_ms)],
      m.left_ms && ["Left last", moment(m.left_ms)]));
    list(el.turns, d.turns, (t) => t.ms + t.what, (t) => h("li", {}, h("time", {}, moment(t.ms)), " ", h("span", {}, turnText(t))));
    if (!d.turns.length) fill(el.turns, h("li", { "data-key": "" }, "None since this server began to look."));
    list(el.work, d.rounds, (w) => w.round,
      (w) => h("tr", {}, h("td", {}, h("a", { href: `${base}/rounds/${w.round}` }, count(w.round))), h("td", { class: "hide-s" }), h("td", {}, h("span", { class: "chip" })), h("td", { class: "num hide-s" }), h("td", { class: "hide-s" }), h("td", { class: "why" }), h("td", { class: "hide-s" })),
      (e, w) => {
        const [, step, result, points, check, why, seat] = e.children;
        text(step, w.step ? count(w.step) : "drain");
        const [word, reason] = explain(w);
        text(result.firstChild, word);
        attr(result.firstChild, "data-result", word);
        text(points, w.points ? `+${count(w.points)}` : "–");
        checkChip(check, w.check);
        text(why, reason);
        text(seat, !w.seat ? "–" : !w.reported ? "no report" : w.complete ? "reported all" : "reported a part");
      });
  }
  load();
  const again = throttle(load, 1000);
  const told = ({ run }) => {
    phase = run.phase;
    checked = !!(run.trust && run.trust.percent);
    again();
  };
  return { told, close: () => { closed = true; again.stop(); } };
}

function turnText(t) {
  const what = { joined: "joined", dropped: "dropped: it missed too often in a row", withdrawn: "withdrew", ejected: "ejected for a proven cheat", replaced: "gave its slot to a newcomer" }[t.what] || t.what;
  return `${what}, round ${count(t.round)}`;
}

// explain says what came of a share, and why.
function explain(w) {
  const held = w.holders < 0 ? "" : `held by ${w.holders} of ${w.seats} witnesses, quorum ${w.quorum}`;
  if (!w.step) return ["none", "a drain round: nothing was trained"];
  if (!w.shared) return ["none", "no share: the batch has fewer sequences than members"];
  if (!w.final) return ["open", held ? `so far ${held}` : "not settled yet"];
  if (w.accepted) return ["accepted", [held, w.points && `a point for each of its ${plural(w.points, "sequence")}`].filter(Boolean).join("; ")];
  return ["missed", held || "no quorum of witnesses held its result"];
}
