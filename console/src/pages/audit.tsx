import { useSignal } from "@preact/signals";

import { get, query, session } from "../api/client";
import type { AuditLine, AuditPage, AuditVerdict, Session } from "../api/types";
import { Text, useField, useOrder } from "../parts/fields";
import { Moment, Nothing, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { count } from "../parts/words";
import { address, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const record = /^[0-9a-f]{32}$/;

function Verification() {
  const verdict = useSignal<AuditVerdict | null>(null);
  const { sending, problem, send } = useOrder();
  const verify = async (): Promise<void> => {
    const found = await send(() => get<AuditVerdict>("/v1/audit/verify"));
    if (found !== null) verdict.value = found;
  };
  const seen = verdict.value;
  return (
    <Section title="Was the audit changed?">
      <div class="buttons">
        <button type="button" disabled={sending.value} onClick={() => void verify()}>
          {sending.value ? "Reading all lines…" : "Verify all lines"}
        </button>
      </div>
      <p role="status" class={seen !== null && seen.first_bad !== null ? "contested" : ""}>
        {seen === null
          ? ""
          : seen.first_bad === null
            ? `No: all ${count(seen.lines)} lines are as they were written${seen.last === null ? "" : `, up to line ${seen.last.seq}, hash ${seen.last.hash}`}. This does not show whether the last lines were removed: compare with a noted SEQ:HASH, idem audit verify --expect.`
            : `Yes: line ${seen.first_bad} is the first wrong one. ${seen.why ?? ""} The store may have been changed: compare with an exported copy.`}
      </p>
      {problem.value === null ? null : <Trouble problem={problem.value} />}
    </Section>
  );
}

function cellsOf(line: AuditLine) {
  return [
    line.seq,
    <Moment at={line.at === "" ? null : line.at} />,
    line.who,
    line.role,
    `${line.what}${line.of === null ? "" : ` (outcome of ${line.of})`}`,
    record.test(line.ref) ? <a class="ref" href={address(["operation", line.ref])}>{line.ref.slice(0, 8)}</a> : line.ref,
    line.reason,
    `${line.before}${line.after === "" ? "" : ` → ${line.after}`}`,
  ];
}

export function Audit() {
  const who = session.value as Session;
  return who.role === "viewer" ? <Nothing>The audit needs the role support; you have the role viewer.</Nothing> : <Lines />;
}

/** Who decided what, the oldest first, as the chain of the store has it. */
function Lines() {
  const filters = place.value.filters;
  const who = filters.get("who") ?? "";
  const what = filters.get("what") ?? "";
  const after = filters.get("after") ?? "";
  const whoText = useField(who);
  const whatText = useField(what);
  const parameters = query({ who, what, after, limit: 100 });
  const { loaded } = useLive(() => get<AuditPage>(`/v1/audit${parameters}`), 5_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      <Verification />
      <Section title="Lines">
        <form role="search" class="search" onSubmit={(event) => {
          event.preventDefault();
          setFilters({ who: whoText.value.trim(), what: whatText.value.trim(), after: "" });
        }}>
          <Text label="Who" name="who" value={whoText} />
          <Text label="What" name="what" placeholder="keys.resolve" value={whatText} />
          <button type="submit">Show</button>
        </form>
        {problem === null ? null : <Trouble problem={problem} />}
        {value === null ? (
          problem === null ? <p class="loading">Reading the audit…</p> : null
        ) : value.audit.length === 0 ? (
          <Nothing>No line matches. Each decision and each change of settings leaves lines here.</Nothing>
        ) : (
          <Table
            columns={["line", "when", "who", "role", "what", "about", "reason", "before → after"]}
            rows={value.audit.map((line) => ({ key: line.seq, cells: cellsOf(line) }))}
          />
        )}
        {value?.next ? (
          <button type="button" onClick={() => setFilters({ after: value.next ?? "" })}>Later lines</button>
        ) : null}
      </Section>
    </>
  );
}
