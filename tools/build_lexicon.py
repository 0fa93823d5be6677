"""Make src/reverie/search/lexicon.txt: the weights of common English words, and words of nearly the same meaning.

    python tools/build_lexicon.py TABLE           # write it
    python tools/build_lexicon.py TABLE --check   # fail when it is not what this script makes

Both are derived from a table of word-piece vectors; a list below adds everyday words that are not neighbours there.
TABLE is the first table of Reverie, with vectors of single pieces: `git show
1197d81:src/reverie/providers/static/table.npy`. The lexicon was not made again from the present table, which is trained
on sentences: its lengths mean something else. The rows of the first table were scaled by the rarity of a word, so the
length of a row gives the word's weight; rows of a similar direction are words of a similar meaning. Each line is a
word, its weight in hundredths, and words of similar meaning, up to four of them from the table.
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
GO = 45
"""The weight of the only common word of two letters that is no function word, in hundredths."""
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
    live lives lived living: move
    optician: glasses eye
    employer: company job work
    spouse: wife husband partner
    sport: football tennis swimming running gym
    pet: dog cat
    job: work
"""
"""Words, and others by which a note may say the same, but not the other way round."""
SAME = """
    mother mum mom mummy mama
    father dad daddy papa
    grandmother grandma granny gran nana
    grandfather grandpa grandad
    aunt auntie
    brother sister sibling
    husband spouse
    wife spouse
    partner boyfriend girlfriend
    fiance fiancee engaged
    child kid
    son daughter child kid
    baby infant newborn toddler
    teenager teen adolescent
    married marriage wedding marry
    divorced divorce separated
    pregnant pregnancy expecting
    funeral burial buried
    surname lastname
    neighbour neighbor
    flatmate roommate housemate
    nanny babysitter sitter childminder
    doctor gp physician
    paediatrician pediatrician
    hospital clinic ward
    medicine medication pill tablet drug
    ill sick unwell illness sickness
    pain ache hurt sore
    injury injured hurt
    surgery operation operated surgeon
    allergic allergy intolerant intolerance
    vaccinated vaccine vaccination jab
    glasses spectacles eyeglasses
    physiotherapist physio physiotherapy
    therapist therapy counsellor
    diabetic diabetes insulin
    dentist dental tooth teeth
    vegetarian vegan meat
    weigh weight kilo kg
    coeliac celiac gluten
    lactose dairy milk
    flat apartment
    landlord landlady
    rent lease tenancy rental
    bathroom bath
    toilet loo lavatory
    fridge refrigerator
    oven stove cooker
    heating boiler heater radiator furnace
    couch sofa settee
    carpet rug
    lamp light
    password code pin passcode passphrase login credential
    combination code
    wifi wlan internet network
    cellar basement
    attic loft
    garden yard
    plumber plumbing pipe
    electrician electric wiring
    rubbish trash garbage waste bin
    mail post letter
    parcel package
    tap faucet
    cupboard cabinet closet wardrobe
    lift elevator
    colour color paint
    grey gray
    cost price fee rate charge
    pay paid payment
    salary wage earn income earnings
    bill invoice
    debt owe loan
    discount rebate reduction
    refund reimburse reimbursement
    insurance insured insurer insure
    donate donation charity
    membership member subscription
    deposit downpayment
    cheque check
    fine penalty
    job profession occupation employed
    boss manager supervisor
    employee staff worker
    colleague coworker teammate
    client customer
    supplier vendor provider
    company firm business employer
    meeting appointment
    contract agreement
    holiday vacation leave
    fired dismissed sacked
    quit resign notice
    shift rota roster
    slides presentation deck
    intern trainee apprentice apprenticeship
    training course workshop trained
    responsible charge
    lead leader head
    supervise supervisor supervises
    deadline due
    lawyer attorney solicitor
    estimate quote quotation offer
    exam test examination
    lesson class course
    university uni college
    thesis dissertation
    pupil student
    teacher teach taught
    professor lecturer
    nursery kindergarten daycare
    car vehicle automobile
    bicycle bike cycle
    plane airplane flight fly flying
    boat ship ferry
    lorry truck
    tyre tire
    petrol fuel gasoline
    license licence
    trip journey travel excursion
    luggage suitcase baggage
    hotel accommodation
    ticket fare
    dinner supper
    dish meal
    dessert pudding
    biscuit cookie
    bread loaf bakery baker
    vegetable veg greens
    aubergine eggplant
    courgette zucchini
    cook chef
    phone telephone mobile smartphone cellphone
    computer laptop pc
    email mail
    app application
    website site webpage
    database db
    bug defect error
    repository repo
    configuration config setting
    documentation docs
    tv television
    screen monitor display
    headphones earphones headset
    picture photo photograph image
    begin start
    end finish
    autumn fall
    annual yearly annually
    birthday born
    trousers pants
    jumper sweater pullover
    trainers sneakers shoes
    coat jacket
    dog puppy
    cat kitten
    vet veterinarian veterinary
    film movie
    football soccer
    novel book
    gift present
    party celebration celebrate
    sing singer choir
    run running jog
    hike hiking
    contact reach
    buy purchase bought
    sell sold
    like love enjoy prefer
    favourite favorite prefer
    dislike hate
    repair fix mend
    broken faulty defective
    lost missing lose
    store keep stored kept
    pick collect fetch
    allowed permitted permit allow
    forbidden banned prohibited
    cancel cancelled
    clean wash
    borrow lend lent
    own owner belong
    recommend suggest
    afraid fear scared
    complain complaint complained
    decide decision decided
    replace replaced change changed
    big large
    expensive costly
    rucksack backpack
    box crate carton
    address street
    live reside address
    moved relocated moving
    glue adhesive
    tool equipment
    crack fracture
    stain spot
    key keys lock
    chemist pharmacy drugstore
    shop store
    supermarket grocery groceries
    route path way
    weekly week
    daily day
    monthly month
    hourly hour
"""
"""Words of everyday life that mean the same, or nearly; not all of them are neighbours in the table of vectors."""


def related() -> dict[str, list[str]]:
    """Stems of related words, by stem."""
    found: dict[str, dict[str, None]] = {}
    for line in filter(None, map(str.strip, RELATED.splitlines())):
        words, others = line.split(": ")
        for word in words.split():
            found.setdefault(stem(word), {}).update(dict.fromkeys(map(stem, others.split())))
    for line in filter(None, map(str.strip, SAME.splitlines())):
        same = dict.fromkeys(map(stem, line.split()))
        for one in same:
            found.setdefault(one, {}).update({other: None for other in same if other != one})
    return {one: list(others) for one, others in found.items()}


def build(vectors: Path) -> str:
    rows = {
        word: row
        for word, row in StaticEmbedder()._wordpiece._rows.items()
        if len(word) > 2 and word.isascii() and word.isalpha()
    }
    words = sorted(rows)
    table = np.load(vectors)[[rows[word] for word in words]].astype(np.float64)
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
            near = list(dict.fromkeys([*more.get(stems[at], []), *near[:4]]))
            lines.append(" ".join([words[at], str(round(100 * weights[at])), *near]))
    lines.append(f"go {GO}")
    written = {word for line in (RELATED + SAME).splitlines() for word in line.replace(":", "").split()}
    lines += [" ".join([word, "100", *more[stem(word)]]) for word in sorted(written.difference(words))]
    return "\n".join(sorted(lines, key=lambda line: line.partition(" ")[0])) + "\n"


if __name__ == "__main__":
    made = build(Path(sys.argv[1]))
    if "--check" in sys.argv:
        sys.exit(0 if TARGET.read_text(encoding="utf-8") == made else "lexicon.txt: run tools/build_lexicon.py")
    TARGET.write_text(made, encoding="utf-8")
    print(f"{len(made.splitlines())} words, {len(made) // 1024} KiB")
