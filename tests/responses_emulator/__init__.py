"""A strict provider of `/v1/responses` on a real socket, for tests and benchmarks.

It refuses what the real one refuses, in its words: unknown parameters, ids of things it never stored, calls without
outputs, payloads that are altered or of another account, input beyond the context. The model behind it is scripted and
remembers: what went into a compaction payload counts as known as long as that payload is in the prompt.
"""

from tests.responses_emulator.model import Model, Output, Turn, call, message, talker, thought, worker
from tests.responses_emulator.provider import MODEL, MODELS, Provider
from tests.responses_emulator.rules import Refused
from tests.responses_emulator.server import (
    NOT_FOUND,
    Bare,
    Cut,
    Drop,
    Emulator,
    Fail,
    Fault,
    Overflow,
    Raw,
    Seen,
    Slow,
    Stall,
    Twist,
    empty_output,
    no_compaction,
    quota,
)

__all__ = [
    "MODEL",
    "MODELS",
    "NOT_FOUND",
    "Bare",
    "Cut",
    "Drop",
    "Emulator",
    "Fail",
    "Fault",
    "Model",
    "Output",
    "Overflow",
    "Provider",
    "Raw",
    "Refused",
    "Seen",
    "Slow",
    "Stall",
    "Turn",
    "Twist",
    "call",
    "empty_output",
    "message",
    "no_compaction",
    "quota",
    "talker",
    "thought",
    "worker",
]
