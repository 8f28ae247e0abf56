// What a stranger needs to take part.

import { h, fill, card, facts, copyable } from "./dom.js";
import { ask } from "./live.js";
import { count, si, bytes, span, phase } from "./text.js";

const local = /^https?:\/\/(localhost|127\.|\[::1\])/;

export function join(main, context) {
  let closed = false, timer;
  async function load() {
    try {
      const j = await ask(`/api/runs/${encodeURIComponent(context.run)}/join`);
      if (!closed) draw(main, j);
    } catch (e) {
      if (closed) return;
      fill(main, h("h1", {}, "Join"), h("p", {}, e.message));
      timer = setTimeout(load, 1500);
    }
  }
  load();
  return { close: () => { closed = true; clearTimeout(timer); } };
}

function draw(main, j) {
  const fetched = /^[a-z0-9]+:\/\//.test(j.location);
  const alone = j.endpoints.every((e) => local.test(e));
  const command = (target) => `entrain join ${target}${fetched || (alone && j.location) ? "" : " --data ./data"}`;
  const full = j.present >= j.capacity, over = j.phase === "Finished";
  fill(main, h("h1", {}, `Join ${j.run}`),
    over ? h("p", { class: "notice" }, "This run has finished. Its model can still be fetched from those who hold it.") : full ? h("p", { class: "notice" }, `All ${count(j.capacity)} places are taken. Who leaves makes room.`) : null,
    card("One command", "wide",
      h("p", {}, "Run this on the machine you want to contribute. It makes a key if there is none, checks the run and its data against the chain, fetches the model from other members, and begins to train with the next epoch. Ctrl-C leaves cleanly."),
      h("div", { class: "command" }, copyable(command(j.target), "the command")),
      j.ticket ? h("details", { class: "ticket" }, h("summary", {}, "As a ticket, for a mail or a page"),
        h("p", {}, "The same in one line that also holds who this chain and this run are, and the hash of the data: if another chain or another run of this name answers at the address, whoever joins with it is told so."),
        h("div", { class: "command" }, copyable(command(j.ticket), "the command with a ticket"))) : null,
      alone ? h("p", { class: "notice" }, "The address of the chain in it is of this machine alone, so the command works here. For others, the chain must listen on an address they can reach: “api” in its chain.json, and --chain when this server is started.") : null),
    h("div", { class: "columns" },
      card("What it takes", "", facts(
        ["Model", `${j.preset}, ${si(j.params)} parameters`],
        ["Memory", j.memory ? `about ${bytes(j.memory)}` : "not known"],
        ["Processor", "any 64-bit one; no GPU, no port to open"],
        ["Time for a share", `at most ${span(j.round_ms)} a round`],
        ["Batch", `${count(j.batch)} sequences of ${count(j.sequence)} tokens, over all members`],
        ["Places", `${count(j.present)} of ${count(j.capacity)} taken`])),
      card("The data", "", h("p", {}, "Every member has the same data, known by the hash of its manifest. ", ...(fetched ? ["It is fetched as it is needed; a copy on the machine is named with ", h("code", {}, "--data"), "."]
        : ["Put the prepared directory on the machine and name it with ", h("code", {}, "--data"), "; it is checked before anything else."])),
        facts(["Manifest", copyable(j.manifest, "the hash of the manifest")], j.location && [fetched ? "At" : "On the owner's machine", h("code", {}, j.location)]))),
    card("What you will be checked against", "", facts(["Specification", copyable(j.spec_hash, "the hash of the specification")], ["Initial parameters", copyable(j.model_hash, "the hash of the initial parameters")], ["Owner", copyable(j.owner, "the owner's key")], ["Chain", j.chain]),
      h("details", {}, h("summary", {}, "The specification"), h("pre", { class: "spec", tabindex: 0, role: "region", "aria-label": "The specification" }, j.spec))));
}
