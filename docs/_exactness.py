"""How exact every family is: tables and sentences from the record that ``benchmarks/exactness.py`` writes."""

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from orrery.laws import exactness
from orrery.laws.exactness import Apart, Exactness


def table() -> str:
    """Return a row for each family: differences of logits and gradients, widened, as installed, with eager kernels."""
    heads = ("family", "reference", "configurations", "widened", "as installed", "eager")
    rows = [
        (f"`{name}`", one.by, str(one.configurations), _cell(one.widened), installed(one), _cell(one.eager))
        for name, one in exactness.recorded().items()
    ]
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def installed(one: Exactness) -> str:
    """Return the difference from the reference as it is installed, or why there is none."""
    if one.raises:
        return f"raises {one.raises.partition(':')[0]}"
    return "no casts" if one.cast is None else _cell(one.installed)


def _cell(apart: Apart | None) -> str:
    return "" if apart is None else f"{apart.logits:.1e} ({apart.gradients:.1e})"


def measured_on() -> str:
    """Return what the record was measured on, in a sentence."""
    header, recorded = (exactness.record()[key] for key in ("header", "found"))
    versions, machine = header["versions"], header["machine"]
    return (
        f"Measured on {header['date']} by `{header['program']}` at commit `{header['commit'][:8]}`: transformers "
        f"{versions['transformers']}, torch {versions['torch']}, {machine['vendor']} with "
        f"{', '.join(machine['features'])}, {header['threads']['torch']} thread, {len(recorded['seeds'])} seeds of the "
        f"weights, {recorded['processor_seconds']:.0f} processor seconds."
    )


def page() -> str:
    """Return the table with what it was measured on."""
    return f"{measured_on()}\n\n{table()}\n"


class Exactnesses(SphinxDirective):
    """The table."""

    def run(self) -> list[nodes.Node]:
        """Make it from the record as it is."""
        self.env.note_dependency(str(exactness.__file__).replace("exactness.py", exactness.FILE))
        return self.parse_text_to_nodes(page())


def setup(app: object) -> dict[str, bool]:
    """Register with Sphinx."""
    app.add_directive("exactness", Exactnesses)  # type: ignore[attr-defined]
    return {"parallel_read_safe": True}
