from pydantic import BaseModel

from service.schema_building import built_when_used


def _is_built(model: type[BaseModel]) -> bool:
    return model.__pydantic_complete__


def test_models_made_meanwhile_are_built_when_first_used() -> None:
    with built_when_used():

        class Port(BaseModel):
            name: str

        class Graph(BaseModel):
            ports: list[Port]

    assert not _is_built(Port)
    assert not _is_built(Graph)
    assert Graph.model_validate({"ports": [{"name": "in"}]}).ports == [Port(name="in")]
    assert _is_built(Graph)
    assert Graph.model_json_schema()["properties"]["ports"]["items"] == {"$ref": "#/$defs/Port"}


def test_models_made_later_are_built_at_once() -> None:
    with built_when_used():
        pass

    class Port(BaseModel):
        name: str

    assert _is_built(Port)
