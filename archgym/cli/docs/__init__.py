"""``archgym docs``: pages of documentation in Markdown, made from what they document."""
