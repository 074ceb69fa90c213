"""The source tree as the checks see it: paths and texts, C++ without comments and strings, functions, includes."""
import functools
import os
import re

SKIPPED_FOLDERS = {".git", "build", ".cache", "__pycache__", "node_modules", "golden", "corpus"}
TEXT_ENDINGS = (".h", ".cc", ".proto", ".py", ".sh", ".cmake", "CMakeLists.txt")

# What must not be read as code: comments, raw strings, strings, characters. A digit separator (1'000) is none.
_NON_CODE = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<tag>[^()\s]*)\(.*?\)(?P=tag)"|"(?:\\.|[^"\\\n])*"'
    r"|(?<![0-9A-Fa-f])'(?:\\.|[^'\\\n])+'", re.S)
_PREPROCESSOR = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.M)
_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?P<open>[<"])(?P<path>[^>"]+)[>"]', re.M)
_ACCESS = re.compile(r"\b(?:public|private|protected)\s*:(?!:)")
_SCOPE = re.compile(r"^(?:inline\s+)?(?:namespace\b|extern\b\s*$)")
_TYPE = re.compile(r"^(?:template\s*<.*>\s*)?(?:typedef\s+)?(?:class|struct|union|enum)\b(?!.*\)\s*(?:const)?$)", re.S)
_FUNCTION_END = re.compile(r"\)\s*(?:const|noexcept|override|final|mutable|&|\s)*(?:->.*)?$", re.S)
_CONSTRUCTOR = re.compile(r"\)\s*(?:noexcept)?\s*:[^:].*$", re.S)


def blank(text):
    """Spaces in place of TEXT, line breaks kept, so that offsets and line numbers stay."""
    return re.sub(r"[^\n]", " ", text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


@functools.lru_cache(maxsize=None)
def code_of(text):
    """C++ text with comments and literals blanked."""
    return _NON_CODE.sub(lambda match: blank(match.group(0)), text)


@functools.lru_cache(maxsize=None)
def includes_of(text):
    """List of (line, path, is_quoted) of a C++ text."""
    without_comments = re.sub(r"//[^\n]*|/\*.*?\*/", lambda match: blank(match.group(0)), text, flags=re.S)
    return [(line_of(text, match.start()), match.group("path"), match.group("open") == '"')
            for match in _INCLUDE.finditer(without_comments)]


def _opens_function(head):
    """Whether the brace after HEAD opens a function's body (and not a namespace, type or initializer)."""
    head = head.strip()
    if _SCOPE.match(head) or _TYPE.match(head) or head.count("(") != head.count(")"):
        return False
    return bool(_FUNCTION_END.search(head) or _CONSTRUCTOR.search(head))


def _head_start(code, boundary, brace):
    """First character of the declaration that ends at BRACE."""
    access = [match.end() for match in _ACCESS.finditer(code, boundary, brace)]
    start = access[-1] if access else boundary
    while start < brace and code[start].isspace():
        start += 1
    return start


def cpp_functions(text):
    """List of (first line, last line) of the outermost functions; a lambda counts to the function it stands in."""
    code = _PREPROCESSOR.sub(lambda match: blank(match.group(0)), code_of(text))
    functions = []
    resume = []  # for each open brace: where the next declaration's text begins after it closes, None for right there
    depth_in_function = 0
    boundary = 0
    start = 0
    for match in re.finditer(r"[{};]", code):
        brace, at = match.group(0), match.start()
        if depth_in_function:
            depth_in_function += {"{": 1, "}": -1, ";": 0}[brace]
            if depth_in_function == 0:
                follow = code[at + 1:at + 200].lstrip()[:1]
                if follow in (",", "{"):  # that was a member's initializer: the constructor's body is still to come
                    boundary = start
                    continue
                functions.append((line_of(code, start), line_of(code, at)))
                boundary = at + 1
            continue
        if brace == "{":
            start = _head_start(code, boundary, at)
            if _opens_function(code[start:at]):
                depth_in_function = 1
                continue
            argument = code.count("(", start, at) > code.count(")", start, at)  # F(Options options = {})
            resume.append(start if argument else None)
        elif brace == "}" and resume:
            start = resume.pop()
            if start is not None:
                boundary = start
                continue
        boundary = at + 1
    return functions


def shell_functions(text):
    """List of (first line, last line) of shell functions written as name() { ... } with } in the first column."""
    functions = []
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if start is None and re.match(r"(?:function\s+)?\w+\s*\(\)\s*\{", line):
            start = number
        if start is not None and (line.startswith("}") or re.search(r"\}\s*$", line) and start == number):
            functions.append((start, number))
            start = None
    return functions


class Tree:
    """All text files below ROOT: files maps a path with / to the text."""

    def __init__(self, root):
        self.root = root
        self.files = {}
        for folder, names, files in os.walk(root):
            names[:] = sorted(name for name in names if name not in SKIPPED_FOLDERS)
            for name in sorted(files):
                if name.endswith(TEXT_ENDINGS):
                    path = os.path.join(folder, name)
                    with open(path, encoding="utf-8", errors="replace") as file:
                        self.files[os.path.relpath(path, root).replace(os.sep, "/")] = file.read()

    def cpp(self):
        return [path for path in self.files if path.endswith((".h", ".cc"))]

    @functools.lru_cache(maxsize=None)
    def closure(self, path):
        """Maps what PATH includes, directly and through project headers, to the project file that includes it."""
        found = {}
        seen = set()
        pending = [path]
        while pending:
            current = pending.pop()
            if current in seen:
                continue
            seen.add(current)
            for _, included, _ in includes_of(self.files[current]):
                found.setdefault(included, current)
                if included in self.files:
                    pending.append(included)
        return found
