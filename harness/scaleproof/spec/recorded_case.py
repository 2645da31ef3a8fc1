"""A case as a field of a record. Many records have the same case, which is parsed once."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Annotated, Any

from pydantic import PlainSerializer, PlainValidator

from scaleproof.spec import registry
from scaleproof.spec.case import AnyCase, parse_case


def _recorded_case(values: Any) -> AnyCase:
    if not isinstance(values, dict):
        return parse_case(values)
    return _parse_text(json.dumps(values), registry.generation())


@lru_cache(maxsize=1024)
def _parse_text(text: str, generation: int) -> AnyCase:
    """`generation`: of the registry; other plugins may refuse the case."""
    return parse_case(json.loads(text))


Case = Annotated[AnyCase, PlainValidator(_recorded_case), PlainSerializer(lambda case: case.model_dump(mode="json"))]
