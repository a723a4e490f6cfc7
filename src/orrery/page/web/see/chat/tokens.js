// The tokens of an answer: how sure the model was of each, in numbers and colours, and what else was possible.

/** Tokens joined to pieces of text: a character of several tokens stands with the last of them. */
export function pieces(tokens) {
  const decoder = new TextDecoder();
  let begun = 0;
  const found = [];
  tokens.forEach(({ bytes }, place) => {
    const text = decoder.decode(Uint8Array.from(bytes), { stream: true });
    if (text === "" && bytes.length) return;
    found.push({ text, places: Array.from({ length: place + 1 - begun }, (_, i) => begun + i) });
    begun = place + 1;
  });
  const rest = decoder.decode();
  if (rest) found.push({ text: rest, places: Array.from({ length: tokens.length - begun }, (_, i) => begun + i) });
  return found;
}

/** How probable a token was, by the model alone: before temperature and filters. */
export const probability = (token) => Math.exp(token.logprob);

/** The place of a token among the most probable, from 1; one more than are known where it is none of them. */
export function rank(token) {
  const place = token.top.findIndex(({ id }) => id === token.id);
  return place >= 0 ? place + 1 : token.top.length + 1;
}

/** Nats of uncertainty at a token's place, at least: what is not among the most probable counts as one token. */
export function entropy(token) {
  const shares = token.top.map(probability);
  const rest = Math.max(0, 1 - shares.reduce((sum, one) => sum + one, 0));
  return [...shares, rest].reduce((sum, p) => (p > 0 ? sum - p * Math.log(p) : sum), 0);
}

/** What colours tokens: 0 for none, 1 for all of it. */
export const COLOURS = {
  none: () => 0,
  probability: (token) => 1 - probability(token),
  entropy: (token) => Math.min(1, entropy(token) / Math.log(1 + token.top.length)),
  rank: (token) => Math.min(1, Math.log(rank(token)) / Math.log(1 + token.top.length)),
};

/** The check of an answer: the bytes of its tokens, joined, are its text. */
export function check(name, turns) {
  const wrong = turns.filter(({ tokens, text }) => tokens.length && pieces(tokens).map((piece) => piece.text).join("") !== text).length;
  return { name, value: wrong, bound: 0, passed: wrong === 0 };
}
