// GET /v1/samples (docs/openapi.yaml): columns, one value for each span of time.

export interface Samples {
  span: "hour" | "day";
  /** Seconds since 1970. */
  end: number[];
  milliseconds: number[];
  requests: number[];
  first: number[];
  replays: number[];
  races: number[];
  misuse: number[];
  unknown_retries: number[];
  expired: number[];
  quota_exceeded: number[];
  server_errors: number[];
  store_errors: number[];
  added_ms: (number | null)[];
  reserve_p99_ms: (number | null)[];
  upstream_p50_ms: (number | null)[];
  store_up: boolean[];
  unknown: (number | null)[];
  oldest_unknown_seconds: (number | null)[];
  waiting_messages: (number | null)[];
  oldest_message_seconds: (number | null)[];
  dead_letters: (number | null)[];
  reap_seconds: (number | null)[];
}

export const sum = (values: number[]): number => values.reduce((all, one) => all + one, 0);

/** How many of them in a second, in each span. */
export function rate(values: number[], samples: Samples): (number | null)[] {
  return values.map((value, index) => {
    const milliseconds = samples.milliseconds[index] ?? 0;
    // The span that has just begun says little yet.
    return milliseconds < 5_000 ? null : (value * 1_000) / milliseconds;
  });
}
