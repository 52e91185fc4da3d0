/* SPDX-License-Identifier: MIT
 *
 * Zooms into the flame graph and sorts tables. The page is complete without it. */
"use strict";
const flame = document.querySelector(".flame");
const chosen = document.querySelector(".chosen");
const reset = document.querySelector(".reset");

/* Shows the boxes between two shares of the whole width. */
function zoom(left, width) {
    for (const box of flame.children) {
        const from = (box.dataset.l - left) / width, part = box.dataset.w / width;
        const first = Math.max(from, 0), last = Math.min(from + part, 1);
        box.hidden = last <= first || (last - first) * flame.clientWidth < 0.5;
        box.style.left = 100 * first + "%";
        box.style.width = 100 * (last - first) + "%";
        box.classList.toggle("thin", (last - first) * flame.clientWidth < 16);
    }
    reset.hidden = width >= 1;
}

if (flame) {
    flame.addEventListener("click", (event) => {
        const box = event.target.closest("[data-w]");
        if (!box)
            return;
        zoom(+box.dataset.l, +box.dataset.w);
        chosen.textContent = box.title;
    });
    flame.addEventListener("mouseover", (event) => {
        const box = event.target.closest("[data-w]");
        if (box)
            chosen.textContent = box.title;
    });
    reset.addEventListener("click", () => zoom(0, 1));
    zoom(0, 1);
}

for (const table of document.querySelectorAll("table")) {
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
        head.querySelector("button").addEventListener("click", () => {
            const down = head.getAttribute("aria-sort") !== "descending" && column > 0;
            const up = !down;
            heads.forEach((other) => other.removeAttribute("aria-sort"));
            head.setAttribute("aria-sort", down ? "descending" : "ascending");
            const key = (row) => {
                const cell = row.cells[column];
                return column > 0 ? +cell.dataset.v : cell.textContent;
            };
            const rows = [...table.tBodies[0].rows].sort((a, b) => {
                const x = key(a), y = key(b);
                return (x < y ? -1 : x > y ? 1 : 0) * (up ? 1 : -1);
            });
            table.tBodies[0].append(...rows);
        });
    });
}
