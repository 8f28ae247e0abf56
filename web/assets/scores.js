// What validators said of members' work, and what that brought.

import { h, fill, text, attr, list, card, facts, table, person } from "./dom.js";
import { ask } from "./live.js";
import { count, percent, plural } from "./text.js";
import { filled, memberLink, score, throttle } from "./members.js";

export function scores(main, context) {
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const about = h("div", {}), validators = h("tbody", {}), members = h("tbody", {}), settled = h("p", { class: "quiet" }), none = h("p", { class: "quiet" });
  let shown = false, closed = false;
  async function load() {
    try {
      const d = await ask(`/api${base}/scores`);
      if (closed) return;
      if (!shown) build(d.known);
      shown = true;
      draw(d);
    } catch (e) {
      if (!closed && !shown) fill(main, h("h1", {}, "Scores"), h("p", {}, e.message));
    }
  }
  function build(known) {
    fill(main, h("h1", {}, "Scores"), card("How work is scored", "wide", about));
    if (known) main.append(
      card("Validators", "wide", none, table("Validators", [["Seat", "num"], ["Validator"], ["Stake", "num"], ["Trust", "num"], ["Last period", "hide-s"], ["Earned", "num hide-s"], ["To claim", "num hide-s"]], validators)),
      card("The last period", "wide", settled, table("The last period", [["Member"], ["Score", "num"], ["Part", "num"], ["Reward", "num"], ["Sequences", "num hide-s"], ["Average", "num hide-s"], ["Earned", "num hide-m"], ["Each validator said", "hide-m"]], members)));
  }
  function draw(d) {
    fill(about, d.known ? facts(
      d.buckets && ["Windows", `${d.bittensor ? `${count(d.window_blocks)} of Bittensor's blocks` : plural(d.window_blocks, "block")} each; ${d.finished ? "the run has finished" : d.deadline_height > 0 ? `window ${count(d.window)} ends with ${d.bittensor ? "Bittensor's " : ""}block ${count(d.deadline_height)}` : `window ${count(d.window)} is over, its results are being witnessed`}`],
      ["Periods", `${plural(d.score_windows, "window")} each${d.finished ? "" : `; this is period ${count(d.current)}`}${d.scoring ? `, validators are ${d.stage} scores of period ${count(d.scoring)}` : ""}`],
      ["Emission", `${plural(d.emission, "token")} a period, ${d.validator_percent} % of it for validators`],
      ["So far", `${plural(d.given, "token")} given${d.taken ? `, ${plural(d.taken, "token")} taken back` : ""}`]) : h("p", {}, "This run has no validators: accepted results earn one point a sequence."));
    if (!d.known) return;
    filled(validators, d.validators.length);
    filled(members, d.rows.length);
    text(none, !d.validators.length ? "No validators yet." : "");
    const last = new Map((d.period ? d.period.validators : []).map((v) => [v.key, v]));
    list(validators, d.validators, (v) => v.key, () => h("tr", {}, ["num", "", "num", "num", "hide-s", "num hide-s", "num hide-s"].map((c) => h("td", { class: c }))), (e, v) => {
      const [seat, who, stake, trust, did, earned, balance] = e.children;
      const p = last.get(v.key);
      text(seat, count(v.seat));
      if (!who.firstChild) who.append(person(v.key));
      text(stake, count(v.stake));
      text(trust, `${v.trust} of 255`);
      text(did, !p ? "said nothing" : !p.revealed ? "committed, did not reveal" : `agreed to ${percent(p.agreement, 1)}, got ${count(p.reward)}`);
      text(earned, count(v.earned));
      text(balance, count(v.balance));
    });
    text(settled, d.period ? `Period ${count(d.period.number)}, windows ${count(d.period.first)} to ${count(d.period.last)}: ${plural(d.members, "member")} with accepted results${d.members > d.rows.length ? `; the first ${count(d.rows.length)}` : ""}.` : "No period is settled yet.");
    list(members, d.rows, (m) => m.member, () => h("tr", {}, ["", "num", "num", "num", "num hide-s", "num hide-s", "num hide-m", "hide-m"].map((c) => h("td", { class: c }))), (e, m) => {
      const [who, got, part, reward, sequences, average, earned, said] = e.children;
      memberLink(who, base, m.key);
      text(got, m.scored ? score(m.score) : "not scored");
      attr(got, "class", m.scored && m.score <= 0 ? "num bad" : "num");
      text(part, percent(m.weight, 1));
      text(reward, m.penalty ? `−${count(m.penalty)}` : count(m.reward));
      text(sequences, count(m.sequences));
      text(average, score(m.average));
      text(earned, count(m.earned));
      text(said, m.said.map((s) => `${s.seat}: ${score(s.score)}`).join(", ") || "–");
    });
  }
  load();
  const again = throttle(load, 1000);
  return { told: again, close: () => { closed = true; again.stop(); } };
}
