"""Validation of drafts: sizes, labels, sources, times."""

from __future__ import annotations

from reverie.core.canonical import canonical
from reverie.core.entry import CREDENTIAL_PREFIXES, MAX_ID_LENGTH, MAX_TAG_LENGTH, Draft, Source, check_namespace
from reverie.core.errors import Invalid, TooLarge
from reverie.core.policy import TenantPolicy
from reverie.core.subject import SUBJECT_TAG

_CLOCK_SKEW_MS = 60_000
_LABEL_LENGTH = 256
UNNAMED = Source()
"""The source of a draft that names none."""


def check_draft(draft: Draft, policy: TenantPolicy, *, now: int, pointer: str = "") -> None:
    """Raise Invalid or TooLarge, with a pointer to the field, for a draft that cannot be stored."""
    content = draft.content
    if not content or content.isspace():
        raise Invalid("The content is empty.", pointer=f"{pointer}/content")
    if len(_utf8(content, pointer, "content")) > policy.max_entry_bytes:
        raise TooLarge(
            f"An entry's content is at most {policy.max_entry_bytes} bytes. Split it into several entries.",
            pointer=f"{pointer}/content",
            details={"max_bytes": policy.max_entry_bytes},
        )
    if len(draft.tags) > policy.max_tags:
        raise TooLarge(f"At most {policy.max_tags} tags.", pointer=f"{pointer}/tags")
    for number, tag in enumerate(draft.tags):
        named = len(SUBJECT_TAG) if tag.startswith(SUBJECT_TAG) else 0  # dreams hand down whole subjects as tags
        _label(tag, named + MAX_TAG_LENGTH, pointer, f"tags/{number}")
    _label(draft.kind, 64, pointer, "kind")
    if draft.id is not None:
        check_namespace(draft.id)
        _label(draft.id, MAX_ID_LENGTH, pointer, "id")
    if draft.subject is not None:
        _label(draft.subject, _LABEL_LENGTH, pointer, "subject")
    if draft.id == "" or not draft.kind:
        raise Invalid("Leave the field out rather than empty.", pointer=f"{pointer}/{'kind' if draft.id else 'id'}")
    if draft.replaces is not None and draft.replaces not in draft.tags:
        raise Invalid("replaces is one of the entry's own tags.", pointer=f"{pointer}/replaces")
    if draft.source != UNNAMED:
        _check_source(draft.source, pointer)
    if draft.attributes:
        try:
            size = len(canonical(dict(draft.attributes)))
        except Invalid:
            raise Invalid(
                "Attributes are plain JSON: no NaN, no integers beyond 2^53, no broken text.",
                pointer=f"{pointer}/attributes",
            ) from None
        if size > policy.max_attribute_bytes:
            raise TooLarge(
                f"Attributes are at most {policy.max_attribute_bytes} bytes as JSON.", pointer=f"{pointer}/attributes"
            )
    if draft.created_at is not None and draft.created_at < 0:
        raise Invalid("created_at is before 1970.", pointer=f"{pointer}/created_at")
    if draft.created_at is not None and draft.created_at > now + _CLOCK_SKEW_MS:
        raise Invalid("created_at is in the future.", pointer=f"{pointer}/created_at")
    if draft.expires_at is not None and draft.expires_at <= now:
        raise Invalid("expires_at has passed already.", pointer=f"{pointer}/expires_at")


def _check_source(source: Source, pointer: str) -> None:
    for name in ("actor", "role", "session", "run", "node"):
        value = getattr(source, name)
        if value is not None:
            _label(value, _LABEL_LENGTH, pointer, f"source/{name}")
    if source.actor.startswith(CREDENTIAL_PREFIXES):
        raise Invalid("An actor's name does not begin with key:, host: or local:", pointer=f"{pointer}/source/actor")
    if not 0 <= source.trust <= 10:
        raise Invalid("Trust is 0 to 10.", pointer=f"{pointer}/source/trust")


def _label(value: str, most: int, pointer: str, name: str) -> None:
    _utf8(value, pointer, name)
    if len(value) > most:
        raise TooLarge(f"At most {most} characters.", pointer=f"{pointer}/{name}")


def _utf8(text: str, pointer: str, name: str) -> bytes:
    if "\x00" in text:
        raise Invalid("The text has a NUL character. Remove it.", pointer=f"{pointer}/{name}")
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise Invalid("The text is not valid Unicode (it has a lone surrogate).", pointer=f"{pointer}/{name}") from None
