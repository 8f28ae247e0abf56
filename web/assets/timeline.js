// A round as it happens: when its phases were, who has reported, whose results are held.

import { h, text, attr, fill, list, term } from "./dom.js";
import { count, span, plural, short, bytes, phase } from "./text.js";

const states = { ".": "no share", e: "computing", c: "committed", f: "result here", a: "accepted", m: "missed", v: "computed again, right", x: "convicted" };

export class Timeline {
  constructor(run) {
    this.run = run;
    this.title = h("a", {});
    this.sub = h("p", { class: "quiet" });
    this.stages = h("ol", { class: "stages" });
    this.lane = h("div", { class: "lane", "aria-hidden": "true" });
    this.dots = h("div", { class: "dots", "aria-hidden": "true" });
    this.legend = h("p", { class: "dotlegend", "aria-hidden": "true" }, Object.entries(states).map(([k, v]) => h("span", {}, h("i", { class: "m" + k }), v)));
    this.el = h("section", { class: "card timeline", "aria-labelledby": "h-round" },
      h("h2", { id: "h-round" }, this.title), this.sub, this.stages, this.lane, this.dots, this.legend);
  }

  told(r, now) {
    const c = r.current;
    this.el.hidden = !c;
    if (!c) return;
    text(this.title, `Round ${count(c.number)}`);
    attr(this.title, "href", `/runs/${encodeURIComponent(this.run)}/rounds/${c.number}`);
    text(this.sub, c.step ? `Step ${count(c.step)}: ${plural(c.batch, "sequence")} over ${plural(c.expected, "member")}` : "A drain round: nothing is trained, what is in flight is attested and applied");
    this.drawStages(r, c);
    this.drawLane(r, c, now);
    this.drawDots(r, c);
  }

  drawStages(r, c) {
    const over = c.closed_ms > 0;
    const reported = c.reports;
    const own = r.node.here;
    const stages = [
      { key: "train", name: "Train", state: over || c.witness_ms ? "done" : "now", value: c.step ? count(c.expected) : "–", unit: c.step ? "shares" : "" },
      r.windows && r.windows.buckets ? { key: "commit", name: "Commit", state: c.on_chain >= c.expected || over || c.witness_ms ? "done" : c.on_chain ? "now" : "wait",
        value: c.step ? `${count(c.on_chain)} / ${count(c.expected)}` : "–", unit: "on the chain", part: c.on_chain / (c.expected || 1) }
      : { key: "commit", name: "Commit", state: !own ? "unknown" : c.committed >= c.expected ? "done" : over ? "done" : c.committed ? "now" : "wait",
        value: own && c.step ? `${count(c.committed)} / ${count(c.expected)}` : "–", unit: own ? "seen" : "not on the chain", part: own ? c.committed / (c.expected || 1) : 0 },
      { key: "witness", name: "Witness", state: over || reported === c.seats ? "done" : reported ? "now" : "wait", value: `${reported} / ${c.seats}`,
        unit: `reports, quorum ${c.quorum}`, part: reported / (c.seats || 1), mark: c.quorum / (c.seats || 1) },
      c.checks_of ? { key: "verify", name: "Verify", state: c.checked === c.verified ? "done" : "now", value: `${count(c.verified)} / ${count(c.checked)}`,
        unit: `right, of round ${count(c.checks_of)}`, part: c.verified / (c.checked || 1) } : null,
      { key: "accept", name: "Accept", state: c.final && c.step ? "done" : c.held ? "now" : "wait",
        value: c.final && c.step ? `${count(c.accepted)} / ${count(c.expected)}` : c.of ? `${count(c.held)} / ${count(c.of)}` : "–",
        unit: c.final && c.step ? "accepted" : c.attests && c.attests !== c.number ? `of round ${count(c.attests)} held` : "held by a quorum", part: c.final && c.step ? c.accepted / (c.expected || 1) : c.held / (c.of || 1) },
    ].filter(Boolean);
    attr(this.stages, "data-count", stages.length);
    list(this.stages, stages, (s) => s.key,
      (s) => h("li", {}, h("span", { class: "name" }, term(s.name)), h("span", { class: "value" }), h("span", { class: "unit" }), h("span", { class: "meter", "aria-hidden": "true" }, h("i", {}))),
      (e, s) => {
        attr(e, "class", s.state);
        text(e.children[1], s.value);
        text(e.children[2], s.unit);
        e.children[3].firstChild.style.width = `${Math.round(100 * Math.min(1, s.part ?? (s.state === "done" ? 1 : 0)))}%`;
      });
  }

  // drawLane draws time from left to right: the phases, and a tick for each report.
  drawLane(r, c, now) {
    const end = c.closed_ms || Math.max(now, c.opened_ms + 1);
    const width = Math.max(end - c.opened_ms, 1);
    const at = (ms) => `${Math.min(100, Math.max(0, (100 * (ms - c.opened_ms)) / width)).toFixed(2)}%`;
    const turn = c.witness_ms || end;
    const bars = [
      { key: "train", from: c.opened_ms, to: turn, label: `${c.step ? "train" : "drain"} ${span(Math.max(0, turn - c.opened_ms))}` },
      c.witness_ms && end > c.witness_ms ? { key: "witness", from: c.witness_ms, to: end, label: `witness ${span(end - c.witness_ms)}` } : null,
      ...(c.witnesses || []).filter((w) => w.reported).map((w) => ({ key: "w" + w.member, from: w.ms, tick: true })),
    ].filter(Boolean);
    list(this.lane, bars, (b) => b.key, (b) => h("span", {}), (e, b) => {
      attr(e, "class", b.tick ? "report" : b.key);
      e.style.left = at(b.from);
      if (!b.tick) {
        e.style.width = `calc(${at(b.to)} - ${at(b.from)})`;
        text(e, b.label);
      }
    });
  }

  drawDots(r, c) {
    const many = !c.marks;
    this.dots.hidden = this.legend.hidden = many || !c.step;
    if (many) return;
    const seats = new Map((c.witnesses || []).map((w) => [w.member, w]));
    const marks = [...c.marks].map((m, i) => [i, m]).filter(([, m]) => m !== ".");
    list(this.dots, marks, ([i]) => i, () => h("i", {}), (e, [i, m]) => {
      const w = seats.get(i);
      attr(e, "class", `m${m}${w ? (w.reported ? " seat told" : " seat") : ""}`);
      const title = `member ${i}: ${states[m]}${w ? (w.reported ? ", witness, has reported" : ", witness") : ""}`;
      if (e.title !== title) e.title = title;
    });
  }
}

// Strip is the last rounds as bars: height is the time taken, colour what part was accepted. Bars are too narrow to be aimed at, and too many
// to be stepped through: who does not see them is told what they add up to, and has the table of rounds.
export class Strip {
  constructor(run) {
    this.base = `/runs/${encodeURIComponent(run)}/rounds`;
    this.bars = h("ol", { class: "strip", "aria-hidden": "true" });
    this.sum = h("p", { class: "unseen" });
    this.el = h("section", { class: "card strips", "aria-labelledby": "h-strip" }, h("h2", { id: "h-strip" }, "Last rounds"), this.bars, this.sum,
      h("p", {}, h("a", { href: this.base }, "All rounds")));
  }

  told(r) {
    const rounds = r.rounds.filter((x) => x.closed_ms || x.number === r.round).slice(-48);
    const longest = Math.max(...rounds.map((x) => (x.closed_ms || x.opened_ms) - x.opened_ms), 1);
    let over = 0, less = 0, took = 0;
    list(this.bars, rounds, (x) => x.number,
      (x) => h("li", {}, h("a", { href: `${this.base}/${x.number}`, tabindex: -1 }, h("i", {}))),
      (e, x) => {
        const ms = x.closed_ms ? x.closed_ms - x.opened_ms : 0;
        const a = e.firstChild;
        const state = !x.closed_ms ? "now" : !x.step ? "drain" : !x.final ? "open" : x.accepted === x.expected ? "full" : "less";
        over += x.closed_ms ? 1 : 0;
        less += state === "less" ? 1 : 0;
        took += ms;
        attr(a, "class", state);
        a.firstChild.style.height = `${ms ? Math.max(8, (100 * ms) / longest) : 8}%`;
        attr(a, "title", `Round ${x.number}: ` + (!x.closed_ms ? "runs" : `${span(ms)}, ${!x.step ? "drain" : x.final ? `${x.accepted} of ${x.expected} accepted` : "not settled"}`));
      });
    text(this.sum, over ? `${plural(over, "round")}, of ${span(took / over)} each in the mean; in ${count(less)} of them not all results were accepted.` : "None is over yet.");
  }
}
