#pragma once

#include <string_view>

namespace idem::check {

/// Of html_report(). Colours are never the only sign; paper gets the light ones, and all that is
/// folded away on a screen.
inline constexpr std::string_view html_style = R"css(
:root {
  color-scheme: light dark;
  --ground: #fbfbfa; --raised: #fff; --line: #d5d8dc; --text: #1a1d21; --soft: #565c64;
  --link: #0b57a4; --money: #a3160a; --correctness: #a3160a; --interoperability: #7a4b00;
  --courtesy: #565c64; --good: #14652c;
  font: 16px/1.5 system-ui, sans-serif;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --ground: #16181b; --raised: #1e2125; --line: #3b4149; --text: #e8eaed; --soft: #a7aeb8;
    --link: #8ec1ff; --money: #ff9d92; --correctness: #ff9d92; --interoperability: #f3c063;
    --courtesy: #a7aeb8; --good: #7fd696;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--ground); color: var(--text); }
main { max-width: 60rem; margin: 0 auto; padding: 1.5rem 1rem 3rem; overflow-wrap: anywhere; }
a { color: var(--link); }
:focus-visible { outline: 3px solid var(--link); outline-offset: 2px; }
h1 { font-size: 1.4rem; line-height: 1.35; margin: 0 0 1rem; text-wrap: pretty; }
h2 { font-size: 1.2rem; margin: 2.5rem 0 .75rem; }
h3 { font-size: 1.1rem; line-height: 1.35; margin: 0; }
p { margin: .4rem 0; }
.over { color: var(--soft); margin: 0 0 .25rem; }
.soft { color: var(--soft); }
.pass { color: var(--good); }
.fail { color: var(--money); }
.skip, .untested { color: var(--soft); }
.word { font-weight: 600; white-space: nowrap; }
h1 .word { display: block; font-size: 1.1rem; }
.severities { list-style: none; margin: 0; padding: 0; display: grid; gap: .5rem;
  grid-template-columns: repeat(auto-fit, minmax(13rem, 1fr)); }
.severities li { background: var(--raised); border: 1px solid var(--line); border-radius: 6px;
  padding: .6rem .8rem; }
.severities b { display: block; }
.severities .some b { color: var(--of); }
.severities small { display: block; color: var(--soft); line-height: 1.4; }
.money { --of: var(--money); }
.correctness { --of: var(--correctness); }
.interoperability { --of: var(--interoperability); }
.courtesy { --of: var(--courtesy); }
.finding { background: var(--raised); border: 1px solid var(--line);
  border-left: 5px solid var(--of); border-radius: 6px; padding: .9rem 1rem; margin: 0 0 1rem; }
.finding .severity { color: var(--of); font-weight: 600; }
.facts { display: grid; grid-template-columns: 8.5rem 1fr; gap: .4rem 1rem; margin: .7rem 0; }
dt { color: var(--soft); }
dd { margin: 0; }
details { border-top: 1px solid var(--line); }
summary { padding: .5rem 0; cursor: pointer; }
summary code { color: var(--soft); margin-left: .5rem; }
code, pre { font: .85rem/1.45 ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace; }
h4 { font-size: .9rem; margin: .6rem 0 .2rem; }
pre { margin: 0 0 .8rem; padding: .6rem .7rem; background: var(--ground); white-space: pre-wrap;
  border: 1px solid var(--line); border-radius: 4px; }
pre i { font-style: normal; color: var(--money); text-decoration: underline dotted; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .4rem .8rem .4rem 0;
  border-bottom: 1px solid var(--line); }
th { color: var(--soft); font-weight: 600; }
td small { display: block; color: var(--soft); line-height: 1.4; }
td:not(:nth-child(2)) { white-space: nowrap; overflow-wrap: normal; }
td:last-child, th:last-child { padding-right: 0; }
@media (max-width: 40rem) {
  .severities { grid-template-columns: 1fr; }
  h1 { font-size: 1.2rem; }
  .facts { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .5rem; }
  summary code { display: block; margin: 0; }
  thead { display: none; }
  tr { display: flex; flex-wrap: wrap; gap: 0 .8rem; padding: .5rem 0;
    border-bottom: 1px solid var(--line); }
  td { border: 0; padding: 0; }
  td:nth-child(2) { order: 1; flex-basis: 100%; }
}
@media print {
  :root { font-size: 10pt; }
  main { max-width: none; padding: 0; }
  details::details-content { content-visibility: visible; block-size: auto; }
  summary { list-style: none; }
  .finding { border-left-width: 3px; }
  h2, h3, h4, summary { break-after: avoid; }
  tr, .severities li { break-inside: avoid; }
}
)css";

}  // namespace idem::check
