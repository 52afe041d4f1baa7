import { useSignal } from "@preact/signals";

import { ApiError, get, query, session } from "../api/client";
import type { AuditLine, AuditPage, AuditVerdict, Problem, Session } from "../api/types";
import { Moment, Nothing, Section, Trouble } from "../parts/show";
import { count } from "../parts/words";
import { address, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const record = /^[0-9a-f]{32}$/;

function Verification() {
  const verdict = useSignal<AuditVerdict | null>(null);
  const problem = useSignal<Problem | null>(null);
  const asking = useSignal(false);
  const verify = async (): Promise<void> => {
    asking.value = true;
    try {
      verdict.value = await get<AuditVerdict>("/v1/audit/verify");
      problem.value = null;
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
    } finally {
      asking.value = false;
    }
  };
  const seen = verdict.value;
  return (
    <Section title="Was the audit changed?">
      <div class="buttons">
        <button type="button" disabled={asking.value} onClick={() => void verify()}>
          {asking.value ? "Reading all lines…" : "Verify all lines"}
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

function Line({ of: line }: { of: AuditLine }) {
  return (
    <tr>
      <td>{line.seq}</td>
      <td><Moment at={line.at === "" ? null : line.at} /></td>
      <td>{line.who}</td>
      <td>{line.role}</td>
      <td>{line.what}{line.of === null ? "" : ` (outcome of ${line.of})`}</td>
      <td>{record.test(line.ref) ? <a class="ref" href={address(["operation", line.ref])}>{line.ref.slice(0, 8)}</a> : line.ref}</td>
      <td>{line.reason}</td>
      <td>{line.before}{line.after === "" ? "" : ` → ${line.after}`}</td>
    </tr>
  );
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
  const whoText = useSignal(who);
  const whatText = useSignal(what);
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
          <p>
            <label for="who">Who</label>
            <input id="who" value={whoText.value} onInput={(event) => {
              whoText.value = event.currentTarget.value;
            }} />
          </p>
          <p>
            <label for="what">What</label>
            <input id="what" placeholder="keys.resolve" value={whatText.value} onInput={(event) => {
              whatText.value = event.currentTarget.value;
            }} />
          </p>
          <button type="submit">Show</button>
        </form>
        {problem === null ? null : <Trouble problem={problem} />}
        {value === null ? (
          problem === null ? <p class="loading">Reading the audit…</p> : null
        ) : value.audit.length === 0 ? (
          <Nothing>No line matches. Each decision and each change of settings leaves lines here.</Nothing>
        ) : (
          <table>
            <thead>
              <tr>
                {["line", "when", "who", "role", "what", "about", "reason", "before → after"].map((name) => (
                  <th key={name} scope="col">{name}</th>
                ))}
              </tr>
            </thead>
            <tbody>{value.audit.map((line) => <Line key={line.seq} of={line} />)}</tbody>
          </table>
        )}
        {value?.next ? (
          <button type="button" onClick={() => setFilters({ after: value.next ?? "" })}>Later lines</button>
        ) : null}
      </Section>
    </>
  );
}
