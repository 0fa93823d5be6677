"""The rule table: which kinds of secret-shaped text are known. Specific rules first, generic ones last."""

from reverie.redact.patterns import (
    calls,
    chat,
    cloud,
    codes,
    columns,
    commands,
    database,
    generic,
    hosting,
    keys,
    lines,
    models,
    nearby,
    payment,
    phrases,
    places,
    prefixed,
    services,
    shells,
    told,
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
    *phrases.RULES,
    *commands.RULES,
    *shells.RULES,
    *lines.RULES,
    *places.RULES,
    *calls.RULES,
    *columns.RULES,
    *told.RULES,
    *generic.RULES,
    *prefixed.RULES,
    *nearby.RULES,
)
