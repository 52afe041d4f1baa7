import type { ShadowCounts, ShadowExample, ShadowReport, ShadowRoute } from "../api/routes";
import type { Session } from "../api/types";
import { Moment, Nothing, Ref } from "./show";
import { Table } from "./table";
import { count } from "./words";

type Decision = Exclude<keyof ShadowCounts, "requests">;

/** A column of the tables, and what enforcing would do with such a request. */
interface Kind {
  of: Decision;
  column: string;
  would: string;
}
const kinds: Kind[] = [
  { of: "first", column: "first", would: "would be sent, as now" },
  { of: "duplicates", column: "duplicates", would: "would get the stored answer and not run again" },
  { of: "races", column: "races", would: "would get 409, because an attempt of the same key runs" },
  { of: "misuse", column: "misuse", would: "would get 422, because the key was used for another request" },
  { of: "missing_key", column: "no key", would: "would get 400, because they have no key" },
  { of: "bad_key", column: "bad key", would: "would get 400, because their key has a wrong form or time" },
  { of: "missing_scope", column: "no scope", would: "would get 401, because they have no scope" },
  { of: "refused", column: "refused", would: "would be refused for another reason, such as a body above the limit" },
  { of: "expired", column: "expired", would: "would get 410, because the key is too old or its answer is gone" },
  { of: "not_kept", column: "not kept", would: "would get 409: the work ran, and its answer was not kept" },
  {
    of: "unknown_retries",
    column: "retries of unknown",
    would: "would get 409, because it is unknown whether the first one ran",
  },
  { of: "not_observed", column: "not observed", would: "have no decision" },
];

const not_observed: [keyof ShadowRoute["not_observed_by"], string][] = [
  ["busy", "too many requests were observed at that time"],
  ["memory", "there was no room for a copy of the request"],
  ["upload", "the request broke off"],
  ["not_sent", "the upstream could not be reached"],
  ["store", "the store did not answer, or refused"],
  ["store_slow", "the store answered too late to say how things stood"],
];

const several = (number: number, one: string): string => `${count(number)} ${one}${number === 1 ? "" : "s"}`;

const wouldOf = (kind: Kind, mode: ShadowRoute["mode"]): string =>
  kind.of === "races" && mode === "wait" ? "would wait for a running attempt of the same key" : kind.would;

function Sums({ of: seen }: { of: ShadowRoute }) {
  const decided = kinds.filter((kind) => kind.of !== "not_observed" && seen[kind.of] > 0);
  const isChanged = decided.some((kind) => kind.of !== "first");
  const reasons = not_observed.filter(([name]) => seen.not_observed_by[name] > 0);
  return (
    <>
      <p>
        The gateway observed {count(seen.requests)} requests with a key, or of a method that needs one. The count
        began <Moment at={seen.since} />.
        {seen.requests === 0 || isChanged ? "" : " With enforce: on, none would have got another answer."}
        {isChanged ? " With enforce: on, of these requests" : ""}
      </p>
      {isChanged ? (
        <ul>
          {decided.map((kind) => <li key={kind.of}><b>{count(seen[kind.of])}</b> {wouldOf(kind, seen.mode)}</li>)}
        </ul>
      ) : null}
      {seen.unknown === 0 ? null : (
        <p class="contested">
          {several(seen.unknown, "attempt")} would be left unknown: the answer was lost, or reports a failure that
          proves nothing.
        </p>
      )}
      {reasons.length === 0 ? null : (
        <p>
          {several(seen.not_observed, "request")} passed without a decision:{" "}
          {reasons.map(([name, text]) => `${count(seen.not_observed_by[name])} because ${text}`).join("; ")}.
        </p>
      )}
      {seen.not_settled === 0 ? null : (
        <p>The store did not record how {several(seen.not_settled, "attempt")} ended: a later retry counts as first.</p>
      )}
    </>
  );
}

/** Columns without a count are left out; the first four are always there. */
function shownOf(rows: ShadowCounts[]): Kind[] {
  return kinds.filter((kind, index) => index < 4 || rows.some((row) => row[kind.of] > 0));
}

function Tenants({ of: seen }: { of: ShadowRoute }) {
  const columns = shownOf(seen.tenants);
  const cells = (row: ShadowCounts) => [count(row.requests), ...columns.map((kind) => count(row[kind.of]))];
  const names = ["requests", ...columns.map((kind) => kind.column)];
  const nameOf = (scope: string | null): string => scope ?? "not known";
  const clients = seen.tenants.flatMap((of) => of.clients.map((client) => ({ tenant: nameOf(of.scope), client })));
  if (seen.tenants.length === 0) return null;
  return (
    <>
      <h3>By tenant</h3>
      <Table name="Shadow by tenant" columns={["tenant", ...names]}
        rows={seen.tenants.map((one) => ({ key: one.scope ?? "", cells: [nameOf(one.scope), ...cells(one)] }))} />
      <details>
        <summary>By client</summary>
        <Table name="Shadow by client" columns={["tenant", "client", ...names]}
          rows={clients.map(({ tenant, client }, index) => ({
            key: index,
            cells: [tenant, client.client, ...cells(client)],
          }))} />
      </details>
    </>
  );
}

function cellsOf(one: ShadowExample, mode: ShadowRoute["mode"]) {
  const kind = kinds.find((known) => known.of === one.kind);
  const reason = not_observed.find(([name]) => name === one.why)?.[1] ?? one.why ?? "";
  return [
    one.kind === "unknown" ? "would be left unknown" : kind === undefined ? one.kind : wouldOf(kind, mode),
    reason,
    <Moment at={one.at} />,
    one.scope ?? "not known",
    one.client,
    `${one.method} ${one.path}`,
    one.key_bytes === 0 ? "none" : several(one.key_bytes, "byte"),
    one.operation_ref === null ? "none" : <Ref of={one.operation_ref} />,
  ];
}

function Examples({ of: seen, who }: { of: ShadowRoute; who: Session }) {
  if (seen.examples === undefined) {
    return <Nothing>Examples need the role support; you have the role {who.role}.</Nothing>;
  }
  if (seen.examples.length === 0) return null;
  return (
    <>
      <h3>Examples</h3>
      <Table
        name="Examples"
        columns={["with enforce: on", "reason", "when", "tenant", "client", "request", "key", "record"]}
        rows={seen.examples.map((one, index) => ({ key: index, cells: cellsOf(one, seen.mode) }))}
      />
    </>
  );
}

/** What enforcing would have done with the requests of a route. */
export function Shadow(props: { report: ShadowReport; route: string; enforce: "on" | "shadow"; who: Session }) {
  const { report, route, enforce, who } = props;
  const seen = report.routes.find((one) => one.route === route);
  if (seen === undefined) {
    return (
      <Nothing>
        {enforce === "shadow"
          ? 'The route is in shadow. Its counts are in the row "other": the gateway keeps rows for some routes only.'
          : "The rules for keys are enforced here: that is normal. With enforce: shadow every request passes, and this "
            + "shows what enforcing would do."}
      </Nothing>
    );
  }
  return (
    <>
      <p>
        {seen.enforce === "shadow" ? (
          <b class="contested">Nothing is enforced here: every request passes, and a retry runs again.</b>
        ) : (
          "The route is enforced now. The counts are from the time before, when it was in shadow."
        )}
      </p>
      <Sums of={seen} />
      {report.under_way === 0 ? null : <p>Requests of all routes without a decision yet: {count(report.under_way)}.</p>}
      <Tenants of={seen} />
      <Examples of={seen} who={who} />
    </>
  );
}
