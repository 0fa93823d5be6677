"""Randomness estimates for strings, and the checksums that some identifiers carry.

Everything here is pure, takes a `str`, and answers in time linear in its length.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar, cast

_Judge = TypeVar("_Judge", bound=Callable[..., object])
_memos: list[Callable[[], None]] = []


def remembered(judge: _Judge, most: int = 4096) -> _Judge:
    """Wrap `judge` with a memo of its last `most` answers.

    In a text with many credential words the same candidates are judged again and again, once for every rule and every
    such word nearby. Candidates are short: patterns are bounded.
    """
    found = lru_cache(maxsize=most)(judge)
    _memos.append(found.cache_clear)
    return cast(_Judge, found)


def forget_candidates() -> None:
    """Empty every memo after a text with secrets: no secret stays in the process longer than its redaction takes."""
    for clear in _memos:
        clear()


def words(text: str) -> frozenset[str]:
    """The words of a list written as plain text."""
    return frozenset(text.split())


# The letter pairs of English, and of the Latin part of most programming vocabulary. A string of random letters has
# about a third of its pairs in this set, a word four fifths or more. That gap separates `connection-pool`
# from `qzxvkpwj` better than Shannon entropy can on strings this short.
_COMMON_PAIRS = words(
    """
    th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri
    ro ic ne ea ra ce li ch ll be ma si om ur ca el ta la ns di fo ho pe ec pr no ct us ac ot il tr ly nc et ut
    ss so rs un lo wa ge ie wh ee wi em ad ol rt po we na ul ni ts mo ow pa im mi ai sh ir su id os iv ia am fi
    ci vi pl ig tu ev ld ry mp fe bl ab gh ty op wo sa ay ex ke fr oo av ag if ap gr od bo sp rd do uc bu ei ov
    by rm ep tt oc fa ef cu rn sc gi da yo cr cl du ga qu ue ff ba ey ls va um pp ua up lu go ht ru ug ds lt pi
    rc rr eg au ck ew mu br bi pt ak pu ui rg ib tl ny ki rk ys ob mm fu ph og ms ye ud mb ip ub oi rl gu dr hr
    cc tw ft wn nu af hu nn eo vo rv nf xp gn sm fl iz ok nl my gl aw ju oa eq sy sl ps jo lf nv je nk kn gs dy
    hy ze ks xt bs ik dd pt rp wr tc db pk nm ym ox yp py gg oj ek bj rf eb sk sw ih dm xi az ja hl rb nr uk mn
    """
)
_PIECE = re.compile(r"[A-Z]?[a-z]+|[A-Z]+|[0-9]+|[^A-Za-z0-9]+")
_WORDLIKE = re.compile(r"[a-z]{3}|[A-Z]{4}")
_LETTERS = re.compile(r"[A-Za-z]")
_DIGITS = re.compile(r"[0-9]")
_HEX = re.compile(r"\A(?:[0-9a-f]+|[0-9A-F]+)\Z")
_UUID = re.compile(r"\A[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\Z")


def shannon(text: str) -> float:
    """Return the bits per character of `text`, by its own letter counts."""
    if not text:
        return 0.0
    counts = map(text.count, set(text))
    return math.log2(len(text)) - sum(n * math.log2(n) for n in counts if n > 1) / len(text)


@remembered
def is_wordy(letters: str) -> bool:
    """Whether a run of letters reads like a word (or several written together)."""
    low = letters.lower()
    pairs = len(low) - 1
    if pairs < 2:
        return False
    common = sum(low[i : i + 2] in _COMMON_PAIRS for i in range(pairs))
    return common >= pairs * 0.75


@remembered
def word_share(text: str) -> float:
    """Return the share of the letters and digits of `text` that belong to words of four letters or more."""
    if not _WORDLIKE.search(text):
        return 0.0
    words = total = 0
    for piece in _PIECE.findall(text):
        if not piece[0].isalnum():
            continue
        total += len(piece)
        if len(piece) >= 4 and piece[0].isalpha() and is_wordy(piece):
            words += len(piece)
    return words / total if total else 0.0


def is_hex(text: str) -> bool:
    """Whether `text` is hex digits in one letter case."""
    return bool(_HEX.match(text))


def is_uuid(text: str) -> bool:
    """Whether `text` has the 8-4-4-4-12 form."""
    return bool(_UUID.match(text))


@remembered
def looks_random(text: str) -> bool:
    """Whether `text` looks machine-made: many different characters, kinds mixed, hardly a word in it."""
    if len(text) < 8:
        return False
    if text.isascii():
        letters, digits = len(_LETTERS.findall(text)), len(_DIGITS.findall(text))
    else:
        letters, digits = sum(map(str.isalpha, text)), sum(map(str.isdigit, text))
    bits = shannon(text)
    if letters < 2 or bits < min(3.0, 0.65 * math.log2(len(text))):
        return is_hex(text) and digits >= 2 and letters >= 2 and bits >= 2.3
    if is_hex(text):
        return digits >= 2 and letters >= 2
    share = word_share(text)
    if not digits:
        # One in twenty base62 strings of sixteen characters has no digit. Camel case is made of words, these are not.
        has_both = text.lower() != text != text.upper()
        return has_both and len(text) >= 16 and share <= 0.3
    return share <= 0.55


def luhn(text: str) -> bool:
    """Whether the check digit of a payment card is right; characters other than digits are skipped."""
    digits = [int(c) for c in text if "0" <= c <= "9"]
    if len(set(digits)) < 2:
        return False
    doubled = (d * 2 - 9 if d > 4 else d * 2 for d in digits[-2::-2])
    return (sum(digits[-1::-2]) + sum(doubled)) % 10 == 0


def mod97(text: str) -> bool:
    """Whether the check digits of an IBAN are right; blanks are skipped."""
    iban = "".join(text.split()).upper()
    if not iban.isalnum() or not iban.isascii():
        return False
    return int("".join(str(int(c, 36)) for c in iban[4:] + iban[:4])) % 97 == 1


def is_plain_word(value: bytes) -> bool:
    """Whether `value` is a short word in lower case, which is a secret only as a quoted literal."""
    return len(value) < 20 and value.isalpha() and value.islower()
