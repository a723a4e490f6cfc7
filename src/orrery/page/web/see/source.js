// Where a view's numbers come from: a server, or the page itself where it was saved as one file.
import { decode } from "#see/safetensors.js";
import { t } from "#see/words.js";

const KEPT = 64;

/** A name for what is asked of a view, the same whatever the order of its settings. */
export function address(view, asked = {}) {
  const given = Object.entries(asked).filter(([, value]) => value !== null && value !== undefined);
  const query = new URLSearchParams(given.sort(([a], [b]) => (a < b ? -1 : 1))).toString();
  return query ? `${view}?${query}` : view;
}

/** Remembers the last answers: the numbers of a pass never change. */
class Remembering {
  constructor() {
    this.answers = new Map();
  }

  /** @returns {Promise<{facts: any, checks: Array, tensors: Object}>} */
  get(view, asked) {
    const name = address(view, asked);
    const found = this.answers.get(name) ?? this.bytes(name).then(decode);
    this.answers.delete(name);
    this.answers.set(name, found);
    found.catch(() => this.answers.delete(name));
    if (this.answers.size > KEPT) this.answers.delete(this.answers.keys().next().value);
    return found;
  }
}

/** A server's answers about one pass, or about the model where `pass` is null. */
export class ServerSource extends Remembering {
  constructor(call, pass) {
    super();
    this.call = call;
    this.pass = pass;
    this.live = true;
  }

  /** Whether something can be asked for. */
  has() {
    return true;
  }

  async bytes(name) {
    const place = this.pass === null ? "/inspect/model" : `/inspect/traces/${this.pass}`;
    return (await this.call(`${place}/${name}`)).arrayBuffer();
  }
}

/** What a saved page holds: every payload compressed and in base64. */
export class FileSource extends Remembering {
  constructor(held) {
    super();
    this.held = held;
    this.live = false;
  }

  /** Whether something was saved. */
  has(view, asked) {
    return address(view, asked) in this.held;
  }

  async bytes(name) {
    if (!(name in this.held)) throw new Error(`This page was saved without ${name}.`);
    const packed = Uint8Array.from(atob(this.held[name]), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"))).arrayBuffer();
  }
}

/** A pass as it differs from another: the views that can be compared are asked for the difference. */
export class Less {
  constructor(source, clean, views) {
    Object.assign(this, { source, clean, live: source.live });
    this.kinds = new Set(views.filter(({ compares }) => compares).map(({ kind }) => kind));
  }

  asked(view, asked) {
    return this.kinds.has(view) ? { ...asked, difference: this.clean } : asked;
  }

  has(view, asked) {
    return this.source.has(view, this.asked(view, asked));
  }

  get(view, asked) {
    return this.source.get(view, this.asked(view, asked));
  }
}

let asked = 0;

/** Show that the server works, as long as it has not answered; `style.css` draws it after a twentieth of a second. */
async function working(answer) {
  document.body.toggleAttribute("data-working", ++asked > 0);
  try {
    return await answer;
  } finally {
    document.body.toggleAttribute("data-working", --asked > 0);
  }
}

/** Asks a server, with the key where it needs one; a refusal becomes an error with the server's words. */
export function caller() {
  let key = null;
  const call = async (url, body, more = {}) => {
    const headers = { ...(body ? { "Content-Type": "application/json" } : {}), ...(key ? { Authorization: `Bearer ${key}` } : {}) };
    const answer = await working(fetch(url, { method: body ? "POST" : "GET", headers, body: body ? JSON.stringify(body) : undefined, ...more })).catch((error) => {
      throw error.name === "TypeError" ? new Error(t("gone")) : error; // no answer at all: a browser says that in words of its own
    });
    if (answer.ok) return answer;
    const told = await answer.json().catch(() => null);
    throw Object.assign(new Error(told?.error?.message ?? `${answer.status} ${answer.statusText}`), { status: answer.status });
  };
  call.useKey = (given) => (key = given || null);
  return call;
}
