"""The list of all settings as markdown: `python -m service.config.settings_table` prints it."""

from service.config.settings import describe_settings


def settings_table() -> str:
    """Return the markdown list of all settings."""
    rows = []
    for doc in describe_settings():
        default = f", default `{doc.default}`" if doc.default else ""
        names = f"`{doc.flag}` (`{doc.variable}`{default})" if doc.flag else f"`{doc.variable}` (no flag)"
        rows.append(f"- {names}: {doc.text}")
    return "\n".join(rows)


if __name__ == "__main__":
    print(settings_table())
