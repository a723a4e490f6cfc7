"""One small change of a program at a time: what may be changed in a source text, and the text that results.

Left alone: annotations, docstrings and other strings, what only words an error (raise, assert), decorators, imports.
"""

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

_COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Pow: ast.Mult, ast.Mod: ast.Add, ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd,
}  # fmt: skip
_FUNCTIONS = {
    "min": "max", "max": "min", "any": "all", "all": "any", "sum": "mean", "mean": "sum", "amax": "amin",
    "amin": "amax", "cos": "sin", "sin": "cos", "exp": "expm1", "log": "log1p", "sqrt": "square", "rsqrt": "sqrt",
    "floor": "ceil", "ceil": "floor", "argmax": "argmin", "zeros": "ones", "ones": "zeros", "append": "extend",
    "lstrip": "rstrip", "rstrip": "lstrip", "startswith": "endswith", "endswith": "startswith",
    "update": "copy", "logsumexp": "sum", "triu": "tril", "tril": "triu",
}  # fmt: skip
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "type_params", "format_spec"}
_SKIPPED_NODES = (ast.Raise, ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)


@dataclass(frozen=True)
class Mutation:
    """A span of a file (lines from 1, columns in bytes) and what stands there instead."""

    file: str
    function: str
    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    old: str
    new: str

    @property
    def name(self) -> str:
        """What it is known by when lines move: file, function, and the two texts."""
        return f"{self.file}:{self.function}: {self.old} -> {self.new}"

    def apply(self, text: str) -> str:
        """Return the whole source with the change made; raise ``ValueError`` where the source has moved on."""
        lines = text.encode().splitlines(keepends=True)
        old_text = between(lines, self.line, self.column, self.end_line, self.end_column)
        before = b"".join(lines[: self.line - 1]) + lines[self.line - 1][: self.column]
        after = lines[self.end_line - 1][self.end_column :] + b"".join(lines[self.end_line :])
        if " ".join(old_text.split()) != self.old:
            raise ValueError(f"{self.file}:{self.line} holds {old_text!r}, not {self.old!r}")
        return before.decode() + self.new + after.decode()


def mutations(file: str, text: str) -> list[Mutation]:
    """Return every mutation of a source text, in the order of the text."""
    changes = []
    lines = text.encode().splitlines(keepends=True)
    for node, function in _expressions(ast.parse(text), ""):
        for kind, new in _changed(node):
            place = (node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0)
            changes.append(Mutation(file, function, kind, *place, " ".join(between(lines, *place).split()), new))
    return sorted(changes, key=lambda m: (m.line, m.column, m.kind, m.new))


def between(lines: list[bytes], line: int, column: int, end_line: int, end_column: int) -> str:
    """Return the text of a span; lines count from 1, columns in bytes."""
    span = lines[line - 1 : end_line]
    span[-1] = span[-1][:end_column]
    span[0] = span[0][column:]
    return b"".join(span).decode()


def _expressions(node: ast.AST, function: str) -> Iterator[tuple[ast.expr | ast.stmt, str]]:
    """Walk what a mutation may touch, with the name of the function or class around it."""
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        function = f"{function}.{node.name}".lstrip(".")
    if isinstance(node, ast.expr | ast.stmt):
        yield node, function
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS or (field == "body" and _only_for_types(node)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _SKIPPED_NODES):
                yield from _expressions(child, function)


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _changed(node: ast.expr | ast.stmt) -> Iterator[tuple[str, str]]:
    """Yield the kind and the new text of each change that this node alone allows."""
    match node:
        case ast.Compare(ops=[operator, *_]) if type(operator) in _COMPARISONS:
            yield "comparison", _with(node, ops=[_COMPARISONS[type(operator)](), *node.ops[1:]])
        case ast.BinOp(op=operator) if type(operator) in _ARITHMETIC and not _is_text(node):
            yield "arithmetic", f"({_with(node, op=_ARITHMETIC[type(operator)]())})"
        case ast.BoolOp(op=operator):
            yield "logic", f"({_with(node, op=ast.And() if isinstance(operator, ast.Or) else ast.Or())})"
        case ast.UnaryOp(op=ast.Not() | ast.USub() | ast.Invert()) if not isinstance(node.operand, ast.Constant):
            yield "sign", f"({ast.unparse(node.operand)})"
        case ast.IfExp():
            yield "branches", f"({_with(node, body=node.orelse, orelse=node.body)})"
        case ast.Constant(value=bool()):
            yield "constant", str(not node.value)
        case ast.Constant(value=int()):
            yield "constant", str(node.value + 1)
        case ast.Constant(value=float()):
            yield "constant", repr(node.value * 1.5 if node.value else 1.0)
        case ast.Call(func=ast.Name(id=name)) if name in ("min", "max", "any", "all"):
            yield "function", _with(node, func=ast.Name(_FUNCTIONS[name]))
        case ast.Call(func=ast.Attribute(attr=name)) if name in _FUNCTIONS:
            yield "function", _with(node, func=ast.Attribute(node.func.value, _FUNCTIONS[name]))
        case ast.Expr(value=ast.Call()) | ast.AugAssign():
            yield "statement", "pass"


def _with(node: ast.AST, **fields: object) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    return ast.unparse(changed)


def _is_text(node: ast.BinOp) -> bool:
    """Joined strings and paths are no arithmetic."""
    sides = (node.left, node.right)
    return any(
        isinstance(side, ast.JoinedStr) or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
        for side in sides
    )
