import { useSignal } from "@preact/signals";

import { ApiError, get, post, session } from "../api/client";
import type { Availability, Session, SettingsDifference, Status } from "../api/types";
import { OperatorName, Text, useOrder } from "../parts/fields";
import { Nothing, Said, Section, Trouble } from "../parts/show";
import { Table, type TableRow } from "../parts/table";
import { span } from "../parts/words";
import { useLive } from "../state/live";

function answers(up: boolean) {
  return up ? <span class="good">✓ answers</span> : <b class="contested">✗ does not answer</b>;
}

function rowOf(name: string, seen: Availability): TableRow {
  const last =
    seen.last_answer_seconds === null ? "no answer since the start" : `${span(seen.last_answer_seconds)} ago`;
  const failure = seen.last_failure;
  const isAsked = seen.last_answer_seconds !== null || failure !== null;
  return {
    key: name,
    cells: [
      name,
      isAsked ? answers(seen.up) : "not asked yet",
      last,
      failure === null ? "no failure since the start" : `${span(failure.seconds)} ago: ${failure.reason}, ${failure.detail}`,
    ],
  };
}

function Services({ of: status }: { of: Status }) {
  const rows: TableRow[] = [{ key: "store", cells: ["store", answers(status.store.up), "", status.store.detail ?? ""] }];
  if (status.upstream !== null) rows.push(rowOf("upstream", status.upstream));
  if (status.authorizer !== null) rows.push(rowOf("authoriser", status.authorizer));
  for (const one of status.providers) rows.push(rowOf(`provider ${one.name}`, one));
  return <Table columns={["service", "now", "last answer", "last failure"]} rows={rows} />;
}

/** What a reload would change, and the reload. */
function Settings({ who }: { who: Session }) {
  const { loaded, again } = useLive(() => get<SettingsDifference>("/v1/settings/changes"), 10_000, []);
  const { value, problem } = loaded.value;
  const reason = useSignal("");
  const said = useSignal("");
  const { sending, problem: refused, send } = useOrder();
  const reload = async (event: Event): Promise<void> => {
    event.preventDefault();
    const seen = JSON.stringify(value?.changes);
    const applied = await send(async () => {
      // What the operator did not see is not applied, as far as the moment before can tell.
      const now = await get<SettingsDifference>("/v1/settings/changes");
      if (JSON.stringify(now.changes) !== seen) {
        const detail = "Nothing was applied. Read the difference again.";
        throw new ApiError({ code: "changed", title: "The file has changed since it was shown", status: 409, detail });
      }
      return post<SettingsDifference>("/v1/settings/reload", { reason: reason.value });
    });
    if (applied !== null) {
      const later = applied.changes.filter((one) => one.needs_restart).map((one) => one.name);
      said.value = `The settings of the file apply now${later.length === 0 ? "" : `, but for those that need a restart: ${later.join(", ")}`}.`;
      reason.value = "";
    }
    again();
  };
  if (value === null) {
    return problem === null ? <p class="loading">Comparing the file with the settings that apply…</p> : <Trouble problem={problem} />;
  }
  return (
    <>
      <Said>{said.value}</Said>
      {problem === null ? null : <Trouble problem={problem} />}
      {value.changes.length > 0 && who.role !== "operator" ? <Nothing>Applying settings needs the role operator; you have the role {who.role}.</Nothing> : null}
      {value.refused === null ? null : <p class="trouble" role="alert">A reload would be refused: {value.refused}</p>}
      {value.changes.length === 0 ? (
        <Nothing>The file and the settings that apply are the same. After an edit of the file, this shows the difference.</Nothing>
      ) : (
        <Table
          columns={["setting", "applies now", "the file says", "what it does"]}
          rows={value.changes.map((one) => ({
            key: one.name,
            cells: [
              one.name,
              <code>{one.before === "" ? "not given" : one.before}</code>,
              <code>{one.after === "" ? "not given" : one.after}</code>,
              `${one.needs_restart ? "Needs a restart. " : ""}${one.records}`,
            ],
          }))}
        />
      )}
      {value.changes.length === 0 || value.refused !== null || who.role !== "operator" ? null : (
        <form class="decide" aria-label="Reload the settings" onSubmit={(event) => void reload(event)}>
          <Text label="Reason" name="why" required value={reason} />
          <OperatorName who={who} />
          {refused.value === null ? null : <Trouble problem={refused.value} />}
          <p class="buttons"><button type="submit" class="confirm" disabled={sending.value}>{sending.value ? "Applying…" : "Apply these settings"}</button></p>
        </form>
      )}
    </>
  );
}

/** The process and what it depends on. */
export function System() {
  const { loaded } = useLive(() => get<Status>("/v1/status?max_age=28"), 10_000, []);
  const { value: status, problem } = loaded.value;
  const who = session.value as Session;
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      {status === null ? (
        problem === null ? <p class="loading">Asking the gateway…</p> : null
      ) : (
        <Section title="This process">
          <p>
            Idem {status.version}{status.draining ? ", which is shutting down: it finishes what runs and accepts nothing new" : ""}.
            {status.unsettled_attempts === 0 ? "" : ` ${status.unsettled_attempts} outcomes are not in the store yet: do not kill this process.`}
          </p>
          <Services of={status} />
        </Section>
      )}
      <Section title="Settings">
        {who.role === "viewer" ? <Nothing>Settings need the role support; you have the role viewer.</Nothing> : <Settings who={who} />}
      </Section>
    </>
  );
}
