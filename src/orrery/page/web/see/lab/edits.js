// Edits as data: which of them act, what they say in Python, and those that a gesture means.

/** The edits that act, as the server takes them. */
export const applied = (edits) => edits.filter(({ off }) => !off).map(({ off, ...edit }) => edit);

const plain = ({ off, ...edit }) => Object.entries(edit).sort(([a], [b]) => (a < b ? -1 : 1));
export const same = (one, other) => JSON.stringify(plain(one)) === JSON.stringify(plain(other));
/** A list as a text that is the same for the same edits, whatever the order of their fields. */
export const called = (edits) => JSON.stringify(applied(edits).map(plain));

const NAMES = { from: "source", from_position: "source_position" };

/** One edit as Python writes it: `.zero("blocks.1.attention.mixed", head=2)`. JSON's numbers, texts and lists are Python's. */
export function line({ at, op, off, ...more }) {
  const named = Object.entries(more).map(([name, value]) => `${NAMES[name] ?? name}=${JSON.stringify(value).replaceAll(",", ", ")}`);
  return `.${op}(${[op === "replace" ? `at=${JSON.stringify(at)}` : JSON.stringify(at), ...named].join(", ")})`;
}

/**
 * The program that runs a pass with edits.
 * @param {{load: string, trace: string, sources: Object<string, string>, compare: boolean}} told expressions of Python
 * @param {Array} edits those that act
 */
export function python({ load, trace, sources, compare }, edits) {
  const names = [...new Set(edits.map(({ from }) => from).filter(Boolean))];
  const given = names.length ? `sources={${names.map((name) => `${JSON.stringify(name)}: ${sources[name] ?? "..."}`).join(", ")}}` : "";
  const run = edits.length ? ["edited = (", `    inside.edit(${given})`, ...edits.map((edit) => `    ${line(edit)}`), "    .run()", ")"] : [];
  const told = compare && edits.length ? ['print("\\n".join(difference(inside, edited).lines()))'] : [];
  const imports = ["import orrery", ...(told.length ? ["from orrery.inspection.difference import difference"] : [])];
  return [...imports, "", `lm = ${load}`, `inside = ${trace}`, ...run, ...told].join("\n") + "\n";
}

const key = (site, layer, name) => `${site.path.replace("*", layer)}.${name}`;
const others = (count, but) => Array.from({ length: count }, (_, i) => i).filter((i) => i !== but);

/** What one click does to what is looked at: edits by name, those that make sense now. */
export function gestures(page) {
  const { focus, pass } = page;
  const site = pass.sites[Math.min(focus.get("site", 0), pass.sites.length - 1)];
  const layer = focus.get("layer") ?? site?.layers[0] ?? 0;
  const [head, query, seen] = [focus.get("head") ?? 0, focus.get("query"), focus.get("key")];
  const found = {};
  const add = (name, told, edit) => edit.at in pass.shapes && (found[name] = { told, edit });
  if (site) {
    add("head", { layer, head }, { at: key(site, layer, "mixed"), op: "zero", head });
    if (site.heads > 1) add("isolate", { layer, head }, { at: key(site, layer, "mixed"), op: "zero", head: others(site.heads, head) });
    add("attention", { layer }, { at: key(site, layer, "added"), op: "zero" });
    if (query !== null && seen !== null) add("edge", { query, key: seen }, { at: key(site, layer, "scores"), op: "mask", position: query, head, key: seen });
  }
  add("feed_forward", { layer }, { at: `blocks.${layer}.feed_forward.added`, op: "zero" });
  return found;
}

/** The edits that hide a token from all others, in every attention that looks at its stream. */
export function masks(page, stream, place) {
  const { sites, shapes } = page.pass;
  return sites.filter((site) => site.keys === stream && key(site, site.layers[0], "scores") in shapes).map((site) => {
    const edit = { at: `${site.path}.scores`, op: "mask", key: place };
    const own = site.queries === site.keys;
    return own ? { ...edit, position: others(page.pass[stream].length, place).filter((i) => i > place || !page.session.writes || stream === "source") } : edit;
  }).filter(({ position }) => position === undefined || position.length);
}
