"""Must-keep statements: those that a distillate may not lose.

*Declared* items are marked by their author: pinned entries, entries of a binding kind (constraint,
decision, human_directive), sentences that begin with a marker such as `TODO:` or `Decision:`. A
distillate without one of them is refused. *Inferred* items are sentences that merely read like a
rule, a decision or an open commitment ("we will ... by Friday"); they weigh more and are reported,
but everyday talk is full of them, so a distillate may lack one.
"""

from __future__ import annotations

import re
from collections.abc import Sequence, Set
from dataclasses import dataclass

from reverie.core.pause import paced
from reverie.distil.lexicon import word_set
from reverie.distil.phrases import phrases_of, values_of
from reverie.distil.questions import asks_only, facts
from reverie.distil.sentences import Form
from reverie.distil.source import Reason, Source
from reverie.distil.tokens import join, tokenize
from reverie.distil.value import UNKNOWN, Value, language_of
from reverie.search.languages import ENGLISH

Why = str
"""`pinned`, `kind` or `marker` for declared items; else a rule by pattern or a class of the value model."""

BINDING_KINDS = frozenset({"constraint", "decision", "human_directive"})
_MARKER = re.compile(
    r"\s*(?:(?:TODO|FIXME|DECISION|DECIDED|CONSTRAINT|RULE|REQUIREMENT|ACTION ITEM)\b"
    r"|(?i:todo|decision|decided|constraint|rule|requirement|action item|action|must keep)\s*(?:\([^()]*\))?:)"
)
_MARKED = re.compile(r"(?i)\b(?:todo|fixme|decision|decided|constraint|rule|requirement|action|must keep)\b")
_RULE = re.compile(
    r"\b(?:must(?: not|n't)?|never|always|required?|forbidden|not allowed|may not|only (?:use|ever|after|if|with)"
    r"|do not|under no circumstances)\b",
    re.IGNORECASE,
)
_DECISION = re.compile(
    r"\b(?:decided|agreed|chose|chosen|settled on|approved|rejected|signed off|switched (?:to|from)"
    r"|going with|we(?:'ll| will) use|instead of|no longer)\b",
    re.IGNORECASE,
)
_COMMITMENT = re.compile(
    r"\b(?:promised|committed to|owes?|deadline|due (?:on|by)|by (?:monday|tuesday|wednesday|thursday|friday"
    r"|saturday|sunday|tomorrow|end of|next|the \d|\d|eod|eow)"
    r"|follow(?:ing)? up|remind(?:er)? (?:me|to)|planning to|plan to)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class MustKeep:
    """A sentence, its source and the reason to keep it. Declared ones are required."""

    source_id: str
    text: str
    why: Why

    @property
    def declared(self) -> bool:
        return self.why in ("pinned", "kind", "marker")


def declared(source: Source, sentence: str) -> Why | None:
    """Return the reason why `sentence` is required; None if it is not."""
    if source.pinned:
        return "pinned"
    if source.kind in BINDING_KINDS:
        return "kind"
    return "marker" if _MARKER.match(sentence) else None


def declares(source: Source) -> bool:
    """Whether a sentence of the source may be required: a quick test that may also be true for none."""
    return source.pinned or source.kind in BINDING_KINDS or _MARKED.search(source.content) is not None


# Matches every sentence that one of the patterns above matches.
_ANY = re.compile("|".join(p.pattern for p in (_RULE, _DECISION, _COMMITMENT)), re.IGNORECASE)


def is_weighty(sentence: str) -> bool:
    """Whether `inferred` would find a reason."""
    return not sentence.endswith("?") and _ANY.search(sentence) is not None


def inferred(sentence: str) -> Why | None:
    """Return the reason why `sentence` seems to matter; None if it does not. Questions never do."""
    if not is_weighty(sentence):
        return None
    if _RULE.search(sentence):
        return "rule"
    if _DECISION.search(sentence):
        return "decision"
    if _COMMITMENT.search(sentence):
        return "commitment"
    return None


_FORBIDS = re.compile(
    r"\b(?:must(?: not|n't)(?! have been)|not allowed|forbidden|prohibited|under no circumstances"
    r"|(?:darf|dürfen|darfst) (?:\w+ ){0,3}(?:nicht|keine?n?)|verboten|nicht erlaubt|interdite?s?|défense de"
    r"|prohibid[oa]s?|vietat[oa]|vietati|proibid[oa]s?|verboden|nie wolno|zabronion\w+"
    r"|нельзя|запрещ\w+|yasak\w*|ممنوع)\b"
    r"|禁止|严禁|嚴禁|不得|请勿|請勿|ないでください|てはいけ|てはなら|지 ?마세요|지 ?마십시오|금지|मना है"
)
"""Prohibitions in lower case, kept whatever else the statement says: `must not have cheese, she was sick`."""
_CHANGES = re.compile(
    r"(?:we |i )?(?:raised|lowered|increased|reduced|extended|changed|set|limited|moved)\b[^.;:]{3,60} to \d",
    re.IGNORECASE,
)
"""Changes of a value, which read like a report: `Raised the timeout to 40 minutes`. The earlier value is overtaken."""
_NEUTRAL = 1024
"""The weight of a statement that is as likely to matter as not: `That must have been scary!` is below."""


_ASSISTANTS = word_set("assistant ai model chatbot")
"""Names of speakers that are models."""
_LONG_ANSWER = 60
"""Blanks from which on an answer gives advice, not only what was asked for."""
_ADDRESSES = re.compile(r"(?i)\b(?:you|your|you're|you'll)\b")
_PARTICULAR = re.compile(r"(?i:\b(?:i|we|me|us|my|our)\b)|[\d@`/_]|\w\.\w|[^\s.:!?*_\"'“(-][\s\"'“(*_]+[A-Z]")
"""Signs of a particular statement: the speaker, a figure, an identifier, a name."""


def advises(source: Source) -> bool:
    """Whether a source is a long answer that an assistant gives to someone. General advice in it (`Walk the route
    together a few times`) reads like instructions and binds no one."""
    return (
        (source.speaker or "").casefold() in _ASSISTANTS
        and not source.pinned
        and source.kind not in BINDING_KINDS
        and source.content.count(" ") >= _LONG_ANSWER
        and _ADDRESSES.search(source.content) is not None
    )


_SETTLED = frozenset({"identity", "commitment", "decision", "configuration", "artifact"})
_ERRANDS = frozenset({"instruction", "task"})
_NAMED = re.compile(r"[@`/_]|\w\.\w|[^\s.:!?*_\"'“(-][\s\"'“(*_]+[A-Z]")
"""A named thing or person."""


def _settles(sentence: str, value: Value) -> bool:
    """Whether a statement of general advice says what was settled, or what to do with something named. Figures of a
    price list or a recipe are facts like others."""
    if value.kind in _ERRANDS:
        return _NAMED.search(sentence) is not None
    return value.kind in _SETTLED and _PARTICULAR.search(sentence) is not None


def matters(sentence: str, value: Value, *, advice: bool = False) -> bool:
    """Whether a statement must be kept: by the model, as a prohibition or a change of a value, or by a pattern that the
    model does not deny.

    A question that states nothing is never kept for its own sake. Of `advice` only what is particular, a rule or about
    safety is.
    """
    weighty = value.weight >= _NEUTRAL and is_weighty(sentence)
    if not (value.must_keep or weighty or _FORBIDS.search(sentence.lower()) or _CHANGES.match(sentence)):
        return False
    if advice and value.kind != "safety" and not (is_weighty(sentence) or _settles(sentence, value)):
        return value is UNKNOWN or language_of(sentence) != ENGLISH
    return not sentence.endswith("?") or value is UNKNOWN or not asks_only(sentence)


def reasons_of(sources: Sequence[Source]) -> list[Sequence[Reason]]:
    """Return the reasons to keep each phrase of every source."""
    fresh = [source for source in sources if source.memo.reasons is None]
    for source, said, values in paced(zip(fresh, phrases_of(fresh), values_of(fresh), strict=True)):
        source.memo.reasons = [
            Reason(declared(source, phrase.original), matters(phrase.original, value, advice=advises(source)))
            for phrase, value in zip(said, values, strict=True)
        ]
    return [source.memo.reasons or () for source in sources]


def find(sources: Sequence[Source], without: Set[tuple[str, str]] = frozenset()) -> tuple[MustKeep, ...]:
    """Return every must-keep statement of the sources, in their order.

    `without`: statements that were overtaken, each with the id of its source.
    """
    out = []
    read = zip(sources, phrases_of(sources), values_of(sources), reasons_of(sources), strict=True)
    for source, said, values, reasons in paced(read):
        for phrase, value, reason in zip(said, values, reasons, strict=True):
            text = phrase.original
            if (phrase.form in (Form.ASIDE, Form.HEAD) and not source.pinned) or (source.id, text) in without:
                continue
            if why := reason.declared or (reason.weighty and (inferred(text) or value.kind)):
                stated = join(facts(tokenize(text))) if text.endswith("?") else ""
                out.append(MustKeep(source.id, stated or text, why))
    return tuple(out)
