// How cheats are found: convictions, disputes move by move, and the checks that are open.

import { h, fill, text, attr, list, card, facts, table, copyable } from "./dom.js";
import { ask } from "./live.js";
import { filled, memberLink, throttle } from "./members.js";
import { count, span, moment, clock, plural } from "./text.js";

export function trust(main, context) {
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const about = h("div", {}), convictions = h("tbody", {}), disputes = h("div", { class: "disputes" }), checks = h("tbody", {}), rest = h("p", { class: "quiet" }), none = h("p", { class: "quiet" }), calm = h("p", { class: "quiet" });
  let shown = false, closed = false;
  async function load() {
    try {
      const d = await ask(`/api${base}/trust`);
      if (closed) return;
      if (!shown) show();
      draw(d);
    } catch (e) {
      if (!closed && !shown) fill(main, h("h1", {}, "Trust"), h("p", {}, e.message));
    }
  }
  function show() {
    shown = true;
    fill(main, h("h1", {}, "Trust"), card("How results are checked", "", about),
      card("Convictions", "wide", none, table("Convictions", [["No.", "num hide-s"], ["Member"], ["Offence"], ["Round", "num"], ["Reported by", "hide-s"], ["Lost", "num hide-s"], ["In the model", "hide-s"], ["Evidence", "hide-m"], ["When", "hide-m"]], convictions)),
      card("Disputes", "wide", calm, disputes),
      card("Open checks", "wide", rest, table("Open checks", [["Round", "num"], ["Member"], ["Sequences", "num hide-s"], ["Verifier"], ["Time left", "num hide-s"]], checks)));
  }
  const named = (td, keys, i) => {
    if (i >= 0 && keys[i]) memberLink(td, base, keys[i]);
    else fill(td, i >= 0 ? `member ${i}` : "–");
  };
  function draw(d) {
    fill(about, d.known ? facts(
      ["Checked", !d.percent ? `no results${d.emission ? ": validators score them" : ""}` : `about ${d.percent} % of each round's results, drawn by the seed of a later round; newcomers are drawn more often`],
      d.percent && ["So far", `${plural(d.drawn, "check")} drawn, ${count(d.passed)} passed, ${plural(d.disputed, "dispute")}, ${plural(d.convicted, "conviction")}`],
      ["Stake of a member", d.stake ? `${plural(d.stake, "token")} at least` : "none required"],
      ["Pay", d.rate ? `${plural(d.rate, "token")} a point, from a treasury of ${count(d.treasury)}; ${count(d.escrow)} in escrow with stakes` : d.emission ? `${plural(d.emission, "token")} a period, by scores` : "points only"],
      d.verified && ["Points for verifying", count(d.verified)]) : h("p", {}, "This run has no checks and no stakes."));
    filled(convictions, d.convictions.length);
    filled(checks, d.checks.length);
    text(none, d.convictions.length ? "" : "No convictions.");
    list(convictions, d.convictions, (c) => c.number,
      () => h("tr", {}, ["num hide-s", "", "", "num", "hide-s", "num hide-s", "hide-s", "hide-m", "hide-m"].map((c) => h("td", { class: c }))),
      (e, c) => {
        const [no, who, what, round, by, lost, model, evidence, when] = e.children;
        text(no, count(c.number));
        memberLink(who, base, c.key);
        if (!what.firstChild) what.append(h("span", { class: "chip" }), h("span", { class: "quiet words" }, c.words));
        attr(what.firstChild, "data-result", c.lesser ? "open" : "missed");
        text(what.firstChild, c.offence);
        if (!round.firstChild) round.append(h("a", { href: `${base}/rounds/${c.round}` }, count(c.round)));
        if (c.by_key) memberLink(by, base, c.by_key);
        else text(by, "–");
        text(lost, count(c.slashed));
        text(model, c.results ? `${plural(c.results, "result")}, rounds ${count(c.first_round)} to ${count(c.last_round)}` : "nothing");
        if (!evidence.firstChild) evidence.append(c.evidence ? copyable(c.evidence, "the hash of the evidence", c.evidence.slice(0, 12) + "…") : "silence");
        text(when, moment(c.at_ms));
      });
    text(calm, d.disputes.length ? "" : "No disputes since this server started.");
    list(disputes, d.disputes, (x) => x.id, (x) => disputeCard(base, x), (e, x) => drawDispute(e, x, d.keys, named));
    text(rest, d.open > d.checks.length ? `The first ${count(d.checks.length)} of ${count(d.open)}.` : d.open ? "" : "No open checks.");
    list(checks, d.checks, (c) => `${c.round} ${c.member}`,
      (c) => h("tr", {}, h("td", { class: "num" }, h("a", { href: `${base}/rounds/${c.round}` }, count(c.round))), h("td", {}), h("td", { class: "num hide-s" }), h("td", {}), h("td", { class: "num hide-s" })),
      (e, c) => {
        named(e.children[1], d.keys, c.member);
        text(e.children[2], count(c.sequences));
        named(e.children[3], d.keys, c.verifier);
        text(e.children[4], c.disputed ? "in dispute" : c.deadline_ms > Date.now() ? span(c.deadline_ms - Date.now()) : "late");
      });
  }
  load();
  const again = throttle(load, 1000);
  return { told: again, close: () => { closed = true; again.stop(); } };
}

function disputeCard(base, x) {
  return h("details", { open: !x.ended_ms },
    h("summary", {}, `Dispute ${count(x.id)}: `, h("span", {}), " ", h("span", { class: "chip" })),
    h("div", {}), h("h3", {}, "Moves"), h("ol", { class: "log", tabindex: 0, "aria-label": "Moves, scrolls" }));
}

function drawDispute(e, x, keys, named) {
  const [summary, about, , moves] = e.children;
  text(summary.children[0], `round ${count(x.round)} of member ${x.member}`);
  text(summary.children[1], x.ended_ms ? (x.conviction ? "convicted" : "over, nobody convicted") : x.stage);
  attr(summary.children[1], "data-result", x.ended_ms ? (x.conviction ? "missed" : "none") : "open");
  const k = JSON.stringify(x);
  if (e.dataset.k !== k) {
    e.dataset.k = k;
    const who = (i) => {
      const s = h("span", {});
      named(s, keys, i);
      return s;
    };
    const sides = (a, b) => [h("span", { class: "quiet" }, "accused "), a ? copyable(a, "the hash of the accused", a.slice(0, 16) + "…") : "not shown", h("span", { class: "quiet" }, " accuser "), b ? copyable(b, "the hash of the accuser", b.slice(0, 16) + "…") : "not shown"];
    fill(about, facts(
      ["Accused", who(x.member)],
      ["Accuser", who(x.accuser)],
      x.commitment && ["Commitment", copyable(x.commitment, "the identity of the commitment", x.commitment.slice(0, 16) + "…")],
      !x.unserved && ["Traces", sides(x.traces[0], x.traces[1])],
      x.level && x.level !== "none" && ["They differ in", `operation ${count(x.op)}${x.op_name ? ` (${x.op_name})` : ""}, tile ${count(x.tile)}, slice ${count(x.slice)}: at the level of ${x.level}, ${x.depth} to go`],
      (x.nodes[0] || x.nodes[1]) && ["Nodes", sides(x.nodes[0], x.nodes[1])],
      x.votes.length > 0 && ["Tie-breakers", x.votes.map((v, i) => [i ? ", " : "", who(v.member), `: ${v.vote || "not yet"}`])],
      x.ended_ms ? ["Outcome", x.outcome] : ["Time left", x.deadline_ms > Date.now() ? span(x.deadline_ms - Date.now()) : "late"]));
    list(moves, x.moves, (m, i) => `${m.time_ms} ${m.text}`, (m) => h("li", {}, h("time", { datetime: new Date(m.time_ms).toISOString() }, clock(m.time_ms)), " ", h("span", {}, m.text)));
  }
}

// brief is what the overview shows.
export function brief(base) {
  const sum = h("p", { class: "quiet" }), last = h("ol", { class: "log" });
  const el = card("Trust", "", sum, last, h("p", {}, h("a", { href: `${base}/trust` }, "Checks, disputes and convictions")));
  el.hidden = true;
  return {
    el,
    told(t) {
      el.hidden = !t;
      if (!t) return;
      text(sum, !t.percent ? `Members do not compute each other's results again in this run; ${plural(t.convicted, "conviction")}.` : `${count(t.passed)} of ${plural(t.drawn, "check")} passed, ${count(t.open)} open; ${t.disputes ? plural(t.disputes, "open dispute") : "no open dispute"}; ${plural(t.convicted, "conviction")}.`);
      list(last, t.last, (c) => c.number, (c) => h("li", { class: c.lesser ? "" : "warn" }, h("time", { datetime: new Date(c.at_ms).toISOString() }, clock(c.at_ms)), " ",
        h("span", {}, `member ${c.member} (${c.key.slice(0, 10)}) ${c.words} in round ${count(c.round)}${c.slashed ? `, lost ${plural(c.slashed, "token")}` : ""}`)));
    },
  };
}
