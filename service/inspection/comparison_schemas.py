"""Schemas of comparisons, for the OpenAPI description."""

from pydantic import BaseModel, Field


class ComparedSide(BaseModel):
    """One side of a comparison."""

    label: str = Field(description="what it is, for people")


class ComparedOperator(BaseModel):
    """An operator on both sides."""

    name: str
    type: str
    left_ms: float | None = Field(
        description="time in a run that keeps nothing; null for one that was not run"
    )
    right_ms: float | None = Field(description="the same of the other side; null where that is a reference")
    max_abs: float | None = Field(description="largest absolute difference; null where nothing was compared")
    max_rel: float | None = Field(
        description="the same over the largest absolute value of the right side; null likewise"
    )
    snr_db: float | None = Field(
        description="signal-to-noise ratio in decibels; null where there is no difference, or nothing to compare"
    )
    problem: str | None = Field(description="why the two count as different; null where they do not")
    backend: str | None = Field(description="what computed the left side: native or numpy")
    group: list[str] = Field(
        description="other operators that the same kernel computes, which are compared here, at its end"
    )


class ComparisonView(BaseModel):
    """A model's run beside another, operator by operator in order of execution."""

    model: str
    version: str
    tolerance: float
    left: ComparedSide
    right: ComparedSide
    operators: list[ComparedOperator]
    first: str | None = Field(
        description="first operator that differs, as `kuiper check --layers` finds it; null where none does"
    )
    agree: bool
    compared: int = Field(description="operators whose results were compared")
