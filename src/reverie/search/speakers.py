"""Speakers: whether a question asks for the words of the person or of the assistant in a conversation.

"What did you recommend for my knee?" asks for an answer of the assistant, and the person's own question about the knee
has more of its words. "Which song did I choose?" asks for what the person said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

ASSISTANTS = frozenset({"assistant", "ai", "model", "bot", "agent"})
PEOPLE = frozenset({"user", "human"})
_OWN_WORDS = 1 / 3
"""Weight of a question in the first person, relative to one about what the assistant said: people also ask in that way
for advice that the assistant gave them."""
_SAID = "said|told|suggested|recommended|advised|mentioned|gave|given|listed|estimated|wrote|written|proposed|explained"
_SAID += "|named|offered|warned|answered|described|planned|showed|shown|came up"
_ADVICE = "advice|suggestions?|recommendations?|answers?|tips?|estimates?|ideas?|plans?|proposals?|lists?|explanations?"
_ADVICE += "|recipes?|drafts?"
_OF_ASSISTANT = re.compile(
    rf"\b(?:did|have|had) you\b|\byou(?:'ve|'d)? (?:\w+ )?(?:{_SAID})\b|\byour (?:\w+ )?(?:{_ADVICE})\b"
    r"|\bhast du\b|\bhaben sie\b|\bdu (?:mir |uns )?(?:\w+ )?(?:gesagt|empfohlen|geraten|vorgeschlagen|genannt)\b"
    r"|\bdeine?n? (?:rat|tipps?|vorschl[aä]ge?|empfehlung(?:en)?)\b"
    r"|\bas-tu\b|\bavez-vous\b|\btu m'as\b|\btes? (?:conseils?|suggestions?|recommandations?)\b"
    r"|\bme (?:dijiste|recomendaste|sugeriste|aconsejaste|diste)\b|\btus? (?:consejos?|sugerencias?|recomendaci[oó]n)\b"
    r"|\bmi hai (?:detto|consigliato|suggerito|dato)\b|\btuoi? consigli(?:o)?\b"
    r"|\bvocê (?:me )?(?:disse|sugeriu|recomendou|deu)\b|\bheb je\b|\bjouw (?:advies|tips?)\b",
    re.IGNORECASE,
)
_OF_PERSON = re.compile(
    r"\b(?:i|i'm|i've|my|me|mine|we|our|us|ich|mein\w*|mich|mir|wir|unser\w*|je|j'ai|mon|ma|mes|moi|nous|notre|nos"
    r"|yo|mis?|nosotros|nuestr[oa]s?|io|mi[oa]|miei|noi|nostr[oa]|eu|meus?|minhas?|ik|mijn|wij|ons|onze)\b",
    re.IGNORECASE,
)


def speakers(question: str, roles: Sequence[str | None]) -> list[float]:
    """The degree, 0 to 1, to which each turn is by the speaker whom the question asks for; `roles`: of the turns."""
    if not any(roles):
        return [0.0] * len(roles)
    if _OF_ASSISTANT.search(question):
        wanted, share = ASSISTANTS, 1.0
    elif _OF_PERSON.search(question):
        wanted, share = PEOPLE, _OWN_WORDS
    else:
        return [0.0] * len(roles)
    return [share if role is not None and role.lower() in wanted else 0.0 for role in roles]
