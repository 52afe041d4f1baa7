import { get, query, session } from "../api/client";
import { type RetriesPage, type Retry, type RetryOutcome, outcomes } from "../api/retries";
import type { Session } from "../api/types";
import { Differences } from "../parts/differences";
import { Moment, Nothing, Ref, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { count } from "../parts/words";
import { address, place } from "../state/place";
import { useLive } from "../state/live";

const kinds = Object.keys(outcomes) as RetryOutcome[];
const short: Record<RetryOutcome, string> = {
  key_misuse: "misuse",
  unknown: "unknown",
  expired: "expired",
  in_progress: "running",
  failed_retry: "ran again",
  replay: "stored answer",
};

/** Whose retries these are, those with most first: one client that errs stands out. */
function Clients({ of: retries }: { of: Retry[] }) {
  const by = new Map<string, { scope: string; client: string; route: string; retries: number }>();
  for (const one of retries) {
    const client = one.client ?? "not known";
    const key = JSON.stringify([one.scope, client, one.route]);
    const row = by.get(key) ?? { scope: one.scope, client, route: one.route, retries: 0 };
    row.retries += 1;
    by.set(key, row);
  }
  const rows = [...by.entries()].sort(([, a], [, b]) => b.retries - a.retries).slice(0, 10);
  return (
    <Table name="Clients" columns={["number", "scope", "client", "route"]} rows={rows.map(([key, one]) => ({
      key,
      cells: [count(one.retries), one.scope, one.client, one.route],
    }))} />
  );
}

/** Which requests came again, and what they got: in the memory of this process. */
export function Retries() {
  const who = session.value as Session;
  return who.role === "viewer" ? <Nothing>Retries need the role support; you have the role viewer.</Nothing> : <List />;
}

function List() {
  const outcome = place.value.filters.get("outcome") ?? "";
  const parameters = query({ outcome });
  const { loaded } = useLive(() => get<RetriesPage>(`/v1/retries${parameters}`), 5_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      <p class="note">
        The newest requests whose key had a record already. This process alone has them, since its start at the most; other processes have their own.
      </p>
      <nav class="tabs" aria-label="Outcomes">
        <a href={address(["retries"])} aria-current={outcome === "" ? "page" : undefined}>all</a>
        {kinds.map((one) => (
          <a key={one} href={address(["retries"], { outcome: one })} aria-current={outcome === one ? "page" : undefined}>{short[one]}</a>
        ))}
      </nav>
      {outcome === "key_misuse" ? (
        <p>
          A client sent another request under a key that it had used: the gateway refused it, and nothing ran twice. The client's team must make a
          new key for each new operation, and keep it for retries of that operation alone.
        </p>
      ) : null}
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading the retries…</p> : null
      ) : value.retries.length === 0 ? (
        <Nothing>No retry of this kind came since the start of this process, or none is remembered. That is normal where clients lose no answers.</Nothing>
      ) : (
        <>
          <h2>Who sent them</h2>
          <Clients of={value.retries} />
          <h2>The newest {count(value.retries.length)}</h2>
          <Table columns={["when", "record", "what it met", "status", "scope", "client", "route"]} rows={value.retries.map((one) => ({
            key: `${one.at} ${one.ref}`,
            cells: [
              <Moment at={one.at} />,
              <Ref of={one.ref} />,
              <>{outcomes[one.outcome]}<Differences of={one} /></>,
              one.status === 0 ? "the client left before" : one.status,
              one.scope,
              one.client ?? "not known",
              one.route,
            ],
          }))} />
        </>
      )}
    </>
  );
}
