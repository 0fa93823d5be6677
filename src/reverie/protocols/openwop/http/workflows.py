"""Definitions of the workflows that `POST /v1/runs` takes: one registry answers both."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from starlette.responses import Response

from reverie.core.errors import Invalid, NotFound
from reverie.http.call import Call
from reverie.http.reply import Reply
from reverie.http.routes import DocumentedAnswer, Segment
from reverie.protocols.openwop.http import described
from reverie.protocols.openwop.http.call import api
from reverie.protocols.openwop.runs import Runs
from reverie.protocols.openwop.workflow import Workflow

router = api()


@router.get(
    "/workflows/{workflow_id}",
    id="get_workflow",
    summary="The definition of a workflow",
    answers={200: DocumentedAnswer(body=described.WorkflowOut), **described.refusals()},
)
def get(call: Call, workflow_id: Segment) -> Response:
    try:
        workflow = call.host.use(Runs).workflow(workflow_id, fixtures=call.settings.openwop_seams)
    except Invalid:
        raise NotFound("There is no workflow with that id.") from None
    return Reply(definition(workflow_id, workflow))


def definition(workflow_id: str, workflow: Workflow) -> dict[str, Any]:
    """Describe a workflow, limited to the published members; the same for every tenant."""
    read = {item.name: {"type": "variable", "variableName": item.name, "optional": True} for item in workflow.takes}
    return {
        "id": workflow_id,
        "name": workflow.name or workflow_id,
        "version": "1.0.0",
        "nodes": [
            {
                "id": node.id,
                "typeId": node.type_id,
                "name": node.name,
                "position": {"x": 200 * place, "y": 0},
                "config": dict(node.config),
                "inputs": read if place == 0 else {},
            }
            for place, node in enumerate(workflow.nodes)
        ],
        "edges": [
            {"id": f"{before.id}-{after.id}", "sourceNodeId": before.id, "targetNodeId": after.id}
            for before, after in pairwise(workflow.nodes)
        ],
        "triggers": [{"id": "manual", "type": "manual"}],
        "variables": [
            {
                "name": item.name,
                "type": item.type,
                "required": item.required,
                **({"defaultValue": item.default} if item.default is not None else {}),
            }
            for item in workflow.takes
        ],
        "metadata": {"tags": ["conformance" if workflow.fixture else "memory"]},
        "settings": {"maxRetries": 0},
    }
