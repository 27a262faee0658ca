"""The part of a declaration that says where its commands run."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

__all__ = ["Engine", "WhereEntry"]

Engine = Literal["docker", "podman", "apptainer"]
_ALLOWED = "allowed is host, or a mapping with container: IMAGE"


class WhereEntry(BaseModel):
    """The container in which commands run; ``host`` stands for none.

    >>> WhereEntry.model_validate("host").container
    ''
    >>> WhereEntry.model_validate({"container": "gem5:22", "with": "podman"}).with_
    'podman'
    """

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=False)

    container: str = Field(
        description="an image: its name in a registry, or the path of a file of apptainer"
    )
    with_: Engine | None = Field(
        default=None,
        alias="with",
        description="docker, podman or apptainer; the first on PATH that has the image if left out",
    )
    network: bool = Field(default=False, description="whether commands see the network")
    mounts: list[Annotated[str, Field(min_length=1)]] = Field(
        default_factory=list,
        description="further files and folders that commands read; they have the same path inside",
    )
    options: dict[Engine, list[str]] = Field(
        default_factory=dict, description="engine: further options of its command line"
    )

    @model_validator(mode="before")
    @classmethod
    def _host(cls, data: Any) -> Any:
        if data == "host":
            return {"container": ""}
        if not isinstance(data, dict):
            raise ValueError(_ALLOWED)
        if data.get("container") == "":
            raise ValueError(f"container is empty: {_ALLOWED}")
        return data

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core_schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Adds the word ``host`` to what editors take."""
        mapping = handler.resolve_ref_schema(handler(core_schema))
        return {"anyOf": [{"const": "host"}, mapping], "description": mapping["description"]}
