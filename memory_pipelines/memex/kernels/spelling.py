"""How names of JSON are spelt in Python; the same in the stubs that the model reads and in the objects it gets.

Part of the worker: standard library only.
"""

import keyword
import re


def identifier(name: str) -> str:
    """The nearest Python identifier; keywords get an underscore.

    Args:
        name: any text.

    Returns:
        The name itself where it can be used.
    """
    plain = re.sub(r"\W", "_", name) or "x"
    if not plain.isidentifier():
        plain = f"x{plain}"
    return f"{plain}_" if keyword.iskeyword(plain) else plain
