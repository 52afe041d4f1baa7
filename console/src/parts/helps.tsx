import { get } from "../api/client";
import { type Samples, rate, sum } from "../api/samples";
import { address, place } from "../state/place";
import { type Loaded, useLive } from "../state/live";
import { Chart } from "./chart";
import { Nothing, Section, Trouble } from "./show";
import { count, span, timeOf } from "./words";

const short = (value: number): string => (value >= 100 || Number.isInteger(value) ? count(Math.round(value)) : value.toPrecision(2));
const each_second = (value: number): string => `${short(value)}/s`;
const milliseconds = (value: number): string => `${short(value)} ms`;

/** What would have run a second time, or got a wrong answer. */
function Effect({ of: samples }: { of: Samples }) {
  const misuse = sum(samples.misuse);
  const keyed = sum(samples.first) + sum(samples.replays) + sum(samples.races) + misuse + sum(samples.unknown_retries);
  const kept: [number, string][] = [
    [sum(samples.replays), "answered from the store"],
    [sum(samples.races), "held at a running attempt"],
    [sum(samples.unknown_retries), "refused while it was unknown whether the first one ran"],
  ];
  const all = sum(kept.map(([number]) => number));
  if (keyed === 0) return <Nothing>No request with a key came in this time.</Nothing>;
  return (
    <p>
      <b>{count(all)}</b> of {count(keyed)} requests with a key were repeats that did not run a second time
      {all === 0 ? "." : `: ${kept.filter(([number]) => number > 0).map(([number, what]) => `${count(number)} ${what}`).join(", ")}.`}
      {misuse === 0 ? "" : misuse === 1 ? " One was refused, for it used the key of a different request." : ` ${count(misuse)} were refused, for they used the key of a different request.`}
    </p>
  );
}

function StoreHealth({ of: samples }: { of: Samples }) {
  const time = (of: (index: number) => boolean): string => span(sum(samples.milliseconds.filter((_, index) => of(index))) / 1_000);
  const last = samples.end.filter((_, index) => !samples.store_up[index]).at(-1);
  const failed = sum(samples.store_errors);
  return (
    <p>
      {last === undefined && failed > 0 ? (
        "The store answered, but for some calls."
      ) : last === undefined ? (
        <span class="good">✓ The store answered all the time.</span>
      ) : (
        <b class="contested">
          ✗ {samples.store_up.at(-1) ? `The store answers again, since ${timeOf(new Date(last * 1_000).toISOString())} or later.` : "The store does not answer now."} In this time it
          did not answer for about {time((index) => !samples.store_up[index])}.
        </b>
      )}
      {failed === 0 ? "" : ` It failed to answer ${count(failed)} calls.`}
    </p>
  );
}

function Charts({ of: samples }: { of: Samples }) {
  const times = { ends: samples.end, seconds: samples.span === "hour" ? 3_600 : 86_400 };
  return (
    <div class="charts">
      <Chart title="Requests" times={times} text={each_second} series={[
        { name: "all", values: rate(samples.requests, samples) },
        { name: "first requests", values: rate(samples.first, samples) },
      ]} />
      <Chart title="Repeats, which did not run" times={times} text={each_second} series={[
        { name: "stored answer", values: rate(samples.replays, samples) },
        { name: "met a running attempt", values: rate(samples.races, samples) },
        { name: "refused: key of a different request", values: rate(samples.misuse, samples) },
      ]} />
      <Chart title="Time that the store adds to a first request" times={times} text={milliseconds} series={[
        { name: "mean", values: samples.added_ms },
        { name: "99th percentile of reserving the key", values: samples.reserve_p99_ms },
      ]} />
      <Chart title="Failures" times={times} text={each_second} series={[
        { name: "answers with 5xx", values: rate(samples.server_errors, samples) },
        { name: "calls to the store", values: rate(samples.store_errors, samples) },
      ]} />
      <Chart title="Unknown records" times={times} text={short} series={[{ name: "unknown", values: samples.unknown }]} />
      {samples.dead_letters.every((one) => one === null) ? null : (
        <Chart title="Messages" times={times} text={short} series={[
          { name: "waiting", values: samples.waiting_messages },
          { name: "dead letters", values: samples.dead_letters },
        ]} />
      )}
      {samples.oldest_message_seconds.every((one) => one === null) ? null : (
        <Chart title="Age of the oldest message" times={times} text={span} scale={60} series={[{ name: "oldest", values: samples.oldest_message_seconds }]} />
      )}
      {samples.reap_seconds.every((one) => one === null) ? null : (
        <Chart title="Records past their retention" times={times} text={span} scale={60} series={[{ name: "wait for the reaper since", values: samples.reap_seconds }]} />
      )}
    </div>
  );
}

type Asked = Loaded<Samples>;

/** The samples of the last hour, for the page and its charts. */
export function useHour(): Asked {
  return useLive(() => get<Samples>("/v1/samples"), 30_000, []).loaded.value;
}

function OfDay() {
  return <Shown asked={useLive(() => get<Samples>("/v1/samples?span=day"), 120_000, []).loaded.value} />;
}

function Shown({ asked: { value, problem } }: { asked: Asked }) {
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading the samples…</p> : null
      ) : (
        <>
          <Effect of={value} />
          <StoreHealth of={value} />
          <Charts of={value} />
        </>
      )}
    </>
  );
}

/** Whether Idem helps, and what it costs: from the process's own samples. */
export function Helps({ hour }: { hour: Asked }) {
  const isDay = place.value.filters.get("span") === "day";
  return (
    <Section title="What Idem prevents, and what it costs" note={`Only this gateway (${location.host}), and not from before its start.`}>
      <nav class="tabs" aria-label="Time">
        <a href={address(["overview"])} aria-current={isDay ? undefined : "page"}>last hour</a>
        <a href={address(["overview"], { span: "day" })} aria-current={isDay ? "page" : undefined}>last day</a>
      </nav>
      {isDay ? <OfDay /> : <Shown asked={hour} />}
    </Section>
  );
}
