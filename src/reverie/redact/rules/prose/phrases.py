"""Secrets made of words or of numbers: the words of a wallet, passphrases, the bytes of a key."""

# ruff: noqa: E501 (a pattern is easier to read in one piece)

from __future__ import annotations

import re
from collections.abc import Iterator

from reverie.redact.entropy import is_wordy, word_share, words
from reverie.redact.markers import Lazy
from reverie.redact.rules.plausible import is_placeholder
from reverie.redact.rules.rule import Rule, Span

# Words of sentences that are not in the word list of wallets.
_FUNCTION = words(
    """
    the and for are was were with from has had not but its his her our their your should could would may might which
    these those who whom than been does did don
    """
)
# Words that occur in a sentence about passphrases, not in a passphrase.
_SENTENCE = _FUNCTION | words(
    """
    must using used use only also such each every some most many more less very just here please enter type contain
    contains cannot spaces characters letters digits words random four five six twelve least between including because
    before while since passphrase password phrase mnemonic
    """
)
_SIZES = (24, 21, 18, 15, 12)
_WALLET = r"(?i:mnemonic|\b(?:seed|recovery|secret|backup|wallet)[ _-](?:phrase|words|seed|backup)|wallet[A-Za-z]*[(:=]|phrase[\"']?[ ]{0,2}[:=(]|[12458][ -]words)"
_LIST = Lazy(
    (
        _WALLET + r"[^\n]{0,60}?(?:[\s:=(\[\"'`*>]|\\[n\"]){1,8}((?:[a-z]{3,8}(?:[ ,]{1,2}|\r?\n)){11,40}[a-z]{3,8})\b"
        rf"|{_WALLET}[^\n]{{0,80}}\s{{0,8}}((?:[0-9]{{1,2}}[.):][ \t]{{0,3}}[a-z]{{3,8}}[\s,]{{1,4}}){{11,23}}[0-9]{{1,2}}[.):][ \t]{{0,3}}[a-z]{{3,8}})\b"
    ).encode()
)


def _wallets(data: bytes) -> Iterator[Span]:
    """Yield twelve or more words after a word that announces them, none of them a function word."""
    for match in _LIST.finditer(data):
        yield match.start(), match.start()
        group = 1 if match.start(1) >= 0 else 2
        found = list(re.finditer(rb"[a-z]{3,8}", match.group(group)))
        for i in reversed(range(len(found))):
            if found[i].group().decode("ascii") in _FUNCTION:
                found = found[i + 1 :]
                break
        size = next((size for size in _SIZES if size <= len(found)), 0)
        if size and len({word.group() for word in found}) >= 8:
            yield match.start(group) + found[-size].start(), match.start(group) + found[-1].end()


def _is_passphrase(text: str) -> bool:
    """Whether `text` is three words or more, none of them typical of a sentence about passphrases."""
    parts = re.split(r"[ -]", text)
    words = sum(part.isalpha() for part in parts)
    return (
        words >= 3
        and len(parts) - words <= 2
        and not is_placeholder(text)
        and not any(part in _SENTENCE for part in parts)
    )


def _unwordy(text: str) -> bool:
    """Whether the letters make hardly any words."""
    pieces = re.split(r"[ -]", text)
    if len(pieces) == 1:
        return word_share(text) < 0.5
    return sum(map(is_wordy, pieces)) <= 2 and not any(piece in _SENTENCE for piece in pieces)


_BYTES = Lazy(rb"\[\s{0,4}((?:[0-9]{1,3},\s{0,4}){31,63}[0-9]{1,3}),?\s{0,4}\]")
_OWNER = Lazy(rb"(?i)keypair|secret|private|wallet|seed|id\.json|solana|\bkey\b|signer|fromSecretKey")


def _numbers(data: bytes) -> Iterator[Span]:
    """Yield the bytes of a key: 32 or 64 numbers below 256, most of them different, near a word for a key."""
    for match in _BYTES.finditer(data):
        yield match.start(), match.start()
        numbers = [int(n) for n in re.findall(rb"\d+", match.group(1))]
        if len(numbers) not in (32, 64) or max(numbers) > 255 or len(set(numbers)) <= 20 or numbers == sorted(numbers):
            continue
        if _OWNER.search(data, max(0, match.start() - 120), match.start()) or _OWNER.search(
            data, match.end(), min(len(data), match.end() + 60)
        ):
            yield match.span()


_PLAIN = r"(?:[a-z]{3,12}|[0-9]{1,4})"
_PHRASE = rf"(?:{_PLAIN}[ \-]){{2,9}}{_PLAIN}"

RULES = (
    Rule(
        "wallet-words",
        _WALLET,
        locate=_wallets,
        examples=(
            'ethers.Wallet.fromMnemonic("hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone")',
            "Wallet backup (12 words): hand midnight wire canvas cement robot outdoor design wage dwarf latin ozone",
            "seed phrase below\n\nhand midnight wire canvas cement robot outdoor design wage dwarf latin ozone\n",
            "recovery phrase: 1. hand 2. midnight 3. wire 4. canvas 5. cement 6. robot 7. outdoor 8. design 9. wage 10. dwarf 11. latin 12. ozone",
        ),
        near_misses=(
            "the wallet was found under some old garden chair near that house where nobody had been living",
            'fromMnemonic("your twelve words go here")',
        ),
    ),
    Rule(
        "key-bytes",
        r"\[",
        trigger=r"\[[ ]*(?:[0-9]{1,3},[ ]*){8}",
        locate=_numbers,
        examples=(
            "solana keypair [1,22,33,44,55,66,77,88,99,110,121,132,143,154,165,176,187,198,209,220,231,242,253,3,14,25,36,47,58,69,80,91]",
            "$ cat id.json\n[1,22,33,44,55,66,77,88,99,110,121,132,143,154,165,176,187,198,209,220,231,242,253,3,14,25,36,47,58,69,80,91]",
        ),
        near_misses=(
            "key sizes [1,2,3,4,5,6,7,8,9,10]",
            "pixels [1,22,33,44,55,66,77,88,99,110,121,132,143,154,165,176,187,198,209,220,231,242,253,3,14,25,36,47,58,69,80,91]",
        ),
    ),
    Rule(
        "app-password",
        r"(?i:\bapp(?:lication)?(?:[ -]specific)?[ -]passw(?:or)?d)\b[^\n]{0,50}?[ :=\"'`(]((?:[a-z]{4}[ \-]){3}[a-z]{4}|[a-z]{16})\b"
        r"|(?i:pass(?:word|wd)?)[\"']?[ ]?[:=][ ]?[\"']?((?:[a-z]{4}[ ]){3}[a-z]{4})(?m:[\"'`\\\s]|$)",
        trigger=r"(?i:\bapp(?:lication)?(?:[ -]specific)?[ -]passw(?:or)?d)\b|(?i:pass(?:word|wd)?)[\"']?[ ]?[:=][ ]?[\"']?(?:[a-z]{4}[ ]){3}",
        check=_unwordy,
        examples=(
            "app-specific password: xqzj-kvwp-zzqk-hjxw",
            "gmail app password is qzxj kvwp zzqk hjxw",
            "Gmail app password for bob@example.org: zgbxkplekbnjkazs",
            "MAIL_PASSWORD=ytrl dadu aivq jxon",
        ),
        near_misses=("the app password must have four long words here", "password: must have four char"),
    ),
    Rule(
        "spoken-passphrase",
        rf"(?i:passphrase)(?:\\?[\"'])?[^\n\"'`]{{0,60}}?(?:[ ](?:is|was)|[:=])[ ]?\\?[\"'`“]({_PHRASE})\\?[\"'`”]"
        rf"|(?:-passphrase|\bssh-keygen[ ][^\n|]{{0,120}}?-N)[ =][\"']({_PHRASE})[\"']"
        rf"|(?i:passphrase|password)>({_PHRASE})</"
        rf"|\bpsk[\"']?[ ]?[=:][ ]?[\"']({_PHRASE})[\"']"
        rf"|(?i:passw(?:or)?d)[A-Za-z_]{{0,12}}[^\n\"'`]{{0,40}}?(?:[ ](?:is|was)|[ ]?=)[ ]?\\?[\"'`“]((?:{_PLAIN}[ ]){{3,8}}{_PLAIN})\\?[\"'`”]"
        rf"|(?i:passphrase)[A-Za-z ]{{0,40}}?(?:[ ]is|[:=])[ ]?((?:[a-z]{{3,12}}[ \-]){{3,8}}[a-z]{{3,12}})[ \t]{{0,3}}\.?\r?(?m:$)",
        trigger=r"(?i:passphrase|passw(?:or)?d)|\bssh-keygen[ ]|\bpsk[\"']?[ ]?[=:]",
        check=_is_passphrase,
        examples=(
            'The passphrase for the backup disk is "harbor river copper jungle"',
            'BORG_PASSPHRASE="phoenix purple silver gravel castle"',
            "master password = 'pickle autumn guitar soccer tiger'",
            "luks passphrase: castle marmalade shadow badger",
            'passphrase: "harbor river copper 683 jungle"',
            '{"passphrase": "harbor 17 river copper", "cipher": "aes-256"}',
            "gpg --batch --passphrase 'harbor river copper jungle' --decrypt dump.gpg",
            "ssh-keygen -t ed25519 -N 'harbor river 77 copper' -f k",
            "<passphrase>harbor river copper jungle</passphrase>",
            'psk="harbor 649 river copper jungle"',
            'export RESTIC_PASSWORD="harbor 176 river copper jungle"',
        ),
        near_misses=(
            'the passphrase is "your passphrase here"',
            "the passphrase is longer than most people like",
            'password_error = "cannot contain spaces anywhere"',
            'passphrase: "2024 10 12"',
            "<passphrase>your passphrase goes here</passphrase>",
        ),
    ),
)
