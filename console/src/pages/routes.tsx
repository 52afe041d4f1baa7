import { get, session } from "../api/client";
import type { EffectiveSetting, Quotas, Route, Routes as Policies, ShadowReport, StatusMeaning } from "../api/routes";
import type { Session } from "../api/types";
import { Shadow } from "../parts/shadow";
import { Moment, Nothing, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { count } from "../parts/words";
import { address, place } from "../state/place";
import { useLive } from "../state/live";

/** The requests that no entry of `routes` matches. */
const isRest = (route: Route): boolean => route.path === "/{rest...}" && route.methods.length === 0;
const labelOf = (route: Route): string => (isRest(route) ? "all other requests" : route.route);
function requestsOf(route: Route): string {
  if (isRest(route)) return "all that no other route matches";
  return `${route.methods.length === 0 ? "all methods" : route.methods.join(", ")} ${route.path}`;
}
function valueOf(route: Route, name: string): string {
  return route.settings.find((one) => one.name === name)?.value ?? "";
}

const duplicates: Record<string, string> = {
  conflict: "gets 409",
  wait: "waits for its answer",
  async: "gets 202: the gateway runs the request later",
};

function enforced(route: Route) {
  return route.enforce === "on" ? "on" : <b class="contested">shadow: every request passes</b>;
}

const origins: Record<EffectiveSetting["origin"], string> = {
  route: "this route",
  defaults: "for all routes",
  settings: "for all tenants",
  "built in": "built in",
};

function cameFrom(setting: EffectiveSetting): string {
  const origin = origins[setting.origin];
  return setting.place === null ? origin : `${origin}: ${setting.place}`;
}

function SettingsTable({ of: settings, name }: { of: EffectiveSetting[]; name: string }) {
  return (
    <Table
      name={name}
      columns={["setting", "value", "where it comes from"]}
      rows={settings.map((one) => ({
        key: one.name,
        cells: [
          <><code>{one.name}</code> <span class="help">{one.help}</span></>,
          one.value === null ? <span class="none">none</span> : <code>{one.value}</code>,
          cameFrom(one),
        ],
      }))}
    />
  );
}

const outcomes: Record<StatusMeaning["outcome"], string> = {
  stored: "stored: each retry gets this answer",
  released: "released: the work counts as not done, and a retry runs it",
  unknown: "unknown: nothing runs again until evidence says what happened",
};

/** Ranges of a list that the other has not: what a Retry-After changes. */
function changedBy(answers: StatusMeaning[], others: StatusMeaning[]): StatusMeaning[] {
  const same = (status: number, one: StatusMeaning): boolean =>
    others.some((other) => other.first <= status && status <= other.last && other.outcome === one.outcome);
  return answers.flatMap((one) => {
    const changed: StatusMeaning[] = [];
    for (let status = one.first; status <= one.last; ++status) {
      if (same(status, one)) continue;
      const last = changed.at(-1);
      if (last?.last === status - 1) last.last = status;
      else changed.push({ ...one, first: status, last: status });
    }
    return changed;
  });
}

const shown = (one: StatusMeaning): string => (one.first === one.last ? `${one.first}` : `${one.first} to ${one.last}`);

function Answers({ of: route }: { of: Route }) {
  const groups = new Map<string, { of: StatusMeaning; statuses: string[] }>();
  const add = (one: StatusMeaning, more: string): void => {
    const name = `${one.outcome} ${one.origin}`;
    const group = groups.get(name) ?? { of: one, statuses: [] };
    group.statuses.push(shown(one) + more);
    groups.set(name, group);
  };
  for (const one of route.answers) add(one, "");
  for (const one of changedBy(route.answers_with_retry_after, route.answers)) add(one, " with Retry-After");
  const decided = ({ origin }: StatusMeaning): string =>
    origin === "built in" ? "built in: the status proves that nothing ran" : origin === "route" ? "this route" : origin;
  return (
    <Table
      name="Answers of the upstream"
      columns={["what it means", "status", "decided by"]}
      rows={[...groups].map(([key, { of, statuses }]) => ({
        key,
        cells: [outcomes[of.outcome], statuses.join(", "), decided(of)],
      }))}
    />
  );
}

function Effective({ of: route }: { of: Route }) {
  const given = route.settings.filter((one) => one.place !== null);
  const others = route.settings.filter((one) => one.place === null);
  return (
    <>
      {given.length === 0 ? (
        <Nothing>Neither the route nor the settings for all routes give a value: all are built in.</Nothing>
      ) : (
        <SettingsTable of={given} name={`Settings of ${labelOf(route)}`} />
      )}
      <details>
        <summary>{count(others.length)} settings have their built-in value</summary>
        <SettingsTable of={others} name={`Built-in settings of ${labelOf(route)}`} />
      </details>
    </>
  );
}

function One({ of: route, shadow, who }: { of: Route; shadow: ShadowReport | null; who: Session }) {
  const value = (name: string): string => valueOf(route, name);
  return (
    <>
      <h2>{labelOf(route)}</h2>
      <p>
        Requests: {requestsOf(route)}. Enforce: {enforced(route)}. An attempt holds its record for {value("lease")}{" "}
        without renewal, and a duplicate meanwhile {duplicates[value("mode")] ?? "waits"}. An answer is replayed
        for {value("retention")}; after that the key is refused for {value("tombstone")}.
      </p>
      <Section title="Shadow">
        {shadow === null ? (
          <p class="loading">Reading the report…</p>
        ) : (
          <Shadow report={shadow} route={route.route} enforce={route.enforce} who={who} />
        )}
      </Section>
      <Section title="What an answer of the upstream means" note="Unless the upstream says it itself, by Idem-Outcome.">
        <Answers of={route} />
      </Section>
      <Section title="Settings that apply">
        <Effective of={route} />
      </Section>
    </>
  );
}

const columns = [
  "route", "requests", "enforce", "a duplicate while it runs", "a key", "lease", "answers kept", "preset",
];

function List({ of: routes }: { of: Route[] }) {
  return (
    <Table
      name="Routes"
      columns={columns}
      rows={routes.map((route, index) => ({
        key: index,
        cells: [
          <a href={address(["routes", route.route])}>{labelOf(route)}</a>,
          requestsOf(route),
          enforced(route),
          duplicates[valueOf(route, "mode")] ?? valueOf(route, "mode"),
          valueOf(route, "require_key") === "true" ? "needed for POST and PATCH" : "optional",
          valueOf(route, "lease"),
          valueOf(route, "retention"),
          valueOf(route, "preset"),
        ],
      }))}
    />
  );
}

function Tenants({ of: quotas }: { of: Quotas }) {
  return (
    <>
      <SettingsTable of={quotas.settings} name="Quotas" />
      <h3>Refused</h3>
      {quotas.tenants.length === 0 ? (
        <Nothing>
          This gateway has refused no new key for a quota since its start, <Moment at={quotas.since} />. That is normal.
        </Nothing>
      ) : (
        <Table
          name="Refused by tenant"
          columns={["tenant", "new keys refused", "last"]}
          rows={quotas.tenants.map((one) => ({
            key: one.scope ?? "",
            cells: [one.scope ?? "all others", <b>{count(one.refused)}</b>, <Moment at={one.last_at} />],
          }))}
        />
      )}
      <p class="note">
        This gateway counts since its start, <Moment at={quotas.since} />; others count for themselves. How much of its
        quota a tenant uses cannot be read: the store counts that only inside a reserve.
      </p>
    </>
  );
}

/** All routes and quotas, or one route. */
export function Routes() {
  const who = session.value as Session;
  const name = place.value.path[1];
  const { loaded } = useLive(() => get<Policies>("/v1/routes"), 5_000, []);
  const shadow = useLive(() => get<ShadowReport>("/v1/shadow"), 5_000, []).loaded.value;
  const { value, problem } = loaded.value;
  const found = value?.routes.filter((one) => one.route === name) ?? [];
  return (
    <>
      <nav class="tabs" aria-label="Routes">
        <a href={address(["routes"])} aria-current={name === undefined ? "page" : undefined}>all routes</a>
        <a href={address(["explain"])}>what would happen to a request?</a>
      </nav>
      {problem === null ? null : <Trouble problem={problem} />}
      {shadow.problem === null || problem !== null ? null : <Trouble problem={shadow.problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading the routes…</p> : null
      ) : name === undefined ? (
        <>
          <Section title="In the order in which they match" note="The first route that matches a request counts.">
            <List of={value.routes} />
          </Section>
          <Section title="Quotas" note="Each tenant has all of them. A quota refuses new keys with 429, never a retry.">
            <Tenants of={value.quotas} />
          </Section>
        </>
      ) : found.length === 0 ? (
        <Nothing>No route is called {name}. A reload may have renamed it: see all routes.</Nothing>
      ) : (
        found.map((one, index) => <One key={index} of={one} shadow={shadow.value} who={who} />)
      )}
    </>
  );
}
