"""The table of all settings as markdown: `python -m service.config.settings_table` prints it."""

from service.config.settings import describe_settings


def settings_table() -> str:
    """Return the markdown table of all settings."""
    rows = ["| flag | environment | default | meaning |", "|---|---|---|---|"]
    for doc in describe_settings():
        default = f"`{doc.default}`" if doc.default else ""
        flag = f"`{doc.flag}`" if doc.flag else ""
        rows.append(f"| {flag} | `{doc.variable}` | {default} | {doc.text} |")
    return "\n".join(rows)


if __name__ == "__main__":
    print(settings_table())
