/* SPDX-License-Identifier: MIT
 *
 * The script of the page of `tenon graph --format html`: an arc for each use of a value. */
'use strict';
(function () {
    var graph = document.getElementById('graph'), svg = document.getElementById('edges');
    var edges = [];
    graph.querySelectorAll('td.in a').forEach(function (link) {
        var from = document.getElementById(link.getAttribute('href').slice(1));
        if (from !== null)
            edges.push({ from: from, to: link.closest('tr') });
    });
    edges.forEach(function (edge) {
        edge.path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
        svg.appendChild(edge.path);
    });
    /* The middle of a row, or of the box that hides it. */
    function middle(row, top) {
        var at = row;
        for (var box = row.closest('details'); box !== null;
            box = box.parentElement.closest('details'))
            if (!box.open)
                at = box;
        var place = at.getBoundingClientRect();
        return place.top - top + Math.min(place.height, 24) / 2;
    }
    function draw() {
        var top = svg.getBoundingClientRect().top;
        edges.forEach(function (edge) {
            var a = middle(edge.from, top), b = middle(edge.to, top), wide = Math.abs(b - a);
            var bow = 84 - Math.min(80, 6 + Math.sqrt(wide) * 2.2);
            edge.path.setAttribute('d', wide < 1 ? '' : 'M84 ' + a + 'C' + bow + ' ' + a + ' ' +
                bow + ' ' + b + ' 84 ' + b);
        });
    }
    function mark(row, on) {
        edges.forEach(function (edge) {
            if (edge.from !== row && edge.to !== row)
                return;
            edge.path.classList.toggle('on', on);
            (edge.from === row ? edge.to : edge.from).classList.toggle('on', on);
        });
    }
    graph.querySelectorAll('tr').forEach(function (row) {
        row.addEventListener('mouseenter', function () { mark(row, true); });
        row.addEventListener('mouseleave', function () { mark(row, false); });
    });
    graph.addEventListener('toggle', draw, true);
    window.addEventListener('resize', draw);
    draw();
})();
