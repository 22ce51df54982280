"""The file of labels beside a `model.toml`."""

from pathlib import Path

from service.config.model_config_error import ModelConfigError
from service.config.regular_file import read_text


def read_labels(config: Path, name: str) -> list[str]:
    """Return the labels in a file, one per line.

    Args:
        config: the `model.toml` that names it.
        name: its name; it lies beside that.

    Raises:
        ModelConfigError: it cannot be read, or has an empty line.
    """
    path = config.parent / name
    if Path(name).name != name:
        raise ModelConfigError(config, "labels", f"{name!r} is not a plain name", "a file beside model.toml")
    try:
        text = read_text(path, "utf-8-sig")
    except (OSError, ValueError) as error:
        raise ModelConfigError(
            config, "labels", f"{path} cannot be read: {error}", "UTF-8, one label per line"
        ) from error
    labels = [line.strip() for line in text.rstrip().splitlines()]
    if "" in labels or not labels:
        line = labels.index("") + 1 if labels else 1
        raise ModelConfigError(config, "labels", f"{path}, line {line} is empty", "one label per line")
    return labels
