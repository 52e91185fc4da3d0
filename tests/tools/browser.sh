#!/bin/sh
# SPDX-License-Identifier: MIT
#
# report.html and the page of tenon report in a headless browser, wide and narrow: no error, nothing
# is loaded, nothing is wider than the window, tables are sorted and values are shown. Skipped
# without Chromium.
set -u
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
tenon=$abs_builddir/tools/tenon
"$tenon" info safetensors >/dev/null 2>&1 || {
    echo "SKIP: this build lacks safetensors"; exit 77; }
browser=
for name in chromium chromium-browser google-chrome; do
    test -n "$browser" || browser=$(command -v $name) || browser=
done
# dom WIDTH FILE: the text of the page after its scripts
dom() {
    HOME=$work timeout 120 "$browser" --headless --no-sandbox --disable-gpu \
        --window-size="$1,900" --virtual-time-budget=3000 --dump-dom "file://$2" 2>/dev/null
}
echo '<script>document.title = "it " + "runs"</script>' >try.html
test -n "$browser" && dom 800 "$work/try.html" | grep -q '<title>it runs</title>' || {
    echo "SKIP: no headless Chromium"; exit 77; }
"$tenon" train --model 'Sequential(Flatten(), Linear(64, 10))' --data "Digits(split='train')" \
    --val "Digits(split='test')" --epochs 3 --out run >log 2>&1 || { cat log; exit 1; }

cat >first <<'END'
<script>
window.failures = [];
addEventListener('error', (event) => failures.push('error: ' + event.message));
</script>
END
cat >last <<'END'
<script>
addEventListener('load', () => {
    const expect = (good, words) => good || failures.push(words);
    const root = document.documentElement;
    expect(root.scrollWidth <= innerWidth, `${root.scrollWidth} wide in ${innerWidth}`);
    for (const entry of performance.getEntriesByType('resource'))
        expect(entry.name.startsWith('data:'), 'loads ' + entry.name.slice(0, 60));
    const pictures = [...document.images];
    expect(pictures.length > 0, 'no pictures');
    for (const picture of pictures)
        expect(picture.complete && picture.naturalWidth > 0, 'a picture is broken');
    const tables = document.querySelectorAll('.sortable');
    expect(tables.length > 0, 'no table');
    for (const table of tables) {
        const button = table.tHead.querySelector('button');
        const numbers = () => [...table.tBodies[0].rows].map((row) =>
            Number(row.cells[0].dataset.v ?? row.cells[0].textContent));
        if (!button || numbers().some(isNaN)) continue;
        button.click();
        expect(numbers().every((n, i, all) => i === 0 || all[i - 1] <= n), 'not sorted');
        button.click();
        expect(numbers().every((n, i, all) => i === 0 || all[i - 1] >= n), 'not sorted back');
    }
    const plots = document.querySelector('[role=group]');
    expect(plots, 'no chart answers to keys');
    if (plots) {
        const before = plots.parentElement.innerHTML;
        plots.focus();
        plots.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowLeft', bubbles: true }));
        expect(plots.parentElement.innerHTML !== before, 'an arrow key shows no values');
    }
    document.title = failures.length ? 'failed: ' + failures.join('; ') : 'all is well';
});
</script>
END
cat first run/report.html last >page.html
bad=0
for width in 1200 520; do
    dom $width "$work/page.html" >after
    grep -q '<title>all is well</title>' after || {
        echo "$width pixels: $(grep -o '<title>[^<]*' after | head -n 1)"; bad=1; }
done
# A window is at least 500 pixels wide: telephones are frames. A comparison has no pictures, and no
# table that is sorted.
cat >frame.html <<'END'
<script>addEventListener('message', (event) => { document.title = event.data; });</script>
<iframe src="page.html" style="width: 390px; height: 900px; border: 0"></iframe>
END
tell="<script>addEventListener('load', () => parent.postMessage(document.title, '*'));</script>"
sed -e '/pictures.length > 0/d' -e '/tables.length > 0/d' last >some
cp -r run other
"$tenon" report run other --out comparison.html >log 2>&1 || { cat log; exit 1; }
for page in run/report.html comparison.html; do
    check=some
    test $page = comparison.html || check=last
    { cat first $page $check; echo "$tell"; } >page.html
    for file in page.html frame.html; do
        dom 1440 "$work/$file" >after
        grep -q '<title>all is well</title>' after || {
            echo "$page, $file: $(grep -o '<title>[^<]*' after | head -n 1)"; bad=1; }
    done
done
# The check itself notices a script that fails.
{ cat first run/report.html; echo '<script>nothing.at.all()</script>'; cat last; } >page.html
dom 1200 "$work/page.html" | grep -q '<title>failed: error: .*nothing' || {
    echo "an error of a script is not noticed"; bad=1; }
exit $bad
