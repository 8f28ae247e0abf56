// The overview of a run, live.

import { h, text, attr, fill, list, card, facts, copyable, scrolls, term, person, setPerson } from "./dom.js";
import { count, si, bytes, loss, span, clock, meaning, percent, phase, plural, moment, standing } from "./text.js";
import { Chart } from "./chart.js";
import { ask } from "./live.js";
import { Timeline, Strip } from "./timeline.js";
import { score } from "./members.js";
import { brief } from "./trust.js";
import { newest } from "./samples.js";
import { about } from "./runs.js";

const order = ["WaitingForMembers", "Warmup", "RoundTrain", "RoundWitness", "Cooldown"];

export function overview(main, context) {
  const run = context.run;
  const o = build(run);
  let state = null;
  let shown = false;
  const tick = setInterval(() => state && o.clock(state.run), 200);
  return {
    told(s) {
      state = s;
      if (!shown) {
        fill(main, o.el);
        shown = true;
      }
      o.told(s);
    },
    close: () => clearInterval(tick),
  };
}

function build(run) {
  const title = h("h1", {}, run);
  const phaseName = h("strong", { class: "phase" });
  const countdown = h("span", { class: "countdown" });
  const bar = h("div", { class: "deadline", "aria-hidden": "true" }, h("i", {}));
  const what = h("div", {});
  const note = h("p", { class: "notice", hidden: true });
  const stages = h("ol", { class: "phases", "aria-label": "Phases of an epoch" }, order.map((p) => h("li", { "data-phase": p }, phase(p))));
  const done = h("progress", { max: 1, value: 0, "aria-label": "Steps done" });
  const tiles = h("dl", { class: "tiles" });
  let last = null;
  const by = controls(run, () => last && draw(last));
  const charts = [
    new Chart([{ name: "train/loss", label: "training" }, { name: "eval/loss", label: "held-out" }],
      { title: "Loss", unit: "", height: 260, logs: true, format: (v) => v.toFixed(3), empty: "Losses are not on the chain. To see them, start this server with --state and a participant's directory." }),
    new Chart([{ name: "perf/tokens_per_sec", label: "accepted" }], { title: "Throughput", unit: "tok/s", height: 132, zero: true, empty: "Shown once a step is settled." }),
    new Chart([{ name: "perf/round_seconds", label: "round" }], { title: "Time of a round", unit: "s", height: 132, zero: true, empty: "Shown once a step is settled." }),
    new Chart([{ name: "net/payload_bytes", label: "round" }], { title: "Payloads", unit: "", height: 132, zero: true, format: bytes, empty: "Payloads are not on the chain. A participant's --state directory has them." }),
    new Chart([{ name: "run/members", label: "training" }], { title: "Members", unit: "", height: 132, zero: true, whole: true, empty: "Shown once a step is settled." }),
  ];
  const timeline = new Timeline(run);
  const strip = new Strip(run);
  const top = h("tbody", {}), heads = h("tr", {});
  const counts = h("p", { class: "quiet" });
  const log = h("ol", { class: "log", tabindex: 0, "aria-label": "What happened, scrolls" });
  const base = `/runs/${encodeURIComponent(run)}`;
  const hashes = h("div", {});
  const trust = brief(base);
  const samples = newest(base);
  const small = h("div", { class: "small-charts" }, charts.slice(1).map((c) => c.el));
  const past = h("p", { class: "quiet past", hidden: true });

  const el = h("div", { class: "overview" },
    h("section", { class: "head", "aria-label": "State of the run" },
      h("div", { class: "headline" }, title, h("p", { class: "status" }, phaseName, countdown)), what,
      bar, stages, note, tiles, done),
    h("div", { class: "stack" },
      h("section", { class: "card curves", "aria-label": "Curves" }, h("div", { class: "curvebar" }, by.el, h("a", { href: `/api${base}/curves.csv`, download: "" }, "Curves as CSV")), charts[0].el,
        small, past),
      samples.el,
      card("What happened", "feed", log)),
    h("div", { class: "stack" },
      timeline.el,
      strip.el,
      card("Leaderboard", "board", counts,
        scrolls("Leaderboard", h("thead", {}, heads), top),
        h("p", {}, h("a", { href: `${base}/members` }, "All members"))),
      trust.el,
      card("Agreed", "agreed", hashes)));

  function draw(curves) {
    last = curves;
    const [view, other] = [by.view(curves), by.other()];
    for (const c of charts) {
      c.series = c.series.filter((s) => s.k < 2);
      if (by.otherName()) c.series.push(...c.series.map((s) => ({ name: "other/" + s.name, label: `${by.otherName()}, ${s.label}`, k: s.k + 2 })));
      c.set({ ...curves, ...other }, view);
    }
  }
  for (const c of charts) c.onrange = (r) => by.zoom(r);

  function tile(name, value, sub) {
    return { name, value, sub };
  }

  return {
    el,
    told({ run: r, curves }) {
      if (!what.firstChild && r.about) fill(what, about(r.about));
      text(phaseName, phase(r.phase));
      attr(phaseName, "data-phase", r.phase);
      for (const li of stages.children) attr(li, "aria-current", li.dataset.phase === r.phase ? "step" : null);
      stages.hidden = r.phase === "Finished" || r.phase === "Paused";
      text(note, r.pausing ? "The owner has asked for a pause: the run stops when this epoch ends." : r.draining ? "The epoch is ending: the last results are attested and applied." : r.rollbacks ? `${plural(r.rollbacks, "epoch")} ended without agreement on the parameters: rolled back.` : "");
      note.hidden = !note.textContent;
      done.max = r.steps || 1;
      done.value = r.step;
      const train = (curves["train/loss"] || []).at(-1), held = (curves["eval/loss"] || []).at(-1);
      const items = [
        tile("Step", `${count(r.step)}`, `of ${count(r.steps)}`),
        tile("Epoch", count(r.epoch), `round ${count(r.round)}`),
        tile("Tokens", si(r.tokens), r.left_ms ? `${span(r.left_ms)} left` : "of accepted work"),
        tile("Throughput", r.tokens_per_second ? si(r.tokens_per_second) : "–", "tokens a second"),
        train ? tile("Loss", loss(train[3]), "nats a token") : null,
        held ? tile("Held-out", loss(held[3]), `step ${count(held[1])}`) : null,
        tile("Members", count(r.present), r.statuses.dropped ? `${count(r.statuses.dropped)} dropped` : `of ${count(r.capacity)} places`),
      ].filter(Boolean);
      list(tiles, items, (t) => t.name, (t) => h("div", {}, h("dt", {}, term(t.name)), h("dd", {}, h("b", {}), h("span", {}))), (e, t) => {
        text(e.lastChild.firstChild, t.value);
        text(e.lastChild.lastChild, t.sub);
      });
      for (const name of Object.keys(curves).sort()) {
        const task = /^eval\/(.+)\/acc$/.exec(name);
        if (!task || charts.some((c) => c.series[0].name === name)) continue;
        const c = new Chart([{ name, label: "accuracy" }, { name: name + "_norm", label: "normalized" }], { title: task[1], why: meaning.Accuracy, unit: "", height: 132, format: (v) => v.toFixed(3) });
        charts.push(c);
        small.append(c.el);
      }
      past.hidden = !r.begun_ms && !r.reading;
      text(past, r.reading ? `The participant's log is being read: ${r.reading - 1} %. Curves and history come with it.` : r.begun_ms ? `Curves and history begin at ${moment(r.begun_ms)}, when this server began to look: the chain keeps four rounds. A server that is given a participant's --state directory also knows what was before.` : "");
      samples.told(r.samples);
      draw(curves);
      strip.told(r);
      trust.told(r.trust);
      const c = r.statuses;
      text(counts, [c.active && `${count(c.active)} active`, c.ready && `${count(c.ready)} ready`, c.waiting && `${count(c.waiting)} ${standing("waiting", r.phase)}`, c.dropped && `${count(c.dropped)} dropped`, c.withdrawn && `${count(c.withdrawn)} withdrawn`, c.ejected && `${count(c.ejected)} ejected`].filter(Boolean).join(" · ") || "No members yet.");
      const scored = r.windows && r.windows.score_windows > 0;
      const columns = ["Rank", "Member", ...(scored ? ["Score", "Earned"] : ["Points", "Share"])];
      if (heads.childElementCount === 0 || heads.lastChild.textContent !== columns.at(-1)) fill(heads, columns.map((x, i) => h("th", { scope: "col", class: i > 1 ? "num" : "" }, term(x))));
      const worth = (m) => scored ? m.earned : m.points;
      const most = Math.max(...r.top.map(worth), 1);
      list(top, r.top, (m) => m.key,
        (m) => h("tr", {}, h("td", {}), h("td", {}, h("a", { href: `${base}/members/${m.key}` }), " ", h("span", { class: "chip" })), h("td", { class: "num" }), h("td", { class: "num share" }, h("span", { class: "part" }, h("i", {})), h("span", {}))),
        (e, m) => {
          text(e.children[0], m.rank);
          setPerson(e.children[1].firstChild, m.key);
          text(e.children[1].lastChild, standing(m.status, r.phase) + (m.own ? ", this node" : ""));
          attr(e.children[1].lastChild, "data-status", m.status);
          text(e.children[2], !scored ? count(m.points) : m.scored ? score(m.score) : "–");
          e.children[3].firstChild.firstChild.style.width = `${(100 * worth(m)) / most}%`;
          text(e.children[3].lastChild, scored ? count(m.earned) : percent(m.points, r.points));
        });
      const lines = r.log.toReversed();
      list(log, lines, (l) => `${l.time_ms} ${l.text}`, (l) => h("li", { class: l.level }, h("time", { datetime: new Date(l.time_ms).toISOString() }, clock(l.time_ms)), " ", h("span", {}, (l.who ? l.who + ": " : "") + l.text)));
      const k = r.params + (r.checkpoint ? r.checkpoint.manifest : "");
      if (hashes.dataset.k !== k) {
        hashes.dataset.k = k;
        fill(hashes, facts(
          ["Parameters", [copyable(r.params, "the hash of the parameters", r.params.slice(0, 16) + "…"), h("span", { class: "quiet" }, r.params_round ? ` at the start of round ${count(r.params_round)}` : " initial")]],
          r.checkpoint && ["Checkpoint", [copyable(r.checkpoint.manifest, "the hash of the manifest", r.checkpoint.manifest.slice(0, 16) + "…"), h("span", { class: "quiet" }, ` epoch ${count(r.checkpoint.epoch)}, by `), h("a", { href: `${base}/members/${r.checkpoint.by}` }, person(r.checkpoint.by))]],
          ["Run", copyable(r.id, "the run's identity", r.id.slice(0, 16) + "…")],
          ["Chain", [r.chain || "–", h("span", { class: "quiet" }, ` height ${count(r.height)}`)]]));
      }
      this.clock(r);
    },
    clock(r) {
      const now = Date.now() + r.offset;
      timeline.told(r, now);
      const left = r.deadline_ms - now;
      const has = r.deadline_ms > 0;
      // The height is the chain's, which says nothing of Bittensor's blocks.
      const blocks = r.windows ? r.windows.deadline_height - (r.windows.bittensor ? 0 : r.height) : 0;
      text(countdown, blocks > 0 ? `window ${count(r.windows.window)}, until ${r.windows.bittensor ? "Bittensor's " : ""}block ${count(r.windows.deadline_height)}` : has ? (left > 0 ? `at most ${span(left)}` : "time is up") : "");
      bar.hidden = !has;
      bar.firstChild.style.width = `${Math.min(100, Math.max(0, (100 * (now - r.since_ms)) / (r.deadline_ms - r.since_ms || 1)))}%`;
    },
  };
}

// controls choose how curves are drawn, and another run whose curves are drawn beside. changed is called when a choice changes.
function controls(run, changed) {
  let range = null, other = {}, name = "";
  const radios = h("fieldset", { class: "switch" }, h("legend", {}, "Against"),
    [["tokens", "tokens"], ["steps", "steps"]].map(([v, label], i) => h("label", {}, h("input", { type: "radio", name: "by", value: v, checked: i === 0, onchange: () => { range = null; set(); } }), h("span", {}, label))));
  const pick = (label, options) => {
    const e = h("select", { onchange: () => set() }, options.map(([v, t]) => h("option", { value: v }, t)));
    return [e, h("label", {}, label, " ", e)];
  };
  const [axes, axesLabel] = pick("Axes", [["linear", "linear"], ["y", "log loss"], ["xy", "log–log"]]);
  const [part, partLabel] = pick("Show", [["1", "all"], ["0.5", "the last half"], ["0.1", "the last tenth"], ["own", "as chosen"]]);
  const [versus, versusLabel] = pick("Compare with", [["", "no other run"]]);
  const smooth = h("input", { type: "range", min: 0, max: 0.98, step: 0.02, value: 0, oninput: () => set(), "aria-label": "Smoothing of the curves" });
  part.lastChild.hidden = true;
  versusLabel.hidden = true;
  function set() {
    if (part.value !== "own") range = null;
    part.lastChild.hidden = !range;
    changed();
  }
  versus.addEventListener("change", async () => {
    name = versus.value;
    other = {};
    if (name) {
      const answer = await ask(`/api/runs/${encodeURIComponent(name)}`).catch(() => null);
      if (answer && name === versus.value) for (const [k, c] of Object.entries(answer.curves)) other["other/" + k] = c.buckets;
    }
    changed();
  });
  ask("/api/runs").then((a) => {
    const others = a.runs.filter((r) => r.name !== run);
    versus.append(...others.map((r) => h("option", { value: r.name }, r.name)));
    versusLabel.hidden = others.length === 0;
  }, () => {});
  return {
    el: h("div", { class: "controls" }, radios, axesLabel, partLabel, h("label", { class: "smooth" }, "Smooth ", smooth), versusLabel),
    other: () => other,
    otherName: () => name,
    zoom(r) {
      range = r;
      part.value = "own";
      set();
    },
    view(curves) {
      const by = radios.querySelector("input:checked").value;
      const ends = Object.values(curves).filter((c) => c.length).map((c) => c.at(-1)[by === "tokens" ? 2 : 1]);
      const end = Math.max(0, ...ends);
      return { by, axes: axes.value, smooth: Number(smooth.value), range: part.value === "own" ? range : part.value === "1" ? null : [end * (1 - part.value), Infinity] };
    },
  };
}
