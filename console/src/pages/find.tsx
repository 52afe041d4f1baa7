import { useSignal } from "@preact/signals";

import { ApiError, get, query } from "../api/client";
import type { FoundKey, FoundPage, Searched } from "../api/search";
import type { Problem, State } from "../api/types";
import { states } from "../api/types";
import { count } from "../parts/words";
import { Text, useField } from "../parts/fields";
import { Moment, Nothing, Ref, StateTag, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { address, go, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const ref = /^[0-9a-f]{32}$/;

/**
 * Whether there is a record of this reference: the id of a trace looks like one. By the listing, because a browser
 * reports the 404 of a question for the record itself as an error of the page.
 */
async function hasRecord(text: string): Promise<boolean> {
  const number = BigInt(`0x${text}`);
  const cursor = number === 0n ? undefined : (number - 1n).toString(16).padStart(text.length, "0");
  const { keys } = await get<FoundPage>(`/v1/keys${query({ cursor, limit: 1 })}`);
  return keys[0]?.ref === text;
}

/** What a value is to a record, as the settings and the API name it. */
const kinds: Record<string, string> = { trace_id: "trace", upstream_reference: "the upstream's reference" };

function Places({ of, name }: { of: string[]; name: string }) {
  if (of.length === 0) return null;
  return <>, {name} at {of.map((one, at) => <>{at === 0 ? "" : ", "}<code key={one}>{one}</code></>)}</>;
}

/** What was read, because an empty list proves nothing about a value that nobody indexed. */
function WasSearched({ what, isEmpty }: { what: Searched; isEmpty: boolean }) {
  return (
    <div class="note searched">
      {what.configured ? (
        <p>
          Indexed since <Moment at={what.since} />: traces, the upstream's references
          <Places of={what.requests} name="values of requests" />
          <Places of={what.answers} name="values of answers" />.
          {what.earlier_settings ? " Before that, other values were indexed, or none." : ""}
        </p>
      ) : (
        <p>
          {what.earlier_settings ? "Values are no longer indexed: only older ones are found." : "No value is indexed."} To
          find records by a trace, an order or a provider's id, write the places of your values into the settings, and
          reload: <code>{"search: { requests: [/order_id], answers: [/id] }"}</code>. It counts for requests from then on.
        </p>
      )}
      {what.more ? <p><strong>More records have this value than this page shows.</strong> Search for one that names a single piece of work.</p> : null}
      {what.unreadable > 0 ? <p><strong>{count(what.unreadable)} lines of the index cannot be read</strong>: records may be missing here.</p> : null}
      {isEmpty ? (
        <p>
          A record that is older than the index, or whose value was too long or could not be written, is found by its
          reference or its key alone. If the text is a client's key, write its scope and operation beside it.
        </p>
      ) : null}
    </div>
  );
}

function Records({ keys, withKinds }: { keys: FoundKey[]; withKinds: boolean }) {
  return (
    <Table
      columns={["reference", "state", "age", "scope", "operation", "answer", withKinds ? "found by" : "reason"]}
      rows={keys.map((one) => ({
        key: one.ref,
        cells: [
          <Ref of={one.ref} />,
          <><StateTag state={one.state} />{one.contested ? <b class="contested"> contested</b> : null}</>,
          <Moment at={one.created_at} />,
          one.scope,
          one.operation,
          one.response_status ?? "–",
          withKinds ? (one.found_by ?? []).map((kind) => kinds[kind] ?? kind).join(", ") : one.last_error_code,
        ],
      }))}
    />
  );
}

/** Why the list is empty. */
function emptyText(by: { key: string; find: string }, hasNext: boolean): string {
  if (by.find !== "") return "No record was found by this value. That does not prove that there is none.";
  if (by.key !== "") return "No record of this key in this scope and operation. Check the three. If they are right, the gateway has no record of the key: the request never arrived or was refused, its route is in shadow, or the record is forgotten. That does not prove that nothing ran.";
  if (hasNext) return "None among those that were read; there are more: see the next page.";
  return "No record matches. Records appear here once clients send requests with a key.";
}

function SearchForm() {
  const filters = place.value.filters;
  const asked = filters.get("find") ?? filters.get("key") ?? "";
  const scope = filters.get("scope") ?? "";
  const operation = filters.get("operation") ?? "";
  const text = useField(asked);
  const inScope = useField(scope);
  const ofOperation = useField(operation);
  const problem = useSignal<Problem | null>(null);
  const look = async (): Promise<void> => {
    const wanted = text.value.trim();
    const at = { scope: inScope.value.trim(), operation: ofOperation.value.trim() };
    if (ref.test(wanted) && (await hasRecord(wanted))) return go(["operation", wanted]);
    const isKey = at.scope !== "" && at.operation !== "" && !ref.test(wanted);
    // Both are looked for in all states: a filter would hide a record that is there.
    const all: Record<string, string> = wanted === "" ? {} : { state: "", contested: "" };
    setFilters({ key: isKey ? wanted : "", find: isKey ? "" : wanted, ...at, cursor: "", ...all });
  };
  const search = (event: Event): void => {
    event.preventDefault();
    problem.value = null;
    look().catch((error: unknown) => {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
    });
  };
  return (
    <>
      <form role="search" class="search" onSubmit={search}>
        <Text label="Reference or key, trace, provider's id, order" name="find" type="search" value={text} />
        <Text label="Scope" name="scope" value={inScope} />
        <Text label="Operation" name="operation" value={ofOperation} />
        <button type="submit">Find</button>
        <p class="note">
          The reference is the operation_ref of a client's answer and of the log. A client's key needs its scope and
          operation: the store keeps no keys, only digests under both. The page looks for any other text among the values
          that the gateway indexes.
        </p>
      </form>
      {problem.value === null ? null : <Trouble problem={problem.value} />}
    </>
  );
}

/** One box, and states as tabs. */
export function Find() {
  const filters = place.value.filters;
  const state = filters.get("state") ?? "";
  const scope = filters.get("scope") ?? "";
  const operation = filters.get("operation") ?? "";
  const key = filters.get("key") ?? "";
  const find = filters.get("find") ?? "";
  const contested = filters.get("contested") ?? "";
  const cursor = filters.get("cursor") ?? "";
  // The counts are those of the whole store.
  const isFiltered = scope !== "" || operation !== "" || key !== "" || find !== "" || contested !== "";
  const parameters = query({ state, scope, operation, key, find, contested, cursor, limit: 50 });
  // A search by value reads each day that the index has.
  const interval = find === "" ? 3_000 : 15_000;
  const { loaded } = useLive(() => get<FoundPage>(`/v1/keys${parameters}`), interval, [parameters]);
  const { value, problem } = loaded.value;
  const isEmpty = value !== null && value.keys.length === 0;
  return (
    <>
      <SearchForm />
      <nav class="tabs" aria-label="States">
        <a href={address(["find"], { scope, operation, find })} aria-current={state === "" ? "page" : undefined}>all</a>
        {states.map((one) => (
          <a key={one} href={address(["find"], { state: one, scope, operation, find })} aria-current={state === one ? "page" : undefined}>
            <StateTag state={one as State} /> {value === null || isFiltered ? "" : count(value.counts[one])}
          </a>
        ))}
      </nav>
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading records…</p> : null
      ) : isEmpty ? (
        <Nothing>{emptyText({ key, find }, value.next !== null)}</Nothing>
      ) : (
        <Records keys={value.keys} withKinds={find !== ""} />
      )}
      {value?.search ? <WasSearched what={value.search} isEmpty={isEmpty} /> : null}
      {value?.next ? (
        <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>Next page</button>
      ) : null}
    </>
  );
}
