import { useSignal } from "@preact/signals";

import { get, query } from "../api/client";
import type { KeysPage, State } from "../api/types";
import { states } from "../api/types";
import { count } from "../parts/words";
import { Text } from "../parts/fields";
import { Moment, Nothing, Ref, StateTag, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { address, go, place, setFilters } from "../state/place";
import { useLive } from "../state/live";

const ref = /^[0-9a-f]{32}$/;

/** One box, and states as tabs. */
export function Find() {
  const filters = place.value.filters;
  const state = filters.get("state") ?? "";
  const scope = filters.get("scope") ?? "";
  const operation = filters.get("operation") ?? "";
  const key = filters.get("key") ?? "";
  const contested = filters.get("contested") ?? "";
  const cursor = filters.get("cursor") ?? "";
  const text = useSignal(key);
  const inScope = useSignal(scope);
  const ofOperation = useSignal(operation);
  // The counts are those of the whole store.
  const isFiltered = scope !== "" || operation !== "" || key !== "" || contested !== "";
  const parameters = query({ state, scope, operation, key, contested, cursor, limit: 50 });
  const { loaded } = useLive(() => get<KeysPage>(`/v1/keys${parameters}`), 3_000, [parameters]);
  const { value, problem } = loaded.value;
  const search = (event: Event): void => {
    event.preventDefault();
    const wanted = text.value.trim();
    if (ref.test(wanted)) go(["operation", wanted]);
    else {
      // A key is looked for in all states: a filter would hide a record that is there.
      const all = wanted === "" ? {} : { state: "", contested: "" };
      setFilters({ key: wanted, scope: inScope.value.trim(), operation: ofOperation.value.trim(), cursor: "", ...all });
    }
  };
  return (
    <>
      <form role="search" class="search" onSubmit={search}>
        <Text label="Reference or key" name="find" type="search" value={text} />
        <Text label="Scope" name="scope" value={inScope} />
        <Text label="Operation" name="operation" value={ofOperation} />
        <button type="submit">Find</button>
        <p class="note">
          The reference is the operation_ref of a client's answer and of the log. A key needs its scope and operation:
          the store keeps no keys, only digests under both.
        </p>
      </form>
      <nav class="tabs" aria-label="States">
        <a href={address(["find"], { scope, operation })} aria-current={state === "" ? "page" : undefined}>all</a>
        {states.map((one) => (
          <a key={one} href={address(["find"], { state: one, scope, operation })} aria-current={state === one ? "page" : undefined}>
            <StateTag state={one as State} /> {value === null || isFiltered ? "" : count(value.counts[one])}
          </a>
        ))}
      </nav>
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading records…</p> : null
      ) : value.keys.length === 0 ? (
        <Nothing>
          {key !== "" ? "No record of this key in this scope and operation. Check the three. If they are right, the key never arrived, or the gateway has forgotten it: that does not prove that nothing ran." : value.next !== null ? "None among those that were read; there are more: see the next page." : "No record matches. Records appear here once clients send requests with a key."}
        </Nothing>
      ) : (
        <Table
          columns={["reference", "state", "age", "scope", "operation", "answer", "reason"]}
          rows={value.keys.map((one) => ({
            key: one.ref,
            cells: [
              <Ref of={one.ref} />,
              <><StateTag state={one.state} />{one.contested ? <b class="contested"> contested</b> : null}</>,
              <Moment at={one.created_at} />,
              one.scope,
              one.operation,
              one.response_status ?? "–",
              one.last_error_code,
            ],
          }))}
        />
      )}
      {value?.next ? (
        <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>Next page</button>
      ) : null}
    </>
  );
}
