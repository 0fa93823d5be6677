"""Word lists of the model-free distiller, all English.

Text in other languages loses nothing: a word on no list counts as content, so such a text is quoted
instead of shortened.
"""

from __future__ import annotations


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


NEGATIONS = word_set(
    "no nope nah not never none nobody nothing nowhere neither nor cannot without hardly barely"
    " cant wont dont doesnt didnt isnt arent wasnt werent hasnt havent hadnt couldnt wouldnt shouldnt"
)

ARTICLES = word_set("a an the")

CONJUNCTIONS = word_set("and but or so plus then also though although yet because since while whereas as")

PRONOUNS = word_set(
    "i me my mine myself you your yours yourself he him his himself she her hers herself it its itself"
    " we us our ours ourselves they them their theirs themselves this that these those there here"
    " who whom whose which what someone something anyone anything everyone everything one ones"
)

FUNCTION = (
    ARTICLES
    | CONJUNCTIONS
    | PRONOUNS
    | word_set(
        "am is are was were be been being do does did done doing have has had having will would shall should"
        " can could may might must ought of to in on at by for with from into onto about over under after"
        " before between through during against within upon off up down out if than when where why how"
        " not no nor too very just only even still again ever own same such each every both either any some"
        " all more most much many few less least other another else let s t ll re ve m d i'm i've i'd i'll"
        " it's that's there's what's he's she's we're we've we'll you're you've you'll you'd they're"
        " they've they'll let's don't doesn't didn't isn't aren't wasn't weren't can't couldn't won't"
        " wouldn't shouldn't haven't hasn't hadn't who's here's how's where's gonna wanna gotta got get"
        " gets getting go goes going went like"
    )
)

# Words that open, answer or close a turn and carry no information.
INTERJECTIONS = word_set(
    "hey hi hello hiya howdy wow whoa woah woo woohoo yay oh ooh ah aw aww awww haha hahaha lol yeah yep"
    " yup yes ya nope nah sure ok okay alright right thanks thank thx ty please bye goodbye cheers congrats"
    " congratulations kudos hmm hm um uh er mmm ugh oof well anyway anyways btw fyi gosh omg yikes oops phew"
    " absolutely definitely totally exactly indeed agreed same true cool nice great awesome amazing sweet"
    " lovely wonderful fantastic perfect good morning evening afternoon"
)

# Words that only change the intensity.
INTENSIFIERS = word_set(
    "really very super totally absolutely definitely truly actually basically literally simply quite"
    " extremely incredibly honestly certainly completely seriously pretty just"
)

# Words in which two wordings of one statement may differ, unlike before and after, on and off, he and she, in and on.
HARMLESS = ARTICLES | INTENSIFIERS | word_set("i and but so also then though is are am please")

# The same at the beginning of a sentence, before a mark or a word of grammar: "Glad that ...", but not "Great aunt".
OPENING = INTERJECTIONS - word_set("right same true sure no nope nah morning evening afternoon") | word_set(
    "happy glad excited exciting thrilled thankful grateful lucky blessed beautiful incredible stunning gorgeous"
    " excellent brilliant"
)

# Judgements and moods: kept inside a statement, but no reason to keep it.
EVALUATIVE = word_set(
    "good great nice cool awesome amazing wonderful fantastic lovely beautiful incredible stunning"
    " gorgeous perfect excellent brilliant sweet fun happy glad excited exciting thrilled proud thankful"
    " grateful lucky blessed special best better love loved loving enjoy enjoyed awesome inspiring"
    " inspired interesting impressive inspirational powerful rewarding fulfilling satisfying meaningful"
    " important key vital tough hard difficult easy crazy wild big huge little lot lots bit ton tons bunch"
    " feel feels feeling felt seem seems sound sounds sounded look looks looking looked hear hearing heard"
    " know knew think thinking thought guess believe hope hoping wish mean means understand see seeing"
    " saw seen say said tell told talk talking ask asking asked thing things stuff way ways time times"
    " day days moment moments everything something anything people person life world make makes making"
    " made take takes taking took keep keeps keeping kept come comes coming came give gives giving gave"
    " want wanted need needed try trying tried want help helps helping helped super sure able awe joy"
    " wait forward chat catch soon later always never forget remember share sharing shared check pic"
    " pics photo picture thanks thank yeah wow hey experience journey support true real kind sort place"
    " whole new old long short small far away back together around really totally definitely"
    " reminder remind reminds reminded matter matters worth difference appreciate congrats luck vibe vibes"
    " touching stoked pumped blast treat bet guys folks glad happiness cute adorable delicious yummy tasty"
)

# Interjections that may be left out even without a comma after them ("Yeah I painted that").
OPENERS = word_set("yeah yep yes wow oh hey haha btw well ok okay hmm um")

# First words of thanks and wishes.
POLITE = word_set("thanks thank thx congrats congratulations kudos cheers welcome")

# A clause with one of these qualifies the other clauses.
CONDITIONS = word_set("if unless until except only maybe perhaps probably possibly might allegedly supposedly")

FIRST_PERSON = word_set("i my i'm i've i'd i'll me we our we're we've we'll us")
SECOND_PERSON = word_set("you your you're you've you'll you'd yours")

# A statement that opens with one of these depends on the one before it.
VAGUE = word_set("it it's its this that that's these those they they're he she he's she's")

# Those of them that may also precede a noun ("this book").
POINTING = word_set("its this that these those")

# A clause that opens with one of these depends on the clause before it.
BOUND = word_set("because since when if that which who whose where while than until unless as to")

NUMBERS = word_set("one two three four five six seven eight nine ten eleven twelve")

ABBREVIATIONS = word_set(
    "dr mr mrs ms st jr sr prof inc ltd co corp no nos vol fig vs etc approx dept est gen rep sen gov ave"
    " jan feb mar apr jun jul aug sep sept oct nov dec mon tue wed thu fri sat sun eg ie al cf ext tel incl"
    " excl resp ca max min avg usw bzw inkl exkl zzgl ggf evtl vgl abs kl klo godz ul núm pág tél str nr bspw sog"
)

MONTH_NAMES = word_set("january february march april may june july august september october november december")
