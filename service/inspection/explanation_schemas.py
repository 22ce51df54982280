"""What requests ask of an explanation, and the response."""

from typing import Any, Literal

from pydantic import BaseModel, Field

Method = Literal["occlusion", "score-cam", "words"]


class Question(BaseModel):
    """What is to be explained, and how."""

    target: str | None = Field(
        default=None, description="label or number of a class; default: the most probable"
    )
    place: int = Field(
        default=0, ge=0, le=1000, description="place among the target's predictions; 0: the most probable"
    )
    method: Method | None = Field(
        default=None, description="default: occlusion for a picture, words for a text"
    )
    grid: int = Field(default=8, ge=2, le=32, description="occlusion: parts along each side")
    maps: int = Field(default=64, ge=1, le=512, description="Score-CAM: the most varying channels")
    layer: str | None = Field(
        default=None,
        description="Score-CAM: operator or operand; default: the last with several pixels",
    )


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
    layer: str | None = Field(default=None, description="operand whose channels were used")
    region: list[float] | None = Field(
        default=None,
        description="part of the picture that the heatmap covers: left, top, right, bottom in its pixels",
    )
    heatmap: list[list[float]] | None = Field(
        default=None, description="by how much the score falls without each part; of Score-CAM, from 0 to 1"
    )
    overlay: str | None = Field(default=None, description="the picture with the heatmap, PNG in base64")
    words: list[WordView] | None = Field(default=None, description="of a text")
