"""The providers of the Microsoft Agent Framework, with its own messages, sessions and contexts."""

from __future__ import annotations

import asyncio
import tempfile

from agent_framework import AgentResponse, AgentSession, HistoryProvider, Message, SessionContext

import reverie
from reverie.integrations.agent_framework import ReverieContextProvider, ReverieHistoryProvider


def test_history_comes_back_in_order_and_by_session() -> None:
    async def go() -> None:
        provider = ReverieHistoryProvider(reverie.open(tempfile.mkdtemp()), store_outputs=True)
        assert isinstance(provider, HistoryProvider)
        messages = [Message("user", ["Hello"]), Message("assistant", ["Hi. " * 20_000])]
        await provider.save_messages("s1", messages[:1])
        await provider.save_messages("s1", messages[1:])
        await provider.save_messages("s2", [Message("user", ["Other"])])
        back = await provider.get_messages("s1")
        assert [message.to_dict() for message in back] == [message.to_dict() for message in messages]
        assert await provider.get_messages("s3") == []
        assert await provider.get_messages(None) == []
        await provider.save_messages(None, [Message("user", ["No session"])])
        assert [message.text for message in await provider.get_messages(None)] == ["No session"]

    asyncio.run(go())


def test_what_is_known_goes_in_and_what_is_said_is_kept() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        memory.ref("ann").put("Ann drinks Darjeeling tea.")
        provider, session = ReverieContextProvider(memory, "ann"), AgentSession()
        context = SessionContext(session_id="s", input_messages=[Message("user", ["Which tea does Ann drink?"])])
        await provider.before_run(agent=None, session=session, context=context, state={})
        assert "Darjeeling" in context.get_messages()[0].text
        context._response = AgentResponse(messages=[Message("assistant", ["Darjeeling, of course."])])
        await provider.after_run(agent=None, session=session, context=context, state={})
        said = {entry.content for entry in memory.ref("ann").list().items}
        assert {"Which tea does Ann drink?", "Darjeeling, of course."} < said

    asyncio.run(go())


def test_context_that_was_recalled_into_a_message_is_not_stored_again() -> None:
    async def go() -> None:
        memory = reverie.open(tempfile.mkdtemp())
        notes = memory.ref("ann")
        notes.put("Ann drinks Darjeeling tea.")
        provider, session = ReverieContextProvider(memory, "ann"), AgentSession()
        recalled = notes.context("Which tea does Ann drink?").text
        assert "Darjeeling" in recalled
        asked = [Message("user", [f"{recalled}\nBook the tasting for Friday."]), Message("user", [recalled])]
        context = SessionContext(session_id="s", input_messages=asked)
        await provider.before_run(agent=None, session=session, context=context, state={})
        context._response = AgentResponse(messages=[Message("assistant", ["Booked."])])
        await provider.after_run(agent=None, session=session, context=context, state={})
        assert sorted(entry.content for entry in notes.entries()) == [
            "Ann drinks Darjeeling tea.",
            "Book the tasting for Friday.",
            "Booked.",
        ]

    asyncio.run(go())
