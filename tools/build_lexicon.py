"""Make src/reverie/search/lexicon.txt: how much common English words tell, and which words mean nearly the same.

    python tools/build_lexicon.py           # write it
    python tools/build_lexicon.py --check   # fail when it is not what this script makes

Both are read off the embedding table that comes with Reverie; a list below adds everyday words that are no neighbours
there. The rows of the table were scaled by how rare a word is, so the length of a row says how much the word tells;
rows of a similar direction are words of a similar meaning. One line a word: the word, its weight in hundredths, and
words of similar meaning, up to four of them from the table.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from reverie.providers.static import StaticEmbedder
from reverie.search.languages import FUNCTION_WORDS, stem

TARGET = Path(__file__).parent.parent / "src" / "reverie" / "search" / "lexicon.txt"
LEAST, MOST = 30.0, 150.0
"""Lengths of rows that make a weight of 0 and of 1."""
FLOOR = 0.35
ALIKE = 0.65
"""The cosine from which two words count as similar."""
APART = frozenset(
    [
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
        "weekday",
        "weekend",
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "one",
        "two",
        "three",
        "four",
        "five",
        "six",
        "seven",
        "eight",
        "nine",
        "ten",
        "eleven",
        "twelve",
        "hundred",
        "thousand",
        "million",
        "first",
        "second",
        "third",
        "fourth",
        "fifth",
        "red",
        "blue",
        "green",
        "yellow",
        "black",
        "white",
        "orange",
        "purple",
        "brown",
        "pink",
        "grey",
        "gray",
        "north",
        "south",
        "east",
        "west",
        "northern",
        "southern",
        "eastern",
        "western",
        "left",
        "right",
        "morning",
        "evening",
        "afternoon",
        "night",
        "breakfast",
        "lunch",
        "dinner",
        "spring",
        "summer",
        "autumn",
        "winter",
        "mother",
        "father",
        "brother",
        "sister",
        "son",
        "daughter",
        "husband",
        "wife",
        "he",
        "she",
        "man",
        "woman",
        "boy",
        "girl",
        "yesterday",
        "today",
        "tomorrow",
        "day",
        "week",
        "month",
        "year",
        "hour",
        "minute",
        "before",
        "after",
        "open",
        "close",
        "opened",
        "closed",
        "up",
        "down",
        "buy",
        "sell",
        "hot",
        "cold",
        "win",
        "lose",
        "start",
        "end",
        "true",
        "false",
        "good",
        "bad",
    ]
)
"""Words of a similar direction that tell different things apart."""


RELATED = """
    live lives lived living: move reside relocate address
    boss: manager supervisor
    manager: boss supervisor
    gp: doctor physician
    doctor: gp
    veterinarian veterinary: vet
    dentist: dental tooth teeth
    optician: glasses eye
    birthday: born
    born: birthday
    bicycle bicycles: bike
    bike bikes: bicycle
    flat: apartment
    apartment: flat
    refrigerator: fridge
    fridge: refrigerator
    television: tv
    tv: television
    telephone: phone
    phone: telephone mobile
    movie movies: film
    film films: movie
    vacation: holiday
    holiday: vacation
    rubbish trash garbage: waste bin
    pharmacy: chemist drugstore
    chemist: pharmacy
    attorney solicitor: lawyer
    lawyer: attorney solicitor
    salary: wage pay income
    wage wages: salary
    cost costs: price fee
    price prices: cost fee
    spouse: wife husband partner
    kid kids: child
    child children: kid
    client clients: customer
    customer customers: client
    colleague colleagues: coworker teammate
    coworker coworkers: colleague
    ill illness: sick
    sick: ill
    purchase purchased: buy bought
    repair repaired repairs: fix mend
    fix fixed: repair mend
    employer: company job work
    provider: supplier
    supplier: provider
    couch: sofa settee
    sofa: couch settee
    lorry: truck
    luggage: suitcase baggage
"""
"""Everyday words, and words by which a note may say the same; the table of vectors does not have them as neighbours."""


def related() -> dict[str, list[str]]:
    """Stems of related words, by word."""
    found: dict[str, list[str]] = {}
    for line in filter(None, map(str.strip, RELATED.splitlines())):
        words, others = line.split(": ")
        for word in words.split():
            found[word] = [stem(other) for other in others.split()]
    return found


def build() -> str:
    embedder = StaticEmbedder()
    rows = {
        word: row
        for word, row in embedder._wordpiece._rows.items()
        if len(word) > 2 and word.isascii() and word.isalpha()
    }
    words = sorted(rows)
    table = embedder._table[[rows[word] for word in words]].astype(np.float64)
    lengths = np.sqrt((table * table).sum(axis=1))
    weights = np.clip((lengths - LEAST) / (MOST - LEAST), FLOOR, 1.0)
    unit = (table / np.maximum(lengths, 1.0)[:, None]).astype(np.float32)
    stems = [stem(word) for word in words]
    plain = [word not in APART and word not in FUNCTION_WORDS["english"] for word in words]
    more, lines = related(), []
    for start in range(0, len(words), 512):
        cosines = np.round(unit[start : start + 512] @ unit.T, 4)
        for at in range(start, min(start + 512, len(words))):
            near: list[str] = []
            if plain[at]:
                own = cosines[at - start]
                found = [other for other in np.flatnonzero(own >= ALIKE) if plain[other] and stems[other] != stems[at]]
                near = list(dict.fromkeys(stems[other] for other in sorted(found, key=lambda o: (-own[o], words[o]))))
            near = list(dict.fromkeys([*more.pop(words[at], []), *near[:4]]))
            lines.append(" ".join([words[at], str(round(100 * weights[at])), *near]))
    lines += [" ".join([word, "100", *near]) for word, near in more.items()]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    made = build()
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text(encoding="utf-8") == made else "lexicon.txt: run tools/build_lexicon.py")
    TARGET.write_text(made, encoding="utf-8")
    print(f"{len(made.splitlines())} words, {len(made) // 1024} KiB")
