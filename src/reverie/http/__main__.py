"""`python -m reverie.http`: the server without the command line around it."""

from __future__ import annotations

import argparse
import sys

from reverie.core.errors import ReverieError
from reverie.http.run import run
from reverie.settings import Settings


def main() -> int:
    """Serve. Returns 0 after a clean stop, 1 with one line on stderr when the server cannot start."""
    parser = argparse.ArgumentParser(prog="python -m reverie.http", description="Serve a Reverie host over HTTP.")
    parser.add_argument("--host", help="address to listen on")
    parser.add_argument("--port", type=int, help="port to listen on; 0 picks a free one")
    parser.add_argument("--data", help="folder of the database")
    parser.add_argument("--database-url", help="postgresql://... or sqlite:///PATH")
    given = parser.parse_args()
    try:
        run(Settings.load(host=given.host, port=given.port, data=given.data, database_url=given.database_url))
    except ReverieError as error:
        print(f"error: {error.message}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
