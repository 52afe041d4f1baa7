// The table and the findings of docs/peers.md, between its two marks.
import fs from "node:fs";

const begin = "<!-- begin of check/peers/run.mjs -->";
const end = "<!-- end of check/peers/run.mjs -->";
const groups = [["money"], ["correctness"], ["interoperability", "courtesy"]];

export function writePage(page, judged) {
  const text = fs.readFileSync(page, "utf8");
  const table = [
    `${new Date().toISOString().slice(0, 10)}, Node ${process.versions.node}. Cases that passed, of those that could be judged:`,
    "",
    "| peer | version | store | profile | money | correctness | interoperability, courtesy |",
    "|---|---|---|---|---|---|---|",
    ...judged.map(rowOf),
    "",
    "## Findings",
    "",
    "Peers without a line here had none.",
    "",
    ...judged.flatMap(findingsOf),
    "## Cases that were not judged",
    "",
    "| why | case: peers |",
    "|---|---|",
    ...skipsOf(judged),
  ].join("\n");
  fs.writeFileSync(page, `${text.slice(0, text.indexOf(begin))}${begin}\n${table}\n\n${text.slice(text.indexOf(end))}`);
}

function rowOf({ peer, report, version }) {
  const cells = groups.map((names) => {
    const asked = report.cases.filter((one) => names.includes(one.severity) && one.result !== "skip");
    return `${asked.filter((one) => one.result === "pass").length} of ${asked.length}`;
  });
  return `| ${[peer.name, version, peer.store, report.profile, ...cells].join(" | ")} |`;
}

function findingsOf({ peer, report }) {
  const failed = report.cases.filter((one) => one.result === "fail");
  if (failed.length === 0) return [];
  const rows = failed.map((one) => `| \`${one.id}\` | ${plain(one.detail)} | ${plain(shownBy(one))} |`);
  return [`### ${peer.name}`, "", "| case | what was seen | shown by |", "|---|---|---|", ...rows, ""];
}

/** The last request that shows it. */
function shownBy(one) {
  const call = one.calls?.at(-1);
  if (!call) return "";
  const lines = call.request.split("\r\n");
  const key = lines.find((line) => /^idempotency-key:/i.test(line)) ?? "no key";
  return `${call.what}: \`${lines[0].replace(" HTTP/1.1", "")}\`, \`${key.slice(0, 60)}\``;
}

/** One row for each reason: the cases, and the peers for which each was left out. */
function skipsOf(judged) {
  const reasons = new Map();
  for (const { peer, report } of judged) {
    for (const one of report.cases.filter((each) => each.result === "skip")) {
      if (!reasons.has(one.detail)) reasons.set(one.detail, new Map());
      const cases = reasons.get(one.detail);
      if (!cases.has(one.id)) cases.set(one.id, []);
      cases.get(one.id).push(peer.name);
    }
  }
  const isAll = (names) => names.length === judged.length;
  const shown = (names) => {
    const others = judged.map((each) => each.peer.name).filter((name) => !names.includes(name));
    if (isAll(names)) return "all";
    return others.length <= 4 ? `all but ${others.join("; ")}` : names.join("; ");
  };
  return [...reasons].map(([reason, cases]) => {
    // Cases that the same peers skip share a line.
    const lines = new Map();
    for (const [id, names] of cases) lines.set(shown(names), [...(lines.get(shown(names)) ?? []), `\`${id}\``]);
    return `| ${plain(reason)} | ${[...lines].map(([names, ids]) => `${ids.join(" ")}: ${names}`).join("<br>")} |`;
  });
}

function plain(text) {
  return text.replaceAll("|", "\\|").replaceAll(/\s+/g, " ").replaceAll("<", "&lt;");
}
