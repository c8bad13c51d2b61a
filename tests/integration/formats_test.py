#!/usr/bin/python3
"""docs/formats.md proven: a reader made from that page alone, over the golden files and what the service compiles.

    formats_test.py GOLDEN                the files in GOLDEN
    formats_test.py GOLDEN --bin DIR      and what a daemon from DIR writes
"""
import argparse
import collections
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tempfile

HEX = re.compile("[0-9a-f]{64}")
FOOTER = 104
COUNTS = ("emitter_version", "origin_bytes", "code_bytes", "calls", "largest_function", "nesting", "peak_bytes",
          "predicted_bytes", "attempts")
TEXTS = ("key", "request", "name", "origin_digest", "compiler_wish", "abi_tag", "share", "cse", "isa_wish", "compiler",
         "compiler_identity", "triple", "isa", "includes", "log", "created")
TEXT_LISTS = ("flags", "flags_used", "rungs")
PAIR_LISTS = {"headers": {"name", "digest"}, "functions": {"name", "signature"}}
LEVELS = ("x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4")


class Corrupt(Exception):
    pass


Artifact = collections.namedtuple("Artifact", "key isa_mask image manifest digest")


def number(data):
    return int.from_bytes(data, "little")


def read_artifact(data):
    """The parts of an artifact file that verifies; Corrupt with the reason otherwise."""
    def must(condition, reason):
        if not condition:
            raise Corrupt(reason)

    must(len(data) >= FOOTER, "too short")
    footer = data[-FOOTER:]
    must(footer[:8] == b"JITCART1", "magic")
    must(number(footer[8:12]) == 1, "version")
    must(number(footer[12:16]) == FOOTER, "footer's size")
    image_size, manifest_size = number(footer[56:64]), number(footer[64:72])
    must(image_size + manifest_size + FOOTER == len(data), "sizes")
    must(hashlib.sha256(data[:-32]).digest() == footer[72:], "digest")
    must(data[:4] == b"\x7fELF", "image")
    return Artifact(footer[16:48].hex(), number(footer[48:56]), data[:image_size],
                    json.loads(data[image_size:-FOOTER].decode()), footer[72:].hex())


def check_manifest(manifest):
    """Every member of the page is there with its type and range, and no other."""
    for name in TEXTS:
        assert isinstance(manifest[name], str), name
    for name in COUNTS:
        limit = 32 if name in ("emitter_version", "attempts") else 64
        assert type(manifest[name]) is int and 0 <= manifest[name] < 2**limit, name
    for name in TEXT_LISTS:
        assert all(isinstance(text, str) for text in manifest[name]), name
    for name, members in PAIR_LISTS.items():
        assert all(set(pair) == members and all(isinstance(text, str) for text in pair.values())
                   for pair in manifest[name]), name
    assert type(manifest["exact_flags"]) is bool
    assert type(manifest.get("checked", False)) is bool  # absent in the golden file, which is older
    assert isinstance(manifest["compile_seconds"], (int, float))
    for name in ("key", "request", "origin_digest"):
        assert HEX.fullmatch(manifest[name]), name
    assert manifest["includes"] == "" or HEX.fullmatch(manifest["includes"])
    for name in ("share", "cse"):
        assert manifest[name] in ("0", "1", "auto"), name
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", manifest["created"]), manifest["created"]
    described = {*TEXTS, *COUNTS, *TEXT_LISTS, *PAIR_LISTS, "exact_flags", "compile_seconds", "checked"}
    assert {*manifest, "checked"} == described, set(manifest) ^ described


# ---- digests ----------------------------------------------------------------------------------------------------------

class Fields:
    def __init__(self, domain):
        self.data = b""
        self.add("d", "domain", domain.encode())

    def add(self, kind, name, value):
        self.data += kind.encode()
        for part in (name.encode(), value):
            self.data += len(part).to_bytes(8, "little") + part
        return self

    def text(self, name, value):
        return self.add("t", name, as_bytes(value))

    def number(self, name, value):
        return self.add("n", name, value.to_bytes(8, "little"))

    def digest(self, name, value):
        return self.add("h", name, bytes.fromhex(value))

    def list(self, name, count):
        return self.add("l", name, count.to_bytes(8, "little"))

    def hex(self):
        return hashlib.sha256(self.data).hexdigest()


def as_bytes(text):
    return text if isinstance(text, bytes) else text.encode()


def unix(text):
    return as_bytes(text).replace(b"\r\n", b"\n")


def request_digest(request):
    fields = Fields("jitc request 1").text("origin", unix(request["origin"])).list("flags", len(request["flags"]))
    for flag in request["flags"]:
        fields.text("flag", flag)
    fields.text("compiler", request["compiler"]).text("abi", request["abi_tag"])
    fields.text("share", request["share"]).text("cse", request["cse"]).number("emitter", request["emitter_version"])
    fields.text("isa", request["isa_wish"]).list("headers", len(request["headers"]))
    for header in request["headers"]:
        fields.text("name", header["name"]).text("text", unix(header["text"]))
    return fields.number("exact_flags", int(request["exact_flags"])).hex()


def includes_digest(roots):
    fields = Fields("jitc include roots 1")
    for root in roots:
        fields.text("root", root)
    return fields.hex()


def artifact_key(request, compiler, identity, triple, isa, includes=""):
    fields = Fields("jitc artifact 1").digest("request", request)
    fields.text("compiler", compiler).text("identity", identity).text("triple", triple).text("isa", isa)
    return (fields.digest("includes", includes) if includes else fields).hex()


def key_of_row(row):
    includes = includes_digest(row["include_roots"]) if row["include_roots"] else ""
    return artifact_key(row["request_digest"], row["compiler"]["name"], row["compiler"]["identity"],
                        row["target"]["triple"], row["target"]["isa"], includes)


def check_digests_of(artifact, origin, headers=()):
    """The manifest and the texts give the digests and the key that footer and manifest name."""
    manifest = artifact.manifest
    check_manifest(manifest)
    assert manifest["origin_digest"] == hashlib.sha256(unix(origin)).hexdigest()
    assert manifest["origin_bytes"] == len(as_bytes(origin))
    assert manifest["headers"] == [{"name": header["name"], "digest": hashlib.sha256(unix(header["text"])).hexdigest()}
                                   for header in headers]
    request = {"origin": origin, "headers": headers, "compiler": manifest["compiler_wish"],
               **{name: manifest[name] for name in ("flags", "abi_tag", "share", "cse", "emitter_version", "isa_wish",
                                                    "exact_flags")}}
    assert manifest["request"] == request_digest(request), "request digest"
    key = artifact_key(manifest["request"], manifest["compiler"], manifest["compiler_identity"], manifest["triple"],
                       manifest["isa"], manifest["includes"])
    assert key == manifest["key"] == artifact.key, "artifact key"


# ---- the identity file ------------------------------------------------------------------------------------------------

def check_identity(identity):
    for name in ("version", "triple", "native_isa", "store"):
        assert isinstance(identity[name], str), name
    assert type(identity["pid"]) is int
    assert type(identity.get("store_is_shared", False)) is bool
    assert all(isinstance(path, str) for path in identity["read_only_stores"])
    assert all(type(uid) is int for uid in identity.get("store_owners", {}).values())
    assert all(isinstance(one[name], str) for one in identity["compilers"] for name in ("name", "path", "identity"))
    assert identity["compilers"][0]["path"] == ""
    assert all(isinstance(root[name], str) for root in identity["include_roots"] for name in ("path", "digest"))


# ---- the capsule ------------------------------------------------------------------------------------------------------

CAPSULE_NUMBERS = {"limits": ("memory_bytes", "cpu_seconds", "compilers", "budget_bytes"),
                   "use": ("predicted_bytes", "peak_bytes", "seconds", "attempts", "exit_status", "signal")}
CAPSULE_TEXTS = {"compiler": {"name", "path", "identity"}, "target": {"triple", "isa"}}
DIAGNOSTIC = {"severity", "line", "column", "message", "excerpt"}


def check_capsule(capsule):
    """Every member of the page is there with its type, and no other; its request gives the digest and the key."""
    assert capsule["format"] == "jitc capsule" and capsule["version"] == 1
    described = {"format", "version", "created", "jitc", "host", "key", "request_digest", "command", "environment", "error",
                 "request", *CAPSULE_NUMBERS, *CAPSULE_TEXTS}
    assert set(capsule) == described, set(capsule) ^ described
    assert all(isinstance(word, str) for word in capsule["command"])
    assert all("=" in variable for variable in capsule["environment"])
    for name, members in CAPSULE_TEXTS.items():
        assert set(capsule[name]) == members and all(isinstance(text, str) for text in capsule[name].values()), name
    for name, members in CAPSULE_NUMBERS.items():
        assert set(capsule[name]) == set(members), name
        assert all(isinstance(value, float if member == "seconds" else int) and 0 <= value < 2**63
                   for member, value in capsule[name].items() if value), name
    error, request = capsule["error"], capsule["request"]
    assert set(error) == {"kind", "message", "thing", "remedy", "log", "capsule", "rungs", "needed_bytes", "budget_bytes",
                          "tries", "retry_after_seconds", "diagnostics"}, error
    assert all(set(one) == DIAGNOSTIC for one in error["diagnostics"])
    assert set(request) == {"origin", "flags", "compiler", "abi_tag", "share", "cse", "emitter_version", "isa_wish",
                            "headers", "exact_flags", "name", "code", "isa_level"}, request
    assert capsule["request_digest"] == request_digest(request)
    assert capsule["key"] == artifact_key(capsule["request_digest"], capsule["compiler"]["name"],
                                          capsule["compiler"]["identity"], *(capsule["target"][name] for name in ("triple", "isa")))


# ---- what there is to read --------------------------------------------------------------------------------------------

def read_golden(directory):
    rows = json.loads((directory / "requests_v1.json").read_text())
    assert len(rows) >= 10
    for row in rows:
        assert request_digest(row["request"]) == row["request_digest"], row["what"]
        assert key_of_row(row) == row["key"], row["what"]
    assert len({row["key"] for row in rows}) == len({json.dumps([row["request_digest"], row["compiler"], row["target"],
                                                                 row["include_roots"]]) for row in rows})
    data = (directory / "artifact_v1.so").read_bytes()
    artifact = read_artifact(data)
    first = rows[0]
    assert artifact.key == first["key"] and artifact.isa_mask == 0b11
    assert artifact.manifest == json.loads((directory / "manifest_v1.json").read_bytes())
    check_digests_of(artifact, first["request"]["origin"], first["request"]["headers"])
    for damaged in (data[:-1], data + b"\0", data[1:], data[:50] + b"?" + data[51:], data[:103]):
        try:
            read_artifact(damaged)
        except Corrupt:
            continue
        raise AssertionError("damage was not found")
    check_identity(json.loads((directory / "identity_v1.json").read_text()))
    check_capsule(json.loads((directory / "capsule_v1.json").read_text()))
    plan = [json.loads(line) for line in (directory / "plan_v1.jsonl").read_text().splitlines()]
    for line in plan:
        assert (line["format"], line["version"]) == ("jitc plan", 1)
        assert line["digest"] == request_digest(line["request"]) and line["request"]["isa_level"] == ""
    assert plan[0]["digest"] == first["request_digest"] and plan[1]["request"]["code"]
    with tarfile.open(directory / "archive_v1.tar") as archive:
        members = archive.getmembers()
        assert [member.name for member in members] == [f"v1/{artifact.key[:2]}/{artifact.key}.so"]
        assert archive.extractfile(members[0]).read() == data
    print(f"golden files: an artifact of {len(data)} bytes, {len(rows)} requests")


SOURCE = b"double twice(double x) {\r\n  return 2.0 * x;\r\n}\r\n"


def read_live(binaries):
    """What a daemon leaves behind: its identity file, and artifacts by the embedded compiler and by gcc."""
    with tempfile.TemporaryDirectory(prefix="jitc-formats-") as name:
        scratch = pathlib.Path(name)
        roots = [scratch / "include"]
        roots[0].mkdir()
        (roots[0] / "three.h").write_text("#define THREE 3.0\n")
        environment = {variable: value for variable, value in os.environ.items()
                       if not variable.startswith(("JITC_", "XDG_"))}
        environment.update(JITC_RUNTIME_DIR=str(scratch / "run"), JITC_STORE=str(scratch / "store"), HOME=name)

        def jitc(*arguments, cwd=None, code=0, **further):
            done = subprocess.run([str(binaries.resolve() / "jitc"), *map(str, arguments)], env={**environment, **further},
                                  cwd=cwd, timeout=120, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            assert done.returncode == code, done.stderr.decode()
            return done.stdout.decode().strip()

        source = scratch / "twice.c"
        source.write_bytes(SOURCE)
        for settings in ({}, {"JITC_INCLUDE_ROOTS": str(roots[0])}):
            environment.update(settings)
            jitc("daemon", "start")
            try:
                if not settings:
                    check_live_capsule(jitc, scratch)
                for arguments in (["--flag=-O1", "--flag=-DB=2", "--isa=x86-64-v2"], ["--cc=gcc", "--flag=-O2"],
                                  ["--isa=native"]):
                    check_live(jitc, source, arguments, scratch, bool(settings))
            finally:
                jitc("daemon", "stop")
    print("what the daemon wrote reads as the page says")


def check_live_capsule(jitc, scratch):
    source = scratch / "broken.c"
    source.write_bytes(b"int f(void) {\r\n  return q;\r\n}\r\n")
    error = json.loads(jitc("submit", "--json", source, code=1))["error"]
    capsule = json.loads(pathlib.Path(error["capsule"]).read_text())
    check_capsule(capsule)
    assert pathlib.Path(error["capsule"]) == scratch / "run" / "capsules" / f"{capsule['key']}.json"
    assert capsule["request"]["origin"].encode() == source.read_bytes()
    assert capsule["error"]["diagnostics"][0]["line"] == 2


def check_live(jitc, source, arguments, scratch, has_roots):
    path = pathlib.Path(jitc("submit", *arguments, source))
    artifact = read_artifact(path.read_bytes())
    assert path == scratch / "store" / "v1" / artifact.key[:2] / f"{artifact.key}.so"
    check_digests_of(artifact, SOURCE)
    manifest = artifact.manifest
    identity = json.loads((scratch / "run" / "identity.json").read_text())
    check_identity(identity)
    assert manifest["triple"] == identity["triple"]
    assert {"name": manifest["compiler"], "identity": manifest["compiler_identity"]} in [
        {name: one[name] for name in ("name", "identity")} for one in identity["compilers"]]
    roots = [root["digest"] for root in identity["include_roots"]]
    assert manifest["includes"] == (includes_digest(roots) if has_roots else ""), manifest["includes"]
    assert [function["name"] for function in manifest["functions"]] == ["twice"], manifest["functions"]
    assert manifest["peak_bytes"] > 0 and manifest["attempts"] == 1 and manifest["checked"] is False
    if manifest["isa"] in LEVELS:
        assert artifact.isa_mask == (2 << LEVELS.index(manifest["isa"])) - 1, (manifest["isa"], artifact.isa_mask)
    else:
        assert manifest["isa_wish"] == "native" and manifest["isa"] == identity["native_isa"]
    moved = scratch / "elsewhere" / "other_name.c"
    moved.parent.mkdir(exist_ok=True)
    moved.write_bytes(SOURCE.replace(b"\r\n", b"\n"))
    answer = json.loads(jitc("submit", "--json", *arguments, "other_name.c", HOME="/", USER="nobody", TZ="Asia/Tokyo",
                             PWD="/", cwd=moved.parent))
    assert answer["hit"] and answer["path"] == str(path), answer


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("golden", type=pathlib.Path)
    parser.add_argument("--bin", type=pathlib.Path)
    arguments = parser.parse_args()
    read_golden(arguments.golden)
    if arguments.bin:
        read_live(arguments.bin)
    return 0


if __name__ == "__main__":
    sys.exit(main())
