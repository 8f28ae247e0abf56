// The table of rounds, and the page of one.

import { h, fill, text, attr, list, card, facts, copyable, table as tableOf } from "./dom.js";
import { ask } from "./live.js";
import { Table } from "./table.js";
import { memberLink, checkChip, throttle } from "./members.js";
import { count, short, span, moment, clock, plural } from "./text.js";

export function rounds(main, context) {
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const table = new Table([
    { label: "Round", cls: "num", cell: (r, td) => {
      if (!td.firstChild) td.append(h("a", {}));
      attr(td.firstChild, "href", `${base}/rounds/${r.number}`);
      text(td.firstChild, count(r.number));
    } },
    { label: "Step", cls: "num", cell: (r) => (r.step ? count(r.step) : "drain") },
    { label: "Epoch", cls: "num hide-s", cell: (r) => count(r.epoch) },
    { label: "Opened", cls: "hide-s", cell: (r) => moment(r.opened_ms) },
    { label: "Took", cls: "num", cell: (r) => (r.closed_ms ? span(r.closed_ms - r.opened_ms) : "…") },
    { label: "Accepted", cls: "num", cell: (r) => (!r.step ? "–" : r.final ? `${count(r.accepted)} / ${count(r.expected)}` : "open") },
    { label: "Reports", cls: "num hide-m", cell: (r) => `${r.reports} / ${r.seats}` },
    { label: "Agreed parameters", cls: "hide-m", cell: (r, td) => {
      if (!td.firstChild) td.append(h("code", {}));
      text(td.firstChild, r.agreed ? short(r.agreed) : "–");
    } },
  ], (from, n) => ask(`/api${base}/rounds?` + new URLSearchParams({ from, count: n })),
  { label: "Rounds", key: (r) => r.number, says: (n) => `${plural(n, "round")} known here, the newest first` });
  const past = h("p", { class: "quiet", hidden: true });
  fill(main, h("h1", {}, "Rounds"), past, table.el);
  const again = throttle(() => table.refresh(), 1000);
  return {
    told({ run }) {
      past.hidden = !run.begun_ms && !run.reading;
      text(past, run.reading ? `The participant's log is being read: ${run.reading - 1} %. Earlier rounds come with it.` : run.begun_ms ? `Rounds before ${moment(run.begun_ms)}, when this server began to look, are not known here, but for the four that the chain keeps. A participant's --state directory tells of more.` : "");
      again();
    },
    close: again.stop,
  };
}

export function round(main, context) {
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const number = Number(context.argument);
  const about = h("div", {}), seats = h("tbody", {}), title = h("h1", {}, `Round ${count(number)}`), around = h("nav", { class: "around", "aria-label": "Rounds before and after" });
  let shown = false, closed = false, settled = false, table = null, first = null;
  async function load() {
    if (settled) return;
    try {
      const d = await ask(`/api${base}/rounds/${number}?count=100`);
      if (closed) return;
      first = d;
      if (!shown) show(d);
      else if (table) table.refresh();
      draw(d);
      settled = d.round.final && d.round.closed_ms > 0 && d.next;
    } catch (e) {
      if (!closed && !shown) fill(main, title, h("p", {}, e.message), h("p", {}, h("a", { href: `${base}/rounds` }, "All rounds")));
    }
  }
  function show(d) {
    shown = true;
    const parts = [card("Audit", "", h("p", {}, "Anybody can compute what members did in this round again, with nothing but the chain's address, while members keep what it takes:"), h("p", { class: "command-line" }, copyable(d.audit, "the command"))), h("div", { class: "columns" }, card("Hashes", "", about),
      card("Witnesses", "", tableOf("Witnesses", [["Member"], ["Report"], ["After", "num"], ["Its parameters", "hide-s"]], seats)))];
    if (d.detailed && d.total) {
      table = new Table([
        { label: "Member", cell: (r, td) => memberLink(td, base, r.key) },
        { label: "Sequences", cls: "num", cell: (r) => count(r.sequences) },
        { label: "Held by", cls: "num hide-s", cell: (r) => (r.holders < 0 ? "–" : `${r.holders} / ${first.round.seats}`) },
        { label: "Commitment", cls: "hide-m", cell: (r, td) => {
          if (!td.firstChild) td.append(h("code", {}));
          text(td.firstChild, r.commitment ? short(r.commitment) : "–");
          attr(td.firstChild, "title", r.commitment || null);
        } },
        { label: "Check", cls: "hide-s", cell: (r, td) => checkChip(td, r.check) },
        { label: "Result", cell: (r, td) => {
          if (!td.firstChild) td.append(h("span", { class: "chip" }));
          const word = r.accepted ? "accepted" : first.round.final ? "missed" : "open";
          text(td.firstChild, word);
          attr(td.firstChild, "data-result", word);
        } },
      ], async (from, n) => {
        const page = await ask(`/api${base}/rounds/${number}?` + new URLSearchParams({ from, count: n }));
        return { total: page.total, rows: page.results };
      }, { label: "Results", key: (r) => r.member, says: (n) => plural(n, "member") + " with a share" });
      parts.push(h("section", { class: "card wide", "aria-labelledby": "h-results" }, h("h2", { id: "h-results" }, "Results"), table.el));
    } else if (!d.detailed) parts.push(h("p", { class: "quiet" }, "Of a round this old, who did what is not kept here."));
    fill(main, title, around, parts);
  }
  function draw({ round: r, previous, next }) {
    fill(around, previous ? h("a", { href: `${base}/rounds/${number - 1}`, rel: "prev" }, "← Earlier") : null, next ? h("a", { href: `${base}/rounds/${number + 1}`, rel: "next" }, "Later →") : null);
    const took = r.closed_ms ? `, took ${span(r.closed_ms - r.opened_ms)}` : "";
    fill(about, facts(
      ["Kind", r.step ? `step ${count(r.step)}, ${plural(r.batch, "sequence")}` : "drain round: nothing is trained"],
      ["Epoch", count(r.epoch)],
      ["Opened", moment(r.opened_ms) + took],
      r.witness_ms && ["Witnessing after", span(r.witness_ms - r.opened_ms)],
      ["Members", `${count(r.active)} active, ${count(r.expected)} with a share`],
      r.step && ["Accepted", r.final ? `${count(r.accepted)} of ${count(r.expected)}` : "not settled yet"],
      r.attests && ["Witnesses attest", r.attests === r.number ? "this round" : h("a", { href: `${base}/rounds/${r.attests}` }, `round ${count(r.attests)}`)],
      ["Seed", copyable(r.seed, "the seed")],
      ["Agreed parameters", r.agreed ? copyable(r.agreed, "the hash of the parameters") : r.final ? "no quorum named the same" : "not yet"]));
    list(seats, r.witnesses || [], (w) => w.member,
      (w) => h("tr", {}, h("td", {}), h("td", {}), h("td", { class: "num" }), h("td", { class: "hide-s" }, h("code", {}))),
      (e, w) => {
        memberLink(e.children[0], base, w.key);
        text(e.children[1], !w.reported ? "none" : w.complete ? "holds all" : "holds a part");
        text(e.children[2], w.ms ? span(Math.max(0, w.ms - r.opened_ms)) : "–");
        const other = w.params && r.agreed && w.params !== r.agreed;
        text(e.children[3].firstChild, w.params ? short(w.params) + (other ? " differs" : "") : "–");
        attr(e.children[3].firstChild, "class", other ? "bad" : null);
      });
  }
  load();
  const again = throttle(load, 1000);
  return { told: again, close: () => { closed = true; again.stop(); } };
}
