"""Each public name of the Python package has a docstring, and its reference can be made."""

from __future__ import annotations

import ast
import sys
import unittest

from source_texts import ROOT

import python_reference

PACKAGE = ROOT / "client" / "python" / "jitc"


class PythonDocstrings(unittest.TestCase):
    def test_everything_public_has_a_docstring(self) -> None:
        self.assertEqual([], python_reference.undocumented(PACKAGE))

    def test_the_page_has_all_that_the_package_hands_on(self) -> None:
        page = python_reference.page(PACKAGE)
        trees = [ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.glob("*.py")]
        defined = {one.name for tree in trees for one in python_reference.definitions(tree)}  # no aliases, no version
        names = defined & set(python_reference.exported(ast.parse((PACKAGE / "__init__.py").read_text("utf-8"))))
        self.assertGreater(len(names), 20)
        for name in names:
            with self.subTest(name=name):
                self.assertIn(f"### {name}\n", page)

    def test_a_docstring_becomes_markdown(self) -> None:
        tree = ast.parse('def f(a):\n    """Does it.\n\n    Args:\n        a: this\n            and that.\n\n'
                         '    So:\n\n        f(1)\n    """\n')
        text = "\n".join(python_reference.text_of(tree.body[0]))
        self.assertIn("**Arguments**\n\n- `a`: this\n  and that.", text)
        self.assertIn("```python\nf(1)\n", text)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
