"""Lines of code in a Python package, per folder: no blank lines, comments or docstrings.

python -m scripts.lines
"""

import ast
import io
import tokenize
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "src" / "nlnet"

_NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENDMARKER,
}


def lines_of_code(source: str) -> int:
    """Return the number of lines that have code on them."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        # A string that is a statement of its own is a docstring, also below an attribute.
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            lines.difference_update(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    return len(lines)


def count(package: Path = PACKAGE) -> dict[str, int]:
    """Return the lines of code of every module, by its path in the package."""
    return {
        path.relative_to(package).as_posix(): lines_of_code(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def main() -> None:
    """Print the lines of every folder, and of the whole."""
    modules = count()
    folders: Counter[str] = Counter()
    for module, lines in modules.items():
        folders[module.partition("/")[0] if "/" in module else "."] += lines
    for folder, lines in folders.most_common():
        print(f"{lines:6d}  {folder}")
    print(f"{sum(modules.values()):6d}  in {len(modules)} modules")


if __name__ == "__main__":
    main()
