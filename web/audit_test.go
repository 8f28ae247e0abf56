package web

import (
	"context"
	"io"

	"github.com/entrain-network/entrain/model"
)

// echo is a model that knows one sentence.
func echo(_ context.Context, _ string, _ model.Prompt, out io.Writer) error {
	for _, s := range []string{"is ", "12 ", "<i>bent</i>"} {
		if _, err := io.WriteString(out, s); err != nil {
			return err
		}
	}
	return nil
}

// audit lists what is wrong with a page for those who do not see it or use no mouse: names of
// controls and pictures, headings in order, landmarks, labels that exist, tables with headers,
// nothing wider than the window.
const audit = `(() => {
	const faults = [];
	const shown = (e) => e.getClientRects().length > 0 && !e.closest("[hidden], [aria-hidden=true]");
	const byId = (ids) => ids.split(/\s+/).map((id) => document.getElementById(id)?.textContent || "").join(" ");
	const name = (e) => (e.getAttribute("aria-labelledby") ? byId(e.getAttribute("aria-labelledby")) : e.getAttribute("aria-label")
		|| [...(e.labels || [])].map((l) => l.textContent).join(" ") || (e.matches("input, select, textarea, progress") ? "" : e.textContent) || e.title).trim();
	for (const e of document.querySelectorAll("a, button, input, select, textarea, progress, summary, section, nav, [role=region], [tabindex='0'], table[aria-label]"))
		if (shown(e) && !name(e)) faults.push("no name: " + e.outerHTML.slice(0, 120));
	let level = 0;
	for (const e of document.querySelectorAll("h1, h2, h3, h4")) if (shown(e)) {
		const n = Number(e.tagName[1]);
		if (n > level + 1) faults.push("heading leaves out a level: " + e.textContent);
		if (!e.textContent.trim()) faults.push("empty heading");
		level = n;
	}
	for (const [what, n] of [["h1", 1], ["main", 1], ["header", 1], ["title", 1]])
		if (document.querySelectorAll(what).length !== n) faults.push("the page has " + document.querySelectorAll(what).length + " of " + what);
	if (!document.documentElement.lang) faults.push("no language");
	const ids = [...document.querySelectorAll("[id]")].map((e) => e.id);
	for (const id of new Set(ids)) if (ids.filter((x) => x === id).length > 1) faults.push("id twice: " + id);
	for (const e of document.querySelectorAll("[aria-labelledby]")) if (!byId(e.getAttribute("aria-labelledby")).trim()) faults.push("label is not there: " + e.outerHTML.slice(0, 120));
	for (const e of document.querySelectorAll("table")) if (!e.querySelector("th[scope=col]")) faults.push("table without headers");
	// A table that is wider than its card scrolls in a box, which does not reach beyond the window.
	for (const e of document.querySelectorAll("table")) if (shown(e)) {
		const box = e.closest(".tablebox");
		if (!box || !["auto", "scroll"].includes(getComputedStyle(box).overflowX) || box.getBoundingClientRect().right > innerWidth + 1) faults.push("table that runs past its card: " + e.textContent.slice(0, 60));
	}
	// Every number has a label that explains it, on hover, focus and tap.
	const explains = (e) => e && (e.matches("[data-why], [title]") || e.querySelector("[data-why], [title]"));
	for (const e of document.querySelectorAll(".tiles dt, .chart h2, .stages .name")) if (shown(e) && !explains(e)) faults.push("number without an explanation: " + e.textContent);
	for (const e of document.querySelectorAll(".facts > div")) if (shown(e) && /\d/.test([...e.querySelectorAll("dd")].map((d) => { const c = d.cloneNode(true); for (const x of c.querySelectorAll("code, a, .person, .copyable")) x.remove(); return c.textContent; }).join("")) && !explains(e.querySelector("dt")))
		faults.push("number without an explanation: " + e.textContent.slice(0, 80));
	for (const e of document.querySelectorAll("th.num")) if (shown(e) && !explains(e)) faults.push("column of numbers without an explanation: " + e.textContent);
	for (const e of document.querySelectorAll("svg")) if (e.getAttribute("aria-hidden") !== "true") faults.push("picture without a name");
	for (const e of document.querySelectorAll("[aria-hidden=true]")) if (e.querySelector("a:not([tabindex='-1']), button, input, [tabindex='0']")) faults.push("hidden, but reached by Tab: " + e.outerHTML.slice(0, 120));
	if (document.documentElement.scrollWidth > innerWidth) faults.push("wider than the window: " + document.documentElement.scrollWidth + " > " + innerWidth);
	for (const e of document.querySelectorAll("style, [style*='url('], script:not([src])")) faults.push("inline: " + e.outerHTML.slice(0, 80));
	return faults;
})()`

// looks lists how each text on the page is painted: its colour, and that of the nearest painted
// surface under it.
const looks = `(() => {
	const rgba = (s) => { const c = s.match(/[\d.]+/g).map(Number); return [c[0], c[1], c[2], c.length > 3 ? Math.round(c[3] * 255) : 255]; };
	const out = [];
	const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
	while (walk.nextNode()) {
		const e = walk.currentNode.parentElement;
		if (!walk.currentNode.data.trim() || e.closest("noscript, script, option, [hidden]") || !e.getClientRects().length || e.matches(":disabled")) continue;
		const style = getComputedStyle(e);
		if (parseFloat(style.fontSize) === 0 || style.opacity === "0") continue;
		let under = null;
		for (let p = e; p && !under; p = p.parentElement) {
			const c = rgba(getComputedStyle(p).backgroundColor);
			if (c[3] > 0) under = c;
		}
		out.push({ text: walk.currentNode.data.trim().slice(0, 40), color: rgba(e instanceof SVGElement ? style.fill : style.color), under: under || [255, 255, 255, 255],
			size: parseFloat(style.fontSize), bold: Number(style.fontWeight) >= 700 });
	}
	return out;
})()`
