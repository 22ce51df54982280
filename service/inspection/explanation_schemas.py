"""The response that explains a prediction."""

from typing import Any

from pydantic import BaseModel, Field

from service.inspection.explanation import Method


class WordView(BaseModel):
    """A word of a text."""

    text: str
    start: int = Field(description="its first character in the text")
    end: int = Field(description="the character after its last")
    importance: float = Field(description="by how much the score falls without it")


class ExplanationView(BaseModel):
    """Why a prediction is what it is."""

    model: str
    version: str
    method: Method
    target: dict[str, Any] = Field(description="the prediction, as `/infer` returns it")
    runs: int = Field(description="inputs that the model was run on")
    layer: str | None = Field(description="operand whose channels were used")
    region: list[float] | None = Field(
        description="part of the picture that the heatmap covers: left, top, right, bottom in its pixels"
    )
    heatmap: list[list[float]] | None = Field(
        description="by how much the score falls without each part; of Score-CAM, from 0 to 1"
    )
    overlay: str | None = Field(description="the picture with the heatmap, PNG in base64")
    words: list[WordView] | None = Field(description="of a text")
