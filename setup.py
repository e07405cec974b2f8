"""Steps of the build: the examples go into the package, and the README's links to the sources."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from setuptools import find_packages, setup

EXAMPLES = "acquatop.examples"


def readme() -> str:
    """Return the README with links and pictures that work outside of the repository."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    base = f"{project['urls']['Source']}/raw/main/"
    text = Path("README.md").read_text("utf-8")
    pictures = re.sub(r"(!\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{base}", text)
    return re.sub(
        r"(?<!!)(\[[^\]]*\]\()(?!https?:|#)", rf"\g<1>{base.replace('/raw/', '/blob/')}", pictures
    )


setup(
    packages=[
        *find_packages(include=["acquatop*", "connectors*", "replica*", "rspql*"]),
        *(EXAMPLES, *(f"{EXAMPLES}.{each}" for each in find_packages("examples"))),
    ],
    package_dir={EXAMPLES: "examples"},
    long_description=readme(),
    long_description_content_type="text/markdown",
)
