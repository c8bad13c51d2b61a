"""libjitc(3) from the public C headers: python3 manual.py VERSION HEADER... > libjitc.3

Of each header the first comment is the description; what stands under a line `/* ---- title ---- */` is a section of
declarations, each with the comment above it or behind it.
"""
import os
import re
import sys
import time


def shown(text):
    text = text.replace("\\", "\\e").replace("-", "\\-").replace("'", "\\(aq").replace("`", "\\(ga")
    text = text.replace("~", "\\(ti").replace("^", "\\(ha")
    return "\\&" + text if text.startswith((".", "\\(aq")) else text


def filled(text):
    """One paragraph, in lines of 72 columns."""
    lines, line = [], ""
    for word in text.split():
        if line and len(line) + 1 + len(word) > 72:
            lines.append(line)
            line = word
        else:
            line = f"{line} {word}".strip()
    return "\n".join(shown(one) for one in lines + [line])


def comment_text(comment):
    """A comment without its stars, line by line."""
    lines = comment[2:-2].split("\n")
    return [re.sub(r"^ \*? ?", "", line).rstrip() if at else line.strip() for at, line in enumerate(lines)]


def paragraphs(lines):
    """Filled; lines that are indented stand as they are."""
    out, block = [], []

    def flush():
        if block:
            out.append(".PP\n" + filled(" ".join(block)))
            block.clear()

    literal = []
    for line in lines + [""]:
        item = re.match(r"- ", line)
        if line.startswith("  ") and not (block and block[0].startswith("- ")):
            flush()
            literal.append(line)
            continue
        if literal:
            out.append(".PP\n.EX\n" + "\n".join(shown(one) for one in literal) + "\n.EE")
            literal = []
        if not line or item:
            flush()
        if line:
            block.append(line.strip())
    return "\n".join(out)


def declarations(body):
    """(comment's lines, declaration) in order; a comment behind a declaration's end counts as its own."""
    token = re.compile(r"/\*.*?\*/|[^/]+|/", re.S)
    comment, code, depth = None, "", 0
    for part in token.findall(body):
        if part.startswith("/*"):
            if code.strip():
                code += part  # inside a structure or an argument list
            else:
                comment = comment_text(part)
            continue
        for piece in re.split(r"(;)", part):
            code += piece
            depth += piece.count("{") - piece.count("}")
            if piece == ";" and depth == 0 and re.sub(r"/\*.*?\*/", "", code, flags=re.S).count("(") == \
                    re.sub(r"/\*.*?\*/", "", code, flags=re.S).count(")"):
                yield comment, code.strip()
                comment, code = None, ""


def with_trailing_comments(body):
    """`declaration; /* words */` becomes `/* words */ declaration;`, where the declaration has one line."""
    return re.sub(r"^((?:JITC_API|typedef|jitc)[^{\n/]*;)[ ]+(/\*.*?\*/)$", r"\2\n\1", body, flags=re.M)


def sections(text):
    text = re.sub(r"#ifdef __cplusplus.*?#endif[^\n]*", "", text, flags=re.S)
    text = re.sub(r"^#define [^\n]*\n|^#(?:include|ifndef|endif|if|else|define)[^\n]*\n", "", text, flags=re.M)
    parts = re.split(r"/\* -{4,} (.*?) -{4,} \*/", text)
    yield from zip(parts[1::2], parts[2::2])


def manual(version, headers):
    day = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    yield f'.\\" Made from the headers.\n.TH LIBJITC 3 {day} "jitc {version}" "jitc"'
    yield ".SH NAME\nlibjitc \\- compiled C for MPI solvers that generate code while they run"
    yield ".SH SYNOPSIS\n.EX\n#include <jitc/jitc.h>\n\ncc program.c \\-ljitc\n.EE\n.SH DESCRIPTION"
    texts = [open(header, encoding="utf-8").read() for header in headers]
    for text in texts:
        yield paragraphs(comment_text(re.search(r"/\*.*?\*/", text, re.S).group()))
    for text in texts:
        for title, body in sections(text[re.search(r"/\*.*?\*/", text, re.S).end():]):
            yield ".SH " + shown(title.upper())
            for comment, declaration in declarations(with_trailing_comments(body)):
                yield ".PP\n.EX\n" + "\n".join(shown(line) for line in declaration.split("\n")) + "\n.EE"
                if comment:
                    yield ".RS\n" + paragraphs(comment).replace(".PP\n", "", 1) + "\n.RE"
    yield ".SH SEE ALSO\n.BR jitc (1),\n.BR jitcd (8),\n.BR jitc.toml (5)"


def main():
    page = "\n".join(manual(sys.argv[1], sys.argv[2:]))
    page = page.replace("JITC_API ", "").replace(" JITC_AS_INT", "")
    print(re.sub(r"(\.SH [^\n]*\n)\.PP\n", r"\1", page))


main()
