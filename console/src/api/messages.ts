// What the Admin API answers about messages (docs/openapi.yaml).

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

/** What each state means for the receiver. */
export const messageStates: Record<MessageState, string> = {
  waiting: "It is due, or will be: the relay sends it until the destination accepts it.",
  delivered: "The destination accepted it.",
  dead: "The destination refused it, or too many attempts failed: nothing sends it again by itself.",
  discarded: "An operator gave it up for good.",
};

export const verdicts: Record<string, string> = {
  redriven: "is sent again",
  discarded: "is given up for good",
  may_have_arrived: "stays: it may have arrived, and its destination would not recognise a repeat",
};
