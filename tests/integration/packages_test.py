"""The Debian packages: what is in them, and that they work.

usage: packages_test.py BUILD_DIRECTORY unpacked    unpacked below a directory
       packages_test.py BUILD_DIRECTORY installed   by apt in a fresh Debian, and removed without a trace; as root

The second needs debootstrap, lintian and a mirror of Debian that apt reaches; it is skipped without.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "faults"))
from harness import Node, without_settings  # noqa: E402

BUILD, MODE = sys.argv[1:]
SKIPPED = 77
PATIENCE = 1500  # seconds; ends a hang, measures nothing
MIRROR = os.environ.get("JITC_DEBIAN_MIRROR", "http://deb.debian.org/debian")
SUITE = "bookworm"
EXAMPLE = "usr/share/jitc/examples/powerlaw_stokes_2d.c"
PYTHON = 'import jitc; print(jitc.compile("double f(double x) { return 2 * x; }").functions["f"](21.0))'

# Everything that is not apt's or dpkg's own record of what it did.
IN_THE_ROOT = f"""set -e
everything() {{
  find / -xdev \\( -path /proc -o -path /dev -o -path /tmp -o -path /var/cache -o -path /var/log -o -path /var/lib/dpkg \\
    -o -path /var/lib/apt \\) -prune -o -print | sort
}}
export DEBIAN_FRONTEND=noninteractive JITC_RUNTIME_DIR=/tmp/run JITC_STORE=/tmp/store
apt-get update -qq
everything > /tmp/before
apt-get install -y --no-install-recommends /tmp/*.deb
! command -v gcc cc clang ld as
jitc submit /{EXAMPLE}
jitc stats --json > /tmp/stats.json
python3 -c '{PYTHON}'
jitc daemon stop
apt-get remove -y jitc
apt-get purge -y --autoremove jitc libjitc-dev python3-jitc '?name(^libjitc[0-9]+$)'
everything > /tmp/after
diff /tmp/before /tmp/after
"""


def skip(reason):
    print("skipped:", reason)
    sys.exit(SKIPPED)


def run(*command, **kwargs):
    done = subprocess.run([*map(str, command)], text=True, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **kwargs)
    assert done.returncode == 0, (command, done.stdout)
    return done.stdout


def built(directory, compression):
    run("cpack", "-B", directory, "-D", f"CPACK_DEBIAN_COMPRESSION_TYPE={compression}", cwd=BUILD)
    packages = {path.name.split("_")[0]: path for path in directory.glob("*.deb")}
    (library,) = (name for name in packages if name.startswith("libjitc") and name != "libjitc-dev")
    assert set(packages) == {"jitc", library, "libjitc-dev", "python3-jitc"}, packages
    return packages, library


def expect_contents(packages, library):
    def field(package, name):
        return run("dpkg-deb", "-f", packages[package], name).strip()

    version = f"(= {field('jitc', 'Version')})"
    assert "libc6" in field("jitc", "Depends") and "libclang" not in field("jitc", "Depends")
    assert "libgrpc++" in field(library, "Depends"), field(library, "Depends")
    for package in ("libjitc-dev", "python3-jitc"):
        assert f"{library} {version}" in field(package, "Depends"), field(package, "Depends")
    owners = {}
    for package, path in packages.items():
        for line in run("dpkg-deb", "-c", path).splitlines():
            _, owner, *_, name = line.split(" -> ")[0].split()
            assert owner == "root/root" and name.startswith("./usr/"), line
            if not name.endswith("/"):
                assert name not in owners, (name, package, owners[name])
                owners[name] = package
    for name, package in (("bin/jitcd", "jitc"), ("libexec/jitc/jitc-worker", "jitc"),
                          ("lib/systemd/user/jitcd.socket", "jitc"), ("include/jitc/jitc.h", "libjitc-dev"),
                          ("lib/python3/dist-packages/jitc/__init__.py", "python3-jitc")):
        assert owners.pop(f"./usr/{name}") == package, name
    for package in packages:
        assert owners[f"./usr/share/doc/{package}/copyright"] == package


def unpacked(scratch):
    packages, library = built(scratch, "none")
    expect_contents(packages, library)
    root = scratch / "root"
    for path in packages.values():
        run("dpkg-deb", "-x", path, root)
    unit = (root / "usr/lib/systemd/user/jitcd.service").read_text()
    assert "\nExecStart=/usr/bin/jitcd --foreground\n" in unit, unit
    with Node(root / "usr/bin") as node:
        done = node.jitc("submit", root / EXAMPLE)
        assert done.returncode == 0 and done.stdout.startswith(str(node.store)), (done.stdout, done.stderr)
        python = {**node.environment, "PYTHONPATH": str(root / "usr/lib/python3/dist-packages")}
        assert run("/usr/bin/python3", "-B", "-c", PYTHON, env=python) == "42.0\n"
        assert node.stats()["compiles_started"] == 2, node.stats()


def installed(scratch):
    if os.geteuid() != 0:
        skip("a root of one's own needs root")
    for program in ("debootstrap", "lintian", "unshare"):
        if not shutil.which(program):
            skip(f"{program} is not installed")
    if subprocess.run(["unshare", "--mount", "--pid", "--fork", "true"], stderr=subprocess.DEVNULL, check=False).returncode:
        skip("no namespaces can be made here")
    root = scratch / "root"
    made = subprocess.run(["debootstrap", "--variant=minbase", SUITE, root, MIRROR], text=True, timeout=PATIENCE,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    if made.returncode != 0:
        skip(f"debootstrap from {MIRROR}: {made.stdout[-500:]}")
    packages, _ = built(scratch, "gzip")
    print(run("lintian", "--no-cfg", "--allow-root", "--fail-on", "error", *packages.values()))
    for path in packages.values():
        shutil.copy(path, root / "tmp")
    (root / "tmp/script").write_text(IN_THE_ROOT)
    environment = {name: value for name, value in without_settings(os.environ).items() if name.endswith("_proxy")}
    # Mounts and processes end with the namespace.
    print(run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec",
              'mount -t proc proc "$1/proc"; mount --rbind /dev "$1/dev"; exec chroot "$1" sh /tmp/script', "sh", root,
              env={**environment, "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C.UTF-8", "HOME": "/root"}))
    stats = json.loads((root / "tmp/stats.json").read_text())
    assert stats["compiles_started"] == 1, stats


with tempfile.TemporaryDirectory(prefix="jitc-packages-") as directory:
    {"unpacked": unpacked, "installed": installed}[MODE](pathlib.Path(directory))
