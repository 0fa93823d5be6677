"""How fast the redactor is and how well it finds: `python -m bench.redact [--json] [--held-out] [--second] [--third] [--fourth] [--misses]
[--hostile] [--search N]`."""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable

from bench.redact_corpus import B62, Line, Random, held_out_corpus, main_corpus, pick, prose
from bench.redact_fourth import fourth_corpus
from bench.redact_hostile import prices, search
from bench.redact_second import second_corpus
from bench.redact_third import third_corpus
from reverie.redact import RULES, KnownSecrets, Redactor


def registry(count: int = 10_000, seed: int = 9) -> list[tuple[str, str]]:
    """That many made-up secrets."""
    r = Random(seed)
    return [(f"secret-{i}", pick(r, B62, r.randint(12, 48))) for i in range(count)]


def cpu(work: Callable[[], object]) -> float:
    started = time.process_time()
    work()
    return time.process_time() - started


def speed(redactor: Redactor) -> dict[str, float]:
    """CPU time on one core, all rules, 10,000 registered secrets; long text both on first sight and warm."""
    secrets = registry()
    build = cpu(lambda: KnownSecrets(secrets))
    known = KnownSecrets(secrets)
    r = Random(3)
    sentences = prose(10_000_000).split("\n")
    for _ in range(750):
        i = r.randrange(len(sentences))
        sentences[i] += " " + r.choice(secrets)[1]
    text = "\n".join(sentences)
    megabytes = len(text.encode()) / 1e6
    first = cpu(lambda: redactor.text(text, known))
    warm = min(cpu(lambda: redactor.text(text, known)) for _ in range(3))
    short = prose(300, seed=8)[:300]
    short_us = statistics.median(
        cpu(lambda: [redactor.text(short, known) for _ in range(200)]) / 200 * 1e6 for _ in range(7)
    )
    batch = [prose(300, seed=1000 + i)[:300] for i in range(1000)]
    batch_ms = statistics.median(cpu(lambda: redactor.many(batch, known)) * 1e3 for _ in range(5))
    return {
        "registry_build_s": round(build, 3),
        "prose_mb": round(megabytes, 2),
        "prose_first_mb_per_s": round(megabytes / first, 1),
        "prose_mb_per_s": round(megabytes / warm, 1),
        "short_text_us": round(short_us, 1),
        "batch_1000_ms": round(batch_ms, 2),
    }


def survives(secret: str, text: str) -> bool:
    """Whether the secret, or ten characters of a long one, can still be read."""
    if len(secret) < 20:
        return secret in text
    return any(secret[i : i + 10] in text for i in range(0, len(secret) - 9))


def quality(redactor: Redactor, lines: Iterable[Line], show: bool) -> dict[str, object]:
    """Recall on lines with a secret, and how many clean lines were touched."""
    secrets = missed = clean = touched = 0
    misses: Counter[str] = Counter()
    false: Counter[str] = Counter()
    for line in lines:
        redacted = redactor.text(line.text).text
        if line.secret is None:
            clean += 1
            if redacted != line.text:
                touched += 1
                false[line.kind] += 1
                if show and false[line.kind] <= 2:
                    print(f"touched: {line.text!r} -> {redacted!r}", file=sys.stderr)
        else:
            secrets += 1
            if survives(line.secret, redacted):
                missed += 1
                misses[line.kind] += 1
                if show and misses[line.kind] <= 3:
                    print(f"missed {line.kind}: {line.text!r} -> {redacted!r}", file=sys.stderr)
    return {
        "secrets": secrets,
        "recall": round(1 - missed / secrets, 4),
        "missed_kinds": dict(misses),
        "clean": clean,
        "clean_touched": round(touched / clean, 4),
        "touched_kinds": dict(false),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="machine-readable")
    parser.add_argument("--held-out", action="store_true", help="also the held-out corpus")
    parser.add_argument("--second", action="store_true", help="also the corpus made apart from the rules")
    parser.add_argument("--third", action="store_true", help="also the corpus of whole pieces of work")
    parser.add_argument("--fourth", action="store_true", help="also the corpus of shapes, plain and in JSON")
    parser.add_argument("--no-speed", action="store_true", help="quality only")
    parser.add_argument("--misses", action="store_true", help="print examples of what went wrong")
    parser.add_argument("--hostile", action="store_true", help="only the price of texts made to be expensive")
    parser.add_argument(
        "--search", type=int, default=0, metavar="N", help="only the most expensive texts that N random changes find"
    )
    options = parser.parse_args()
    redactor = Redactor()
    if options.hostile:
        for name, seconds in prices(redactor, every_rule=True).items():
            print(f"{seconds:8.2f} s/MB  {name}")
        return
    if options.search:
        for seconds, unit in search(redactor, options.search):
            print(f"{seconds:8.2f} s/MB  {unit!r}")
        return
    result: dict[str, object] = {"version": redactor.version, "rules": len(RULES)}
    if not options.no_speed:
        result["speed"] = speed(redactor)
    result["corpus"] = quality(redactor, main_corpus(), options.misses)
    if options.held_out:
        result["held_out"] = quality(redactor, held_out_corpus(), options.misses)
    if options.second:
        result["second"] = quality(redactor, second_corpus(), options.misses)
    if options.third:
        result["third"] = quality(redactor, third_corpus(), options.misses)
    if options.fourth:
        result["fourth"] = quality(redactor, fourth_corpus(), options.misses)
    if options.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        if isinstance(value, dict):
            print(name)
            for key, item in value.items():
                print(f"  {key:24} {item}")
        else:
            print(f"{name:26} {value}")


if __name__ == "__main__":
    main()
