"""The style sheet of the pages: light and dark, wide and narrow."""

STYLE = """\
:root {
  --ground: #f7f7f5; --paper: #ffffff; --ink: #1c1e21; --quiet: #5f6670;
  --line: #dfe1e5; --right: #146c3a; --right-ground: #e7f5ec;
  --wrong: #a3251f; --wrong-ground: #fcebea; --accent: #2456a6;
}
@media (prefers-color-scheme: dark) {
  :root {
    --ground: #15171a; --paper: #1e2125; --ink: #e9eaec; --quiet: #a2a9b3;
    --line: #363b42; --right: #7fd6a0; --right-ground: #1b3325;
    --wrong: #f4a09a; --wrong-ground: #3b2120; --accent: #8ab4f8;
  }
  img { filter: invert(1); }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--ground); color: var(--ink);
  font: 16px/1.5 system-ui, sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 2rem 1rem 4rem; }
h1 { font-size: 1.75rem; line-height: 1.2; margin: 0 0 .5rem; }
h2 {
  font-size: .8rem; letter-spacing: .06em; text-transform: uppercase;
  color: var(--accent); margin: 0 0 .5rem;
}
p { margin: 0; }
.introduction { color: var(--quiet); max-width: 44rem; margin-bottom: 1.5rem; }
.scroll { overflow-x: auto; margin-bottom: 2rem; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
caption { text-align: left; color: var(--quiet); font-size: .85rem; }
th, td {
  padding: .4rem 0 .4rem 1.25rem; text-align: right;
  border-bottom: 1px solid var(--line); font-weight: 400;
}
thead th { color: var(--quiet); font-size: .85rem; }
th:first-child { text-align: left; padding-left: 0; }
tbody tr.best > * { font-weight: 700; }
section {
  background: var(--paper); border: 1px solid var(--line); border-radius: .75rem;
  padding: 1rem; margin-bottom: 1.25rem;
}
.query {
  display: flex; gap: 1rem; align-items: center; justify-content: space-between;
  margin-bottom: .9rem;
}
.query .item { display: flex; gap: .9rem; align-items: center; }
.query img { width: 4.5rem; height: 4.5rem; flex: none; }
.query .title { font-size: 1.15rem; font-weight: 650; line-height: 1.25; }
.caption { color: var(--quiet); font-size: .85rem; }
.tally { color: var(--quiet); font-size: .85rem; white-space: nowrap; }
ol {
  list-style: none; margin: 0; padding: 0; display: grid; gap: .6rem;
  grid-template-columns: repeat(auto-fill, minmax(10.5rem, 1fr));
}
li {
  display: flex; flex-direction: column; border-radius: .5rem; overflow: hidden;
  border: 1px solid var(--line);
}
li .item { padding: .6rem .6rem .5rem; flex: 1; text-align: center; }
li img { width: 4rem; height: 4rem; }
li .title {
  font-size: .78rem; line-height: 1.3; font-weight: 600; overflow-wrap: anywhere;
}
li .caption { font-size: .75rem; }
.score {
  display: flex; justify-content: space-between; padding: .25rem .6rem;
  font-size: .75rem; font-variant-numeric: tabular-nums;
}
.mark { font-weight: 700; }
.right .score { color: var(--right); background: var(--right-ground); }
.wrong .score { color: var(--wrong); background: var(--wrong-ground); }
"""

# Pictures of a study may be photographs, and its figures are drawn on white.
STUDY_STYLE = """\
img { filter: none; background: #ffffff; }
pre {
  background: var(--paper); border: 1px solid var(--line); border-radius: .5rem;
  padding: .6rem .8rem; margin: .25rem 0 1.5rem; overflow-x: auto; font-size: .9rem;
}
td, tbody th { white-space: nowrap; }
@media (max-width: 30rem) { tbody th { white-space: normal; } }
thead th { vertical-align: bottom; line-height: 1.25; }
main > p.caption { max-width: 44rem; margin-bottom: .4rem; }
th:first-child { position: sticky; left: 0; background: var(--ground); }
details th:first-child { background: var(--paper); }
td span { color: var(--quiet); font-size: .85em; }
tr.group th {
  color: var(--quiet); font-size: .85rem; font-style: italic; padding-top: 1rem;
}
details {
  border: 1px solid var(--line); border-radius: .5rem; background: var(--paper);
  padding: .6rem .8rem; margin-bottom: 1rem;
}
summary { cursor: pointer; color: var(--accent); }
details .scroll { margin: .75rem 0 0; }
dl { margin: .75rem 0 0; font-size: .9rem; }
dt { font-weight: 650; }
dd { margin: 0 0 .5rem; color: var(--quiet); overflow-wrap: anywhere; }
main > h2 { margin: 2rem 0 .75rem; }
.figures {
  display: grid; gap: 1rem; margin-bottom: 2rem; align-items: start;
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 22rem), 1fr));
}
.figures.small {
  grid-template-columns: repeat(auto-fill, minmax(min(100%, 17rem), 1fr));
}
figure {
  margin: 0; padding: .75rem; background: #ffffff; color: #1c1e21;
  border: 1px solid var(--line); border-radius: .75rem;
}
figcaption { font-weight: 650; font-size: .95rem; margin-bottom: .35rem; }
figure svg { display: block; width: 100%; height: auto; }
figure svg text { font-family: system-ui, sans-serif !important; }
footer { margin-top: 2rem; }
"""

# With a column per method, the spread goes below the mean and the ratio stays in sight.
WIDE_STYLE = """\
main { max-width: 76rem; }
td { line-height: 1.25; }
td span { display: block; font-size: .75em; }
@media (min-width: 48rem) {
  main > .scroll th:last-child, main > .scroll td:last-child {
    position: sticky; right: 0; background: var(--ground);
  }
}
"""
