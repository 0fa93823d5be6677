"""What is indexed of a text, and what is asked of the index."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reverie.search.analysis import MAX_QUERY_TERMS, MAX_TERM_LENGTH, near, query_terms, question, terms
from reverie.search.languages import FUNCTION_WORDS, IRREGULAR, detect, fold, guess, stem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The painters were painting", ["painter", "paint"]),
        ("ERR_42", ["err_42", "err", "42"]),
        ("foo_bar", ["foo_bar", "foo", "bar"]),
        ("v1.2", ["v1_2", "v1", "2"]),
        ("fooBar", ["foobar", "foo", "bar"]),
        ("HTTPServer", ["httpserver", "http", "server"]),
        ("user@example.org", ["user_example_org", "user", "exampl", "org"]),
        ("2023-05-08", ["2023_05_08", "2023", "05", "08"]),
        ("Maria's dog", ["maria", "dog"]),
        ("Maria’s dog", ["maria", "dog"]),
        ("I don't know", ["know"]),
        ("naïve Café", ["naiv", "cafe"]),
        ("L'appuntamento dal dentista è stato spostato", ["appunt", "dentist", "spost"]),
        ("Elif'in fıstığa alerjisi var", ["elif", "fistik", "alerjis"]),
        ("मूंगफली से एलर्जी", ["मूंगफल", "एलर्ज"]),
        ("牙医预约是什么时候？", ["牙医", "医预", "预约"]),
        ("Der Zahnarzttermin wurde verschoben", ["zahnarzttermin", "^zahnar", "termin^", "verschob"]),
        ("日本語", ["日本", "本語"]),
        ("猫", ["猫"]),
        ("Python入門book", ["python", "入門", "book"]),
        ("Straße ＡＢＣ", ["strass", "abc"]),
        ("end. Next", ["end", "next"]),
        ("___ !!", []),
        ("", []),
    ],
)
def test_terms(text, expected):
    assert terms(text) == expected


def test_identifiers_are_found_by_whole_and_by_part():
    indexed = set(terms("Deploy failed with ERR_42 in payment-service"))
    for asked in ("err_42", "ERR 42", "42", "payment service", "payment-service"):
        assert indexed & set(query_terms(asked)), asked


def test_a_text_of_stop_words_is_still_found():
    assert set(query_terms("to be or not to be")) & set(terms("To be, or not to be"))


def test_question_words_are_not_asked_for():
    assert query_terms("When did Maria go to the market?") == ["maria", "go", "market"]


def test_query_terms_are_unique_and_few():
    assert query_terms("red red RED") == ["red"]
    assert len(query_terms(" ".join(f"w{n}" for n in range(500)))) == MAX_QUERY_TERMS


@settings(deadline=None)
@given(st.text(max_size=200))
def test_terms_have_only_word_characters(text):
    for term in terms(text):
        assert 0 < len(term) <= MAX_TERM_LENGTH
        for character in term:
            assert character in "abcdefghijklmnopqrstuvwxyz0123456789_^" or (
                not character.isascii() and unicodedata.category(character)[0] in "LNM"
            ), (term, character)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("paint paints painted painting", "paint"),
        ("buy buys buying bought", "buy"),
        ("child children", "child"),
        ("consist consisted consistency consistent", "consist"),
        ("generous generously", "generous"),
        ("general generally", "general"),
        ("relational", "relat"),
        ("hopping hopped hop", "hop"),
        ("hoping hoped hope", "hope"),
        ("happy happiness", "happi"),
        ("cries cried cry", "cri"),
        ("ties tie tied", "tie"),
        ("skies sky", "sky"),
        ("dying", "die"),
        ("gas", "gas"),
        ("this", "this"),
        ("agreed", "agre"),
        ("feed", "feed"),
        ("playing plays", "play"),
        ("say said", "say"),
        ("a", "a"),
        ("héros", "hero"),
    ],
)
def test_stems(words, expected):
    assert {stem(word) for word in words.split()} == {expected}


def test_irregular_forms_lead_to_a_regular_word():
    assert not set(IRREGULAR.values()) & set(IRREGULAR)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("piece", ["a", "a-", "a'", "-", "aB", "日", "é", "_", "a.", "１"])
def test_hostile_length_takes_no_hostile_time(piece):
    terms(piece * (200_000 // len(piece)))


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("When is the appointment with the dentist?", "english"),
        ("Dentist Thursday 14:30", "english"),
        ("Wann ist der Zahnarzttermin?", "german"),
        ("Où se trouve le mot de passe du wifi ?", "french"),
        ("¿Cuándo tengo cita con el dentista?", "spanish"),
        ("Di quanto aumenta l'affitto?", "italian"),
        ("Quando é a consulta no dentista?", "portuguese"),
        ("Waar liggen onze sleutels?", "dutch"),
        ("Hur mycket höjs hyran?", "swedish"),
        ("Kiedy mam wizytę u dentysty?", "polish"),
        ("Когда у меня приём у стоматолога?", "russian"),
        ("Yedek anahtar alt kattaki komşuda duruyor", "turkish"),
        ("متى موعد طبيب الأسنان؟", "arabic"),
        ("किराया कितना बढ़ेगा?", "hindi"),
        ("I saw the film Die Welle on Monday", "english"),
        ("", "english"),
    ],
)
def test_the_language_of_a_text(text, language):
    assert detect(text) == language


def test_a_text_without_function_words_shows_no_language():
    assert guess("Zahnarzttermin 14:30") == ("english", False)
    assert guess("the dentist") == ("english", True)


def test_function_words_are_written_as_texts_are_folded():
    for words in FUNCTION_WORDS.values():
        assert all(fold(word) == word for word in words)


@pytest.mark.parametrize(
    ("entry", "asked"),
    [
        ("Die Wohnungsschlüssel liegen bei Frau Brandt", "Wer hat unsere Schlüssel?"),
        ("Nous avons réservé un gîte", "reservee"),
        ("Los jueves entreno con el equipo", "¿Qué día entreno?"),
        ("Машина в ремонте, меняют тормозные колодки", "Что меняют в машине?"),
        ("家賃は一月から五千円上がる", "家賃はいくら上がりますか"),
        ("Zahnarzttermin Donnerstag", "Wann ist der Zahnarzttermin?"),
    ],
)
def test_a_question_finds_an_entry_in_its_language(entry, asked):
    indexed = set(terms(entry))
    assert any(term in indexed for word in question(asked) for term, _ in word.terms)


def test_a_function_word_of_another_language_finds_nothing():
    indexed = set(terms("AWS ist zu teuer, wir ziehen zu Hetzner um"))
    assert not any(term in indexed for word in question("Wann ist der Zahnarzttermin?") for term, _ in word.terms)


@pytest.mark.parametrize(
    ("entry", "asked"),
    [
        ("The Wi-Fi at the office drops after lunch", "wifi"),
        ("wifi drops after lunch", "Wi-Fi"),
        ("Send the invoice by e-mail", "email"),
        ("Her email bounced", "e-mail"),
        ("The follow-up is on Monday", "followup"),
    ],
)
def test_a_word_is_found_with_and_without_its_hyphen(entry, asked):
    indexed = set(terms(entry))
    words = near(question(asked), lambda candidates: [term for term in candidates if term in indexed])
    assert any(term in indexed and share == 1 for term, share in words[0].terms)


def test_one_foreign_word_makes_no_other_language():
    assert detect("Rate limit raised to 300 requests a minute per key") == "english"
    assert "minut" in terms("Rate limit raised to 300 requests a minute per key")
    assert detect("Il limite è di 300 richieste per chiave") == "italian"


def test_an_idiom_of_two_words_is_no_word_of_a_question() -> None:
    assert [word.text for word in question("When does the launch take place?")] == ["launch"]
    assert [word.text for word in question("Where did we end up staying in Lisbon?")] == ["staying", "lisbon"]
    assert [word.text for word in question("a place to take the dog")] == ["place", "take", "dog"]
