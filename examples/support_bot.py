"""A support bot that remembers its customers: what it knows goes into the prompt, what it learns is stored.

    python examples/support_bot.py ./memory

The model is a function of prompt and question; replace `canned` by your own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

import reverie

Model = Callable[[str, str], str]


def canned(prompt: str, question: str) -> str:
    """Stand in for a model, so that the example runs offline: repeat the last known preference."""
    known = [line for line in prompt.splitlines() if "prefers" in line]
    return f"As you asked: {known[-1].strip()}" if known else f"I will find out: {question}"


def turn(customer: reverie.Ref, question: str, model: Model = canned) -> str:
    """One turn: recall within a budget, answer, remember both sides under the customer's name."""
    context = customer.context(question, budget=500)
    answer = model(context.text, question)
    customer.put(question, kind="message", subject=customer.name, tags=["asked"])
    customer.put(answer, kind="message", subject=customer.name, tags=["answered"])
    return answer


def main(folder: str) -> list[str]:
    with reverie.open(folder) as memory:
        customer = memory.ref("customers/ana")
        said = [turn(customer, "My parcel has not arrived yet.")]
        customer.put("Ana prefers e-mail to phone calls.", subject="customers/ana", tags=["preference"])
        said.append(turn(customer, "Will you call me, or write an e-mail?"))
        forgotten = memory.forget("customers/ana")  # she leaves: everything about her is destroyed, with a proof
        said.append(f"forgot {forgotten.forgotten} memories; the log is sound: {memory.verify().ok}")
    return said


if __name__ == "__main__":
    print("\n".join(main(sys.argv[1] if len(sys.argv) > 1 else "./memory")))
