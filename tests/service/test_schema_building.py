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


def test_models_that_a_module_completes_are_built_when_first_used() -> None:
    """As those of FastAPI are, which refer to each other."""
    with built_when_used():

        class Graph(BaseModel):
            parts: "list[Part]"

        class Part(BaseModel):
            name: str

        Graph.model_rebuild()
        assert not _is_built(Graph)
        Part(name="in")  # as a model is that another thread uses meanwhile
        assert _is_built(Part)

    Graph.model_rebuild()
    assert Graph.model_validate({"parts": [{"name": "in"}]}).parts == [Part(name="in")]


def test_nothing_of_pydantic_stays_changed() -> None:
    before = vars(BaseModel)["model_rebuild"], BaseModel.model_config
    with built_when_used():
        assert vars(BaseModel)["model_rebuild"] is not before[0]
    assert (vars(BaseModel)["model_rebuild"], BaseModel.model_config) == before
