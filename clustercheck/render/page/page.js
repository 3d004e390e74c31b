// Reading needs none of this: it filters, and opens what a link leads to.
"use strict";
const find = (id) => document.getElementById(id);
const form = find("filter");
const matrices = [...document.querySelectorAll("table.matrix")];
const rows = matrices.flatMap((table) => [...table.tBodies[0].rows]);
const folded = [...document.querySelectorAll("details.fold")];
const sheet = new CSSStyleSheet();
document.adoptedStyleSheets = [sheet];

// "gpu[01-03,7],login" as node sets are written: what stands in brackets is tried number by number.
function named(pattern) {
    const parts = pattern.toLowerCase().match(/(?:\[[^\]]*\]?|[^\s,[])+/g) || [];
    const tests = parts.map((part) => {
        const bracket = /^([^[]*)\[([^\]]*)\]?(.*)$/.exec(part);
        if (!bracket) return (name) => name.includes(part);
        const ranges = bracket[2].split(",").map((range) => range.split("-"));
        return (name) => {
            if (!name.startsWith(bracket[1]) || !name.endsWith(bracket[3])) return false;
            const number = name.slice(bracket[1].length, name.length - bracket[3].length);
            return /^\d+$/.test(number) &&
                ranges.some(([low, high]) => +low <= +number && +number <= +(high || low));
        };
    });
    return (name) => !tests.length || tests.some((test) => test(name.toLowerCase()));
}

function filter() {
    const byName = named(find("by-name").value);
    const column = find("by-check").value;
    const group = find("by-group")?.value ?? "";
    const wanted = new Set([...form.elements.status].filter((box) => box.checked).map((box) => box.value));
    const any = wanted.size || column || group || find("by-name").value.trim();
    let count = 0;
    for (const row of rows) {
        const cells = [...row.cells];
        const looked = column ? [cells[+column + 1]] : cells.slice(1, -1);
        const shown = byName(cells[0].textContent) &&
            (!group || (row.dataset.g || "").split(" ").includes(group)) &&
            (!wanted.size || looked.some((cell) => wanted.has(cell.className)));
        row.hidden = !shown;
        find("d" + cells[0].firstElementChild.hash.slice(2)).hidden = !shown;
        count += shown;
    }
    for (const table of matrices) {
        const none = [...table.tBodies[0].rows].every((row) => row.hidden);
        (table.closest("details") || table.parentElement).hidden = none;
        const caption = find(table.getAttribute("aria-labelledby"));
        if (caption) caption.hidden = none;
    }
    for (const one of folded) {
        const parts = [...one.querySelectorAll("tbody tr, .part")];
        one.hidden = parts.every((each) => each.hidden);
        if (any && one.querySelector("table")) one.open = !one.hidden;
    }
    const place = +column + 2;
    sheet.replaceSync(column ? `.matrix :is(th,td):not(:first-child,:last-child,:nth-child(${place})){display:none}` : "");
    find("shown").textContent = any ? `${count} of ${rows.length} nodes` : "";
}

function open() {
    const id = decodeURIComponent(location.hash.slice(1));
    const target = id && find(id);
    if (!target) return;
    for (let one = target; one; one = one.parentElement) {
        if (one.localName === "details") one.open = true;
        one.hidden = false;
    }
    target.scrollIntoView();
}

form.hidden = false;
form.addEventListener("input", filter);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(filter));
addEventListener("hashchange", open);
open();
addEventListener("mouseover", (event) => {
    const link = event.target.closest?.(".matrix td a");
    if (link && !link.title) link.title = find(link.hash.slice(1))?.textContent.trim() ?? "";
});
