"""A program written for mem0, on Reverie: only `host` differs.

reverie serve &
REVERIE_KEY=... python examples/mem0_client.py http://127.0.0.1:8484
"""

from __future__ import annotations

import os
import sys

from mem0 import MemoryClient


def main(url: str, key: str) -> str:
    client = MemoryClient(host=f"{url}/mem0", api_key=key)
    client.add([{"role": "user", "content": "My dog is called Bruno."}], user_id="ann")
    found = client.search("What is the name of the dog?", filters={"user_id": "ann"})
    return str(found["results"][0]["memory"])


if __name__ == "__main__":
    print(main(sys.argv[1], os.environ["REVERIE_KEY"]))
