import { get } from "../api/client";
import { type Samples, sum } from "../api/samples";
import type { Status } from "../api/types";
import { states } from "../api/types";
import { count, span } from "../parts/words";
import { Helps, useHour } from "../parts/helps";
import { Nothing, Section, StateTag, Trouble } from "../parts/show";
import { address } from "../state/place";
import { useLive } from "../state/live";

interface Need {
  code: string;
  severity: "money" | "service" | "client";
  what: string;
  /** How long the oldest has waited; empty where that is not known. */
  age: string;
  todo: string;
  /** Where the console shows it; null: `todo` says where to look. */
  to: string | null;
}

/** Which of the gateway's troubles may cost money, and what to do about each; the rest is in its own words. */
const known: Record<string, { severity: Need["severity"]; todo: string; to?: string }> = {
  contested: {
    severity: "money",
    todo: "Compare the evidence of each with the provider's books.",
    to: address(["find"], { contested: "true" }),
  },
  unknown_for_people: {
    severity: "money",
    todo: "Look with the provider whether the work was done, and settle each.",
    to: address(["unknown"]),
  },
  unknown_old: {
    severity: "money",
    todo: "Find out why nobody has settled it: a provider that fails is under System. Then look there yourself, and decide.",
    to: address(["unknown"]),
  },
  dead_letters: { severity: "service", todo: "Mend the destination, then send them again.", to: address(["messages"], { state: "dead" }) },
  outbox_behind: { severity: "service", todo: "See why the destination accepts none.", to: address(["messages"]) },
  store_down: {
    severity: "service",
    todo: "Look at the store's server or disk. Until it answers, requests with a key are refused with 503 and nothing runs.",
    to: address(["system"]),
  },
  leases_overdue: { severity: "service", todo: "No process ends overdue attempts: start a gateway or a worker." },
  upstream_down: { severity: "service", todo: "Look whether the API runs and can be reached from this gateway.", to: address(["system"]) },
  authorizer_down: { severity: "service", todo: "Look whether the authoriser runs and can be reached from this gateway.", to: address(["system"]) },
  provider_down: { severity: "service", todo: "Its unknown outcomes wait until it answers. Look at the provider's status page.", to: address(["system"]) },
};

function ageOf(code: string, status: Status): string {
  if (code !== "unknown_for_people" && code !== "unknown_old") return "";
  return status.unknown === null ? "" : `the oldest unknown record: ${span(status.unknown.oldest_seconds)}`;
}

/** What needs a human: what may cost money first. */
export function needs(status: Status): Need[] {
  const found = status.troubles.map(({ code, detail }): Need => {
    const here = known[code];
    return {
      code,
      severity: here?.severity ?? "service",
      // The command line's hint is not the console's.
      what: detail.replace(/; look with: .*$/, ""),
      age: ageOf(code, status),
      todo: here?.todo ?? "",
      to: here?.to ?? null,
    };
  });
  return found.sort((a, b) => Number(a.severity === "service") - Number(b.severity === "service"));
}

/** Fewer than these are an accident. */
const misuse_min = 5;

/** A client that errs costs nothing, but its team must be asked to mend it. */
function misuse(samples: Samples | null): Need[] {
  if (samples === null) return [];
  const from = (samples.end.at(-1) ?? 0) - 600;
  const number = sum(samples.misuse.filter((_, index) => (samples.end[index] ?? 0) > from));
  if (number < misuse_min) return [];
  return [{
    code: "misuse",
    severity: "client",
    what: `${count(number)} requests were refused in the last 10 minutes: a used key with another request`,
    age: "",
    todo: "See which client sends them, and ask its team to make a new key for each operation. Nothing ran twice.",
    to: address(["retries"], { outcome: "key_misuse" }),
  }];
}

const severities: Record<Need["severity"], string> = {
  money: "Money",
  service: "Service",
  client: "Client",
};

export function Overview() {
  const { loaded } = useLive(() => get<Status>("/v1/status?max_age=8"), 10_000, []);
  const hour = useHour();
  const { value: status, problem } = loaded.value;
  if (status === null) {
    return problem === null ? <p class="loading">Asking the gateway…</p> : <Trouble problem={problem} />;
  }
  const list = [...needs(status), ...misuse(hour.value)];
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      <Section title="What needs you">
        {list.length === 0 ? (
          <Nothing>
            {status.seen_all && status.seen_all_completed
              ? "Nothing needs you now."
              : "Nothing among the records that were read; there are more than were read. idem keys list --contested reads all."}
          </Nothing>
        ) : (
          <ol class="needs">
            {list.map((need) => (
              <li key={need.what} class={need.severity}>
                <span class="severity">{severities[need.severity]}</span>
                {need.to === null ? <span class="what">{need.what}</span> : <a class="what" href={need.to}>{need.what}</a>}
                <span class="age">{need.age}</span>
                <span class="todo">{need.todo}</span>
              </li>
            ))}
          </ol>
        )}
      </Section>
      <Section title="Records">
        {status.store.keys === null ? (
          <Nothing>The store does not answer.</Nothing>
        ) : (
          <ul class="counts">
            {states.map((state) => (
              <li key={state}>
                <a href={address(["find"], { state })}>
                  <StateTag state={state} />
                  <b>{count(status.store.keys?.[state] ?? 0)}</b>
                </a>
              </li>
            ))}
          </ul>
        )}
      </Section>
      <Helps hour={hour} />
    </>
  );
}
