"""Print the claims that tests no longer make since a commit, each with the commit that removed it.

``python -m tests.claims dd48bc2f`` prints a line for each test whose name is gone: the file, the
name, the first line of the docstring, and the subject of the last commit that removed it.
"""

import ast
import re
import subprocess
import sys

REMOVED = re.compile(r"-\s*def (test_\w+)")


def git(*words):
    return subprocess.run(["git", *words], capture_output=True, text=True, check=True).stdout


def claims(commit):
    """The first docstring line of each test in a commit, by (file, name)."""
    result = {}
    for path in git("ls-tree", "-r", "--name-only", commit, "tests").splitlines():
        if path.endswith(".py"):
            for node in ast.walk(ast.parse(git("show", f"{commit}:{path}"))):
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    first = (ast.get_docstring(node) or "").partition("\n")[0]
                    result[path, node.name] = first
    return result


def reasons(commit):
    """The hash and subject of the last commit that removed each test, by name."""
    result, subject = {}, ""
    changes = git("log", "-p", "-U0", "--reverse", "--format=@%h %s", f"{commit}..", "--", "tests")
    for line in changes.splitlines():
        if line.startswith("@") and not line.startswith("@@"):
            subject = line[1:]
        elif match := REMOVED.match(line):
            result[match[1]] = subject
    return result


def main(commit):
    before, after = claims(commit), claims("HEAD")
    why, names = reasons(commit), {name for _, name in after}
    gone = [place for place in before if place[1] not in names]
    for path, name in gone:
        first = f" ({before[path, name]})" if before[path, name] else ""
        print(f"{path}::{name}{first}: {why[name]}")
    print(f"{len(before)} tests before, {len(after)} after; {len(gone)} names are gone")


if __name__ == "__main__":
    main(sys.argv[1])
