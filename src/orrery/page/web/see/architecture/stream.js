// The residual stream: each part reads from it and adds to it (Elhage et al. 2021).
import { arrow, box, label, named, picture, sides, tint, told, whole } from "#see/architecture/shapes.js";
import { t } from "#see/words.js";

const [EACH, WIDE, LINE] = [204, 188, 180];

export function stream(facts, column, chosen) {
  const nodes = facts.nodes.filter((node) => node.column === column);
  const adds = facts.edges.filter((edge) => edge.kind === "skip").map((edge) => edge.second);
  const parts = nodes.filter((node) => node.slot === "branch");
  const width = EACH * parts.length + 320;
  const first = 170;
  const place = (i) => first + EACH * i;
  const ends = nodes.filter((node) => node.slot === "embed" || node.slot === "head");
  const shape = sides(nodes.find((node) => node.slot === "embed")?.shape);
  const drawn = parts.map((part, i) => {
    const up = i % 2 === 0;
    const [x, y] = [place(i), up ? 70 : 290];
    const edge = y + (up ? 17 : -17);
    const norm = nodes.find((node) => node.slot === "pre" && node.group === part.group && (node.role === part.role || parts.length > 1));
    return [
      arrow([[x - 50, LINE], [x - 50, edge]]),
      arrow([[x + 50, edge], [x + 50, LINE + (up ? -9 : 9)]]),
      label("+", x + 50, LINE + 5, { class: "plus" }),
      norm && label(named(norm), x - 46, LINE + (up ? -22 : 32), { class: "cost", "text-anchor": "start" }),
      box({ x, y, width: WIDE, kind: tint(part), title: named(part), below: whole(part.parameters), about: told(part), chosen: () => chosen(part) }),
    ];
  });
  const groups = facts.groups.map((group, number) => {
    const own = parts.flatMap((part, i) => (part.group === number ? [place(i)] : []));
    return own.length > 0 && group.copies > 1 && label(`${group.copies} ×`, (own[0] + own.at(-1)) / 2, 22, { class: "copies" });
  });
  const end = place(parts.length) - 30;
  const head = ends.filter((node) => node.slot === "head").slice(0, 1);
  return adds.some((id) => nodes.some((node) => node.id === id)) ? picture(width, 330, t("architecture.stream"), arrow([[20, LINE], [end, LINE]], "river"), label(shape, 70, LINE - 12, { class: "cost" }), groups, drawn, head.map((node) => box({ x: end + 85, y: LINE, width: WIDE, kind: "head", title: named(node), below: sides(node.shape), about: told(node), chosen: () => chosen(node) }))) : null;
}
