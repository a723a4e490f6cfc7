"""The house rules that a syntax tree can hold: each takes the modules and returns what breaks it."""

import ast
import builtins
import io
import statistics
import sys
import tokenize
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TypeVar

SOURCE = Path(__file__).parents[2] / "src"

FILE_LINES, FUNCTION_LINES, FORWARD_LINES, SPEC_FIELDS = 400, 40, 25, 10
ROOMS, SHARED_NAMES = 30, 60
_SILENT = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}
_BRICKS = ("nn", "models")
_ASSEMBLIES = {"Decoder", "Encoder", "EncoderDecoder"}
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_Node = TypeVar("_Node", bound=ast.AST)
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True)
class Module:
    """One source file: its dotted name and its text."""

    name: str
    text: str
    is_init: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @cached_property
    def code_lines(self) -> frozenset[int]:
        """Numbers of the lines that hold code: no docstring, comment or blank line."""
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        spans = (range(t.start[0], t.end[0] + 1) for t in tokens if t.type not in _SILENT)
        docstrings = (range(d.lineno, (d.end_lineno or d.lineno) + 1) for d in _docstring_nodes(self.tree))
        return frozenset(n for span in spans for n in span) - frozenset(n for d in docstrings for n in d)

    def lines_of(self, node: _Function) -> int:
        return len(self.code_lines & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)))

    @property
    def package(self) -> str:
        return self.name.split(".")[1] if "." in self.name else ""

    def nodes(self, *kinds: type[_Node]) -> Iterator[_Node]:
        return (node for node in ast.walk(self.tree) if isinstance(node, kinds))

    def at(self, node: ast.AST, text: str) -> str:
        return f"{self.name}:{getattr(node, 'lineno', 1)}: {text}"


Classes = dict[str, tuple[Module, ast.ClassDef]]
Rule = Callable[[Sequence[Module]], list[str]]


def source_modules() -> list[Module]:
    return [_read(path) for path in sorted(SOURCE.rglob("*.py"))]


def report(modules: Sequence[Module]) -> str:
    """Say how long the source files are, how many public names are shared, and where a file is read upwards."""
    lengths = sorted((len(module.code_lines), module.name) for module in modules if module.code_lines)
    longest, name = lengths[-1]
    median = statistics.median(length for length, _ in lengths)
    chain = max((climbing(module) for module in modules), key=len)
    return (
        f"{len(lengths)} source files, median {median:.0f} lines of code, longest {longest} ({name})\n"
        f"{len(rooms(modules))} packages; {len(shared_names(modules))} names stand for several public classes\n"
        f"the longest chain of calls that climbs: {' -> '.join(chain)}"
    )


def rooms(modules: Sequence[Module]) -> set[str]:
    """Return the packages of the program."""
    return {module.package for module in modules if module.name.startswith("orrery.") and module.name.count(".") > 1}


def shared_names(modules: Sequence[Module]) -> dict[str, list[str]]:
    """Return the names of public classes that several modules define, each with the modules."""
    by_name: dict[str, list[str]] = {}
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                by_name.setdefault(node.name, []).append(module.name)
    return {name: where for name, where in by_name.items() if len(where) > 1}


def climbing(module: Module) -> list[str]:
    """Return the longest chain of functions of a module each of which calls one that stands above it."""
    places = {node.name: node for node in module.tree.body if isinstance(node, _FUNCTIONS)}
    above = {
        name: {
            call.func.id
            for call in ast.walk(node)
            if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in places
            if places[call.func.id].lineno < node.lineno
        }
        for name, node in places.items()
    }
    longest: dict[str, list[str]] = {}
    for name in places:  # what stands above has its chain already
        longest[name] = [name, *max((longest[other] for other in above[name]), key=len, default=[])]
    return [f"{module.name}.{name}" for name in max(longest.values(), key=len, default=[])]


def few_rooms_and_few_shared_names(modules: Sequence[Module]) -> list[str]:
    """The program has at most thirty packages, and at most sixty names stand for several public classes."""
    packages, shared = rooms(modules), shared_names(modules)
    broken = [f"{len(packages)} packages: at most {ROOMS}"] if len(packages) > ROOMS else []
    worst = ", ".join(
        f"{name} ({len(where)})" for name, where in sorted(shared.items(), key=lambda one: -len(one[1]))[:9]
    )
    return broken + ([f"{len(shared)} shared names, at most {SHARED_NAMES}: {worst}"] * (len(shared) > SHARED_NAMES))


def no_path_from_a_setting(modules: Sequence[Module]) -> list[str]:
    """A setting may choose a number, never a code path: no test in nn and models looks into ``self.spec``."""
    return [
        module.at(node, "a test of self.spec: let another spec class fill the slot")
        for module in _bricks(modules)
        for node in module.nodes(ast.If, ast.IfExp, ast.While, ast.Match, ast.comprehension)
        if any("self.spec" in ast.unparse(test) for test in _tests(node))
    ]


def no_type_question_in_forward(modules: Sequence[Module]) -> list[str]:
    """A forward asks no object what it is or has."""
    return [
        module.at(call, f"{call.func.id} in a forward: give both parts the same call")
        for module in _bricks(modules)
        for function in module.nodes(*_FUNCTIONS)
        if function.name == "forward"
        for call in ast.walk(function)
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name)
        if call.func.id in {"isinstance", "hasattr", "getattr"}
    ]


def no_question_of_the_assembly(modules: Sequence[Module]) -> list[str]:
    """Outside ``models`` nobody asks which assembly a model is: its spec says what it reads and whether it writes."""
    return [
        module.at(call, "isinstance of an assembly: ask its spec for inputs, head_names or writes")
        for module in modules
        if module.package != "models"
        for call in module.nodes(ast.Call)
        if isinstance(call.func, ast.Name) and call.func.id in {"isinstance", "issubclass"}
        if _ASSEMBLIES & {name.id for name in ast.walk(call.args[1]) if isinstance(name, ast.Name)}
    ]


def within_line_budgets(modules: Sequence[Module]) -> list[str]:
    """File, function and forward keep within their lines of code."""
    broken = [
        f"{module.name}: {len(module.code_lines)} lines in a file, {FILE_LINES} allowed"
        for module in modules
        if len(module.code_lines) > FILE_LINES
    ]
    for module in modules:
        for function in module.nodes(*_FUNCTIONS):
            budget = FORWARD_LINES if function.name == "forward" else FUNCTION_LINES
            if (lines := module.lines_of(function)) > budget:
                broken.append(module.at(function, f"{lines} lines in {function.name}, {budget} allowed"))
    return broken


def specs_are_small(modules: Sequence[Module]) -> list[str]:
    """A spec has few fields: more of them want to be grouped."""
    return [
        module.at(cls, f"{cls.name} has {fields} fields, {SPEC_FIELDS} allowed")
        for module in modules
        for cls in module.nodes(ast.ClassDef)
        if cls.name.endswith("Spec") or any(_dotted(base).endswith("Spec") for base in cls.bases)
        if (fields := sum(_is_field(node) for node in cls.body)) > SPEC_FIELDS
    ]


def classes_are_abstract_or_final(modules: Sequence[Module]) -> list[str]:
    """No class inherits from a class that can be instantiated; exceptions and settings carriers may."""
    classes = {f"{m.name}.{name}": (m, cls) for m in modules for name, cls in _classes(m.tree)}
    return [
        module.at(cls, f"{cls.name} inherits from {base}, which is not abstract: wrap it")
        for module, cls in classes.values()
        for base in _bases(module, cls)
        if base in classes and not _is_open(*classes[base], classes)
    ]


def modules_say_what_they_hold(modules: Sequence[Module]) -> list[str]:
    """Every module has a docstring, but for an empty ``__init__``."""
    return [m.at(m.tree, "no docstring") for m in modules if m.tree.body and not ast.get_docstring(m.tree)]


def bricks_are_documented(modules: Sequence[Module]) -> list[str]:
    """In nn every public class and function has a docstring; with a forward, its equation or Shapes."""
    broken = []
    for module in modules:
        if module.package != "nn":
            continue
        for node in module.tree.body:
            if not isinstance(node, (*_FUNCTIONS, ast.ClassDef)) or node.name.startswith("_"):
                continue
            text = ast.get_docstring(node) or ""
            computes = isinstance(node, ast.ClassDef) and any(
                isinstance(part, _FUNCTIONS) and part.name == "forward" for part in node.body
            )
            if not text:
                broken.append(module.at(node, f"{node.name} has no docstring"))
            elif computes and "Shapes" not in text and "=" not in text:
                broken.append(module.at(node, f"{node.name} states neither its Shapes nor the equation"))
    return broken


def bricks_need_only_torch(modules: Sequence[Module]) -> list[str]:
    """Outside the standard library, nn imports torch, jaxtyping, itself and the errors."""
    allowed = ("torch", "jaxtyping", "orrery.nn", "orrery.errors")
    return [
        f"{module.name}: imports {name}"
        for module in modules
        if module.package == "nn"
        for name in sorted(set(_imports(module).values()))
        if name.split(".")[0] not in sys.stdlib_module_names
        if not any(name == root or name.startswith(f"{root}.") for root in allowed)
    ]


def inits_are_lazy(modules: Sequence[Module]) -> list[str]:
    """An ``__init__`` holds constants and a ``__getattr__`` at most; of ours it imports `orrery.schema.lazy` alone."""
    return [
        module.at(node, "an __init__ stays empty or lazy")
        for module in modules
        if module.is_init
        for node in module.tree.body
        if not _is_lazy(node)
    ]


RULES: tuple[Rule, ...] = (
    no_path_from_a_setting,
    no_type_question_in_forward,
    no_question_of_the_assembly,
    within_line_budgets,
    specs_are_small,
    classes_are_abstract_or_final,
    modules_say_what_they_hold,
    bricks_are_documented,
    bricks_need_only_torch,
    inits_are_lazy,
    few_rooms_and_few_shared_names,
)


def _read(path: Path) -> Module:
    parts = path.relative_to(SOURCE).with_suffix("").parts
    is_init = parts[-1] == "__init__"
    return Module(".".join(parts[:-1] if is_init else parts), path.read_text(encoding="utf-8"), is_init)


def _bricks(modules: Sequence[Module]) -> list[Module]:
    return [module for module in modules if module.package in _BRICKS]


def _docstring_nodes(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, *_FUNCTIONS)) and ast.get_docstring(node) is not None:
            first = node.body[0]
            assert isinstance(first, ast.Expr)
            yield first


def _tests(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, ast.Match):
        return [node.subject]
    if isinstance(node, ast.comprehension):
        return node.ifs
    return [node.test] if isinstance(node, ast.If | ast.IfExp | ast.While) else []


def _is_field(node: ast.stmt) -> bool:
    return isinstance(node, ast.AnnAssign) and "ClassVar" not in ast.unparse(node.annotation)


def _dotted(node: ast.expr) -> str:
    """Return the dotted name of a base class, without its type arguments."""
    return _dotted(node.value) if isinstance(node, ast.Subscript) else ast.unparse(node)


def _classes(tree: ast.AST, prefix: str = "") -> Iterator[tuple[str, ast.ClassDef]]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.ClassDef):
            yield f"{prefix}{node.name}", node
            yield from _classes(node, f"{prefix}{node.name}.")


def _imports(module: Module) -> dict[str, str]:
    """Map each imported local name to the full dotted name that it stands for."""
    names = {}
    for node in module.nodes(ast.Import, ast.ImportFrom):
        for alias in node.names:
            if isinstance(node, ast.ImportFrom):
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
            else:
                names[alias.asname or alias.name] = alias.name
    return names


def _bases(module: Module, cls: ast.ClassDef) -> list[str]:
    imports = _imports(module)
    names = []
    for base in cls.bases:
        head, dot, rest = _dotted(base).partition(".")
        names.append(imports.get(head, f"{module.name}.{head}") + dot + rest)
    return names


def _is_open(module: Module, cls: ast.ClassDef, classes: Classes) -> bool:
    """Tell whether a class may be inherited from: abstract, an exception, the keys of a dict, or only settings."""
    bases = {_dotted(base).split(".")[-1] for base in cls.bases}
    declared = bool(bases & {"ABC", "Protocol", "TypedDict"})
    return (
        declared
        or bool(_open_methods(module, cls, classes))
        or _is_exception(module, cls, classes)
        or _only_configures(cls)
    )


def _open_methods(module: Module, cls: ast.ClassDef, classes: Classes) -> set[str]:
    """Return the abstract methods that a class declares or inherits and does not define."""
    methods = [node for node in cls.body if isinstance(node, _FUNCTIONS)]
    abstract = {m.name for m in methods if any("abstractmethod" in ast.unparse(d) for d in m.decorator_list)}
    inherited = (_open_methods(*classes[base], classes) for base in _bases(module, cls) if base in classes)
    return abstract | set().union(*inherited) - {method.name for method in methods}


def _is_exception(module: Module, cls: ast.ClassDef, classes: Classes) -> bool:
    builtin = (getattr(builtins, _dotted(base), None) for base in cls.bases)
    if any(isinstance(base, type) and issubclass(base, BaseException) for base in builtin):
        return True
    return any(_is_exception(*classes[base], classes) for base in _bases(module, cls) if base in classes)


def _only_configures(cls: ast.ClassDef) -> bool:
    """Tell a pydantic base that closes its heirs' schemas: without a field of its own, nobody makes one."""
    return "BaseModel" in {_dotted(base).split(".")[-1] for base in cls.bases} and not any(map(_is_field, cls.body))


def _is_lazy(node: ast.stmt) -> bool:
    if isinstance(node, _FUNCTIONS):
        return node.name in {"__getattr__", "__dir__"}
    if isinstance(node, ast.Import | ast.ImportFrom):
        names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [alias.name for alias in node.names]
        return all(name.split(".")[0] in sys.stdlib_module_names or name == "orrery.schema.lazy" for name in names)
    if isinstance(node, ast.If):
        return ast.unparse(node.test) == "TYPE_CHECKING"
    return isinstance(node, ast.Expr | ast.Assign | ast.AnnAssign)


if __name__ == "__main__":
    found = source_modules()
    print(report(found))
    sys.exit("\n".join(line for rule in RULES for line in rule(found)) or None)
