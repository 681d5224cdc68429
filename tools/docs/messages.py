"""The texts of messages in C++ sources, and those on a page of Markdown.

A text is a string literal of at least two words; adjacent literals are one. If it has several lines,
each is a text. What is put into it, by {} or %s or by adding it at the end, is written as "…". These
are no messages:

- hints: what with_hint takes; what is assigned to a name that ends in "hint", or is an argument for
  a parameter or a member of that name; and what a function returns that with_hint calls
- help texts and summaries, which `hocket info` shows
- lines of the log below a warning
- texts that begin with a space, comma, semicolon or colon, because they continue a sentence
- what begins with "hocket ": labels of keys, of files and of lines of the log. But "hocket run: "
  begins a message of the launcher
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

TOKEN = re.compile(
    r"""(?P<skip>//[^\n]*|/\*.*?\*/|^[ \t]*\#(?:[^\n\\]|\\.)*|\s+)
      |(?P<text>"(?:[^"\\\n]|\\.)*")(?:sv|s)?
      |'(?:[^'\\\n]|\\.)+'
      |[A-Za-z_]\w*
      |\d[\w.']*
      |::|->|.""",
    re.VERBOSE | re.MULTILINE | re.DOTALL,
)
FIELD = re.compile(r"\{[^{}]*\}|%\.?\d*[a-z]")
WORD = re.compile(r"[A-Za-z]{2,}|'t\b")  # "can't" is two
CONTINUATION = re.compile(r"[ ,;:]|hocket-|hocket (?!run: )")
SPAN = re.compile(r"``(.+?)``|`([^`\n]+)`")
BEFORE_A_BODY = ("const", "noexcept", "override")


@dataclass(frozen=True)
class Text:
    line: int
    text: str


@dataclass
class Bracket:
    """A pair of brackets, and the name in front: what is called, made, or defined there."""

    name: str
    begin: int
    outer: Bracket | None = None
    separators: list[int] = field(default_factory=list)  # commas and semicolons

    def with_all_outer(self) -> Iterator[Bracket]:
        bracket: Bracket | None = self
        while bracket:
            yield bracket
            bracket = bracket.outer

    def place_of(self, token: int) -> int:
        """The number of the argument or member that the token is in."""
        return sum(1 for each in self.separators if each < token)


class Source:
    """The tokens of a C++ source, and the brackets that each of them is in."""

    def __init__(self, code: str) -> None:
        found = [each for each in TOKEN.finditer(code) if each["skip"] is None]
        self.tokens = [each["text"] or each[0] for each in found]
        self.lines = list(_lines_of(code, [each.start() for each in found]))
        self.brackets = list(self._brackets())
        self.hint_places = set(self._hint_places())
        self.hint_makers = {self.tokens[i + 2] for i in range(len(found) - 3)
                            if self.tokens[i:i + 2] == ["with_hint", "("]
                            and self.tokens[i + 3] == "("}

    def _brackets(self) -> Iterator[Bracket]:
        inner = Bracket("", 0)
        ended: dict[int, Bracket] = {}  # by the token behind
        for i, token in enumerate(self.tokens):
            if token in "([{":
                inner = Bracket(self._name_before(i, ended), i, inner)
            elif token in ")]}" and inner.outer:
                ended[i + 1] = inner
                inner = inner.outer
            elif token in ",;":
                inner.separators.append(i)
            yield inner

    def _name_before(self, i: int, ended: dict[int, Bracket]) -> str:
        while i > 0 and self.tokens[i - 1] in BEFORE_A_BODY:
            i -= 1
        return ended[i].name if i in ended else self.tokens[i - 1] if i > 0 else ""

    def _hint_places(self) -> Iterator[tuple[str, int]]:
        """The parameters and members called hint: of what, and which."""
        for i, token in enumerate(self.tokens):
            if token == "hint" and self.tokens[i - 1] in ("string", "string_view"):
                yield self.brackets[i].name, self.brackets[i].place_of(i)

    def literals(self) -> Iterator[tuple[int, str]]:
        """The lines of all of them, with the token that each literal begins at."""
        i = 0
        while i < len(self.tokens):
            begin = i
            while i < len(self.tokens) and self.tokens[i].startswith('"'):
                i += 1
            if i > begin:
                first, *others = self._joined(begin, i).split("\n")
                yield begin, first
                yield from ((begin, each.strip()) for each in others)
            i += 1

    def messages(self) -> Iterator[Text]:
        for i, text in self.literals():
            is_text = " " in text and len(WORD.findall(text)) > 1 and not CONTINUATION.match(text)
            if is_text and not self._is_no_message(i):
                yield Text(self.lines[i], text.strip())

    def _joined(self, begin: int, end: int) -> str:
        text = "".join(each[1:-1] for each in self.tokens[begin:end])
        text = FIELD.sub("…", text.replace('\\"', '"').replace("\\n", "\n"))
        return re.sub("…+", "…", text + ("…" if self.tokens[end:end + 1] == ["+"] else ""))

    def _is_no_message(self, i: int) -> bool:
        return (self._is_assigned(i, ("hint", "help", "summary")) or self._is_logged_below_warning(i)
                or any(each.name == "with_hint" or each.name in self.hint_makers
                       or (each.name, each.place_of(i)) in self.hint_places
                       for each in self.brackets[i].with_all_outer()))

    def _is_assigned(self, i: int, endings: tuple[str, ...]) -> bool:
        while i > 0 and self.tokens[i] not in ("(", "{", ",", ";", "}"):
            if self.tokens[i] == "=" and self.tokens[i - 1].endswith(endings):
                return True
            i -= 1
        return False

    def _is_logged_below_warning(self, i: int) -> bool:
        outer = self.brackets[i].with_all_outer()
        call = next((each for each in outer if each.name == "line"), None)
        if call is None or not call.separators:
            return False
        level = self.tokens[call.begin:call.separators[0]]
        return "Level" in level and not {"warning", "error"} & set(level)


@dataclass
class Page:
    """What stands between backticks in the tables of a page: behind a heading, and before it."""

    listed: set[str]
    examples: set[str]

    @classmethod
    def read(cls, page: str, heading: str) -> Page:
        before, _, behind = page.partition(f"\n{heading}\n")
        return cls({each for cell in _first_cells(behind) for each in _spans(cell)},
                   {each for cell in _first_cells(before) for each in (cell, *_spans(cell))})

    def has(self, text: str) -> bool:
        """Listed as it is, or shown by an example with words in place of "…"."""
        pattern = re.escape(text).replace("…", ".+")
        return text in self.listed or any(re.fullmatch(pattern, each) for each in self.examples)


def _lines_of(code: str, places: Iterable[int]) -> Iterator[int]:
    line, before = 1, 0
    for place in places:
        line += code.count("\n", before, place)
        before = place
        yield line


def _first_cells(page: str) -> list[str]:
    return re.findall(r"(?m)^\| (.*?) \|", page)


def _spans(cell: str) -> list[str]:
    return [(long or short).strip() for long, short in SPAN.findall(cell)]
