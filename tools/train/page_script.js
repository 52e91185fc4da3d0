// SPDX-License-Identifier: MIT
//
// What report.html can do with scripts: the values under the pointer, tables that can be sorted.
'use strict';
(() => {
    const charts = JSON.parse(document.getElementById('data').textContent);
    const format = (v) => (Number.isInteger(v) ? v.toLocaleString('en') : Number(v.toPrecision(4)));

    // The index of the step that is nearest to `step`.
    const nearest = (steps, step) => {
        let low = 0, high = steps.length - 1;
        while (low < high) {
            const middle = (low + high) >> 1;
            if (steps[middle] < step) low = middle + 1;
            else high = middle;
        }
        return low > 0 && step - steps[low - 1] < steps[low] - step ? low - 1 : low;
    };

    const element = (parent, name, kind) => {
        const made = parent.appendChild(document.createElement(name));
        if (kind) made.className = kind;
        return made;
    };

    const show = (plots, chart, share) => {
        hide(plots);
        const [first, last] = chart.x;
        const wanted = first + share * (last - first);
        let step = null;
        for (const s of chart.series)
            if (s.step.length) {
                const near = s.step[nearest(s.step, wanted)];
                if (step === null || Math.abs(near - wanted) < Math.abs(step - wanted)) step = near;
            }
        if (step === null) return;
        const at = last > first ? (step - first) / (last - first) : 0.5;
        for (const plot of plots.children) {
            element(plot, 'div', 'cross').style.left = 100 * at + '%';
            const hint = element(plot, 'div', 'hint');
            element(hint, 'div').textContent = 'step ' + format(step);
            for (const s of chart.series) {
                if (!s.step.length) continue;
                const i = nearest(s.step, step);
                const row = element(hint, 'div', 's' + s.color);
                const name = element(row, 'span');
                element(name, 'i');
                name.append(s.name + (s.step[i] === step ? '' : ' (' + format(s.step[i]) + ')'));
                element(row, 'b').textContent = format(s.value[i]);
            }
            // Beside the line, but not beyond the plot.
            const room = plot.clientWidth - hint.offsetWidth;
            const place = at * plot.clientWidth + (at < 0.5 ? 10 : -10 - hint.offsetWidth);
            hint.style.left = Math.max(-40, Math.min(room, place)) + 'px';
        }
    };

    const hide = (plots) => {
        for (const old of plots.querySelectorAll('.cross, .hint')) old.remove();
    };

    for (const card of document.querySelectorAll('[data-chart]')) {
        const chart = charts[card.dataset.chart];
        const plots = card.querySelector('.plots');
        let share = 1;
        plots.tabIndex = 0;
        plots.setAttribute('role', 'group');
        plots.setAttribute('aria-label', 'Values by step: arrow keys');
        plots.addEventListener('pointermove', (event) => {
            const box = card.querySelector('.lin').offsetParent
                ? card.querySelector('.lin').getBoundingClientRect()
                : card.querySelector('.log').getBoundingClientRect();
            share = Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
            show(plots, chart, share);
        });
        plots.addEventListener('pointerleave', () => hide(plots));
        plots.addEventListener('blur', () => hide(plots));
        plots.addEventListener('keydown', (event) => {
            const move = { ArrowLeft: -0.02, ArrowRight: 0.02, Home: -1, End: 1 }[event.key];
            if (!move) return;
            event.preventDefault();
            share = Math.min(1, Math.max(0, share + move));
            show(plots, chart, share);
        });
    }

    const key = (row, column) => {
        const cell = row.children[column];
        return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
    };
    for (const table of document.querySelectorAll('.sortable')) {
        const heads = [...table.tHead.rows[0].cells];
        heads.forEach((head, column) => {
            const button = document.createElement('button');
            button.textContent = head.textContent;
            head.replaceChildren(button);
            button.addEventListener('click', () => {
                const down = head.getAttribute('aria-sort') === 'ascending';
                const body = table.tBodies[0];
                const rows = [...body.rows].sort((a, b) => {
                    const x = key(a, column), y = key(b, column);
                    const order = typeof x === 'number' && typeof y === 'number'
                        ? x - y
                        : String(x).localeCompare(String(y), 'en', { numeric: true });
                    return down ? -order : order;
                });
                for (const other of heads) other.removeAttribute('aria-sort');
                head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
                body.append(...rows);
            });
        });
    }
})();
