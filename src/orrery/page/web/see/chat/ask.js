// Asking the server for the next words, by the routes that every OpenAI client uses.
import { joined, messages } from "#see/chat/conversation.js";
import { events } from "#see/events.js";

const CHAT = "/v1/chat/completions";
const TEXT = "/v1/completions";
const BEST = 20;

/** Whether a model answers conversations, continues texts, or writes the target of a source. */
export function mode({ routes, reads_source }) {
  return routes.includes(CHAT) ? "chat" : reads_source ? "source" : "text";
}

/** What is asked: the conversation up to its last turn, how to draw, and what the answer begins with. */
export function asked(way, conversation, last, settings, prefix) {
  const known = Object.fromEntries(Object.entries(settings).filter(([, value]) => value !== null));
  const shared = { ...known, stream: true, return_token_ids: true, ...(prefix.length ? { prefix_ids: prefix } : {}) };
  if (way === "chat") return [CHAT, { ...shared, messages: messages(conversation, last), logprobs: true, top_logprobs: BEST }];
  return [TEXT, { ...shared, prompt: way === "source" ? last.text : joined(conversation, last), logprobs: BEST }];
}

/**
 * Ask, and tell what came as soon as it comes.
 * @param {Function} call
 * @param {[string, object]} what as `asked` gives it
 * @param {AbortSignal} signal
 * @param {(news: {text: string, tokens: Array, response: string, finish: string|null}) => void} told
 */
export async function write(call, [url, body], signal, told) {
  const answer = await call(url, body, { signal });
  for await (const event of events(answer)) {
    if (event.error) throw new Error(event.error.message);
    const [choice] = event.choices;
    if (!choice) continue;
    const scored = choice.logprobs?.content ?? [];
    told({ text: choice.delta?.content ?? choice.text ?? "", tokens: scored.map(token), response: event.id, finish: choice.finish_reason });
  }
}

/** The ids that stand before an answer. */
export async function prompt(call, way, conversation, last) {
  const body = way === "chat" ? { messages: messages(conversation, last) } : { prompt: joined(conversation, last) };
  return (await (await call("/tokenize", body)).json()).tokens;
}

function token({ id, token, bytes, logprob, top_logprobs }) {
  return { id, text: token, bytes, logprob, top: top_logprobs.map((one) => ({ id: one.id, text: one.token, bytes: one.bytes, logprob: one.logprob })) };
}
