"""A LangGraph graph with durable memory: one node remembers, another answers from memory. No model is needed.

python examples/langgraph_store.py [FOLDER or URL]
"""

from __future__ import annotations

import sys
import tempfile
from typing import Any, TypedDict

from langgraph.graph import END, START, StateGraph
from langgraph.store.base import BaseStore

import reverie
from reverie.integrations.langgraph import ReverieStore


class State(TypedDict):
    user: str
    said: str
    answer: str


def remember(state: State, *, store: BaseStore) -> dict[str, Any]:
    store.put(("users", state["user"]), state["said"][:40], {"text": state["said"]})
    return {}


def answer(state: State, *, store: BaseStore) -> dict[str, Any]:
    found = store.search(("users", state["user"]), query="What does the user like to drink?", limit=1)
    return {"answer": found[0].value["text"]}


def main(target: str) -> str:
    with reverie.open(target) as memory:
        builder = StateGraph(State)
        builder.add_node("remember", remember)
        builder.add_node("answer", answer)
        builder.add_edge(START, "remember")
        builder.add_edge("remember", "answer")
        builder.add_edge("answer", END)
        graph = builder.compile(store=ReverieStore(memory, subject=lambda namespace: namespace[1]))
        for said in ("I drink Darjeeling tea.", "My bicycle is green.", "I work in Basel."):
            state = graph.invoke({"user": "ann", "said": said, "answer": ""})
        return str(state["answer"])


if __name__ == "__main__":
    print(main(sys.argv[1] if len(sys.argv) > 1 else tempfile.mkdtemp()))
