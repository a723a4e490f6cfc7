// A conversation as a tree: turns that stand beside each other answer the same words, and one path is shown.

/**
 * @typedef {object} Turn
 * @property {"user"|"assistant"} role
 * @property {string} text
 * @property {Array<Token>} tokens of an answer; none where somebody wrote or changed it
 * @property {string|null} response the id of the response that it came with
 * @property {string|null} finish why it ended
 * @property {Array<Turn>} next what follows
 * @property {number} chosen which of these is shown
 *
 * @typedef {object} Token
 * @property {number} id
 * @property {string} text
 * @property {Uint8Array|number[]} bytes
 * @property {number} logprob
 * @property {Array<Token>} top the most probable tokens at its place, the best first
 */

/** @returns {Turn} */
export function turn(role, text, more = {}) {
  return { role, text, tokens: [], response: null, finish: null, next: [], chosen: 0, ...more };
}

/** A conversation without words. */
export function empty() {
  return { system: "", first: turn("root", "") };
}

/** The turns that are shown, from the first to the last. */
export function path({ first }) {
  const found = [];
  for (let now = first; now.next.length; found.push(now)) now = now.next[now.chosen];
  return found;
}

/** What stands before a turn; the beginning of the conversation stands before the first. */
export function before(conversation, one) {
  const turns = [conversation.first, ...path(conversation)];
  return turns[turns.indexOf(one) - 1];
}

/** Put a turn behind another, beside what stands there, and show it. */
export function add(parent, one) {
  parent.chosen = parent.next.push(one) - 1;
  return one;
}

/** The messages up to a turn, this one too, as the chat route takes them. */
export function messages(conversation, last) {
  const turns = path(conversation);
  const said = turns.slice(0, turns.indexOf(last) + 1).map(({ role, text }) => ({ role, content: text }));
  return conversation.system ? [{ role: "system", content: conversation.system }, ...said] : said;
}

/** The text up to a turn, for models that know of no turns. */
export function joined(conversation, last) {
  const turns = path(conversation);
  return turns.slice(0, turns.indexOf(last) + 1).map(({ text }) => text).join("");
}

/** A conversation that was saved; raises what is wrong with it. */
export function opened(text) {
  const found = JSON.parse(text);
  if (found?.kind !== "orrery conversation") throw new Error("This file holds no conversation of Orrery.");
  const read = ({ role, text, tokens, response, finish, next, chosen }) => turn(String(role), String(text), { tokens: tokens ?? [], response: response ?? null, finish: finish ?? null, next: (next ?? []).map(read), chosen: Math.min(chosen ?? 0, Math.max(0, (next?.length ?? 0) - 1)) });
  return { system: String(found.system ?? ""), first: read(found.first) };
}

/** A conversation as the text of a file. */
export function saved(conversation, about) {
  return JSON.stringify({ kind: "orrery conversation", ...about, ...conversation }, null, 1) + "\n";
}
