"""Tokens of pictures and files, the windows of known models, and the default trigger."""

from __future__ import annotations

import base64
import struct
import time
import zlib
from typing import Any

import pytest

from reverie.window import WindowPolicy, WindowState, default_trigger, estimate
from reverie.window.models import context_window


def picture(width: int, height: int, weight: int = 300_000) -> str:
    head = b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", width, height)
    return "data:image/png;base64," + base64.b64encode(head + bytes(weight)).decode()


def said(part: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"type": "message", "role": "user", "content": [part]}]


@pytest.mark.parametrize(
    ("part", "least", "most"),
    [
        ({"type": "input_image", "image_url": picture(1024, 768)}, 922, 980),
        ({"type": "input_image", "image_url": picture(4000, 4000)}, 1844, 1900),
        ({"type": "input_image", "image_url": picture(3200, 3200), "detail": "original"}, 12_000, 12_060),
        ({"type": "input_image", "image_url": "https://example.org/a.png"}, 1850, 1900),
        ({"type": "input_image", "image_url": "data:image/png;base64,!!"}, 1850, 1900),
        ({"type": "input_file", "file_id": "file-1"}, 2000, 2060),
        (
            {
                "type": "input_file",
                "filename": "a.pdf",
                "file_data": base64.b64encode(
                    b"%PDF-1.7 /Type /Page  /Type/Page /Type /Pages" + bytes(90_000)
                ).decode(),
            },
            3000,
            3060,
        ),
        (
            {"type": "input_file", "filename": "a.txt", "file_data": base64.b64encode(b"word" * 1000).decode()},
            1000,
            1060,
        ),
    ],
)
def test_media_count_as_billed(part: dict[str, Any], least: int, most: int) -> None:
    assert least <= estimate(said(part)) <= most


def test_a_screenshot_and_a_drawn_picture_count_as_pictures() -> None:
    shot = {"type": "computer_call_output", "call_id": "c", "output": {"type": "computer_screenshot"}}
    shot["output"] = {"type": "computer_screenshot", "image_url": picture(1024, 768)}
    drawn = {"type": "image_generation_call", "status": "completed", "result": picture(1024, 768).partition(",")[2]}
    assert 922 <= estimate([shot]) <= 980
    assert 922 <= estimate([drawn]) <= 980


def test_a_plotted_picture_a_packed_file_and_a_long_sound_count_as_billed() -> None:
    plotted = {"type": "code_interpreter_call", "outputs": [{"type": "image", "url": picture(1024, 768)}]}
    assert 922 <= estimate([plotted]) <= 980
    packed = zlib.compress(b"<</Type/Page /Parent 3 0 R>>" * 5 + b"<</Type/Pages>>")
    data = b"%PDF-1.5\n4 0 obj<</Type/ObjStm/N 6/Filter/FlateDecode>>stream\n" + packed + b"\nendstream"
    file = {"type": "input_file", "filename": "a.pdf", "file_data": base64.b64encode(data).decode()}
    assert 7500 <= estimate(said(file)) <= 7560
    wave = b"RIFF" + bytes(4) + b"WAVEfmt " + struct.pack("<IHHII", 16, 1, 1, 8000, 8000) + bytes(8 + 8000 * 150)
    sound = {"type": "input_audio", "input_audio": {"format": "wav", "data": base64.b64encode(wave).decode()}}
    assert 6000 <= estimate(said(sound)) <= 6060
    words = {"type": "function_call_output", "call_id": "c", "output": picture(64, 64, 40_000)}
    assert estimate([words]) > 10_000  # a text is read as a text


@pytest.mark.parametrize(
    "part",
    [b"/ObjStm", b"<</Type/ObjStm>>stream\n" + zlib.compress(b"<</Type/Pages>>") + b"\nendstream\n"],
    ids=["unfinished", "small"],
)
def test_a_file_that_repeats_one_mark_a_million_times_is_counted_at_once(part: bytes) -> None:
    data = base64.b64encode(b"%PDF-1.7 " + part * (2_000_000 // len(part))).decode()
    began = time.process_time()
    assert estimate(said({"type": "input_file", "file_data": data})) < 3000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(("model", "tokens"), [("gpt-4o", 85), ("gpt-4.1-mini", 922), (None, 922)])
def test_low_detail_is_flat_where_it_is_billed_flat(model: str | None, tokens: int) -> None:
    part = {"type": "input_image", "image_url": picture(1024, 768), "detail": "low"}
    assert tokens <= estimate(said(part), model=model) <= tokens + 60


@pytest.mark.parametrize(
    ("window", "trigger"), [(12_000, 6_000), (48_000, 24_000), (128_000, 80_000), (400_000, 280_000), (None, 80_000)]
)
def test_the_default_trigger_suits_every_window(window: int | None, trigger: int) -> None:
    assert default_trigger(window) == trigger


@pytest.mark.parametrize(
    ("model", "base", "window"),
    [
        ("gpt-5.6-sol", "api", 1_000_000),
        ("openai/gpt-4o-2024-08-06", "api", 128_000),
        ("openai.gpt-5.4-mini", "api", 400_000),
        ("gpt-5.3-codex-spark", "api", 128_000),
        ("gpt-5.3-codex-spark", "codex", 128_000),
        ("gpt-5.2-codex", "codex", 272_000),
        ("gpt-5-chat-latest", "api", 128_000),
        ("gpt-5.6-chat", "api", 128_000),
        ("gpt-4.1-nano", "api", 1_047_576),
        ("o3-mini", "api", 200_000),
        ("o33", "api", None),
        ("mine", "api", None),
        (None, "api", None),
    ],
)
def test_the_windows_of_known_models(model: str | None, base: str, window: int | None) -> None:
    assert context_window(model, base) == window


def test_a_policy_adds_models_and_a_price_step_is_respected() -> None:
    assert WindowPolicy(context_windows={"mine": 32_000}).window_of("mine-2") == 32_000
    assert WindowPolicy().trigger(model="gpt-5.4") == 240_000
    assert WindowPolicy(context_window=12_000).trigger(model="gpt-5.4") == 6_000


def test_a_trigger_that_the_tools_alone_would_reach_is_raised() -> None:
    state = WindowState("s", policy=WindowPolicy(context_window=12_000))
    state.plan([{"role": "user", "content": "hello"}], model="m", instructions="word " * 6000)
    assert state.due() is None
