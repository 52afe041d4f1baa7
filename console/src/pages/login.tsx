import { useSignal } from "@preact/signals";

import { ApiError, logIn, loginNote, refused } from "../api/client";
import type { Problem } from "../api/types";
import { Trouble } from "../parts/show";

export function Login() {
  const token = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const shown = problem.value ?? refused.value;
  const asking = useSignal(false);
  const send = async (event: Event): Promise<void> => {
    event.preventDefault();
    asking.value = true;
    try {
      await logIn(token.value.trim());
    } catch (error) {
      if (!(error instanceof ApiError)) throw error;
      problem.value = error.problem;
    } finally {
      asking.value = false;
    }
  };
  return (
    <main class="login">
      <h1>Idem</h1>
      {loginNote.value === "" ? null : <p role="status">{loginNote.value}</p>}
      <form onSubmit={(event) => void send(event)}>
        <label for="token">Token of the admin API</label>
        <input
          id="token"
          type="password"
          autocomplete="current-password"
          required
          value={token.value}
          onInput={(event) => {
            token.value = event.currentTarget.value;
          }}
        />
        <button type="submit" disabled={asking.value}>
          {asking.value ? "Logging in…" : "Log in"}
        </button>
      </form>
      {shown === null ? null : <Trouble problem={shown} />}
      <p>
        On the gateway's machine, <code>idem console</code> prints an address; open it within two minutes to log in.
        <code>idem admin token NAME --role ROLE</code> makes a token of your own.
      </p>
    </main>
  );
}
