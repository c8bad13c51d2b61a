"""The examples in Python, and the texts of the guides: every block of Python in them runs as it is written.

usage: examples_test.py BIN_DIRECTORY RANKS MPIRUN...
"""
import re
import subprocess
import sys

import ranks
from ranks import HERE

EXAMPLES = HERE.parent.parent / "client/examples/python"
DOCS = HERE.parent.parent / "docs"


class Examples(ranks.RanksCase):
    def run_alone(self, *arguments):
        done = subprocess.run([sys.executable, "-B", *map(str, arguments)], env=self.environment, text=True,
                              timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        return done.stdout

    def test_kernel(self):
        for out in (self.run_alone(EXAMPLES / "kernel.py"), self.run_ranks(EXAMPLES / "kernel.py")):
            self.assertEqual(out.splitlines(), ["viscosity: [2.  1.  0.5]", "scaled: [0.5 2.  8. ]",
                                                "INVALID_SOURCE in line 1, column 33: expected expression"])
        self.assertEqual(self.node.stats()["compiles_started"], 2)  # the text, and the wrong one

    def test_bratu(self):
        told = [re.fullmatch(r"module from: (\w+); Newton steps: (\d+); largest u: (.*)\n", out).groups()
                for out in (self.run_ranks(EXAMPLES / "bratu.py"), self.run_alone(EXAMPLES / "bratu.py"))]
        self.assertEqual([one[0] for one in told], ["compiled", "store"])
        self.assertEqual(told[0][1:], told[1][1:])  # of any number of ranks
        self.assertEqual(told[0][1], "4")  # as many as Newton takes with the right slope
        self.assertAlmostEqual(float(told[0][2]), 0.5569, delta=1e-3)

    def test_rheology(self):
        out = self.run_ranks(EXAMPLES / "rheology.py")
        self.assertIn("constants: ['eta', 'tau_y']", out)
        self.assertIn("Newton's block differs from Picard's: True", out)
        self.assertIn("addresses for PETSc: 1 2", out)

    def test_guides(self):
        """The blocks of one guide share their names, in order."""
        for name in ("python.md", "underworld.md"):
            blocks = re.findall(r"^```python\n(.*?)^```$", (DOCS / name).read_text(), re.DOTALL | re.MULTILINE)
            self.assertGreater(len(blocks), 2, name)
            program = self.node.write(name.replace(".md", "_blocks.py"), "\n".join(blocks))
            self.run_alone(program)


if __name__ == "__main__":
    ranks.main()
