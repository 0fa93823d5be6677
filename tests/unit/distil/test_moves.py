"""Moved appointments in languages other than English."""

from __future__ import annotations

import pytest

from reverie.distil.updates import Utterance, says_more, updates

MOVED = [
    ("Der Zahnarzttermin ist am 14. Januar um 9:30.", "Der Zahnarzttermin wurde auf den 21. Januar verschoben."),
    ("Elternabend ist am Dienstag, 3. Februar, um 19:30.", "Elternabend auf Donnerstag, 5. Februar verlegt."),
    ("La réunion des parents a lieu mardi à 19h.", "La réunion des parents est déplacée à jeudi."),
    ("La cita con el dentista es el 14 de enero a las 9:30.", "La cita con el dentista se aplazó al 21 de enero."),
    ("L'appuntamento dal dentista è il 14 gennaio.", "L'appuntamento dal dentista è stato spostato al 21 gennaio."),
    ("A reunião de pais é na terça às 19:00.", "A reunião de pais foi adiada para quinta."),
    ("De tandartsafspraak is op 14 januari om 9:30.", "De tandartsafspraak is verplaatst naar 21 januari om 11:00."),
    ("Wizyta u dentysty jest 14 stycznia o 9:30.", "Wizyta u dentysty została przełożona na 21 stycznia."),
    ("Визит к стоматологу 14 января в 9:30.", "Визит к стоматологу перенесли на 21 января."),
    ("Diş randevusu 14 Ocak saat 9:30'da.", "Diş randevusu 21 Ocak'a ertelendi."),
    ("歯医者の予約は1月14日の午前9時半です。", "歯医者の予約は1月21日の午前11時に変更になりました。"),
    ("牙医预约是1月14日上午9点。", "牙医预约改到1月21日上午11点。"),
    ("치과 예약은 1월 14일 오전 9시입니다.", "치과 예약이 1월 21일로 변경되었습니다."),
]
OTHER = [
    ("Der Elternabend ist am Dienstag um 19:30.", "Der Zahnarzttermin wurde auf Donnerstag verschoben."),
    ("Termin beim Steuerberater am 4. März um 10 Uhr.", "Termin beim Friseur auf 5. März verschoben."),
    ("La réunion de lundi a duré 2h.", "Le déménagement est reporté au 3 mars."),
    ("El cumpleaños de Ana es el 3 de mayo.", "Ana cambió 3 bombillas el lunes."),
    ("会議は3月4日10時。", "歯医者の予約は3月5日に変更になりました。"),
    ("Lena hat am 3. Mai Geburtstag.", "Lena hat den Ausflug auf den 10. Mai verschoben."),
]


@pytest.mark.parametrize(("before", "after"), MOVED)
def test_a_moved_appointment_overtakes_the_earlier_date(before: str, after: str) -> None:
    assert [(u.newer, u.older) for u in updates([Utterance("0", before), Utterance("1", after)])] == [("1", "0")]
    assert updates([Utterance("0", after), Utterance("1", before)]) == []


@pytest.mark.parametrize(("before", "after"), OTHER)
def test_another_matter_is_not_moved(before: str, after: str) -> None:
    assert updates([Utterance("0", before), Utterance("1", after)]) == []


def test_which_of_two_appointments_is_not_guessed() -> None:
    said = ["Termin beim Arzt am 4. März um 9:00.", "Termin bei der Bank am 5. März.", "Termin auf 8. März verschoben."]
    assert updates([Utterance(str(number), text) for number, text in enumerate(said)]) == []


def test_a_place_or_a_person_is_more_than_the_later_statement_says() -> None:
    assert says_more("会議は3月4日の午後2時、場所は第三会議室です。", "会議は3月6日に変更になりました。")
    assert says_more("Der Termin ist am 14. Januar bei Dr. Lehmann.", "Der Termin wurde auf den 21. Januar verschoben.")
    assert not says_more("Das Treffen ist am Montag.", "Das Treffen wurde auf Dienstag verschoben.")
