// The list of runs.

import { h, fill, list, text, attr } from "./dom.js";
import { ask } from "./live.js";
import { count, si, phase, plural } from "./text.js";

export function runs(main, context) {
  const rows = h("ul", { class: "runs" });
  const chain = h("p", { class: "quiet" });
  const empty = h("p", { class: "quiet", hidden: true }, "This chain has no runs yet. One is created with ", h("code", {}, "entrain run create -f FILE"), ".");
  let timer, closed = false, first = true;
  async function again() {
    try {
      const answer = await ask("/api/runs");
      if (closed) return;
      if (first) fill(main, h("h1", {}, "Runs"), chain, rows, empty);
      first = false;
      context.link(answer.reachable ? "live" : "chain");
      text(chain, `On chain ${answer.chain}`);
      empty.hidden = answer.runs.length > 0;
      list(rows, answer.runs, (r) => r.name, (r) => make(r), update);
    } catch (e) {
      if (closed) return;
      context.link("lost");
    }
    timer = setTimeout(again, 2000);
  }
  again();
  return { close: () => { closed = true; clearTimeout(timer); } };
}

function make(r) {
  return h("li", { class: "card" },
    h("h2", {}, h("a", { href: `/runs/${encodeURIComponent(r.name)}` }, r.name)),
    h("span", { class: "chip" }), h("p", { class: "quiet" }),
    h("progress", { max: 1, value: 0, "aria-label": `Steps done of ${r.name}` }), h("p", { class: "line" }));
}

function update(e, r) {
  const [, chip, what, bar, line] = e.children;
  text(chip, r.known ? phase(r.phase) : "looking…");
  attr(chip, "data-phase", r.phase);
  text(what, r.params ? `${r.preset}, ${si(r.params)} parameters` : "");
  bar.max = r.steps || 1;
  bar.value = r.step;
  text(line, r.known ? `step ${count(r.step)} of ${count(r.steps)} · ${plural(r.present, "member")} · ${si(r.tokens)} tokens${r.tokens_per_second ? ` · ${si(r.tokens_per_second)} a second` : ""}` : "");
}
