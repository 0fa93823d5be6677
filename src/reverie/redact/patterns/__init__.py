"""The rule table: which kinds of secret-shaped text are known. Specific rules first, generic ones last."""

from reverie.redact.patterns import (
    chat,
    cloud,
    codes,
    commands,
    database,
    dialogue,
    generic,
    hosting,
    keys,
    lines,
    models,
    nearby,
    notations,
    payment,
    places,
    prefixed,
    printed,
    services,
    sessions,
    tables,
    told,
    tongues,
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
    *lines.RULES,
    *places.RULES,
    *told.RULES,
    *generic.RULES,
    *prefixed.RULES,
    *nearby.RULES,
    *tongues.RULES,
    *tables.RULES,
    *dialogue.RULES,
    *sessions.RULES,
    *printed.RULES,
    *notations.RULES,
)
