"""Validation of values against a struct. A refusal names the first ten faults, each with a pointer to its field.

msgspec decides whether a value fits, and stops at the first fault. A value that does not fit is examined again here, so
that a caller learns of all its faults at once.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from reverie.core.errors import Invalid

T = TypeVar("T")
MOST_SHOWN = 10
_SLICE = 128
_PARSED = {inspect.IntType: ", unable to parse string as an integer", inspect.BoolType: ", unable to interpret input"}


def validate(document: Any, kind: type[T], *, text: bool = False) -> T:
    """Convert a document to a struct. Raises Invalid, which counts every fault. `text`: the values were plain text.

    A method `prepared` of the struct is applied to the document first. A long list is converted in slices, so that
    other threads get their turn.
    """
    prepare: Callable[[Any], Any] | None = getattr(kind, "prepared", None)
    if prepare is not None:
        document = prepare(document)
    try:
        long = _long_list(document, kind)
        return msgspec.convert(document, kind) if long is None else _in_slices(document, kind, long)
    except msgspec.ValidationError as fault:
        found = Faults(text=text)
        found.look(document, inspect.type_info(kind), ())
        raise found.refusal(str(fault)) from None


def _long_list(document: Any, kind: type[Any]) -> inspect.Field | None:
    """The field of a struct whose value is a long list of objects. Raises ValidationError when it is too long."""
    if not isinstance(document, dict):
        return None
    for name, value in document.items():
        if isinstance(value, list) and len(value) > _SLICE and isinstance(value[0], dict):
            fields = inspect.type_info(kind).fields  # type: ignore[attr-defined]
            field: inspect.Field | None = next((one for one in fields if one.encode_name == name), None)
            if field is None:
                continue  # unknown: refused or ignored with the rest
            plain = plain_type(field.type)
            if isinstance(plain, inspect.ListType) and plain.max_length is not None and len(value) > plain.max_length:
                raise msgspec.ValidationError  # the slices would all fit
            return field
    return None


def _in_slices(document: Mapping[str, Any], kind: type[T], field: inspect.Field) -> T:
    """One call for 10,000 items would hold the interpreter for as long as it takes."""
    items, checked, part = document[field.encode_name], [], None
    for start in range(0, len(items), _SLICE):
        part = msgspec.convert({**document, field.encode_name: items[start : start + _SLICE]}, kind)
        checked += getattr(part, field.name)
    whole: T = msgspec.structs.replace(part, **{field.name: checked})  # type: ignore[type-var,assignment]
    return whole


def plain_type(kind: inspect.Type) -> inspect.Type:
    """A type without its metadata and without null."""
    if isinstance(kind, inspect.Metadata):
        return plain_type(kind.type)
    if isinstance(kind, inspect.UnionType):
        return next(plain_type(one) for one in kind.types if not isinstance(one, inspect.NoneType))
    return kind


class Faults:
    """The faults of a value. The first ten are kept, all are counted."""

    def __init__(self, *, text: bool = False) -> None:
        self.shown: list[dict[str, str]] = []
        self.total = 0
        self._text = text

    def add(self, path: Iterable[object], message: str) -> None:
        """Add a fault. `message` has no full stop."""
        self.total += 1
        if len(self.shown) < MOST_SHOWN:
            steps = [str(step)[:64].replace("~", "~0").replace("/", "~1") for step in path]
            self.shown.append({"pointer": "".join("/" + step for step in steps), "message": f"{message}."})

    def refusal(self, otherwise: str = "") -> Invalid:
        """An error with the message and pointer of the first fault; the details name ten and count the others."""
        if not self.shown:
            return Invalid(f"The body: {otherwise}.", pointer="")
        first, details = self.shown[0], dict[str, Any]()
        if self.total > 1:
            details["faults"] = self.shown
        if self.total > len(self.shown):
            details["more"] = self.total - len(self.shown)
        pointer = first["pointer"]
        return Invalid(f"{pointer or 'The body'}: {first['message']}", pointer=pointer, details=details)

    def look(self, value: Any, kind: inspect.Type, path: tuple[object, ...]) -> None:
        """Add the faults of a value."""
        if isinstance(kind, inspect.Metadata):
            self.look(value, kind.type, path)
        elif isinstance(kind, inspect.UnionType):
            self._look_at_choice(value, kind, path)
        elif isinstance(kind, inspect.StructType):
            self._look_at_object(value, kind, path)
        elif isinstance(kind, inspect.ListType):
            self._look_at_list(value, kind, path)
        elif isinstance(kind, inspect.LiteralType):
            if value not in kind.values:
                self.add(path, f"Input should be {_choice(kind.values)}")
        else:
            message = _fault(value, kind)
            if message:
                parsed = _PARSED.get(type(kind), "") if self._text and isinstance(value, str) else ""
                self.add(path, message + parsed)

    def _look_at_choice(self, value: Any, kind: inspect.UnionType, path: tuple[object, ...]) -> None:
        if value is None and any(isinstance(one, inspect.NoneType) for one in kind.types):
            return
        rest = [one for one in kind.types if not isinstance(one, inspect.NoneType)]
        for one in rest:
            tried = Faults(text=self._text)
            tried.look(value, one, path)
            if not tried.total:
                return
        if rest:
            self.look(value, rest[0], path)

    def _look_at_object(self, value: Any, kind: inspect.StructType, path: tuple[object, ...]) -> None:
        if not isinstance(value, dict):
            self.add(path, "Input should be an object")
            return
        for field in kind.fields:
            if field.encode_name in value:
                self.look(value[field.encode_name], field.type, (*path, field.encode_name))
            elif field.required:
                self.add((*path, field.encode_name), "Field required")
        if kind.forbid_unknown_fields:
            known = {field.encode_name for field in kind.fields}
            for name in value:
                if name not in known:
                    self.add((*path, name), "Extra inputs are not permitted")

    def _look_at_list(self, value: Any, kind: inspect.ListType, path: tuple[object, ...]) -> None:
        if not isinstance(value, list):
            self.add(path, "Input should be a valid list")
            return
        if kind.min_length is not None and len(value) < kind.min_length:
            self.add(path, f"List should have at least {_counted(kind.min_length, 'item')}, not {len(value)}")
        if kind.max_length is not None and len(value) > kind.max_length:
            self.add(path, f"List should have at most {_counted(kind.max_length, 'item')}, not {len(value)}")
        before, objects = self.total, isinstance(kind.item_type, inspect.StructType)
        for number, item in enumerate(value):
            self.look(item, kind.item_type, (*path, number))
            if self.total > before and not objects:
                return  # in a list of labels, the first fault is enough


def _fault(value: Any, kind: inspect.Type) -> str | None:
    """The fault of a plain value; None when it fits."""
    if isinstance(kind, inspect.StrType):
        return _text_fault(value, kind) if isinstance(value, str) else "Input should be a valid string"
    if isinstance(kind, inspect.BoolType):
        return None if isinstance(value, bool) else "Input should be a valid boolean"
    if isinstance(kind, inspect.IntType):
        whole = isinstance(value, int) and not isinstance(value, bool)
        return _number_fault(value, kind) if whole else "Input should be a valid integer"
    if isinstance(kind, inspect.FloatType):
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return _number_fault(value, kind) if number else "Input should be a valid number"
    if isinstance(kind, inspect.DictType):
        return None if isinstance(value, dict) else "Input should be an object"
    if isinstance(kind, inspect.NoneType):
        return None if value is None else "Input should be null"
    return None


def _text_fault(value: str, kind: inspect.StrType) -> str | None:
    if kind.min_length is not None and len(value) < kind.min_length:
        return f"String should have at least {_counted(kind.min_length, 'character')}"
    if kind.max_length is not None and len(value) > kind.max_length:
        return f"String should have at most {_counted(kind.max_length, 'character')}"
    if kind.pattern is not None and re.search(kind.pattern, value) is None:
        return f"String should match pattern '{kind.pattern}'"
    return None


def _number_fault(value: float, kind: inspect.IntType | inspect.FloatType) -> str | None:
    if kind.ge is not None and value < kind.ge:
        return f"Input should be greater than or equal to {kind.ge}"
    if kind.le is not None and value > kind.le:
        return f"Input should be less than or equal to {kind.le}"
    return None


def _counted(number: int, of: str) -> str:
    return f"{number} {of}" + ("" if number == 1 else "s")


def _choice(values: Iterable[Any]) -> str:
    *others, last = [repr(value) for value in values]
    return f"{', '.join(others)} or {last}" if others else last
