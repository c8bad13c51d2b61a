"""Each message, field and call of proto/ says what it is, and its reference can be made."""

from __future__ import annotations

import sys
import unittest

from source_texts import ROOT

import proto_reference

FILES = sorted((ROOT / "proto").rglob("*.proto"))


class ProtoComments(unittest.TestCase):
    def test_everything_has_a_comment(self) -> None:
        self.assertEqual(["compiler.proto", "worker.proto"], [file.name for file in FILES])
        for file in FILES:
            for element in proto_reference.undocumented(file.read_text(encoding="utf-8")):
                with self.subTest(file=file.name):
                    self.fail(f"{element} has no comment")

    def test_the_page_has_all(self) -> None:
        page = proto_reference.page(FILES)
        for file in FILES:
            for name, element in proto_reference.walk(proto_reference.Parser(file.read_text(encoding="utf-8")).parse()):
                if element.kind in ("message", "enum", "service"):
                    self.assertIn(f"### {element.kind} {name}\n", page)
                elif element.kind != "oneof":
                    self.assertIn(f"| `{element.name}` |", page)

    def test_comments_above_and_behind_are_found(self) -> None:
        text = "// The file.\n\n// A thing.\nmessage A {\n  // Above.\n  int32 b = 1;  // Behind.\n  string c = 2;\n}\n"
        (message,) = proto_reference.Parser(text).parse()
        self.assertEqual("A thing.", message.comment)
        self.assertEqual(["Above. Behind.", ""], [member.comment for member in message.members])
        self.assertEqual(["line 7: field A.c"], proto_reference.undocumented(text))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
