"""The mistakes of calls and contracts: arguments, defaults, keys, slices, awaits, the words and codes of errors.

``operators`` holds the mistakes of single operators. Here a change is of what two places agree on: the order of the
arguments, the value where none is given, the key that is read, the bound of a slice, what an error says and which
exit code it has. JavaScript, ``src/orrery/page/web``, is not changed by either.
"""

import ast
import dataclasses
from collections.abc import Iterator

from mutation.operators import Mutation, between, mutations

ERRORS = {
    "UsageError": "DataError", "DataError": "ModelFileError", "ModelFileError": "DataError",
    "MachineError": "UsageError", "RunError": "UsageError",
}  # fmt: skip
"""Each error of the program, and one of another exit code."""
# Calls where the order of two arguments decides nothing, or where a swap is no program that anybody would write.
_IN_ANY_ORDER = {
    "min", "max", "isinstance", "issubclass", "getattr", "hasattr", "setattr", "zip", "equal", "allclose", "gcd",
    "minimum", "maximum", "logical_and", "logical_or", "update", "union", "chain", "TypeVar", "namedtuple", "print",
}  # fmt: skip
_TYPES = {"Literal", "Annotated", "Callable", "Union", "Optional", "cast", "TypeVar"}
_NONE = {"bool": "True", "int": "1", "float": "1.0", "str": "'x'"}
_LEFT_ALONE = (ast.Assert, ast.Import, ast.ImportFrom, ast.JoinedStr)
_SKIPPED_FIELDS = {"annotation", "returns", "decorator_list", "type_params", "format_spec"}
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def every_mutation(file: str, text: str) -> list[Mutation]:
    """Return the changes of operators and those of calls and contracts, each kind under its own name."""
    tree = ast.parse(text)
    kind_at = {(node.lineno, node.col_offset): kind for node, kind in _named_by_their_place(tree)}
    old = [
        dataclasses.replace(m, kind=kind_at.get((m.line, m.column), m.kind)) if m.kind == "constant" else m
        for m in mutations(file, text)
    ]
    lines = text.encode().splitlines(keepends=True)
    new = []
    for node, function in _walk(tree, ""):
        for kind, first, last, changed in _changed(node):
            place = (first.lineno, first.col_offset, last.end_lineno or 0, last.end_col_offset or 0)
            old_text = " ".join(between(lines, *place).split())
            new.append(Mutation(file, function, kind, *place, old_text, changed))
    known = {(m.line, m.column, m.end_line, m.end_column, m.new) for m in old}
    new = [m for m in new if (m.line, m.column, m.end_line, m.end_column, m.new) not in known]
    return sorted([*old, *new], key=lambda m: (m.line, m.column, m.kind, m.new))


def _named_by_their_place(tree: ast.Module) -> Iterator[tuple[ast.expr, str]]:
    """Yield the constants that are a default or the bound of a slice: changed, they are mistakes of that kind."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Slice):
            for bound in (node.lower, node.upper):
                inner = bound.operand if isinstance(bound, ast.UnaryOp) else bound
                if isinstance(inner, ast.Constant):
                    yield inner, "slice"
        for default, _ in _defaults(node):
            if isinstance(default, ast.Constant):
                yield default, "default"


def _walk(node: ast.AST, function: str) -> Iterator[tuple[ast.AST, str]]:
    """Walk what may be changed, with the name of the function or class around it."""
    if isinstance(node, (*_FUNCTIONS, ast.ClassDef)):
        function = f"{function}.{node.name}".lstrip(".")
    yield node, function
    for field, value in ast.iter_fields(node):
        if field in _SKIPPED_FIELDS or (field == "body" and _only_for_types(node)):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, _LEFT_ALONE):
                yield from _walk(child, function)


def _only_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test).endswith("TYPE_CHECKING")


def _changed(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr, str]]:
    """Yield the kind, the first and the last expression of the span, and the new text."""
    yield from _of_calls(node)
    for default, annotation in _defaults(node):
        yield from _of_default(default, annotation)
    match node:
        case ast.Await(value=value):
            yield "await", node, node, f"({ast.unparse(value)})"
        case ast.Subscript(value=value, slice=ast.Constant(value=str(key)), ctx=ast.Load()) if _is_object(value):
            yield "key", node.slice, node.slice, repr(f"{key}_")
        case ast.Slice(lower=lower, upper=upper):
            if lower is not None and not _is_number(lower):
                yield "slice", lower, lower, f"({ast.unparse(lower)}) + 1"
            if upper is not None and not _is_number(upper):
                yield "slice", upper, upper, f"({ast.unparse(upper)}) - 1"
        case ast.Raise(exc=ast.Call() as call):
            yield from _of_error(call)


def _of_calls(node: ast.AST) -> Iterator[tuple[str, ast.expr, ast.expr, str]]:
    if not isinstance(node, ast.Call) or any(isinstance(argument, ast.Starred) for argument in node.args):
        return
    name = ast.unparse(node.func).rpartition(".")[2]
    if isinstance(node.func, ast.Attribute) and name in ("get", "pop") and _is_text(node.args[:1]):
        if len(node.args) == 2 or name == "get":
            rest = f"({ast.unparse(node.args[1])})" if len(node.args) == 2 else "None"
            yield "key", node, node, rest
        return
    if name in _IN_ANY_ORDER or name in _TYPES or name.endswith("Error"):
        return
    for one, other in zip(node.args, node.args[1:], strict=False):
        first, second = ast.unparse(one), ast.unparse(other)
        if first != second:
            yield "arguments", one, other, f"{second}, {first}"
            return


def _defaults(node: ast.AST) -> Iterator[tuple[ast.expr, str]]:
    """Yield the defaults of a function's parameters or of a class's fields, with their annotations."""
    if isinstance(node, ast.arguments):
        places = [*node.posonlyargs, *node.args]
        pairs = [*zip(places[len(places) - len(node.defaults) :], node.defaults, strict=True)]
        for argument, default in [*pairs, *zip(node.kwonlyargs, node.kw_defaults, strict=True)]:
            if default is not None:
                yield default, ast.unparse(argument.annotation) if argument.annotation else ""
    if isinstance(node, ast.ClassDef):
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and statement.value is not None:
                yield statement.value, ast.unparse(statement.annotation)


def _of_default(default: ast.expr, annotation: str) -> Iterator[tuple[str, ast.expr, ast.expr, str]]:
    match default:
        case ast.Constant(value=str(text)):
            yield "default", default, default, repr(f"{text}x")
        case ast.Constant(value=None):
            for part in annotation.replace(" ", "").split("|"):
                if part in _NONE:
                    yield "default", default, default, _NONE[part]
                    return
        case ast.Tuple(elts=[_, *_]):
            yield "default", default, default, "()"


def _of_error(call: ast.Call) -> Iterator[tuple[str, ast.expr, ast.expr, str]]:
    """Yield what an error of the program may get wrong: its words, its hint, its class and so its exit code."""
    name = ast.unparse(call.func)
    if name not in ERRORS:
        return
    if call.args:
        yield "message", call.args[0], call.args[0], repr("it went wrong")
    hint = next((word.value for word in call.keywords if word.arg == "hint"), None)
    hint = call.args[1] if hint is None and len(call.args) > 1 else hint
    if hint is not None:
        yield "message", hint, hint, repr("try something else")
    # By its full name, for the module may not have imported it: a NameError would be too easy to see.
    other = f"__import__('orrery.errors', fromlist=['errors']).{ERRORS[name]}"
    yield "error class", call.func, call.func, other


def _is_text(arguments: list[ast.expr]) -> bool:
    return bool(arguments) and isinstance(arguments[0], ast.Constant) and isinstance(arguments[0].value, str)


def _is_number(node: ast.expr) -> bool:
    return isinstance(node.operand if isinstance(node, ast.UnaryOp) else node, ast.Constant)


def _is_object(node: ast.expr) -> bool:
    """Say whether a subscript reads an object: a name of a type, as in an alias, is left alone."""
    name = ast.unparse(node).rpartition(".")[2]
    return name not in _TYPES and not name[:1].isupper()
