#!/usr/bin/env python3
"""Checks the source tree against the project's rules: who may include what, lengths, banned words, form.

    check_tree.py [ROOT]

Prints one line per breach (path:line: rule: what is wrong) and ends with exit code 1 if there is any. Reads text
only, in about a second; tests/arch/README.md lists the rules.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import rules_includes  # noqa: E402
import rules_text  # noqa: E402
from tree import Tree  # noqa: E402


def breaches_of(root):
    """Sorted list of (path, line, rule, message)."""
    tree = Tree(root)
    found = set()
    for check in rules_includes.CHECKS + rules_text.CHECKS:
        found.update(check(tree))
    return sorted(found), len(tree.files)


def main():
    root = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    breaches, count = breaches_of(root)
    for path, line, rule, message in breaches:
        print(f"{path}:{line}: {rule}: {message}")
    print(f"{count} files, {len(breaches)} breaches")
    if count == 0:
        print(f"no source files below {root}", file=sys.stderr)
    return 1 if breaches or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
