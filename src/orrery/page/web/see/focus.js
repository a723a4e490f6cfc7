// What the page looks at: one small state that every view follows, and that the address of the page holds.

/** Values by name; whoever listens is told of changes, once a frame. */
export class Focus {
  constructor(values = {}) {
    this.values = values;
    this.listeners = new Set();
    this.changed = new Set();
  }

  get(name, otherwise = null) {
    return this.values[name] ?? otherwise;
  }

  set(changes) {
    for (const [name, value] of Object.entries(changes)) {
      if (this.values[name] === value) continue;
      this.values[name] = value;
      this.changed.add(name);
    }
    if (this.changed.size && !this.waiting) this.waiting = requestAnimationFrame(() => this.tell());
  }

  /** Tell now that something is to be drawn again, though it has the value that it had. */
  again(name) {
    this.changed.add(name);
    this.tell();
  }

  tell() {
    this.waiting = null;
    const changed = this.changed;
    this.changed = new Set();
    for (const listener of [...this.listeners]) listener(changed);
  }

  /** @returns {() => void} ends the listening */
  listen(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }
}

/** What of the state an address holds; a preview under the pointer is no part of it, nor is what is `untold`. */
export function toAddress(values, untold = new Set()) {
  const kept = Object.entries(values).filter(([name, value]) => !name.startsWith("over") && !untold.has(name) && value !== null && value !== undefined && value !== "");
  return "#" + new URLSearchParams(kept.map(([name, value]) => [name, JSON.stringify(value)])).toString();
}

export function fromAddress(address) {
  const values = {};
  for (const [name, text] of new URLSearchParams(address.replace(/^#/, ""))) {
    try {
      values[name] = JSON.parse(text);
    } catch {
      // An address that somebody typed: a part that is no JSON is left out.
    }
  }
  return values;
}
