"""Memories and questions as agents write and ask them, made from a seed: the same for every peer and every run.

About 20 words and 120 characters to an entry. Names, projects and things repeat as they do in real work, so a word of
a question is in some hundreds to some thousands of 100,000 entries.
"""

from __future__ import annotations

import random
from importlib import resources
from itertools import accumulate


def _words(text: str) -> list[str]:
    return text.split()


_NAMES = _words("""Amara Bruno Chiara Dmitri Elena Farid Greta Hiro Ines Jonas Kavya Lars Mina Noor Oskar Priya Quentin Rosa
Stefan Tariq Uma Viktor Wanda Xenia Yusuf Zoe Anton Bela Carmen Dario Esther Felix Gitta Hassan Irena Jamal Katya Luis
Marta Nils Olga Pedro Ruth Samir Tessa Ugo Vera Wim Yara Zeno""")
_PROJECTS = _words("""atlas beacon cobalt delta ember falcon granite harbor indigo juniper kestrel lantern meadow nimbus onyx
pioneer quartz raven saffron tundra umbra velvet willow yonder zephyr acorn birch cinder dune estuary fjord glacier
heron isthmus jasper kelp lagoon marble nectar orchard""")
_THINGS = _words("""invoice dashboard deployment migration contract newsletter calendar warehouse payment onboarding backup
certificate checkout translation survey prototype replica firewall budget inventory webhook scheduler report pipeline
handbook licence shipment interview benchmark notebook refund subscription archive keyboard greenhouse thermostat
bicycle apartment passport recipe""")
_PLACES = _words("""Lisbon Kassel Nairobi Osaka Tallinn Bogota Turin Leeds Zagreb Hanoi Cork Malmo Porto Graz Ghent Riga
Basel Lyon Oslo Split""")
_TOOLS = _words("""Postgres Grafana Terraform Figma Slack Jira Redis Kafka Docker Excel Notion Ansible Sentry Airflow Vault
Nginx Django Kotlin Blender Stripe""")
_MOODS = _words("""worried delighted undecided relieved sceptical confident annoyed curious tired hopeful""")
_DAYS = _words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")

_MEMORIES = (
    "{name} prefers {tool} over {tool2} for the {project} {thing}, because the old {thing2} broke twice in {place}.",
    "Decided with {name}: the {thing} of {project} moves to {tool} on {day}, {name2} reviews it before noon, ticket {n}.",
    "{name} is {mood} about the {thing} for {project}; the last {thing2} took {n} minutes longer than {name2} promised.",
    "The {project} {thing} failed in {place} with error {n}; restarting {tool} fixed it, root cause still unknown to {name}.",
    "Customer {name} from {place} asked again about the {thing} refund of {n} euros and wants an answer by {day}.",
    "Remember to send {name} the {thing} template before the {project} call on {day}; {name2} has the newest copy.",
    "{name} lives in {place}, works with {tool} on {project}, and never takes meetings about the {thing} on {day}.",
    "Budget for the {project} {thing} is {n} euros; {name} approved it, {name2} still wants the {thing2} cut by half.",
    "Learned today that {tool} keeps {n} days of {thing} history, so the {project} {thing2} can be rebuilt from it.",
    "{name} said the {place} office will close its {thing} on {day}; the {project} {thing2} must be moved before then.",
    "Do not touch the {thing} settings of {project} without {name}; {name2} lost {n} records in {tool} that way.",
    "Idea from {name}: replace the weekly {thing} mail of {project} with a {tool} {thing2} that {name2} can filter.",
)
_QUESTIONS = (
    "What does {name} prefer for the {project} {thing}?",
    "When does the {thing} of {project} move to {tool}?",
    "Why did the {project} {thing} fail in {place}?",
    "Who approved the budget for the {project} {thing}?",
    "How is {name} feeling about the {thing} for {project}?",
    "What must be sent to {name} before the call on {day}?",
    "Where does {name} live and which tool does {name} use?",
    "What did {name2} say about the {place} office and its {thing}?",
)


def memories(count: int, *, seed: int = 1) -> list[str]:
    """`count` entries."""
    rng = random.Random(seed)
    return [_fill(rng, _MEMORIES) for _ in range(count)]


def questions(count: int, *, seed: int = 2) -> list[str]:
    """`count` questions about what the entries speak of."""
    rng = random.Random(seed)
    return [_fill(rng, _QUESTIONS) for _ in range(count)]


def _fill(rng: random.Random, templates: tuple[str, ...]) -> str:
    return rng.choice(templates).format(
        name=rng.choice(_NAMES),
        name2=rng.choice(_NAMES),
        project=rng.choice(_PROJECTS),
        thing=rng.choice(_THINGS),
        thing2=rng.choice(_THINGS),
        place=rng.choice(_PLACES),
        tool=rng.choice(_TOOLS),
        tool2=rng.choice(_TOOLS),
        mood=rng.choice(_MOODS),
        day=rng.choice(_DAYS),
        n=rng.randrange(100, 100_000),
    )


def rare(count: int, *, seed: int = 1) -> list[str]:
    """`count` entries of 240 characters with a large vocabulary: 28,000 words by Zipf's law, from the hundredth on."""
    rng = random.Random(seed)
    words = _vocabulary(28_000)
    weights = list(accumulate(1 / (rank + 100) for rank in range(len(words))))
    return [" ".join(rng.choices(words, cum_weights=weights, k=36))[:239] + "." for _ in range(count)]


def rare_questions(texts: list[str], count: int, *, seed: int = 2) -> list[str]:
    """Questions with four words of one of the texts each."""
    rng = random.Random(seed)
    return [f"What about {' '.join(rng.sample(rng.choice(texts).split()[:-1], 4))}?" for _ in range(count)]


def _vocabulary(size: int) -> list[str]:
    lines = resources.files("reverie.search").joinpath("lexicon.txt").read_text("utf-8").splitlines()
    words = dict.fromkeys(line.split(" ", 1)[0] for line in lines)
    rng = random.Random(7)
    parts = _words("ba de ki lo mu ra se ti vo za pen gor lin mar tus")
    while len(words) < size:
        words["".join(rng.choices(parts, k=4))] = None
    found = list(words)[:size]
    rng.shuffle(found)
    return found
