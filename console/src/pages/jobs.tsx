import { useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, post, query, session } from "../api/client";
import type { Job, JobResult, JobResultsPage, JobState, JobsPage } from "../api/jobs";
import type { Session } from "../api/types";
import { OperatorName, Text, useOrder } from "../parts/fields";
import { Moment, Nothing, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { count, span } from "../parts/words";
import { useLive } from "../state/live";
import { address, place, setFilters } from "../state/place";

const stateWords: Record<JobState, string> = {
  waiting: "… waiting: no process runs it now; one goes on with it within seconds",
  running: "▸ running",
  cancelling: "– being cancelled: it ends with the decision that is being made",
  cancelled: "– cancelled: what was decided stays",
  ended: "✓ ended",
  damaged: "✗ damaged: its lines in the store are not those that were written, and no process goes on with it",
};
const isOver = (job: Job): boolean => job.state === "ended" || job.state === "cancelled";

function whatOf(job: Job): string {
  if (job.what === "keys.release") return "drop stored 5xx answers";
  if (job.what === "dlq.redrive") return "send dead letters again";
  if (job.what === "dlq.discard") return "discard dead letters";
  return job.as === "completed" ? "complete records with one answer" : "let records run again: they were not done";
}

const verdicts: Record<string, string> = {
  done: "decided",
  not_found: "refused: the store no longer has it",
  wrong_state: "refused: it was settled meanwhile, and this decision does not fit its state",
  wrong_fence: "refused: it ran again meanwhile; the decision was about an earlier attempt",
  missing_response: "refused: the order has no answer for it",
  // The store's own word for both.
  too_early:
    "refused: its attempt could still send when the order came, so look again and decide again; or, if it is " +
    "contested, evidence says that it ran, so complete it alone, with the answer that you find",
  by_evidence:
    "refused: evidence says that it ran, so nothing frees it; complete it alone, with the answer that you find",
  superseded: "refused: another decision came first",
  may_have_arrived: "refused: the message may have arrived; look at its destination first",
  not_dead: "refused: it is no dead letter any more",
  damaged: "refused: the store cannot read it",
  invalid: "refused: the store accepts no such order about it",
  refused: "refused; the process ended before it noted why",
};

const progressOf = (job: Job): string =>
  `${count(job.done)} decided, ${count(job.refused)} refused, ${count(job.left)} left of ${count(job.count)}`;

function List() {
  const cursor = place.value.filters.get("cursor") ?? "";
  const parameters = query({ cursor, limit: 20 });
  const { loaded } = useLive(() => get<JobsPage>(`/v1/jobs${parameters}`), 3_000, [parameters]);
  const { value, problem } = loaded.value;
  return (
    <>
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading jobs…</p> : null
      ) : value.jobs.length === 0 ? (
        <Nothing>
          No job in the last 30 days. A job decides about many records at once: see{" "}
          <a href={address(["unknown"])}>Unknown</a>.
        </Nothing>
      ) : (
        <Table
          columns={["job", "state", "what", "progress", "who", "reason", "when"]}
          rows={value.jobs.map((job) => ({
            key: job.job,
            cells: [
              <a class="ref" href={address(["jobs", job.job])}>{job.job.slice(0, 12)}</a>,
              stateWords[job.state].split(":")[0],
              whatOf(job),
              progressOf(job),
              job.who,
              job.reason,
              <Moment at={job.made_at} />,
            ],
          }))}
        />
      )}
      {value?.next ? (
        <button type="button" onClick={() => setFilters({ cursor: value.next ?? "" })}>Older jobs</button>
      ) : null}
    </>
  );
}

function causesOf(job: Job): string {
  if (job.state === "damaged") {
    return (
      "No process decides anything more in this job. Cancelling closes it, so that it holds no place among the open " +
      "jobs; the gateway then answers that it is damaged."
    );
  }
  return (
    `The job ends with the decision that is being made. The ${count(job.done)} that it has decided stay decided; ` +
    `the ${count(job.left)} that are left stay as they are.`
  );
}

function Cancel({ of: job, set }: { of: Job; set: (job: Job) => void }) {
  const who = session.value as Session;
  const reason = useSignal("");
  const said = useSignal("");
  const { sending, problem, send } = useOrder();
  const cancel = async (event: Event): Promise<void> => {
    event.preventDefault();
    const after = await send(async () => {
      const answer = await post<Job>(`/v1/jobs/${job.job}/cancel`, { reason: reason.value });
      if (answer.job !== job.job || typeof answer.left !== "number") throw new ApiError(inDoubt);
      return answer;
    });
    if (after === null) return;
    said.value = `${after.state === "cancelled" ? "Cancelled." : "It is being cancelled: one more decision may be made."} What was decided stays.`;
    set(after);
  };
  const isOpen = !isOver(job) && job.state !== "cancelling";
  return (
    <>
      <p role="status" class="said">{said.value}</p>
      {!isOpen ? null : who.role !== "operator" ? (
        <Nothing>Cancelling needs the role operator; you have the role {who.role}.</Nothing>
      ) : (
        <form class="decide" aria-label="Cancel the job" onSubmit={(event) => void cancel(event)}>
          <p class="causes">{causesOf(job)}</p>
          <Text label="Reason" name="reason" required value={reason} />
          <OperatorName who={who} />
          {problem.value === null ? null : <Trouble problem={problem.value} />}
          <p class="buttons">
            <button type="submit" class="confirm" disabled={sending.value}>
              {sending.value ? "Sending…" : "Cancel the job"}
            </button>
          </p>
        </form>
      )}
    </>
  );
}

const isAboutKeys = (job: Job): boolean => job.what.startsWith("keys.");

function rowOf(job: Job, one: JobResult) {
  const page = isAboutKeys(job) ? "operation" : "messages";
  const verdict = verdicts[one.verdict] ?? one.verdict;
  return {
    key: one.ref,
    cells: [
      <a class="ref" href={address([page, one.ref])}>{one.ref.slice(0, 8)}</a>,
      one.fence ?? "",
      one.verdict === "done" ? <span class="good">✓ {verdict}</span> : <span class="contested">✗ {verdict}</span>,
      one.state.replace("_", " "),
    ],
  };
}

function Results({ of: job }: { of: Job }) {
  const after = place.value.filters.get("after") ?? "";
  const parameters = query({ after, limit: 100 });
  const target = `/v1/jobs/${job.job}/results${parameters}`;
  const { loaded } = useLive(() => get<JobResultsPage>(target), 3_000, [target]);
  const { value, problem } = loaded.value;
  return (
    <Section title="What became of each record">
      {problem === null ? null : <Trouble problem={problem} />}
      {value === null ? (
        problem === null ? <p class="loading">Reading the results…</p> : null
      ) : value.results.length === 0 ? (
        <Nothing>{isOver(job) ? "It decided about no record." : "It has decided about no record yet."}</Nothing>
      ) : (
        <Table name="Results" columns={["record", "attempt", "verdict", "state then"]}
          rows={value.results.map((one) => rowOf(job, one))} />
      )}
      <p class="buttons">
        {after === "" ? null : <button type="button" onClick={() => setFilters({ after: "" })}>First page</button>}
        {value === null || value.next === null ? null : (
          <button type="button" onClick={() => setFilters({ after: String(value.next) })}>Next page</button>
        )}
      </p>
    </Section>
  );
}

function Facts({ of: job }: { of: Job }) {
  const match = Object.entries(job.match).map(([name, value]) => `${name.replace("_", " ")} ${value}`).join(", ");
  const rest = job.left / job.rate;
  return (
    <>
      <p class="state-line" role="status">{stateWords[job.state]}</p>
      <p>
        <progress aria-label="Progress" max={job.count} value={job.done + job.refused} /> {progressOf(job)}
        {job.state === "running" && job.left > 0 ? `; about ${span(Math.max(1, rest))} more` : ""}
      </p>
      <dl class="facts">
        <dt>what</dt><dd>{whatOf(job)}</dd>
        <dt>about</dt><dd>{match === "" ? "all" : match}</dd>
        <dt>rate</dt><dd>{count(job.rate)} a second</dd>
        <dt>who</dt><dd>{job.who}</dd>
        <dt>reason</dt><dd>{job.reason}</dd>
        <dt>begun</dt><dd><Moment at={job.made_at} /></dd>
        {job.ended_at === null ? null : <><dt>ended</dt><dd><Moment at={job.ended_at} /></dd></>}
        {job.cancelled_by === null ? null : <><dt>cancelled by</dt><dd>{job.cancelled_by}</dd></>}
        {job.trouble === null ? null : <><dt>what is damaged</dt><dd class="contested">{job.trouble}</dd></>}
        <dt>job</dt><dd>{job.job}</dd>
      </dl>
      {isOver(job) && job.refused > 0 ? (
        <p class="trouble">
          {count(job.refused)} {job.refused === 1 ? "record was" : "records were"} refused, and nothing about{" "}
          {job.refused === 1 ? "it" : "them"} changed: the list below says why.
        </p>
      ) : null}
    </>
  );
}

function One({ id }: { id: string }) {
  const { loaded, set } = useLive(() => get<Job>(`/v1/jobs/${encodeURIComponent(id)}`), 2_000, [id]);
  const { value: job, problem } = loaded.value;
  return (
    <>
      <p><a href={address(["jobs"])}>All jobs</a></p>
      {problem === null ? null : problem.status === 404 ? (
        <Nothing>
          No job has the id {id}. The id may be wrong, or the gateway has dropped the job: it keeps each for 30 days.
        </Nothing>
      ) : (
        <Trouble problem={problem} />
      )}
      {job === null ? (
        problem === null ? <p class="loading">Reading the job…</p> : null
      ) : (
        <>
          <Facts of={job} />
          <Cancel of={job} set={set} />
          <Results of={job} />
        </>
      )}
    </>
  );
}

/** Decisions about many records: the list, or one with its progress and results. */
export function Jobs() {
  const id = place.value.path[1];
  return id === undefined ? <List /> : <One key={id} id={id} />;
}
