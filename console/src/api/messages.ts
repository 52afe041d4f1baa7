// What the Admin API answers about messages (docs/openapi.yaml).
import { ApiError, post } from "./client";

export type MessageState = "waiting" | "delivered" | "dead" | "discarded";

export interface MessageSummary {
  id: string;
  destination: string;
  type: string;
  state: MessageState;
  operation_ref: string;
  aggregate_type: string;
  aggregate_id: string;
  created_at: string;
  due_at: string | null;
  ended_at: string | null;
  attempts: number;
  in_flight: boolean;
  may_have_arrived: boolean;
  reference: string;
  last_error: string;
}

export interface MessagesPage {
  messages: MessageSummary[];
  next: string | null;
}

export interface Message extends MessageSummary {
  content_type: string;
  payload: string | null;
  history: { at: string; attempt?: number; how: string; why?: string }[];
}

export interface Ordered {
  dry_run: boolean;
  messages: { id: string; destination: string; type: string; verdict: string }[];
}

/** Which dead letters an order is about: one, those of a destination and type, or all. */
export interface Which {
  id?: string;
  destination?: string;
  type?: string;
}

/** What went wrong with a question that is sent as an order is: it changed nothing. */
export function lookAgain(error: unknown): unknown {
  if (!(error instanceof ApiError)) return error;
  const { code, status, title } = error.problem;
  if (code !== "no_answer" && status < 500) return error;
  return new ApiError({
    code: "no_look",
    title,
    status,
    detail: "You asked what the order would do, which changes nothing. Ask again.",
  });
}

/** What an order would do with each message. Changes nothing. */
export async function dryRun(
  what: "redrive" | "discard",
  which: Which,
  order: Record<string, unknown>,
): Promise<Ordered> {
  const isAll = which.id === undefined && which.destination === undefined && which.type === undefined;
  const asked = { ...(isAll ? { all: true } : which), ...order, dry_run: true };
  try {
    const answer = await post<Ordered>(`/v1/dlq/${what}`, asked);
    if (answer.dry_run === true && Array.isArray(answer.messages)) return answer;
  } catch (error) {
    throw lookAgain(error);
  }
  throw lookAgain(new ApiError({ code: "no_answer", title: "The answer is none of the gateway's", status: 200 }));
}

/** What each state means for the receiver. */
export const messageStates: Record<MessageState, string> = {
  waiting: "It is due, or will be: the relay sends it until the destination accepts it.",
  delivered: "The destination accepted it.",
  dead: "The destination refused it for good, or too many attempts failed: nothing sends it again by itself.",
  discarded: "An operator gave it up for good.",
};

/** The same of a list. */
export const listStates: Record<MessageState, string> = {
  waiting: "Messages that are due, or will be: the relay sends each until its destination accepts it.",
  delivered: "Messages that their destinations accepted. The gateway forgets each some time after.",
  dead:
    "Messages that a destination refused for good, or whose attempts were used up: nothing sends them again by " +
    "itself.",
  discarded: "Messages that an operator gave up for good. The gateway forgets each some time after.",
};

export const verdicts: Record<string, string> = {
  redriven: "is sent again",
  discarded: "is given up for good",
  may_have_arrived: "stays a dead letter: it may have arrived, and its destination would not recognise a repeat",
};

/** What a line of a message's history says; the relay and the store wrote its name. */
export const histories: Record<string, string> = {
  delivered: "delivered: the destination accepted it",
  put_off: "failed, and is tried again later",
  unseen: "not sent: the relay could not find out whether it had arrived, and tries again later",
  dead: "failed for the last time: it became a dead letter",
  redriven: "an operator had it sent again",
  "redriven: nothing was there":
    "an operator looked at the destination, where it had not arrived, and had it sent again",
  discarded: "an operator discarded it for good",
};
