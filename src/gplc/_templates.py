"""Pages from the templates of a room: whatever is put into one is escaped, and escaped once."""

from typing import Any

import jinja2


def environment(room: str) -> jinja2.Environment:
    """The templates in the folder ``templates`` of a room.

    Examples
    --------
    >>> environment("gplc.report").from_string("<p>{{ name }}</p>").render(name="a < b")
    '<p>a &lt; b</p>'
    """
    made = jinja2.Environment(
        loader=jinja2.PackageLoader(room),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.policies["json.dumps_kwargs"] = {"separators": (",", ":")}
    return made


def rendered(room: str, name: str, **values: Any) -> str:
    """A page of a room, with values filled in."""
    return environment(room).get_template(name).render(**values)
