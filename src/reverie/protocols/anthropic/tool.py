"""The memory tool: the six commands of a model over the files of a store, answered in the words it was trained on.

`/memories/x` is the memory `/x` of the store. Folders exist as long as something lies below them; the root always
does. An edit is a compare-and-set on the text it was made from.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from reverie.core.actor import Actor
from reverie.core.errors import IdempotencyReused, Invalid, NotFound, ReverieError
from reverie.core.retry import retry
from reverie.memory.files import File
from reverie.protocols.anthropic.errors import ContentTooLarge, PathConflict, PreconditionFailed
from reverie.protocols.anthropic.listing import Memory
from reverie.protocols.anthropic.memories import Memories
from reverie.protocols.anthropic.names import MEMORY, parents, path_fault

ROOT = "/memories"
MOST_LINES = 999_999
_WIDTH = len(str(MOST_LINES))
_TRIES = 3
_UNITS = "BKMG"


_SUCCESS = {
    "create": "File created successfully at: {path}",
    "str_replace": "The memory file has been edited.",
    "insert": "The file {path} has been edited.",
    "delete": "Successfully deleted {path}",
    "rename": "Successfully renamed {old_path} to {new_path}",
}


class ToolFault(Exception):
    """Answer to the model when a command cannot be carried out."""


class MemoryCommands:
    """The commands, on one store for one caller."""

    def __init__(
        self,
        memories: Memories,
        actor: Actor,
        store_id: str,
        *,
        session: str | None = None,
        on_exists: str = "error",
        view_limit: int | None = None,
        idempotency_key: str | None = None,
    ) -> None:
        if on_exists not in ("error", "overwrite"):
            raise Invalid("on_exists is error or overwrite.", pointer="/on_exists")
        self._memories = memories
        self._actor = actor
        self._store = store_id
        self._session = session
        self._overwrite = on_exists == "overwrite"
        self._view_limit = view_limit
        self._key = idempotency_key
        self._commands: Mapping[str, Callable[[Mapping[str, Any]], str]] = {
            "view": self._view,
            "create": self._create,
            "str_replace": self._str_replace,
            "insert": self._insert,
            "delete": self._delete,
            "rename": self._rename,
        }

    def handle(self, command: Mapping[str, Any]) -> dict[str, Any]:
        """The answer to a tool use: `{"content": text, "is_error": bool}`."""
        try:
            return {"content": self.run(command), "is_error": False}
        except ToolFault as fault:
            return {"content": str(fault), "is_error": True}

    def run(self, command: Mapping[str, Any]) -> str:
        """Carry out a command. Raises ToolFault with the text for the model."""
        name = command.get("command")
        work = self._commands.get(name) if isinstance(name, str) else None
        if work is None:
            raise ToolFault(f"Unknown command: {name if isinstance(name, str) else ''}"[:200])
        try:
            return work(command)
        except IdempotencyReused:  # a process that died made this edit
            return success_text(command)
        except ContentTooLarge as fault:
            most = fault.details.get("max_bytes", 0)
            raise ToolFault(f"File {command.get('path')} would exceed the limit of {most:,} bytes.") from None
        except PreconditionFailed:
            raise ToolFault(_conflict_text(str(command.get("path", command.get("old_path", ""))))) from None
        except PathConflict as fault:
            taken = ROOT + str(fault.details["conflicting_path"])
            raise ToolFault(f"The destination already exists: {taken}") from None
        except ReverieError as fault:
            raise ToolFault(fault.message) from None

    def clear_all(self) -> str:
        """Delete everything."""
        self._memories.delete_below(self._actor, self._store, "/", session=self._session)
        return "All memory cleared"

    # commands

    def _view(self, command: Mapping[str, Any]) -> str:
        given = _text(command, "path")
        path = located(given)
        memory = self._at(path)
        if memory is not None:
            return self._limit(_numbered_file(given, memory.content or "", command.get("view_range")))
        found = self._memories.names(self._actor, self._store, path if path == "/" else path + "/")
        if not found and path != "/":
            raise ToolFault(f"The path {given} does not exist. Please provide a valid path.")
        return self._limit(_folder(given, path, found))

    def _create(self, command: Mapping[str, Any]) -> str:
        given, text = _text(command, "path"), _text(command, "file_text")
        path = located(given)
        there = self._at(path)
        if (there is not None and not self._overwrite) or (there is None and self._is_folder(path)):
            raise ToolFault(f"File {given} already exists")
        self._check_parents(given, path)
        if there is not None:
            made = self._edit(given, path, lambda _: text)
        else:
            try:
                made = self._memories.create(self._actor, self._store, path, text, session=self._session)
            except PathConflict:
                raise ToolFault(f"File {given} already exists") from None
        return success_text(command) + _note(made)

    def _str_replace(self, command: Mapping[str, Any]) -> str:
        given, old = _text(command, "path"), _text(command, "old_str")
        new = _text(command, "new_str", optional=True)
        path = located(given)
        changed = 0

        def replaced(text: str) -> str:
            nonlocal changed
            if not old:
                raise ToolFault("No replacement was performed, old_str is empty.")
            count = text.count(old)
            if count == 0:
                raise ToolFault(f"No replacement was performed, old_str `{old}` did not appear verbatim in {given}.")
            if count > 1:
                raise ToolFault(
                    f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: "
                    f"{', '.join(map(str, _lines_of(text, old)))}. Please ensure it is unique"
                )
            changed = text.count("\n", 0, text.index(old))
            return text.replace(old, new)

        made = self._edit(given, path, replaced)
        lines = (made.content or "").split("\n")
        first, last = max(0, changed - 2), min(len(lines), changed + 3)
        snippet = _number_lines(lines[first:last], first + 1)
        message = f"{success_text(command)} Here is the snippet showing the change (with line numbers):\n"
        return message + snippet + _note(made)

    def _insert(self, command: Mapping[str, Any]) -> str:
        given, added = _text(command, "path"), _text(command, "insert_text")
        at = command.get("insert_line")
        if not isinstance(at, int) or isinstance(at, bool):
            raise ToolFault("insert_line is a whole number.")
        path = located(given)

        def inserted(text: str) -> str:
            lines = text.split("\n")
            if lines[-1] == "":
                lines.pop()
            if not 0 <= at <= len(lines):
                raise ToolFault(
                    f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {len(lines)}]."
                )
            lines.insert(at, added.rstrip("\n"))
            joined = "\n".join(lines)
            return joined if joined.endswith("\n") else joined + "\n"

        made = self._edit(given, path, inserted)
        return success_text(command) + _note(made)

    def _delete(self, command: Mapping[str, Any]) -> str:
        given = _text(command, "path")
        path = located(given)
        if path == "/":
            raise ToolFault(f"Cannot delete the {ROOT} directory itself")
        memory = self._at(path)
        absent = f"The path {given} does not exist"
        if memory is not None:
            try:
                self._memories.delete(self._actor, self._store, MEMORY + memory.file.id, session=self._session)
            except NotFound:
                raise ToolFault(absent) from None
        elif not self._memories.delete_below(self._actor, self._store, path + "/", session=self._session):
            raise ToolFault(absent)
        return success_text(command)

    def _rename(self, command: Mapping[str, Any]) -> str:
        old, new = _text(command, "old_path"), _text(command, "new_path")
        source, target = located(old), located(new)
        if source == "/":
            raise ToolFault(f"Cannot rename the {ROOT} directory itself")
        if target == "/" or self._at(target) is not None or self._is_folder(target):
            raise ToolFault(f"The destination {new} already exists")
        memory = self._at(source)
        absent = f"The path {old} does not exist"
        if memory is None and not self._is_folder(source):
            raise ToolFault(absent)
        if (target + "/").startswith(source + "/"):
            raise ToolFault(f"The path {old} cannot be moved into itself")
        self._check_parents(new, target)
        try:
            if memory is None:
                args = (self._actor, self._store, source + "/", target + "/")
                moved = self._memories.move_below(*args, session=self._session)
            else:
                self._memories.update(
                    self._actor, self._store, MEMORY + memory.file.id, path=target, session=self._session
                )
                moved = 1
        except PathConflict:
            raise ToolFault(f"The destination {new} already exists") from None
        except NotFound:
            raise ToolFault(absent) from None
        if not moved:
            raise ToolFault(absent)
        return success_text(command)

    # files

    def _at(self, path: str) -> Memory | None:
        return None if path == "/" else self._memories.at(self._actor, self._store, path)

    def _is_folder(self, path: str) -> bool:
        folder = path if path == "/" else path + "/"
        return path == "/" or bool(self._memories.list(self._actor, self._store, prefix=folder, limit=1).items)

    def _check_parents(self, given: str, path: str) -> None:
        for parent in parents(path):
            if self._at(parent) is not None:
                raise ToolFault(f"Path {given} is not valid: {ROOT}{parent} is a file.")

    def _edit(self, given: str, path: str, change: Callable[[str], str]) -> Memory:
        """Change the text of a file; tried again when another writer was faster."""

        def edit(attempt: int) -> Memory:
            memory = self._at(path)
            if memory is None and attempt:
                raise ToolFault(_conflict_text(given))
            if memory is None:
                if self._is_folder(path):
                    raise ToolFault(f"The path {given} is not a file.")
                raise ToolFault(f"The path {given} does not exist. Please provide a valid path.")
            return self._memories.update(
                self._actor,
                self._store,
                MEMORY + memory.file.id,
                content=change(memory.content or ""),
                expected=memory.file.sha256,
                session=self._session,
                idempotency_key=self._key,
            )

        return retry(
            edit, on=(PreconditionFailed, NotFound), busy=lambda: ToolFault(_conflict_text(given)), tries=_TRIES
        )

    def _limit(self, text: str) -> str:
        if self._view_limit is None or len(text) <= self._view_limit:
            return text
        return text[: self._view_limit] + "\n... (cut; use view_range to see more)"


def success_text(command: Mapping[str, Any]) -> str:
    """The text that answers an edit once it is made, without what it shows of the file."""
    return _SUCCESS[command["command"]].format_map(command)


def located(given: str) -> str:
    """The path in the store that a path of the tool means: `/memories/a/../b` is `/b`, `/memories` is `/`."""
    if given != ROOT and not given.startswith(ROOT + "/"):
        raise ToolFault(f"Path must start with {ROOT}, got: {given}")
    segments: list[str] = []
    for segment in given[len(ROOT) :].split("/"):
        if segment == "..":
            if not segments:
                raise ToolFault(f"Path {given} would escape {ROOT} directory")
            segments.pop()
        elif segment not in ("", "."):
            segments.append(segment)
    path = "/" + "/".join(segments)
    fault = path_fault(path) if segments else None
    if fault is not None:
        raise ToolFault(f"Path {given} is not valid: {fault}.")
    return path


def size_text(size: int) -> str:
    """`0B`, `512B`, `4K`, `1.5K`: whole numbers bare, others with one decimal."""
    if size == 0:
        return "0B"
    step = min((size.bit_length() - 1) // 10, len(_UNITS) - 1)
    shown = size / 1024**step
    return f"{int(shown)}{_UNITS[step]}" if shown == int(shown) else f"{shown:.1f}{_UNITS[step]}"


def _folder(given: str, path: str, found: Sequence[File]) -> str:
    """A folder two levels deep, depth first, by name; hidden names left out."""
    folder = path if path == "/" else path + "/"
    sizes: dict[tuple[str, ...], int] = {}
    folders: set[tuple[str, ...]] = set()
    for file in found:
        names = tuple(file.path[len(folder) :].split("/"))
        for depth in range(len(names) + 1):
            sizes[names[:depth]] = sizes.get(names[:depth], 0) + file.size
            if depth < len(names):
                folders.add(names[:depth])
    rows = [names for names in sizes if 0 < len(names) <= 2 and not any(name.startswith(".") for name in names)]
    base = given.rstrip("/")
    lines = [f"{size_text(sizes.get((), 0))}\t{given}"]
    lines += [
        f"{size_text(sizes[names])}\t{base}/{'/'.join(names)}{'/' if names in folders else ''}"
        for names in sorted(rows)
    ]
    message = f"Here're the files and directories up to 2 levels deep in {given}, excluding hidden items:\n"
    return message + "\n".join(lines)


def _numbered_file(given: str, text: str, view_range: object) -> str:
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise ToolFault(f"File {given} exceeds maximum line limit of {MOST_LINES:,} lines.")
    start = 0
    if isinstance(view_range, list | tuple) and len(view_range) == 2:
        if not all(isinstance(value, int) and not isinstance(value, bool) for value in view_range):
            raise ToolFault("view_range is a list of two whole numbers.")
        start = max(1, view_range[0]) - 1
        lines = lines[start : len(lines) if view_range[1] == -1 else view_range[1]]
    return f"Here's the content of {given} with line numbers:\n" + _number_lines(lines, start + 1)


def _number_lines(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{str(number).rjust(_WIDTH)}\t{line}" for number, line in enumerate(lines, first))


def _lines_of(text: str, old: str) -> list[int]:
    """The lines in which each match begins."""
    results: list[int] = []
    borders = _borders(old)
    line, seen, matched = 1, 0, 0
    for at, character in enumerate(text):  # one pass, also where the matches overlap
        while matched and (matched == len(old) or old[matched] != character):
            matched = borders[matched - 1]
        matched += old[matched] == character
        if matched == len(old):
            line += text.count("\n", seen, at + 1 - matched)
            seen = at + 1 - matched
            results.append(line)
    return results


def _borders(text: str) -> list[int]:
    """For every beginning of a text, the length of the longest shorter beginning that it ends with."""
    results = [0] * len(text)
    length = 0
    for at in range(1, len(text)):
        while length and text[at] != text[length]:
            length = results[length - 1]
        length += text[at] == text[length]
        results[at] = length
    return results


def _note(memory: Memory) -> str:
    count = sum(memory.findings.values())
    if not count:
        return ""
    message = "secret was" if count == 1 else "secrets were"
    return f"\nNote: {count} {message} replaced ({', '.join(sorted(memory.findings))})."


def _conflict_text(given: str) -> str:
    return f"The file {given} no longer exists (may have been deleted or renamed concurrently)."


def _text(command: Mapping[str, Any], name: str, *, optional: bool = False) -> str:
    value = command.get(name)
    if value is None and optional:
        return ""
    if not isinstance(value, str):
        raise ToolFault(f"{name} is a text.")
    return value
