import { useSignal } from "@preact/signals";

import { ApiError, get, inDoubt, post, session } from "../api/client";
import type { MadeToken, TokensList } from "../api/tokens";
import type { Role, Session } from "../api/types";
import { Choice, OperatorName, Text, useOrder } from "../parts/fields";
import { Moment, Nothing, Section, Trouble } from "../parts/show";
import { Table } from "../parts/table";
import { useLive } from "../state/live";

const roles: [Role, string][] = [
  ["viewer", "viewer: sees records without their contents"],
  ["support", "support: also sees contents, and explains requests"],
  ["operator", "operator: also decides, and makes tokens"],
];

/** The token, once: the page forgets it with the next one, or when it is left. */
function Shown({ of: made }: { of: MadeToken }) {
  const copied = useSignal("");
  const copy = async (): Promise<void> => {
    try {
      await navigator.clipboard.writeText(made.token);
      copied.value = "Copied.";
    } catch {
      copied.value = "The browser does not let this page copy: select the token and copy it yourself.";
    }
  };
  return (
    <div class="trouble" role="status">
      <p>
        <b>
          The token of {made.name} ({made.role}). Nobody can read it again: give it to its holder now.
        </b>
      </p>
      <pre tabIndex={0}>{made.token}</pre>
      <p class="buttons">
        <button type="button" onClick={() => void copy()}>
          Copy the token
        </button>{" "}
        <span role="status">{copied.value}</span>
      </p>
    </div>
  );
}

function Make({ who, after }: { who: Session; after: () => void }) {
  const name = useSignal("");
  const role = useSignal<string>("viewer");
  const made = useSignal<MadeToken | null>(null);
  const { sending, problem, send } = useOrder();
  const make = async (event: Event): Promise<void> => {
    event.preventDefault();
    made.value = null;
    made.value = await send(async () => {
      const answer = await post<MadeToken>("/v1/tokens", { name: name.value.trim(), role: role.value });
      if (typeof answer.token !== "string" || answer.name !== name.value.trim()) throw new ApiError(inDoubt);
      return answer;
    });
    if (made.value !== null) name.value = "";
    after();
  };
  const isDoubtful = problem.value !== null && (problem.value.code === "no_answer" || problem.value.status >= 500);
  return (
    <>
      {made.value === null ? null : <Shown of={made.value} />}
      <form class="decide" aria-label="Make a token" onSubmit={(event) => void make(event)}>
        <p class="causes">
          Who has the token may do at once what its role allows, until you revoke it. Give each person one of their own:
          the audit names its holder by it.
        </p>
        <Text
          label="Name"
          name="token-name"
          required
          pattern="[!-~]{1,64}"
          value={name}
          note="Of the person or program that gets it. No spaces."
        />
        <Choice label="Role" name="token-role" value={role} of={roles} />
        <OperatorName who={who} />
        {problem.value === null ? null : <Trouble problem={problem.value} />}
        {isDoubtful ? (
          <p>
            If the list above has the name now, the token was made, and nobody can read it: revoke it, and make another
            one.
          </p>
        ) : null}
        <p class="buttons">
          <button type="submit" class="confirm" disabled={sending.value}>
            {sending.value ? "Making it…" : "Make the token"}
          </button>
        </p>
      </form>
    </>
  );
}

function Revoke({ name, who, done, leave }: { name: string; who: Session; done: () => void; leave: () => void }) {
  const reason = useSignal("");
  const { sending, problem, send } = useOrder();
  const revoke = async (event: Event): Promise<void> => {
    event.preventDefault();
    const after = await send(async () => {
      const answer = await post<TokensList>(`/v1/tokens/${encodeURIComponent(name)}/revoke`, { reason: reason.value });
      if (!Array.isArray(answer.tokens)) throw new ApiError(inDoubt);
      return answer;
    });
    if (after !== null) done();
  };
  return (
    <form class="decide" aria-label={`Revoke the token of ${name}`} onSubmit={(event) => void revoke(event)}>
      <p class="causes">
        The token of {name} counts no more, at once, and its sessions in browsers end.
        {who.name === name ? " It is your own: you will be logged out." : ""}
      </p>
      <Text label="Reason" name="revoke-reason" required value={reason} />
      <OperatorName who={who} />
      {problem.value === null ? null : <Trouble problem={problem.value} />}
      <p class="buttons">
        <button type="submit" class="confirm" disabled={sending.value}>
          {sending.value ? "Revoking…" : "Revoke it"}
        </button>
        <button type="button" onClick={leave}>
          Leave it as it is
        </button>
      </p>
    </form>
  );
}

function Rows({ of: list, revoke }: { of: TokensList; revoke: (name: string) => void }) {
  const rows = list.tokens.map((one) => ({
    key: one.name,
    cells: [
      one.name,
      one.role,
      <Moment at={one.made_at} />,
      <button type="button" aria-label={`Revoke the token of ${one.name}`} onClick={() => revoke(one.name)}>
        Revoke…
      </button>,
    ],
  }));
  return <Table name="Tokens" columns={["name", "role", "made", "revoke"]} rows={rows} />;
}

function List({ who }: { who: Session }) {
  const { loaded, again } = useLive(() => get<TokensList>("/v1/tokens"), 10_000, []);
  const { value, problem } = loaded.value;
  const open = useSignal<string | null>(null);
  const said = useSignal("");
  const name = open.value;
  if (value === null && problem?.status === 404) {
    return (
      <Nothing>
        {problem.detail} Give <code>admin_tokens</code> a file in the settings, and start the gateway again: then each
        person can have a token, and the audit names who decides.
      </Nothing>
    );
  }
  return (
    <>
      <Section title="Tokens">
        {problem === null ? null : <Trouble problem={problem} />}
        <p role="status" class="said">
          {said.value}
        </p>
        {name === null ? null : (
          <Revoke
            key={name}
            name={name}
            who={who}
            done={() => {
              said.value = `The token of ${name} is revoked: it counts no more.`;
              open.value = null;
              again();
            }}
            leave={() => {
              open.value = null;
            }}
          />
        )}
        {value === null ? (
          problem === null ? (
            <p class="loading">Reading the names…</p>
          ) : null
        ) : value.tokens.length === 0 ? (
          <Nothing>There is no token. The gateway's own token, which has no name, is in its file.</Nothing>
        ) : (
          <Rows
            of={value}
            revoke={(one) => {
              said.value = "";
              open.value = one;
            }}
          />
        )}
      </Section>
      <Section title="A new token">
        <Make who={who} after={again} />
      </Section>
    </>
  );
}

/** Who may log in with a token, and in which role. */
export function Tokens() {
  const who = session.value as Session;
  return who.role === "operator" ? (
    <List who={who} />
  ) : (
    <Nothing>Tokens need the role operator; you have the role {who.role}.</Nothing>
  );
}
