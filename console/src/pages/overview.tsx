import { get } from "../api/client";
import { type Samples, sum } from "../api/samples";
import type { Status } from "../api/types";
import { states } from "../api/types";
import { count, span } from "../parts/words";
import { Helps, useHour } from "../parts/helps";
import { Nothing, Section, StateTag, Trouble } from "../parts/show";
import { address } from "../state/place";
import { useLive } from "../state/live";

type Severity = "money" | "outage" | "service" | "client";

interface Need {
  code: string;
  severity: Severity;
  what: string;
  /** What the gateway knows besides; empty: nothing. */
  detail: string;
  /** How long the oldest has waited; empty where that is not known. */
  age: string;
  todo: string;
  /** Where the console shows it, and what the link there says; null: `todo` says where to look. */
  go: [to: string, text: string] | null;
}

interface Known {
  severity: Severity;
  todo: string;
  go?: [to: string, text: string];
}

const services: [string, string] = [address(["system"]), "See the services"];

/** Which of the gateway's troubles may cost money, and what to do about each; the rest is in its own words. */
const known: Record<string, Known> = {
  contested: {
    severity: "money",
    todo: "Evidence contradicts what the gateway recorded. Compare the evidence of each with the provider's books.",
    go: [address(["find"], { contested: "true" }), "Show the contested records"],
  },
  unknown_for_people: {
    severity: "money",
    todo: "Nobody knows whether the work of each was done, and nothing runs again before you decide. Look with the provider, and settle each.",
    go: [address(["unknown"]), "Look at the unknown records"],
  },
  unknown_old: {
    severity: "money",
    todo: "Find out why nobody has settled it: a provider that fails is under System. Then look there yourself, and decide.",
    go: [address(["unknown"]), "Look at the unknown records"],
  },
  unsettled: {
    severity: "money",
    todo: `Do not stop this gateway (${location.host}): only it knows how these requests ended. It stores that as soon as the store answers.`,
    go: services,
  },
  store_down: {
    severity: "outage",
    todo: "New requests with a key are refused with 503 and do not run. Look at the store's server or disk: the gateway goes on by itself once it answers.",
    go: services,
  },
  upstream_down: {
    severity: "outage",
    todo: "Requests are refused until it answers. Look whether the API runs and can be reached from this gateway.",
    go: services,
  },
  authorizer_down: {
    severity: "outage",
    todo: "Requests that need it are refused until it answers. Look whether it runs and can be reached from this gateway.",
    go: services,
  },
  provider_down: { severity: "service", todo: "Its unknown outcomes wait until it answers. Look at the provider's status page.", go: services },
  dead_letters: {
    severity: "service",
    todo: "The destination refused these messages or failed too often. It does not know what they say, and nothing sends them again by itself. Mend the destination, then send them again.",
    go: [address(["messages"], { state: "dead" }), "Show the dead letters"],
  },
  outbox_behind: { severity: "service", todo: "See why the destination accepts none.", go: [address(["messages"]), "Show the messages"] },
  leases_overdue: { severity: "service", todo: "No process ends overdue attempts: start a gateway or a worker." },
  reap_behind: { severity: "service", todo: "No process deletes what is past its retention, or the store is too slow for it. The store grows until then." },
};

// An outage is often the cause of what stands behind it.
const order: Severity[] = ["outage", "money", "service", "client"];

function ageOf(code: string, status: Status): string {
  if (code !== "unknown_for_people" && code !== "unknown_old") return "";
  return status.unknown === null ? "" : `the oldest unknown record: ${span(status.unknown.oldest_seconds)}`;
}

/** By how many the queue has grown in ten minutes; empty: by none, or not known. */
function growth(samples: Samples | null): string {
  const now = samples?.unknown.at(-1);
  if (samples === null || now === undefined || now === null) return "";
  const from = (samples.end.at(-1) ?? 0) - 600;
  const then = samples.unknown.find((value, index) => value !== null && (samples.end[index] ?? 0) >= from) ?? now;
  return now > then ? `grew by ${count(now - then)} in the last 10 minutes` : "";
}

const sentence = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

function needOf({ code, detail }: { code: string; detail: string }, status: Status, samples: Samples | null): Need {
  const here = known[code];
  // The command line's hint is not the console's.
  const text = detail.replace(/; look with: .*$/, "");
  const colon = code.endsWith("_down") ? text.indexOf(": ") : -1;
  return {
    code,
    severity: here?.severity ?? "service",
    what: sentence(colon < 0 ? text : text.slice(0, colon)),
    detail: colon < 0 ? "" : text.slice(colon + 2),
    age: [ageOf(code, status), code === "unknown_for_people" ? growth(samples) : ""].filter((one) => one !== "").join(", "),
    todo: here?.todo ?? "",
    go: here?.go ?? null,
  };
}

/** What needs a human: outages first, then what may cost money. */
export function needs(status: Status, samples: Samples | null): Need[] {
  const found = status.troubles.map((one) => needOf(one, status, samples));
  return [...found, ...misuse(samples)].sort((a, b) => order.indexOf(a.severity) - order.indexOf(b.severity));
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
    what: `${count(number)} requests in the last 10 minutes were refused: they used the Idempotency-Key of a different request`,
    detail: "",
    age: "",
    todo: "Nothing ran twice, and what these requests asked for was not done. The client's team must send each new operation with a new key.",
    go: [address(["retries"], { outcome: "key_misuse" }), "See which client it is"],
  }];
}

const severities: Record<Severity, string> = {
  money: "Money",
  outage: "Outage",
  service: "Service",
  client: "Client",
};

export function Overview() {
  const { loaded } = useLive(() => get<Status>("/v1/status?max_age=28"), 10_000, []);
  const hour = useHour();
  const { value: status, problem } = loaded.value;
  if (status === null) {
    return problem === null ? <p class="loading">Asking the gateway…</p> : <Trouble problem={problem} />;
  }
  const list = needs(status, hour.value);
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
              <li key={`${need.what} ${need.detail}`} class={need.severity}>
                <span class="severity">{severities[need.severity]}</span>
                <strong class="what">{need.what}</strong>
                <span class="age">{need.age}</span>
                <span class="todo">
                  {need.todo}
                  {need.detail === "" ? null : <small>{sentence(need.detail)}</small>}
                </span>
                {need.go === null ? null : <a class="go" href={need.go[0]}>{need.go[1]}</a>}
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
