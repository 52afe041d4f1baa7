import { useSignal } from "@preact/signals";

import { ApiError, get, operatorName, post, session } from "../api/client";
import type { Availability, Problem, Session, SettingsDifference, Status } from "../api/types";
import { Nothing, Section, Trouble } from "../parts/show";
import { span } from "../parts/words";
import { useLive } from "../state/live";

function Service({ name, of: seen }: { name: string; of: Availability }) {
  const last =
    seen.last_answer_seconds === null ? "no answer since the start" : `last answer ${span(seen.last_answer_seconds)} ago`;
  const failure = seen.last_failure;
  const isAsked = seen.last_answer_seconds !== null || failure !== null;
  return (
    <tr>
      <th scope="row">{name}</th>
      <td>{!isAsked ? "not asked yet" : seen.up ? <span class="good">✓ answers</span> : <b class="contested">✗ does not answer</b>}</td>
      <td>{last}</td>
      <td>
        {failure === null ? "no failure since the start" : `${span(failure.seconds)} ago: ${failure.reason}, ${failure.detail}`}
      </td>
    </tr>
  );
}

function Services({ of: status }: { of: Status }) {
  const services: [string, Availability][] = [];
  if (status.upstream !== null) services.push(["upstream", status.upstream]);
  if (status.authorizer !== null) services.push(["authoriser", status.authorizer]);
  for (const one of status.providers) services.push([`provider ${one.name}`, one]);
  return (
    <table>
      <thead>
        <tr>
          <th scope="col">service</th>
          <th scope="col">now</th>
          <th scope="col">last answer</th>
          <th scope="col">last failure</th>
        </tr>
      </thead>
      <tbody>
        <tr>
          <th scope="row">store</th>
          <td>{status.store.up ? <span class="good">✓ answers</span> : <b class="contested">✗ does not answer</b>}</td>
          <td colSpan={2}>{status.store.detail ?? ""}</td>
        </tr>
        {services.map(([name, seen]) => <Service key={name} name={name} of={seen} />)}
      </tbody>
    </table>
  );
}

/** What a reload would change, and the reload. */
function Settings({ who }: { who: Session }) {
  const { loaded, again } = useLive(() => get<SettingsDifference>("/v1/settings/changes"), 10_000, []);
  const { value, problem } = loaded.value;
  const reason = useSignal("");
  const said = useSignal("");
  const refused = useSignal<Problem | null>(null);
  const reload = async (event: Event): Promise<void> => {
    event.preventDefault();
    try {
      const { changes } = await post<SettingsDifference>("/v1/settings/reload", { reason: reason.value });
      const later = changes.filter((one) => one.needs_restart).map((one) => one.name);
      said.value = `The settings of the file apply now${later.length === 0 ? "" : `, but for those that need a restart: ${later.join(", ")}`}.`;
      refused.value = null;
      reason.value = "";
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      refused.value = error.problem;
    }
    again();
  };
  if (value === null) {
    return problem === null ? <p class="loading">Comparing the file with the settings that apply…</p> : <Trouble problem={problem} />;
  }
  return (
    <>
      <p role="status" class="said">{said.value}</p>
      {value.refused === null ? null : <p class="trouble" role="alert">A reload would be refused: {value.refused}</p>}
      {value.changes.length === 0 ? (
        <Nothing>The file and the settings that apply are the same. After an edit of the file, this shows the difference.</Nothing>
      ) : (
        <table>
          <thead>
            <tr>
              <th scope="col">setting</th>
              <th scope="col">applies now</th>
              <th scope="col">the file says</th>
              <th scope="col">what it does</th>
            </tr>
          </thead>
          <tbody>
            {value.changes.map((one) => (
              <tr key={one.name}>
                <th scope="row">{one.name}</th>
                <td><code>{one.before === "" ? "not given" : one.before}</code></td>
                <td><code>{one.after === "" ? "not given" : one.after}</code></td>
                <td>{one.needs_restart ? "Needs a restart. " : ""}{one.records}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {value.changes.length === 0 || value.refused !== null || who.role !== "operator" ? null : (
        <form class="decide" aria-label="Reload the settings" onSubmit={(event) => void reload(event)}>
          <p class="row">
            <label for="why">Reason</label>
            <input id="why" required value={reason.value} onInput={(event) => {
              reason.value = event.currentTarget.value;
            }} />
          </p>
          {who.name !== null ? null : (
            <p class="row">
              <label for="by">Your name</label>
              <input id="by" required pattern="[!-~]{1,64}" value={operatorName.value} onInput={(event) => {
                operatorName.value = event.currentTarget.value;
              }} />
            </p>
          )}
          {refused.value === null ? null : <Trouble problem={refused.value} />}
          <p class="buttons"><button type="submit" class="confirm">Apply these settings</button></p>
        </form>
      )}
    </>
  );
}

/** The process and what it depends on. */
export function System() {
  const { loaded } = useLive(() => get<Status>("/v1/status"), 10_000, []);
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
