"""The long description of the package: README.md with absolute links, since package indexes resolve no others."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"\]\((?!https?://|#|mailto:)([^)\s]+)\)")


def absolute(text: str, source: str) -> str:
    """The text with every relative link below `source`."""
    return LINK.sub(lambda found: f"]({source}/blob/main/{found[1]})", text)


class Readme(MetadataHookInterface):
    """Read by hatchling when it makes the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = absolute(text, metadata["urls"]["Source"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
