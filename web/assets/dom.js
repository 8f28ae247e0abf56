// Making and changing elements. Text never becomes markup: everything goes in as text nodes.

import { meaning } from "./text.js";

const svgNames = new Set(["svg", "g", "path", "line", "circle", "rect", "text", "title", "clipPath"]);

// h makes an element: h("p", {class: "quiet", onclick: f}, "text", child, [more]).
export function h(name, attributes, ...children) {
  const e = svgNames.has(name) ? document.createElementNS("http://www.w3.org/2000/svg", name) : document.createElement(name);
  for (const [k, v] of Object.entries(attributes || {})) {
    if (v === false || v === undefined || v === null) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  e.append(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false).flatMap(unbroken));
  return e;
}

// unbroken puts each flag in a text, such as --state, into an element that no line break splits: browsers break after a hyphen.
function unbroken(child) {
  if (typeof child !== "string" || !child.includes("--")) return child;
  return child.split(/(--[a-z][a-z-]{0,30})/).map((s, i) => {
    if (i % 2 === 0) return s;
    const e = document.createElement("span");
    e.className = "unbroken";
    e.textContent = s;
    return e;
  });
}

// text sets an element's text, and touches it only if it changes, so that selections and screen readers are left alone.
export function text(e, s) {
  s = String(s);
  if (e.textContent !== s) e.textContent = s;
}

// attr sets an attribute if it changes.
export function attr(e, name, value) {
  if (value === null || value === false) {
    if (e.hasAttribute(name)) e.removeAttribute(name);
  } else if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value);
}

// list makes parent's children those of the items: known ones, by key, are updated and kept, focus and all.
export function list(parent, items, key, make, update) {
  const known = new Map();
  for (const c of parent.children) known.set(c.dataset.key, c);
  let at = parent.firstElementChild;
  for (const item of items) {
    const k = String(key(item));
    let e = known.get(k);
    if (e) known.delete(k);
    else {
      e = make(item);
      e.dataset.key = k;
    }
    if (update) update(e, item);
    if (e === at) at = at.nextElementSibling;
    else parent.insertBefore(e, at);
  }
  for (const e of known.values()) e.remove();
}

// fill replaces what is in an element.
export function fill(e, ...children) {
  e.replaceChildren(...children.flat(2).filter((c) => c !== null && c !== undefined && c !== false));
}

// copyable is text with a button that copies it.
export function copyable(value, label, shown) {
  const b = h("button", { type: "button", class: "copy", "aria-label": "Copy " + label }, "Copy");
  b.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(value);
      text(b, "Copied");
    } catch {
      const range = document.createRange();
      range.selectNodeContents(b.previousSibling);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      text(b, "Selected");
    }
    setTimeout(() => text(b, "Copy"), 1500);
  });
  return h("span", { class: "copyable" }, h("code", { class: "hash", title: value }, shown || value), b);
}

// term is a label that explains itself if its meaning is known: app.js shows data-why on hover, focus and tap.
// why is for labels that meaning does not have.
export function term(label, why = meaning[label]) {
  return why ? h("button", { type: "button", class: "term", "data-why": why }, label) : label;
}

// scrolls is a table that scrolls by itself, and so is never wider than its card.
export const scrolls = (label, ...parts) => h("div", { class: "tablebox auto", tabindex: 0, role: "region", "aria-label": `${label}, scrolls` }, h("table", {}, parts));

// table is such a table; columns are the label and the class of each.
export const table = (label, columns, body) => scrolls(label, h("thead", {}, h("tr", {}, columns.map(([x, c]) => h("th", { scope: "col", class: c }, term(x))))), body);

// facts is a list of names and values.
export function facts(...pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([k, v]) => h("div", {}, h("dt", {}, term(k)), h("dd", {}, v))));
}

// called holds what keys are called on the chain, by key: {name, team}.
const called = new Map();

// learn takes what keys are called.
export function learn(list) {
  called.clear();
  for (const c of list) called.set(c.key, c);
}

// profile is what a key is called: nothing, if it chose nothing.
export const profile = (key) => called.get(key) || {};

// icon draws a picture of a key: a mirrored pattern in a color, both drawn from the key. No picture comes from elsewhere.
function icon(key) {
  let x = 2166136261;
  for (const c of key) x = Math.imul(x ^ c.charCodeAt(0), 16777619);
  const next = () => (x = Math.imul(x ^ (x >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0;
  const hue = next() % 360;
  let d = "";
  for (let i = 0; i < 15; i++) {
    const [column, row] = [i % 3, Math.floor(i / 3)];
    if (next() & 4096) for (const at of new Set([column, 4 - column])) d += `M${at} ${row}h1v1h-1z`;
  }
  return h("svg", { class: "icon", viewBox: "-1 -1 7 7", "aria-hidden": "true" }, h("rect", { x: -1, y: -1, width: 7, height: 7, rx: 1.5, fill: `hsl(${hue} 55% 90%)` }), h("path", { d, fill: `hsl(${hue} 60% 38%)` }));
}

// setPerson shows a key in an element: its picture, the name that it chose, and its beginning, since a name is no proof of who
// somebody is. It touches the element only if something changes.
export function setPerson(e, key) {
  const { name = "", team = "" } = profile(key);
  const shown = [key, name, team].join(" ");
  if (e.dataset.shown === shown) return;
  e.dataset.shown = shown;
  fill(e, h("span", { class: "person", title: [name, team && `team ${team}`, key].filter(Boolean).join(", ") }, icon(key), name && h("b", {}, name), h("code", {}, key ? key.slice(0, name ? 6 : 10) : "–")));
}

// person is setPerson in an element of its own.
export function person(key) {
  const e = h("span", {});
  setPerson(e, key);
  return e;
}

// card is a titled part of a page.
export function card(title, cls, ...children) {
  const id = "h-" + title.toLowerCase().replace(/[^a-z0-9]+/g, "-");
  return h("section", { class: "card " + (cls || ""), "aria-labelledby": id }, h("h2", { id }, title), ...children);
}
