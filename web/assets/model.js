// Checkpoints to download, and the model to ask.

import { h, fill, text, card, facts, copyable } from "./dom.js";
import { ask } from "./live.js";
import { throttle } from "./members.js";
import { along } from "./samples.js";
import { bytes, count, meaning } from "./text.js";

export function model(main, context) {
  const base = `/runs/${encodeURIComponent(context.run)}`;
  const saved = h("div", {});
  const box = promptBox(base);
  const offer = h("div", {});
  const samples = along(base);
  fill(main, h("h1", {}, "Model"), offer, samples.el, card("Checkpoints", "wide", saved));
  let closed = false, last = "", offered = null;
  async function load() {
    try {
      const { checkpoints } = await ask(`/api${base}/checkpoints`);
      const now = JSON.stringify(checkpoints);
      if (closed || now === last) return;
      last = now;
      box.from(checkpoints[0]);
      if (!checkpoints.length) fill(saved, h("p", { class: "quiet" }, "None here yet. A participant writes one at the end of an epoch, and this server shows those of the directory that --state names. Every member holds the newest model."));
      else fill(saved, checkpoints.map((c, i) => h("details", { open: i === 0 },
        h("summary", {}, h("b", {}, `Step ${count(c.step)}`), ` epoch ${count(c.epoch)}, ${bytes(c.bytes)}`),
        facts(["Parameters", copyable(c.params, "the hash of the parameters")], ["Manifest", copyable(c.manifest, "the hash of the manifest")]),
        h("ul", { class: "files" }, [...c.files.map((f) => [f.file, f.bytes]), ["manifest.json", null]].map(([f, n]) =>
          h("li", {}, h("a", { href: `/api${base}/checkpoints/${encodeURIComponent(c.name)}/${encodeURIComponent(f)}`, download: f }, f), n === null ? "" : h("span", { class: "quiet" }, " " + bytes(n))))))));
    } catch (e) {
      if (!closed) fill(saved, h("p", {}, e.message));
    }
  }
  load();
  const again = throttle(load, 3000);
  return {
    told({ run }) {
      if (offered !== run.node.prompt) {
        offered = run.node.prompt;
        fill(offer, offered ? box.el : null);
      }
      again();
      samples.told();
    },
    close: () => { samples.close(); closed = true; again.stop(); box.stop(); },
  };
}

// explained is the label of an input, which app.js explains on hover, and when the input has the focus.
const explained = (label, input) => h("label", { for: input.id, "data-why": meaning[label] }, h("span", { class: "term" }, label), input);

function promptBox(base) {
  const prompt = h("textarea", { id: "prompt", rows: 3, maxlength: 4000, spellcheck: "false" });
  prompt.value = "The rays of light ";
  const tokens = h("input", { id: "tokens", type: "number", min: 1, max: 1024, value: 200 });
  const warmth = h("input", { id: "warmth", type: "number", min: 0, max: 5, step: 0.1, value: 0.8 });
  const go = h("button", { type: "submit", class: "primary" }, "Continue");
  const halt = h("button", { type: "button", hidden: true }, "Stop");
  const out = h("div", { class: "answer", hidden: true });
  const said = h("p", { class: "quiet", role: "status" });
  const from = h("p", { class: "quiet" });
  let running = null, known = false;
  async function send(e) {
    e.preventDefault();
    if (running) return;
    running = new AbortController();
    go.disabled = true;
    halt.hidden = false;
    out.hidden = false;
    const tail = h("span", {});
    fill(out, h("b", {}, prompt.value), tail);
    text(said, "Writing…");
    try {
      const r = await fetch(`/api${base}/prompt`, {
        method: "POST", signal: running.signal, headers: { "Content-Type": "application/json" },
        body: JSON.stringify({ text: prompt.value, tokens: Number(tokens.value), temperature: Number(warmth.value), seed: crypto.getRandomValues(new Uint32Array(2)).join("-") }),
      });
      if (!r.ok) throw new Error((await r.json()).error);
      const reader = r.body.pipeThrough(new TextDecoderStream()).getReader();
      for (let part = await reader.read(); !part.done; part = await reader.read()) tail.append(part.value);
      text(said, "Done.");
    } catch (err) {
      text(said, err.name === "AbortError" ? "Stopped." : err.message);
    }
    running = null;
    go.disabled = !known;
    halt.hidden = true;
  }
  halt.addEventListener("click", () => running && running.abort());
  const el = card("Ask the model", "wide prompt", h("form", { onsubmit: send }, h("label", { for: "prompt" }, "Text to continue"), prompt,
    h("div", { class: "filters" }, explained("Length", tokens), explained("Temperature", warmth), go, halt)), from, out, said);
  return {
    el,
    from(c) {
      known = Boolean(c);
      go.disabled = !known || running !== null;
      const converses = known && c.files.some((f) => f.file === "chat_template.jinja");
      text(from, !known ? "There is no checkpoint yet: the first comes at the end of an epoch." : `By the checkpoint of step ${count(c.step)}. ${converses ? "It continues the text as it stands; entrain model chat converses." : "It completes text; it has not learned to converse."}`);
    },
    stop: () => running && running.abort(),
  };
}
