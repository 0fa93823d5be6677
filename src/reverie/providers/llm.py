"""The distiller with a language model: windows, answers traced to their sources, a text that fits.

The model proposes statements, topic by topic; its answer is never stored as it is. Statements without a supporting
quote are dropped, missing must-keep statements are quoted, and the gates of the engine judge the text like any
distillate.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date
from typing import TypeVar

import msgspec

from reverie.core.dream import ModelFailed, SpendExceeded
from reverie.core.errors import Invalid
from reverie.distil.dates import day_of, spell
from reverie.distil.group import Member, group
from reverie.distil.probes import ProbedLines, fates_of
from reverie.distil.request import DistilledText, Request
from reverie.distil.source import How, Source, Statement
from reverie.distil.spend import Spend
from reverie.distil.tokens import tokenize
from reverie.providers.chat import NONSENSE, RETRYABLE, TOO_LONG, ChatModel, ChatReply, ModelFault, Prompt, Unsupported
from reverie.providers.chunks import cut, weight
from reverie.providers.prompt import VERSION, Fact, Line, ask, understand
from reverie.providers.static import StaticEmbedder

T = TypeVar("T")
LEAST_CONTEXT = 2048
_TRIES = 4
_REFUSALS = 6  # refused parameters after which the endpoint is given up
_LEVELS = 6
_PAUSE_SECONDS = 0.5
_MOST_OUTPUT = 8192  # tokens of one answer; many models have no more
_WRAPPING = 256  # tokens of JSON around an answer
_LEAST_SHARE = 60


class PaidChat:
    """A chat model behind a meter: a call's maximum cost is reserved before it, its actual cost settled after it."""

    def __init__(self, model: ChatModel, *, count: Callable[[str], int], price_in: int = 0, price_out: int = 0) -> None:
        self._model = model
        self._count = count
        self._prices = (price_in, price_out)

    def ask(self, prompt: Prompt, spend: Spend) -> ChatReply:
        """Make one call. Raises ModelFault or Unsupported; SpendExceeded before the call is made."""
        most = self.size(prompt) * 5 // 4
        spend.reserve(
            input_tokens=most, output_tokens=prompt.output_tokens, microcents=self._price(most, prompt.output_tokens)
        )
        try:
            reply = self._model.ask(prompt, seconds=spend.seconds_left())
        except (Unsupported, ModelFault) as fault:
            if isinstance(fault, Unsupported) or not fault.billed:
                spend.settle(input_tokens=0, output_tokens=0, microcents=0)
            raise
        read = reply.input_tokens if reply.input_tokens >= 0 else most
        written = reply.output_tokens if reply.output_tokens >= 0 else prompt.output_tokens
        spend.settle(input_tokens=read, output_tokens=written, microcents=self._price(read, written))
        return reply

    def answer(self, prompt: Prompt, spend: Spend, shape: type[T]) -> T:
        """Return the answer as a struct. Repeats the call while the answer is unusable. Raises as `ask` does."""
        for _ in range(_REFUSALS):
            try:
                return msgspec.json.decode(self.ask(prompt, spend).text, type=shape)
            except Unsupported:
                continue
            except msgspec.MsgspecError:
                spend.retried()
        raise ModelFault(NONSENSE)

    def size(self, prompt: Prompt) -> int:
        """Return the input tokens of a prompt, its schema included."""
        return self._count(prompt.system) + self._count(prompt.user) + self._count(str(prompt.schema)) + 32

    def _price(self, read: int, written: int) -> int:
        return read * self._prices[0] + written * self._prices[1]


class LlmDistiller:
    """Distils with a model. Stateless between requests; an instance may be shared between threads.

    Prices are in cents per million tokens; 0 means unknown: such tokens are not counted as money.
    """

    name = "llm"

    def __init__(
        self,
        model: ChatModel,
        *,
        context: int,
        price_in: int = 0,
        price_out: int = 0,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        if context < LEAST_CONTEXT:
            raise Invalid(f"REVERIE_MODEL_CONTEXT is at least {LEAST_CONTEXT} tokens.")
        self._model = model
        self._context = context
        self._prices = (price_in, price_out)
        self._sleep = sleep

    def chat(self, count: Callable[[str], int]) -> PaidChat:
        """Return the same model, at the same prices, for other questions."""
        return PaidChat(self._model, count=count, price_in=self._prices[0], price_out=self._prices[1])

    @property
    def fingerprint(self) -> str:
        return f"llm/2 prompt/{VERSION} {self._model.name} {self._model.parameters} context={self._context}"

    def distil(self, request: Request) -> DistilledText:
        """Query the model by windows, condense the answers until they fit. Raises SpendExceeded or ModelFailed."""
        run = _Run(request, self._model, self._context, self._prices, self._sleep)
        try:
            facts = run.condense(_lines(request), request.output_tokens)
        finally:
            request.spend.note(model=self._model.name, windows=run.windows)
        return _written(facts, request)


class _Run:
    """One request in progress."""

    def __init__(
        self,
        request: Request,
        model: ChatModel,
        context: int,
        prices: tuple[int, int],
        sleep: Callable[[float], None],
    ) -> None:
        self.windows = 0
        self._request = request
        self._count = request.count
        self._chat = PaidChat(model, count=request.count, price_in=prices[0], price_out=prices[1])
        self._sleep = sleep
        # A quarter stays free: providers count tokens in their own way, some a third more than we do.
        empty = ask([], words=1000, output_tokens=0, complaints=("must_keep", "invented", "json"))
        self._room = context * 3 // 4 - self._chat.size(empty) - _WRAPPING

    def condense(self, lines: Sequence[Line], target: int, level: int = 0) -> list[Fact]:
        """Return facts about `lines` in about `target` tokens."""
        total = sum(weight(line, self._count) for line in lines)
        # The answer to a window of w tokens has about w * target / total tokens, half as many again where a second
        # round will choose among the answers; its JSON takes twice as many.
        room = self._room * total // (total + 3 * target)
        windows = cut(lines, max(min(room, _MOST_OUTPUT * total // (4 * target)), 1), self._count)
        facts: list[Fact] = []
        for window in windows:
            size = sum(weight(line, self._count) for line in window)
            share = max(target * size // total, _LEAST_SHARE)
            facts += self._window(window, share * 3 // 2 if len(windows) > 1 else share)
        if len(windows) == 1 or level == _LEVELS or not facts:
            return facts
        again = [Line(fact.text, fact.day, fact.sources) for fact in _ordered(facts, self._request)]
        left = sum(weight(line, self._count) for line in again)
        if self._count(_text([(fact.day, fact.text) for fact in facts])) <= target or left * 10 > total * 9:
            return facts  # it fits, or another round would not make it smaller
        return self.condense(again, target, level + 1)

    def _window(self, window: Sequence[Line], share: int) -> list[Fact]:
        self.windows += 1
        try:
            return self._facts(window, share)
        except ModelFault as fault:
            if fault.kind == TOO_LONG and len(window) > 1:  # the model counts more tokens than we do
                middle = len(window) // 2
                return self._window(window[:middle], share // 2) + self._window(window[middle:], share // 2)
            kind = fault.kind
        raise ModelFailed(f"The model gave no usable answer ({kind}).", details={"fault": kind})

    def _facts(self, window: Sequence[Line], share: int) -> list[Fact]:
        """Process one window, with retries after transient faults: rate limits, outages, answers that are not JSON."""
        complaints = list(self._request.complaints)
        spend = self._request.spend
        tries = refusals = 0
        while True:
            prompt = ask(
                window,
                words=max(share * 3 // 4, 20),
                output_tokens=min(share * 2 + _WRAPPING, _MOST_OUTPUT),
                complaints=complaints,
                instructions=self._request.clean(self._request.instructions),
            )
            try:
                facts = self._ask(prompt, window)
            except Unsupported:
                refusals += 1
                if refusals > _REFUSALS:
                    raise ModelFault(NONSENSE) from None
                continue
            except ModelFault as found:
                fault = found
            else:
                if facts:
                    return facts
                fault = ModelFault(NONSENSE)
            tries += 1
            if fault.kind not in RETRYABLE or tries == _TRIES:
                raise fault
            if fault.kind == NONSENSE and "json" not in complaints:
                complaints.append("json")
            pause = _PAUSE_SECONDS * 2 ** (tries - 1) if fault.retry_after is None else fault.retry_after
            if pause >= spend.seconds_left():
                raise SpendExceeded(
                    "The model asks for more time than a dream may wait.", details={"limit": "model_seconds_per_dream"}
                )
            self._sleep(pause)
            spend.retried()

    def _ask(self, prompt: Prompt, window: Sequence[Line]) -> list[Fact] | None:
        return understand(self._chat.ask(prompt, self._request.spend).text, window)


def _lines(request: Request) -> list[Line]:
    """Return the sources as lines, topic by topic, redacted again: a secret may have been registered since then."""
    prepared = request.work.prepared
    merged = {group.kept: group.merged for group in prepared.collapsed}
    keep: dict[str, list[str]] = {}
    for item in request.must_keep:
        keep.setdefault(item.source_id, []).append(request.clean(" ".join(item.text.split())))
    sources = {source.id: source for source in prepared.sources}
    return [
        Line(
            text=request.clean(source.content),
            day=day_of(source.created_at),
            sources=(source.id, *merged.get(source.id, ())),
            speaker=request.clean(label) if (label := source.label(source.content)) else None,
            session=source.session,
            keep=tuple(keep.get(source.id, ())),
            topic=number,
        )
        for number, topic in enumerate(_topics(prepared.sources), start=1)
        for source in (sources[source_id] for source_id in topic)
    ]


def _topics(sources: Sequence[Source]) -> list[list[str]]:
    """Return the ids of the sources by topic: similar in meaning, of one conversation and subject."""
    vectors = StaticEmbedder().embed([source.content for source in sources])
    members = [
        Member(source.id, source.created_at, (source.session, source.subject), None, source.kind, 0, vector)
        for source, vector in zip(sources, vectors, strict=True)
    ]
    return group(members, most=max(len(members), 1))


def _ordered(facts: Sequence[Fact], request: Request) -> list[Fact]:
    """Sort facts by day, oldest first; within a day in the order of the sources."""
    place = {source.id: number for number, source in enumerate(request.work.prepared.sources)}
    last = len(place)
    return sorted(facts, key=lambda f: (f.day, min(place.get(i, last) for i in f.sources), f.rank, f.text))


def _text(statements: Sequence[tuple[date, str]]) -> str:
    """Lay out statements: a heading per day, one statement per line."""
    lines: list[str] = []
    day = None
    for when, text in statements:
        if when != day:
            day = when
            lines.append(f"[{spell(day)}]")
        lines.append(text)
    return "\n".join(lines)


def _written(facts: Sequence[Fact], request: Request) -> DistilledText:
    """Return the text of the facts that fit, must-keep facts first; no statement is cut."""
    unique: dict[str, Fact] = {}
    for fact in facts:
        known = unique.get(fact.text)
        ids = dict.fromkeys((*(known.sources if known else ()), *fact.sources))
        unique[fact.text] = replace(known or fact, sources=tuple(ids))
    kept = _keep_required(list(unique.values()), request)
    quoted = [(fact, ProbedLines(fact.text)) for fact in kept if fact.text not in unique]
    others = [
        fact
        for fact in unique.values()
        if fact not in kept and not any(_same(fact, quote) and own.answer(tokenize(fact.text)) for quote, own in quoted)
    ]
    ranked = [*kept, *sorted(others, key=lambda fact: (fact.rank, fact.day, fact.text))]

    def draw(number: int) -> tuple[str, list[Fact]]:
        chosen = _ordered(ranked[:number], request)
        return _text([(fact.day, fact.text) for fact in chosen]), chosen

    fits, beyond = 0, len(ranked) + 1
    while beyond - fits > 1:
        middle = (fits + beyond) // 2
        if request.count(draw(middle)[0]) <= request.output_tokens:
            fits = middle
        else:
            beyond = middle
    text, chosen = draw(fits)
    contents = {source.id: source for source in request.work.sources}
    stated = frozenset(source_id for fact in chosen for source_id in fact.sources)
    fates = fates_of(request.work.prepared, text, stated)
    return DistilledText(text, [_statement(fact, contents) for fact in chosen], fates=fates)


def _same(fact: Fact, quote: Fact) -> bool:
    """Whether a statement is based on nothing but the entry that is quoted."""
    return set(fact.sources) <= set(quote.sources)


def _keep_required(facts: Sequence[Fact], request: Request) -> list[Fact]:
    """Return the facts that hold must-keep items, declared ones first; items that the model left out are quoted."""
    sources = {source.id: source for source in request.work.prepared.sources}
    lines = [(fact, ProbedLines(fact.text)) for fact in facts]
    found: dict[Fact, None] = {}
    for item in sorted(request.must_keep, key=lambda item: not item.declared):
        if item.source_id not in sources:
            continue
        wanted = request.clean(" ".join(item.text.split()))
        tokens = tokenize(wanted)
        holding = next((fact for fact, own in lines if own.quotes(wanted)), None)
        if holding is None and not item.declared:
            holding = next((fact for fact, own in lines if own.answer(tokens)), None)
        if holding is None:
            source = sources[item.source_id]
            label = source.label(wanted)
            said = f"{label}: {wanted}" if label else wanted
            holding = Fact(said, day_of(source.created_at), (source.id,), 0)
        found[holding] = None
    return list(found)


def _statement(fact: Fact, contents: dict[str, Source]) -> Statement:
    newest = sorted(fact.sources, key=lambda i: (-contents[i].created_at, i))
    how: How = "shortened" if len(newest) == 1 else "merged"
    for source_id in newest:
        source = contents[source_id]
        label = source.label(source.content)
        said = fact.text.removeprefix(f"{label}: ") if label else fact.text
        if said in " ".join(source.content.split()):
            how = "quoted"
            break
    return Statement(fact.text, tuple(newest), how)
