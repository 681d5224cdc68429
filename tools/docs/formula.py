"""Formulas that are both shown and computed: a small part of Python's expressions.

Names are those of NAMES, without m. Functions: lg and fl, the logarithm of two rounded up and down;
ceil, min, max. Conditions are those of CONDITIONS.
"""

from __future__ import annotations

import ast
import math
from fractions import Fraction

NAMES = {
    "n": "ranks",
    "m": "bytes of the vector",
    "p": "pieces of a pipeline",
    "h": "ranks of each host",
    "H": "hosts",
    "M": "the largest power of two that is not more than n",
    "X": "min(1, n − M) + min(2, n − M) + min(4, n − M) + … + min(M/2, n − M)",
}
CONDITIONS = {"pow2": ("n is a power of two", "n is no power of two")}

ADDITIVE, MULTIPLICATIVE, ATOM = 1, 2, 3  # how tightly a text holds together
Text = tuple[str, int]


def values(n: int, p: int, h: int) -> dict[str, object]:
    """What the names are in a world."""
    power = 1 << (n.bit_length() - 1)
    return {
        "n": Fraction(n),
        "p": Fraction(p),
        "h": Fraction(h),
        "H": Fraction(-(-n // h)),
        "M": Fraction(power),
        "X": Fraction(sum(min(1 << i, n - power) for i in range(n.bit_length() - 1))),
        "pow2": n == power,
        "lg": lambda x: Fraction((math.ceil(x) - 1).bit_length()),
        "fl": lambda x: Fraction(math.floor(x).bit_length() - 1),
        "ceil": lambda x: Fraction(math.ceil(x)),
        "min": min,
        "max": max,
    }


class Formula:
    """A number that depends on the world."""

    def __init__(self, source: str) -> None:
        self.tree = ast.parse(source, mode="eval")
        self.code = compile(self.tree, source, "eval")
        self.names = {node.id for node in ast.walk(self.tree) if isinstance(node, ast.Name)}

    def at(self, n: int, p: int, h: int) -> Fraction:
        return Fraction(eval(self.code, {"__builtins__": {}}, values(n, p, h)))

    def conditions(self) -> set[str]:
        return self.names & CONDITIONS.keys()

    def show(self, **holds: bool) -> Text:
        """As people write it, where these conditions hold or don't; all it has must be given."""
        return show(self.tree.body, holds)


def closed(text: Text, than: int) -> str:
    """In brackets if it does not hold together more tightly."""
    return text[0] if text[1] > than else f"({text[0]})"


def times(left: Text, right: Text) -> Text:
    """The product: a number needs no sign before what is no number."""
    if left[0] == "1":
        return right
    if right[0] == "1":
        return left
    a, b = closed(left, ADDITIVE), closed(right, ADDITIVE)
    glue = "" if a.isdigit() and not b[0].isdigit() else "·"
    return f"{a}{glue}{b}", MULTIPLICATIVE


def show(node: ast.expr, holds: dict[str, bool]) -> Text:
    match node:
        case ast.Constant(value=value):
            return str(value), ATOM
        case ast.Name(id=name):
            return name, ATOM
        case ast.IfExp(test=ast.Name(id=name), body=body, orelse=orelse):
            return show(body if holds[name] else orelse, holds)
        case ast.BinOp(left=left, op=op, right=right):
            return show_pair(show(left, holds), op, show(right, holds))
        case ast.Call(func=ast.Name(id=function), args=args):
            inner = ", ".join(show(each, holds)[0] for each in args)
            brackets = {"lg": "⌈log₂ {}⌉", "fl": "⌊log₂ {}⌋", "ceil": "⌈{}⌉"}
            return brackets.get(function, function + "({})").format(inner), ATOM
    raise ValueError(f"a formula can't have {ast.unparse(node)}")


def show_pair(left: Text, op: ast.operator, right: Text) -> Text:
    match op:
        case ast.Add():
            return f"{left[0]} + {right[0]}", ADDITIVE
        case ast.Sub():
            return f"{left[0]} − {closed(right, ADDITIVE)}", ADDITIVE
        case ast.Mult():
            return times(left, right)
        case ast.Div():
            return f"{closed(left, ADDITIVE)}/{closed(right, MULTIPLICATIVE)}", MULTIPLICATIVE
        case ast.Pow():
            return f"{closed(left, MULTIPLICATIVE)}^{closed(right, MULTIPLICATIVE)}", ATOM
    raise ValueError(f"a formula can't have {ast.dump(op)}")
