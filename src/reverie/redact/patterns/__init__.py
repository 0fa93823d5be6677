"""The rule table: which kinds of secret-shaped text are known. Specific rules first, generic ones last."""

from reverie.redact.patterns import (
    around,
    chat,
    cloud,
    codes,
    commands,
    database,
    generic,
    hosting,
    keys,
    models,
    nearby,
    payment,
    services,
)
from reverie.redact.patterns.rule import Rule

__all__ = ["RULES", "Rule"]

RULES: tuple[Rule, ...] = (
    *keys.RULES,
    *models.RULES,
    *cloud.RULES,
    *hosting.RULES,
    *services.RULES,
    *chat.RULES,
    *payment.RULES,
    *database.RULES,
    *codes.RULES,
    *commands.RULES,
    *around.RULES,
    *generic.RULES,
    *nearby.RULES,
)
