"""The entry point of `reverie` and `python -m reverie`: handles Ctrl-C before the imports, which take a while."""

import sys


def main() -> None:
    """Run the command line of this process."""
    try:
        from reverie.api.cli.main import run

        code = run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("reverie: Interrupted.\n")
        code = 130
    sys.exit(code)


if __name__ == "__main__":
    main()
