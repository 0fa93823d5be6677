"""From the candidates of a store to the context of an agent: words, ranking, explanation, packing. Pure."""
