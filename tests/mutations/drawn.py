"""Where the product can be mutated, and how: small edits of one place in the source."""

from __future__ import annotations

import ast
import hashlib
from collections import Counter
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

ROOMS = "solver", "cluster", "jobs", "luckbase"
KINDS = "comparison", "sign", "constant", "index", "order", "call"

_COMPARISONS = {
    ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"), ast.Gt: (">", ">="), ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="), ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"), ast.In: ("in", "not in"), ast.NotIn: ("not in", "in"),
}  # fmt: skip
_SIGNS = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}


@dataclass(frozen=True)
class Mutation:
    """One edit: bytes [start, stop) of a file (relative to the checkout) become `new`.

    function: the qualified name of the function around it, "" at module level. name: the constant
    that a statement at module level assigns, else the function's own name. line: from 1.
    """

    file: str
    kind: str
    start: int
    stop: int
    new: str
    function: str
    name: str
    line: int

    def applied(self, source: bytes) -> bytes:
        """The file's source with the edit."""
        return source[: self.start] + self.new.encode() + source[self.stop :]

    def shown(self, source: bytes) -> tuple[str, str]:
        """The changed lines, before and after, without indentation and in one line each."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.stop)
        rest = source[last:]
        after = self.applied(source)
        lines = source[first:last], after[first : len(after) - len(rest)]
        before, now = (" ".join(text.decode().split()) for text in lines)
        return before, now


def mutations(root: Path) -> list[Mutation]:
    """Every mutation of the product, in the order of the files."""
    files = [path for room in ROOMS for path in sorted(root.glob(f"{room}/**/*.py"))
             if "luckbase" not in path.relative_to(root).parts[1:]
             and not any(part.is_symlink() for part in path.parents if part != root)]  # fmt: skip
    return [found for path in files for found in _Places(root, path).found]


def draw(root: Path, count: int, seed: int) -> list[Mutation]:
    """So many different ones: of each kind as many, evenly over all of its places. A place keeps
    its lot when other lines of the product change."""
    lots: dict[str, list[tuple[bytes, int, Mutation]]] = {kind: [] for kind in KINDS}
    sources: dict[str, bytes] = {}
    same: Counter[tuple[str, ...]] = Counter()
    for mutation in mutations(root):
        source = sources.setdefault(mutation.file, (root / mutation.file).read_bytes())
        place = (mutation.file, mutation.function, mutation.kind, *mutation.shown(source))
        same[place] += 1
        lot = hashlib.sha256(repr((seed, same[place], *place)).encode()).digest()
        lots[mutation.kind].append((lot, len(lots[mutation.kind]), mutation))
    turns = [sorted(lots[kind])[: -(-count // len(KINDS))] for kind in KINDS]
    return [found[-1] for turn in zip(*turns, strict=True) for found in turn][:count]


class _Places(ast.NodeVisitor):
    """The mutations of one file; `found` once it is made."""

    def __init__(self, root: Path, path: Path) -> None:
        self.file, self.source = str(path.relative_to(root)), path.read_bytes()
        starts = [0]
        for line in self.source.splitlines(keepends=True):
            starts.append(starts[-1] + len(line))
        self.starts, self.found = starts, list[Mutation]()
        self.scope: list[str] = []
        self.function = self.name = ""
        self.visit(ast.parse(self.source))

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt)
        assert node.end_lineno is not None and node.end_col_offset is not None
        return (self.starts[node.lineno - 1] + node.col_offset,
                self.starts[node.end_lineno - 1] + node.end_col_offset)  # fmt: skip

    def _add(self, kind: str, start: int, stop: int, new: str) -> None:
        line = self.source.count(b"\n", 0, start) + 1
        self.found.append(
            Mutation(self.file, kind, start, stop, new, self.function, self.name, line)
        )

    # --- what is gone through ------------------------------------------------------------------

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.scope.append(node.name)
        outer, self.function, self.name = (
            (self.function, self.name),
            ".".join(self.scope),
            node.name,
        )
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        self._statements(node.body)
        self.scope.pop()
        self.function, self.name = outer

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        outer, self.name = self.name, node.name
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()
        self.name = outer

    def visit_Assign(self, node: ast.Assign) -> None:
        target, pairs = node.targets[0], [(node.targets[0], node.value)]
        if not self.scope and isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
            pairs = list(zip(target.elts, node.value.elts, strict=True))
        for named, value in pairs:
            if not self.scope and isinstance(named, ast.Name):
                self.name = named.id
            if self.name != "__all__":
                self.visit(value)
        for target in node.targets:
            self.visit(target)
        self.name = self.name if self.scope else ""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if not self.scope and isinstance(node.target, ast.Name):
            self.name = node.target.id
        if node.value is not None:
            self.visit(node.value)
        self.name = self.name if self.scope else ""

    def visit_If(self, node: ast.If) -> None:
        if not (isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"):
            self.visit(node.test)
            self._statements(node.body)
            self._statements(node.orelse)

    def visit_Assert(self, node: ast.Assert) -> None:
        """For whoever reads and checks types: nothing that a person would see."""

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Its parts have no places of their own before Python 3.12."""

    def visit_Call(self, node: ast.Call) -> None:
        self.visit(node.func)
        if not (isinstance(node.func, ast.Name) and node.func.id in ("TypeVar", "cast")):
            # zip's `strict` is an assertion
            words = [word.value for word in node.keywords if word.arg != "strict"]
            for part in [*node.args, *words]:
                self.visit(part)

    def _statements(self, body: list[ast.stmt]) -> None:
        for statement in body:
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
                self._add("call", *self._span(statement), "pass")
            self.visit(statement)
        for first, second in pairwise(body):
            if _may_swap(first, second):
                (start, middle), (after, stop) = self._span(first), self._span(second)
                texts = (
                    self.source[start:middle],
                    self.source[middle:after],
                    self.source[after:stop],
                )
                self._add("order", start, stop, b"".join(reversed(texts)).decode())

    def generic_visit(self, node: ast.AST) -> None:
        for field, value in ast.iter_fields(node):
            if field in ("body", "orelse", "finalbody") and isinstance(value, list) and self.scope:
                self._statements(value)
            elif isinstance(value, list):
                for part in value:
                    if isinstance(part, ast.AST):
                        self.visit(part)
            elif isinstance(value, ast.AST) and field not in ("annotation", "returns"):
                self.visit(value)

    # --- what is found -------------------------------------------------------------------------

    def visit_Compare(self, node: ast.Compare) -> None:
        left: ast.expr = node.left
        for op, right in zip(node.ops, node.comparators, strict=True):
            old, new = _COMPARISONS[type(op)]
            self._between("comparison", left, right, old, new)
            left = right
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        words = any(isinstance(side, ast.JoinedStr | ast.List | ast.Tuple)
                    or (isinstance(side, ast.Constant) and isinstance(side.value, str | bytes))
                    for side in (node.left, node.right))  # fmt: skip
        if type(node.op) in _SIGNS and not words:
            self._between("sign", node.left, node.right, *_SIGNS[type(node.op)])
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        if isinstance(node.op, ast.USub):
            start, stop = self._span(node)
            operand = self._span(node.operand)
            self._add("sign", start, stop, self.source[operand[0] : operand[1]].decode())
            return
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        index = ast.unparse(node.slice)
        if index.lstrip("-").isdigit():
            self._add("index", *self._span(node.slice), "1" if index == "0" else "0")
        else:
            self.visit(node.slice)
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add("constant", *self._span(node), str(not node.value))
        elif isinstance(node.value, int):
            self._add("constant", *self._span(node), str(node.value + 1))
        elif isinstance(node.value, float):
            self._add("constant", *self._span(node), repr(2 * node.value or 1.0))

    def _between(self, kind: str, left: ast.expr, right: ast.expr, old: str, new: str) -> None:
        start, stop = self._span(left)[1], self._span(right)[0]
        at = self.source.find(old.encode(), start, stop)
        if at >= 0:  # a bracket may stand before it, a comment hide it
            self._add(kind, at, at + len(old), new)


def _may_swap(first: ast.stmt, second: ast.stmt) -> bool:
    """Whether the order of two statements is more than a matter of taste and less than a NameError:
    both call something on a common object, or write, and neither reads what the other writes."""
    simple = ast.Assign | ast.AnnAssign | ast.AugAssign | ast.Expr
    if not (isinstance(first, simple) and isinstance(second, simple)):
        return False
    if not any(isinstance(each, ast.Expr) for each in (first, second)):
        return False  # two values that are worked out
    (wrote, read), (wrote_next, read_next) = map(_variables, (first, second))
    if wrote & (read_next | wrote_next) or wrote_next & read:
        return False
    return bool(_touched(first) & _touched(second))


def _variables(node: ast.AST) -> tuple[set[str], set[str]]:
    """The local names that a statement writes, and that it reads."""
    names = [part for part in ast.walk(node) if isinstance(part, ast.Name)]
    return ({part.id for part in names if isinstance(part.ctx, ast.Store)},
            {part.id for part in names if isinstance(part.ctx, ast.Load)})  # fmt: skip


WRITES = {"print", "say", "write", "print_table", "fsync", "replace", "rename", "unlink"}
"""Calls that somebody outside sees, in their order."""


def _touched(node: ast.AST) -> set[str]:
    """The objects on which a statement calls something, or that it hands to a call; "world" for
    calls of `WRITES`. An attribute of self is an object of its own."""
    found: set[str] = set()
    for call in ast.walk(node):
        if isinstance(call, ast.Call):
            name = ast.unparse(call.func).rpartition(".")
            if name[2] in WRITES:
                found.add("world")
            called = ast.unparse(call.func.value) if isinstance(call.func, ast.Attribute) else ""
            found |= {called, *(ast.unparse(argument) for argument in call.args)}
    return {name for name in found if name == "world" or name.replace(".", "a").isidentifier()} - {
        "self", "os", "np", "render", "True", "False", "None",
    }  # fmt: skip
