"""`reverie proxy` as a process: it listens, keeps its windows over a restart, and drains when it is told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from openai import OpenAI
from tests.responses_emulator import MODEL, Emulator, Slow

PATIENCE = 120.0


class Child:
    """A running proxy."""

    def __init__(self, target: str, upstream: str) -> None:
        inherited = {
            name: value for name, value in os.environ.items() if name == "REVERIE_DATA" or name[:8] != "REVERIE_"
        }
        store = ["--database-url" if target.startswith("postgresql:") else "--data", target]
        command = [sys.executable, "-m", "reverie.api.cli.main", "proxy", "--upstream", upstream, *store]
        self.process = subprocess.Popen(
            [*command, "--listen", "127.0.0.1:0", "--trigger-tokens", "1500"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**inherited, "NO_PROXY": "*"},
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line.startswith("listening on http://127.0.0.1:"), line
        self.url = line.split()[-1]

    def stop(self) -> tuple[int, str]:
        self.process.send_signal(signal.SIGTERM)
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out + err


def test_it_drains_and_goes_on_after_a_restart(make_target: Callable[..., str]) -> None:
    target = make_target()
    with Emulator(context=6000) as provider:
        history: list[Any] = []

        def ask(url: str) -> Any:
            sdk = OpenAI(api_key=provider.key, base_url=url, max_retries=0, timeout=PATIENCE)
            history.append({"role": "user", "content": f"fact:n{len(history)}"})
            raw = sdk.responses.with_raw_response.create(
                model=MODEL, input=list(history), extra_headers={"x-reverie-scope": "kept"}
            )
            history.append({"role": "assistant", "content": raw.parse().output_text})
            return raw

        first = Child(target, provider.url)
        try:
            assert ask(first.url).headers["x-reverie-window-status"] == "fallback_full_request"
            provider.faults["create"] = [Slow(1.0)]
            answers: list[Any] = []
            asking = threading.Thread(target=lambda: answers.append(ask(first.url)))
            asking.start()
            while len(provider.requests("create")) < 2:
                time.sleep(0.01)
            code, said = first.stop()
            asking.join(PATIENCE)
            assert code == 0
            assert answers[0].headers["x-reverie-window-status"] == "hit"
            assert provider.key not in said
            assert "Traceback" not in said
        finally:
            first.process.kill()
        second = Child(target, provider.url)
        try:
            again = ask(second.url)
            assert again.headers["x-reverie-window-status"] == "hit"
            assert "3 facts" in again.parse().output_text
            assert second.stop()[0] == 0
        finally:
            second.process.kill()
