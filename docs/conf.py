"""The documentation site: ``sphinx-build -W docs SITE``, with the extra ``docs``."""

import archgym

project = "archgym"
author = "The archgym maintainers"
copyright = f"{author}; Apache License 2.0"
release = version = archgym.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx_copybutton"]
source_suffix = {".md": "markdown"}
exclude_patterns = ["agreement"]
html_theme = "furo"
html_title = f"archgym {release}"
html_show_sourcelink = False
html_static_path = ["pictures/site.css"]
html_css_files = ["site.css"]

myst_enable_extensions = ["colon_fence"]
myst_heading_anchors = 3

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True, "show-inheritance": True}
autodoc_preserve_defaults = True
napoleon_numpy_docstring = False
napoleon_use_ivar = True

copybutton_exclude = ".linenos, .gp"
suppress_warnings = ["ref.python"]
"""The built-in ``range`` in an annotation is taken for the attribute of that name of parameters."""
