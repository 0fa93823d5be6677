"""Languages: detection, function words and stemmers.

The language of a text is recognised by its function words or its script: a few microseconds a passage, no model, the
same answer on every machine. A text without such evidence counts as English. Function words are written without
accents, as `fold` leaves them.
"""

from __future__ import annotations

import re
import threading
import unicodedata
from collections.abc import Callable
from functools import lru_cache
from types import MappingProxyType

import Stemmer

ENGLISH = "english"

_FUNCTION_WORDS = {
    "english": """
        a an the this that these those some any each every either neither both all such same other another i me
        my mine myself you your yours yourself yourselves he him his himself she her hers herself it its itself
        we us our ours ourselves they them their theirs themselves one ones what when where who whom whose which
        why how whether is am are was were be been being isnt arent wasnt werent im youre hes shes theyre thats
        whats whos wheres heres theres lets do does did doing done dont doesnt didnt have has had having havent
        hasnt hadnt ive youve weve theyve will would shall should can could might must cannot cant couldnt wont
        wouldnt shouldnt youll itll theyll id youd hed theyd of to in on at for from by with about into onto
        upon over under than then as if so but and or nor not no out up down off again once here there too very
        just also only even still yet ever more most much many because while until during before after between
        through against""",
    "german": """
        der die das den dem des ein eine einen einem einer eines kein keine keinen ich mich mir mein meine
        meinen meinem meiner du dich dir dein deine deinen er ihn ihm sein seine seinen sie ihr ihre ihren ihnen
        es wir uns unser unsere unseren unserem euch euer man wer wen wem wessen was wann wo woher wohin womit
        wogegen wofur warum weshalb wieso wie wieviel viel viele welche welcher welches welchen welchem ist sind
        war waren bin bist sei gewesen werden wird wurde wurden worden hat haben hatte hatten habe hast kann
        konnen konnte muss mussen soll sollen will wollen darf durfen mochte und oder aber doch denn weil dass
        ob wenn als auch noch nur schon sehr nicht nichts mit ohne bei beim nach von vom vor aus auf an am im in
        ins zu zum zur uber unter um fur gegen durch bis seit ab jetzt nun hier da dort dann immer so zwischen
        wahrend""",
    "french": """
        le la les l un une des du de d au aux ce cet cette ces mon ma mes ton ta tes son sa ses notre nos votre
        vos leur leurs je j tu il elle on nous vous ils elles me m te t se s lui y en qui que qu quoi dont ou
        quand comment pourquoi combien quel quelle quels quelles est sont etait etaient suis es sommes etes ete
        etre sera seront a as ai avons avez ont avait avaient avoir fait font et mais donc or ni car si ne n pas
        plus moins tres aussi encore deja avec sans sous sur dans par pour entre vers chez depuis pendant apres
        avant c ca cela""",
    "spanish": """
        el la los las lo un una unos unas de del al a en con sin por para sobre entre hasta desde hacia segun y
        e o u pero sino porque que si no ni como cuando donde adonde quien quienes cual cuales cuanto cuanta
        cuantos cuantas yo tu usted el ella nosotros ellos ellas me te se nos os le les mi mis tus su sus
        nuestro nuestra nuestros este esta estos estas ese esa esos eso esto aquel es son era eran fue fueron
        soy eres somos ser sido esta estan estaba estoy hay ha han he has hemos habia muy mas menos tambien ya
        aun cada todo toda todos todas ahora""",
    "italian": """
        il lo la i gli le l un uno una di del dello della dei degli delle d a al allo alla ai agli alle da dal
        dalla dai in nel nello nella nei nelle con su sul sulla sui per tra fra e ed o ma se che chi cui non
        come quando dove perche quanto quanta quanti quante quale quali cosa io tu lui lei noi voi loro mi ti si
        ci vi mio mia miei mie tuo tua suo sua suoi nostro nostra questo questa questi quello quella e sono era
        erano sei siamo essere stato stata stati ho hai ha abbiamo hanno aveva piu meno molto anche ancora gia
        ora adesso c qual devo deve puo""",
    "portuguese": """
        o a os as um uma uns umas de do da dos das em no na nos nas num numa por pelo pela para com sem sobre
        entre ate desde e ou mas se que quem qual quais quando onde como porque quanto quanta quantos quantas eu
        tu ele ela nos eles elas voce voces me te se lhe meu minha meus minhas teu tua seu sua seus suas nosso
        nossa este esta esse essa isto isso aquele e sao era eram foi foram ser sido esta estao estava tem tinha
        ha mais menos muito tambem ja ainda nao agora ao aos as""",
    "dutch": """
        de het een der den dit dat deze die ik mij me mijn jij je jou jouw u uw hij hem zijn zij ze haar wij we
        ons onze jullie hun hen wie wat wanneer waar waarom waarvoor waarmee waarheen hoe hoeveel welke welk is
        zijn was waren ben bent geweest wordt worden werd heeft hebben had hadden heb kan kunnen moet moeten mag
        wil zal zullen en of maar want omdat als dan ook nog maar niet geen met zonder bij naar van voor uit op
        aan in te tot om over onder door tussen tegen sinds nu hier daar er al zo zeer""",
    "swedish": """
        den det de en ett jag mig min mitt mina du dig din ditt dina han honom hans hon henne hennes vi oss var
        vart vara ni er dem deras vem vad nar var vart varfor hur vilken vilket vilka ar var varit blir blev har
        hade kan kunde ska skall skulle maste vill far och eller men att som om inte ocksa med utan hos till
        fran av for pa i ur over under mellan mot efter innan nu har dar mycket manga mer hur""",
    "danish": """
        den det de en et jeg mig min mit mine du dig din dit han ham hans hun hende vi os vores i jer dem deres
        hvem hvad hvornar hvor hvorfor hvordan hvilken hvilket hvilke er var vaeret bliver blev har havde kan
        kunne skal skulle ma vil og eller men at som om ikke ogsa med uden hos til fra af for pa over under
        mellem mod efter nu her der meget mange mer ikkje ikke hva nar hvilken""",
    "finnish": """
        mina sina han me te he se ne tama nama tuo nuo joka jotka kuka mika mita milloin missa mihin mista miksi
        miten kuinka paljon onko on ovat oli olivat olen olet olemme olla ollut ei en et emme eivat ja tai mutta
        koska etta jos kun kuin myos viela jo vain nyt tassa siella kanssa ilman""",
    "polish": """
        i oraz lub albo ale czy ze bo gdyz jak kiedy gdzie dokad skad dlaczego kto kogo komu kim co czego czemu
        jaki jaka jakie jakiej ktory ktora ktore ktorej ile ja mnie mi moj moja moje ty ciebie ci twoj on jego
        jemu ona jej my nas nam nasz wy was oni ich im sie to ten ta te tego tej tym jest sa byl byla bylo byli
        byc bedzie bede mam masz ma mamy maja mial nie tak tez juz jeszcze tylko bardzo w we z ze na do od po za
        przed przez pod nad u o dla bez przy teraz""",
    "czech": """
        a i nebo ale ze protoze jak kdy kde kam proc kdo koho komu co ceho jaky jaka jake ktery ktera ktere
        kolik ja me mi muj moje ty te ti tvuj on jeho ona jeji my nas nam nas vy vas oni jich se si to ten ta
        toho tomu je jsou byl byla bylo byt bude jsem jsi jsme mam ma mame ne tak uz jeste jen velmi v ve s z na
        do od po za pred pod nad u o pro bez pri""",
    "romanian": """
        un o niste al a ai ale lui cel cea cei cele si sau dar ca sa daca nu mai eu tu el ea noi voi ei ele ma
        te se ne va imi iti isi meu mea mei mele tau ta sau este sunt era erau fost fi am are au avem aveti cine
        ce cand unde cum cat cata cati cate care de la in din pe cu fara pentru prin despre intre pana dupa
        acest aceasta acum foarte""",
    "hungarian": """
        a az egy es vagy de hogy mert ha nem is csak mar meg en te o mi ti ok engem neked nekem az ez ezt azt ki
        kinek mi mit mikor hol hova honnan miert hogyan mennyi hany melyik van vannak volt voltak lesz lenni""",
    "turkish": """
        bir ve veya ama fakat ile icin gibi kadar ben beni benim bana sen seni senin sana o onu onun ona biz
        bizim bize siz sizin onlar bu su ne neyi neye nerede nereye nereden nicin neden niye nasil kim kimi
        kimin kime kimde hangi kac mi mu var yok degil daha cok en de da ki her simdi ise olarak olan""",
    "indonesian": """
        yang dan di ke dari untuk pada dengan ini itu adalah tidak akan sudah telah belum saya aku kamu anda dia
        kami kita mereka apa siapa kapan mana bagaimana mengapa kenapa berapa atau tetapi juga karena jika oleh
        dalam bisa""",
    "russian": """
        и в во не что он на я с со как а то все она так его но да ты к у же вы за бы по только ее ему было вот
        от меня еще нет о из ему теперь когда даже ну вдруг ли если уже или ни быть был него до вас нибудь опять
        уж вам ведь там потом себя ничего ей может они тут где есть надо ней для мы тебя их чем была сам чтоб
        без будто чего раз тоже себе под будет кто этот того потому этого какой какая какое какие какую каком
        совсем ним здесь этом один почти мой моя мое мои тем чтобы нее были куда зачем всех при два об другой
        хоть после над больше тот через эти нас про них много мне сколько наш наша наши это этой кого кому чей""",
    "greek": """
        ο η το οι τα του της των τον την στο στη στην στον στα και η αλλα γιατι οτι πως που ποτε πωσ τι ποιος
        ποια ποιο ποσο ποσα ειναι ηταν εχω εχει εχουν ειχε θα να δεν μη με σε απο για ως μου σου μας σας τους
        εγω εσυ αυτος αυτη αυτο""",
    "arabic": """
        في من على إلى الى عن مع هو هي هم هن أنا انا أنت نحن هذا هذه ذلك تلك التي الذي الذين ما ماذا متى أين اين
        كيف لماذا كم هل عند عندما قد كان كانت يكون ليس لا لم لن و أو او ثم أن ان إن كل بعد قبل بين حتى الآن الان
        أي اي له لها لدي لديها لديه""",
    "hindi": """
        का की के को में से पर ने और या है हैं था थी थे हो होगा होगी होंगे हूँ मैं मुझे मेरा मेरी मेरे तुम आप वह
        यह वे ये हम हमारा हमारी हमारे उस इस उसका उसकी इसका क्या कब कहाँ कहां कौन किस किसके किसको किसने क्यों
        कैसे कितना कितनी कितने कौनसा नहीं भी ही तो जी एक लिए साथ पास तक अब अगर लेकिन जाएगा जाएगी जाएंगे रहा रही
        रहे चीज""",
}

_STEMMED = frozenset(Stemmer.algorithms())
_SCRIPTS = (
    ("russian", re.compile("[\u0400-\u04ff]")),
    ("arabic", re.compile("[\u0600-\u06ff]")),
    ("hindi", re.compile("[\u0900-\u097f]")),
    ("greek", re.compile("[\u0370-\u03ff]")),
)
_BEYOND_LATIN = frozenset(name for name, _ in _SCRIPTS)
_LETTERS = re.compile(r"[^\W\d_]{2,}")
_OWN_LETTERS = {
    name: frozenset(letters)
    for name, letters in {
        "german": "ßäöü",
        "french": "œùû",
        "spanish": "ñ¿¡",
        "portuguese": "ãõ",
        "swedish": "åäö",
        "danish": "åæø",
        "polish": "łążęśćźń",
        "czech": "řěůž",
        "romanian": "țșă",
        "hungarian": "őű",
        "turkish": "ışğçüö",
    }.items()
}
"""Letters that hint at a language; each counts like one of its function words."""
_MARKS = re.compile("[\u0300-\u036f\u064b-\u065f\u0670\u0591-\u05c7]+")
_EXTRA = str.maketrans({"ı": "i", "ł": "l", "ø": "o", "æ": "ae", "œ": "oe", "đ": "d", "ß": "ss", "’": "'"})


def fold(text: str) -> str:
    """Lower case, compatibility forms folded, accents of Latin, Greek, Cyrillic, Arabic and Hebrew letters removed.

    The vowel signs of Indic scripts stay: without them different words become one.
    """
    if text.isascii():
        return text.lower()
    bare = _MARKS.sub("", unicodedata.normalize("NFKD", text.lower()))
    return unicodedata.normalize("NFKC", bare).translate(_EXTRA)


FUNCTION_WORDS = MappingProxyType(
    {name: frozenset(fold(word) for word in words.split()) for name, words in _FUNCTION_WORDS.items()}
)
"""Words too common to distinguish entries, by language; left out of index and question alike."""

LATIN = tuple(name for name in FUNCTION_WORDS if name not in _BEYOND_LATIN)
_OTHERS = (
    frozenset(word for name in LATIN[1:] for word in FUNCTION_WORDS[name] if len(word) > 1) - FUNCTION_WORDS[ENGLISH]
)


def detect(text: str) -> str:
    """The language of a text; English when nothing indicates another."""
    return guess(text)[0]


def guess(text: str) -> tuple[str, bool]:
    """The language of a text, and whether the text shows it."""
    if text.isascii():
        shown: dict[str, int] = {}
        words = set(text.lower().split())
        if words.isdisjoint(_OTHERS):  # nearly every English text ends here
            return ENGLISH, not words.isdisjoint(FUNCTION_WORDS[ENGLISH])
    else:
        for name, letters in _SCRIPTS:
            if letters.search(text) and len(letters.findall(text)) * 3 > len(text):
                return name, True
        lowered = unicodedata.normalize("NFC", text.lower())
        there = set(lowered)
        shown = {name: 2 * len(letters & there) for name, letters in _OWN_LETTERS.items()}
        text = fold(text)
    words = set(_LETTERS.findall(text.lower()))
    english = len(words & FUNCTION_WORDS[ENGLISH])
    foreign = words & _OTHERS
    best, most = ENGLISH, 0
    for name in LATIN[1:]:
        # words that English does not have count twice: "die" or "was" alone does not make a sentence German
        votes = len(foreign & FUNCTION_WORDS[name]) + shown.get(name, 0)
        if votes and (votes := votes + len(words & FUNCTION_WORDS[name])) > most:
            best, most = name, votes
    # one word of another language next to an English one shows nothing: "300 requests a minute per key" is not Italian
    return (best, True) if most > 2 * english else (ENGLISH, english > 0)


_local = threading.local()


def stemmer(language: str) -> Callable[[str], str]:
    """The Snowball stemmer of a language, one per thread. For a language without one, words stay as they are."""
    held: dict[str, Callable[[str], str]] | None = getattr(_local, "stemmers", None)
    if held is None:
        held = _local.stemmers = {}
    if language not in held:
        # without its own cache, which takes longer than the stemming: `stem` has one
        held[language] = Stemmer.Stemmer(language, 0).stemWord if language in _STEMMED else str
    return held[language]


@lru_cache(maxsize=1 << 16)
def stem(word: str, language: str = ENGLISH) -> str:
    """The stem of a lower-case word, without accents. Irregular English forms share the stem of their base form."""
    if language == ENGLISH:
        word = fold(word)
        word = IRREGULAR.get(word, word)
        if len(word) <= 2 or not (word.isascii() and word.isalpha()):
            return word
    return fold(stemmer(language)(word))


_IRREGULAR_FORMS = """
arise arose arisen; awake awoke awoken; beat beaten; become became; begin began begun; bend bent;
bite bitten; bleed bled; blow blew blown; break broke broken; breed bred; bring brought; build built;
burn burnt; buy bought; catch caught; choose chose chosen; cling clung; come came; creep crept; deal dealt;
dig dug; draw drew drawn; dream dreamt; drink drank drunk; drive drove driven; eat ate eaten;
fall fell fallen; feed fed; feel felt; fight fought; find found; flee fled; fly flew flown;
forbid forbade forbidden; forget forgot forgotten; forgive forgave forgiven; freeze froze frozen;
get got gotten; give gave given; go went gone; grow grew grown; hang hung; hear heard; hide hid hidden;
hold held; keep kept; kneel knelt; know knew known; lay laid; lead led; lean leant; leap leapt;
learn learnt; leave left; lend lent; lie lain; light lit; lose lost; make made; mean meant; meet met;
mistake mistook mistaken; overcome overcame; pay paid; ride rode ridden; ring rang rung; rise risen;
run ran; say said; see saw seen; seek sought; sell sold; send sent; sew sewn; shake shook shaken;
shine shone; shoot shot; show shown; shrink shrank shrunk; sing sang sung; sink sank sunk; sit sat;
sleep slept; slide slid; speak spoke spoken; spell spelt; spend spent; spin spun; spoil spoilt;
stand stood; steal stole stolen; stick stuck; sting stung; strike struck; swear swore sworn; sweep swept;
swell swollen; swim swam swum; swing swung; take took taken; teach taught; tear tore torn; tell told;
think thought; throw threw thrown; understand understood; wake woke woken; wear wore worn;
weave wove woven; weep wept; win won; withdraw withdrew withdrawn; write wrote written; child children;
person people; man men; woman women; foot feet; tooth teeth; goose geese; mouse mice; wife wives;
life lives; knife knives; leaf leaves; shelf shelves; wolf wolves; half halves; thief thieves; loaf loaves
"""

IRREGULAR = MappingProxyType(
    {form: forms[0] for forms in (group.split() for group in _IRREGULAR_FORMS.split(";")) for form in forms[1:]}
)
