"""The use cases. The only code that opens transactions; every door calls it and nothing below it."""

from reverie.host.host import Host
from reverie.host.parts import Parts

__all__ = ["Host", "Parts"]
