"""The style sheet of the HTML report."""

STYLE = '''
:root {
  color-scheme: light dark;
  --paper: #f6f7f9; --card: #ffffff; --ink: #1c2430; --soft: #5b6675; --line: #dde2e9;
  --accent: #2558c9; --code: #eef1f5;
  --change: #17703c; --change-soft: #e1f4e8; --finding: #95500a; --finding-soft: #fdf0dc;
  --error: #b3261e; --error-soft: #fce6e4; --fine: #b9c2cf;
  --old: #fdecea; --old-mark: #f6b9b3; --new: #e5f6ea; --new-mark: #a5dfb8;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161c; --card: #1a2029; --ink: #e4e9f0; --soft: #98a4b3; --line: #2d3643;
    --accent: #8ab0ff; --code: #232b36;
    --change: #6bd394; --change-soft: #16331f; --finding: #f2b866; --finding-soft: #3a2a12;
    --error: #ff9d95; --error-soft: #421b18; --fine: #4b5665;
    --old: #35191a; --old-mark: #743330; --new: #15301d; --new-mark: #28663d;
  }
}
* { box-sizing: border-box; }
html { scroll-padding-top: 7rem; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
header, main { max-width: 84rem; margin: 0 auto; padding: 0 1.5rem; }
header { padding-top: 2rem; }
h1 { margin: 0; font-size: 1.6rem; font-weight: 650; letter-spacing: -.01em; }
h2 { margin: 2rem 0 .75rem; font-size: 1.15rem; }
h4 { margin: .75rem 0 .25rem; font-size: .85rem; color: var(--soft); }
.source { margin: .15rem 0 1.25rem; color: var(--soft); }
code, pre, .source, .place, .diff, .rule .said a, .file > summary .title {
  font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: .86em; }
.cards { display: flex; flex-wrap: wrap; gap: .75rem; }
.card { flex: 1 1 9rem; padding: .8rem 1rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; }
.card strong { display: block; font-size: 1.7rem; line-height: 1.2; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.card span { color: var(--soft); }
.card.change strong { color: var(--change); }
.card.finding strong { color: var(--finding); }
.card.error strong { color: var(--error); }
.calls { margin: 1.1rem 0 .4rem; }
.bar { display: flex; gap: 2px; height: .6rem; overflow: hidden; border-radius: .3rem; }
.bar span { min-width: 4px; }
.bar .fine { background: var(--fine); }
.bar .change { background: var(--change); }
.bar .finding { background: var(--finding); }
.aside { margin-top: .75rem; color: var(--soft); }
#toolbar { position: sticky; top: 0; z-index: 2; display: flex; flex-wrap: wrap; align-items: center;
  gap: .5rem; margin: 1.5rem -1.5rem 0; padding: .7rem 1.5rem; background: var(--paper);
  border-bottom: 1px solid var(--line); }
input, select, button { font: inherit; color: inherit; background: var(--card); min-height: 2.25rem;
  border: 1px solid var(--line); border-radius: .45rem; padding: .3rem .65rem; }
#search { flex: 1 1 16rem; min-width: 12rem; }
#rule { flex: 0 1 15rem; min-width: 8rem; }
button { cursor: pointer; }
.chip[aria-pressed="false"] { opacity: .5; text-decoration: line-through; }
.chip.change { color: var(--change); background: var(--change-soft); }
.chip.finding { color: var(--finding); background: var(--finding-soft); }
.chip.error { color: var(--error); background: var(--error-soft); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; }
#shown { color: var(--soft); font-variant-numeric: tabular-nums; }
.keys { flex-basis: 100%; color: var(--soft); font-size: .82em; }
kbd { padding: 0 .35em; border: 1px solid var(--line); border-radius: .3em; background: var(--card);
  font: inherit; }
.item { margin-bottom: .5rem; background: var(--card); border: 1px solid var(--line);
  border-radius: .6rem; }
.item > summary { display: flex; flex-wrap: wrap; align-items: center; gap: .3rem .6rem;
  padding: .6rem 1rem; cursor: pointer; list-style: none; border-radius: .6rem; }
.item > summary::-webkit-details-marker { display: none; }
.item > summary::before { content: "\\25b8"; color: var(--soft); width: 1em;
  text-align: center; transition: transform .1s; }
.item[open] > summary::before { transform: rotate(90deg); }
.item[open] > summary { border-bottom: 1px solid var(--line); border-radius: .6rem .6rem 0 0; }
.item .title { flex: 1; overflow-wrap: anywhere; }
.code { padding: .05rem .4rem; border-radius: .3rem; background: var(--code); white-space: nowrap; }
.badge { padding: .05rem .55rem; border-radius: 1rem; font-size: .82em; white-space: nowrap; }
.badge.change { color: var(--change); background: var(--change-soft); }
.badge.finding { color: var(--finding); background: var(--finding-soft); }
.badge.error { color: var(--error); background: var(--error-soft); }
.said { margin: 0; padding: .35rem 0; list-style: none; }
.said li { display: flex; flex-wrap: wrap; gap: .1rem .7rem; align-items: baseline; padding: .25rem 1rem;
  border-left: 3px solid transparent; }
.said li.change { border-left-color: var(--change); }
.said li.finding { border-left-color: var(--finding); }
.said li.error { border-left-color: var(--error); }
.said li:hover { background: var(--code); }
.place { min-width: 5.5rem; color: var(--soft); }
.rule .said a { overflow-wrap: anywhere; }
.message { flex: 1 1 24rem; overflow-wrap: anywhere; }
a { color: var(--accent); text-decoration: none; }
a:hover { text-decoration: underline; }
.explanation { padding: .5rem 1rem; border-bottom: 1px solid var(--line); }
.explanation > summary { color: var(--accent); cursor: pointer; }
.explanation p { max-width: 46rem; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(24rem, 100%), 1fr)); gap: 0 1rem; }
.pair > div { min-width: 0; display: flex; flex-direction: column; }
.pair .example { flex: 1; }
.untouched { margin-top: .75rem; color: var(--soft); }
.example { margin: .25rem 0; padding: .6rem .8rem; overflow-x: auto;
  background: var(--code); border-radius: .4rem; }
.scroll { overflow-x: auto; border-top: 1px solid var(--line); }
.diff { width: 100%; min-width: 52rem; border-collapse: collapse; table-layout: fixed; line-height: 1.45; }
.diff td { padding: 0 .6rem; vertical-align: top; white-space: pre-wrap; overflow-wrap: anywhere; }
.diff col.no { width: 3.6rem; }
.diff td.no { text-align: right; color: var(--soft); user-select: none; }
.diff td.old { border-right: 1px solid var(--line); }
.diff .replace .old, .diff .delete .old { background: var(--old); }
.diff .replace .new, .diff .insert .new { background: var(--new); }
.diff del { background: var(--old-mark); text-decoration: none; border-radius: .2em; }
.diff ins { background: var(--new-mark); text-decoration: none; border-radius: .2em; }
.diff .gap td { padding: .1rem; color: var(--soft); text-align: center; background: var(--code); }
.diff tr:first-child td { padding-top: .3rem; }
.diff tr:last-child td { padding-bottom: .3rem; }
.quiet { padding: 0 1rem; color: var(--soft); }
main { padding-bottom: 4rem; }
[hidden] { display: none !important; }
@media (max-width: 60rem) { .keys { display: none; } #toolbar { position: static; } }
@media print { #toolbar { display: none; } body { background: #fff; } }
'''
