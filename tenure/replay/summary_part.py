"""What all parts of a summary are."""

from pydantic import BaseModel, ConfigDict


class SummaryPart(BaseModel):
    """Figures that belong together: plain, frozen data."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)
