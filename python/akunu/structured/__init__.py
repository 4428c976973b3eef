"""Texts of a given form: JSON of a schema, a regular expression, a grammar, a choice, tagged calls of tools.

What is asked for is data (`Structure`, `StructuralTag`) and needs nothing; what it takes to obey is imported
when a text has a form.
"""

from akunu.structured.tags import StructuralTag, Tag

__all__ = ["StructuralTag", "Tag"]
