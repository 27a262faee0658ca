"""Arguments that several commands of ``archgym dataset`` take."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Source = Annotated[Path, typer.Argument(metavar="DIR", help="A dataset, or a run's folder.")]
Target = Annotated[Path, typer.Argument(metavar="OUT", help="Folder of the new dataset.")]
