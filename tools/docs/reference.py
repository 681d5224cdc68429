#!/usr/bin/env python3
"""Writes docs/reference: every public type and function with its contract, from include/hocket.

The headers are the source: a page has their comments as text and their declarations as code. What
has no contract there is an error: each function needs a comment, or follows directly, without an
empty line, behind one that has.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "include/hocket"
PAGES = ROOT / "docs/reference"
ORDER = ("communicator", "collective", "message", "queue", "store", "memory", "types", "status",
         "device", "setting", "transport", "hocket")
NAMESPACE = "namespace hocket::inline v1 {"
# What needs no words: how objects are made, copied, moved and destroyed.
PLAIN = re.compile(r"~\w+\(|(\w+)\((const )?\1 ?&|\w+\(\)( noexcept)? = default;|operator=|^\w+\(\);|"
                   r"^\w+\(\) noexcept;|= delete;|explicit \w+\(std::(shared|unique)_ptr<comm::|"
                   r"friend bool operator==|#define")


@dataclass
class Group:
    """Declarations that stand together, and the comment above the first of them."""

    line: int
    text: list[str] = field(default_factory=list)
    code: list[str] = field(default_factory=list)

    def needs_words(self) -> bool:
        """Whether it has a function that says nothing of itself."""
        bare = [re.sub(r"//.*|/\*.*?\*/", "", each, flags=re.S) for each in self.code]
        functions = [each for each in bare if re.search(r"^[^={]*\w\(", each) and "typedef" not in each]
        return not self.text and any(not PLAIN.search(each) for each in functions)


@dataclass
class Part:
    """A class, or what stands beside classes."""

    title: str
    groups: list[Group] = field(default_factory=list)


def balanced(text: str) -> tuple[int, bool]:
    """Where a declaration ends: behind its `;`, or at the `{` of its body. -1: not yet."""
    depth, is_value, quote = 0, False, ""
    for i, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[i - 1] != "\\" else quote
        elif char == '"':
            quote = char
        elif text.startswith("//", i):
            end = text.find("\n", i)
            return (-1, False) if end < 0 else shifted(text, end)
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char == "{":
            if depth == 0 and not is_value:
                return i, True
            depth += 1
        elif char == "}":
            depth -= 1
        elif depth == 0 and char == "=" and text[i - 1 : i + 2] not in ("==", "=="):
            is_value = not text[:i].rstrip().endswith("operator")
        elif depth == 0 and char == ";":
            return i + 1, False
    return -1, False


def shifted(text: str, end: int) -> tuple[int, bool]:
    """Without the comment that ends there."""
    begin = text.rfind("//", 0, end)
    found, is_body = balanced(text[:begin] + " " * (end - begin) + text[end:])
    return found, is_body


def body_end(text: str) -> int:
    """Behind the brace that closes the first one."""
    depth = 0
    for i, char in enumerate(text):
        depth += {"{": 1, "}": -1}.get(char, 0)
        if depth == 0 and char == "}":
            return i + 1
    raise ValueError("a body without an end")


class CppHeader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.lines = path.read_text("utf-8").splitlines()
        self.parts: list[Part] = []

    def read(self) -> list[Part]:
        begin = next(i for i, line in enumerate(self.lines) if line == NAMESPACE)
        self.read_scope(begin + 1, Part("Functions and constants"), "public")
        return [part for part in self.parts if part.groups]

    def read_scope(self, at: int, part: Part, access: str) -> int:
        """What a namespace or a class has, until its closing brace. Gives the line behind it."""
        self.parts.append(part)
        text: list[str] = []
        joins = False  # the next declaration belongs to the group before it
        was_of_group = False
        while at < len(self.lines):
            line = self.lines[at].strip()
            if line.startswith(("}", "};")):
                return at + 1
            if not line or line.startswith("#"):
                joins = False
                text = text if line else []
                at += 1
            elif re.fullmatch(r"(public|private|protected):", line):
                access, joins, text = line[:-1], False, []
                at += 1
            elif line.startswith("//"):
                is_of_group = not line.startswith("///")  # what stands above several
                if text and was_of_group and not is_of_group:
                    text.append("")
                was_of_group = is_of_group
                text.append(re.sub(r"^///? ?", "", line))
                joins = False
                at += 1
            else:
                at, joins, text = self.read_declaration(at, part, access, text, joins)
        return at

    def read_declaration(self, at: int, part: Part, access: str, text: list[str],
                         joins: bool) -> tuple[int, bool, list[str]]:
        rest = "\n".join(self.lines[at:])
        end, is_body = balanced(rest)
        code = rest[:end]
        first = re.sub(r"^template <.*?>\s*(?=struct|class)", "", code.strip(), flags=re.S)
        if is_body and code.lstrip().startswith("namespace"):
            lines = rest[: end + body_end(rest[end:])].count("\n") + 1
            return at + lines, False, []
        kind = re.match(r"(struct|class)\s+(?:HOCKET_API\s+|\[\[nodiscard\]\]\s+)*([\w:<>]+)", first)
        if is_body and kind and "(" not in first.split("{")[0].split(":")[0]:
            inner = Part(f"{kind[1]} {kind[2]}")
            if access == "public":
                inner.groups.append(Group(at + 1, text or [""], []))
            behind = at + code.count("\n") + 1
            after = self.read_scope(behind, inner, "public" if kind[1] == "struct" else "private")
            if access != "public":
                self.parts.remove(inner)
            return after, False, []
        if is_body and re.match(r"enum\b", first):
            code = rest[: end + body_end(rest[end:]) + 1]
        elif is_body:
            body = body_end(rest[end:])
            lines = rest[: end + body].count("\n") + 1
            signature = re.sub(r"\)( noexcept)?\s+: \w+\(.*", r")\1", code.rstrip(), flags=re.S)
            self.add(part, access, at, signature + ";", text, joins)
            return at + lines, True, []
        lines = code.count("\n") + 1
        behind = self.lines[at + lines - 1].split(code.splitlines()[-1], 1)[-1].strip()
        if behind.startswith("//"):
            code += "  " + behind
        self.add(part, access, at, code, text, joins)
        return at + lines, True, []

    @staticmethod
    def add(part: Part, access: str, at: int, code: str, text: list[str], joins: bool) -> None:
        declaration = textwrap.dedent(code if code[0] == " " else code.lstrip()).rstrip()
        if access != "public" or re.match(r"friend (class|std|void|Memory|\w+ \w+\()", declaration) \
                or re.fullmatch(r"(struct|class) \w+;", declaration) \
                or declaration.startswith("static_assert"):
            return
        declaration = re.sub(r"\bHOCKET_API ", "", declaration)
        if joins and part.groups and part.groups[-1].code:
            part.groups[-1].code.append(declaration)
        else:
            part.groups.append(Group(at + 1, text, [declaration]))


class CHeader:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.source = path.read_text("utf-8")

    def read(self) -> list[Part]:
        begin = self.source.index('extern "C" {\n#endif') + len('extern "C" {\n#endif')
        end = self.source.rindex("#ifdef __cplusplus")
        parts, line = [Part("")], self.source[:begin].count("\n") + 1
        for block in re.split(r"\n[ \t]*\n", self.source[begin:end]):
            for text, code in self.cut(block):
                if section := re.fullmatch(r"---- (.*?)(?:: docs in .*)? ----", " ".join(text)):
                    parts.append(Part(section[1]))
                elif code:
                    parts[-1].groups.append(Group(line, text, [code]))
            line += block.count("\n") + 2
        return [part for part in parts if part.groups]

    @staticmethod
    def cut(block: str) -> Iterator[tuple[list[str], str]]:
        """Comments at the beginning of lines, each with the code behind it."""
        pieces = re.split(r"^(/\*.*?\*/)[ \t]*$", block, flags=re.S | re.M)
        if pieces[0].strip():
            yield [], cleaned(pieces[0])
        for comment, code in zip(pieces[1::2], pieces[2::2], strict=True):
            lines = comment[2:-2].strip().splitlines()
            yield [re.sub(r"^ \* ?", "", line) for line in lines], cleaned(code)


def cleaned(code: str) -> str:
    return re.sub(r"\bHOCKET_API ", "", code).strip("\n")


def paragraphs(text: list[str]) -> Iterator[str]:
    for paragraph in "\n".join(text).split("\n\n"):
        if paragraph.strip():
            yield textwrap.fill(" ".join(paragraph.split()), 118, break_long_words=False,
                                break_on_hyphens=False)
            yield ""


def file_text(lines: list[str]) -> list[str]:
    """The comment at the beginning of a header."""
    text = []
    for line in lines:
        if line.startswith("#"):
            break
        text.append(re.sub(r"^(//|/\*| \*/?) ?", "", line))
    return text


def page(name: str, parts: list[Part], introduction: list[str]) -> str:
    lines = [f"# {name}", ""]
    if name.endswith(".h"):
        rules = "\n".join(introduction)
        head, rest = rules.split("\n\n", 1)
        lines += [*paragraphs([head]), "Conventions:", ""]
        for rule in re.split(r"\n(?= ?\d+\. )", rest.split(":\n", 1)[1]):
            lines.append(textwrap.fill(" ".join(rule.split()), 118, subsequent_indent="    "))
        lines.append("")
    else:
        lines += paragraphs(introduction)
    for part in parts:
        if part.title:
            lines += [f"## {part.title}", ""]
        for group in part.groups:
            lines += paragraphs(group.text)
            if group.code:
                language = "c" if name.endswith(".h") else "cpp"
                lines += [f"```{language}", *"\n".join(group.code).splitlines(), "```", ""]
    return "\n".join(lines).rstrip() + "\n"


def pages() -> dict[str, str]:
    """By name of the file. Exits where a function has no contract."""
    found, missing, abouts = {}, [], {}
    for name in (*(f"{each}.hpp" for each in ORDER), "hocket.h"):
        path = HEADERS / name
        header = CHeader(path) if name.endswith(".h") else CppHeader(path)
        parts = header.read()
        missing += [f"{path.relative_to(ROOT)}:{group.line}: {group.code[0].splitlines()[0]}"
                    for part in parts for group in part.groups if group.needs_words()]
        introduction = file_text(path.read_text("utf-8").splitlines())
        file = name.replace(".hpp", ".md").replace(".h", "_h.md")
        found[file] = page(f"hocket/{name}", parts, introduction)
        abouts[file] = " ".join(" ".join(introduction).split(". ")[0].split()).rstrip(".")
    if missing:
        sys.exit("no contract, neither of its own nor of what stands above it:\n"
                 + "\n".join(missing))
    index = ["# Reference", "",
             "Each page is written from the header of its name by `tools/docs/reference.py`.", ""]
    index += [f"- [{name}]({name}): {about}" for name, about in abouts.items()]
    return found | {"README.md": "\n".join(index) + "\n"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="whether the pages are as they should be")
    options = parser.parse_args()
    wanted = pages()
    if not options.check:
        PAGES.mkdir(exist_ok=True)
        for path in PAGES.glob("*.md"):
            path.unlink()
        for name, text in wanted.items():
            (PAGES / name).write_text(text, "utf-8")
        return
    have = {path.name: path.read_text("utf-8") for path in PAGES.glob("*.md")}
    if wrong := sorted(name for name in wanted | have if wanted.get(name) != have.get(name)):
        sys.exit(f"docs/reference: {', '.join(wrong)} are not what the headers say: run "
                 "tools/docs/reference.py")


if __name__ == "__main__":
    main()
