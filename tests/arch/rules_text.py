"""Length of files and functions, words that have a better replacement, header form, files that nothing builds."""
import ast
import os
import re

from tree import code_of, cpp_functions, line_of, shell_functions

FILE_LINES_MAX = 700
FUNCTION_LINES_MAX = 70

# (pattern on code without comments and strings, where it is allowed, replacement)
BANNED_WORDS = tuple((re.compile(word), re.compile(allowed), replacement) for word, allowed, replacement in (
    (r"\bsystem_clock\b|\babsl::Now\b", r"common/base/|tests/", "the Clock of common/base/clock.h"),
    (r"\b(?:secure_)?getenv\b", r"common/config/|tests/", "common/config, which reads the environment once"),
    (r"(?<![\w.>])s?rand\s*\(|\brandom_device\b|\bmt19937", r"common/base/|tests/", "the seeded random numbers of common/base"),
    (r"\babsl::(?:Mutex|MutexLock|CondVar)\b", r"$^", "common/base/mutex.h (ThreadSanitizer does not understand absl's)"),
    (r"\bstd::(?:recursive_|shared_|timed_)?(?:mutex|lock_guard|unique_lock|scoped_lock|condition_variable)\b",
     r"common/base/|tests/", "common/base/mutex.h, which clang's thread-safety analysis follows"),
    (r"(?<![\w:])D?(?:LOG|CHECK(?:_\w+)?)\s*\(", r"$^", "AUTOLOCO_LOG and AUTOLOCO_CHECK (LibTorch has macros of the bare names)"),
    (r"\bstd::function\b", r"(?!(?:server|worker)/core/)", "an event or an effect: a core calls nobody"),
    (r"\bstd::random_shuffle\b|\bstd::shuffle\b", r"tests/", "a seeded permutation (std::shuffle differs between libraries)"),
    (r"\busing\s+namespace\b", r"$^", "the names themselves, or a using declaration"),
    (r"\b(?:sleep_for|sleep_until|usleep|nanosleep|SleepFor)\b|(?<![\w.>:])sleep\s*\(",
     r"(?!tests/unit/)", "an explicit now: unit tests do not sleep"),
))
OPEN_END = re.compile(r"\b(?:TO" r"DO|FIX" r"ME|XX" r"X)\b")
SELF = "tests/arch/"


def check_length(tree):
    for path, text in tree.files.items():
        lines = text.count("\n") + (not text.endswith("\n"))
        if lines > FILE_LINES_MAX:
            yield path, lines, "file-length", f"{lines} lines, {FILE_LINES_MAX} at most: split it by its nouns"
        for first, last in _functions(path, text):
            if last - first + 1 > FUNCTION_LINES_MAX:
                yield path, first, "function-length", f"function of {last - first + 1} lines, {FUNCTION_LINES_MAX} at most"


def _functions(path, text):
    if path.endswith((".h", ".cc")):
        return cpp_functions(text)
    if path.endswith(".sh"):
        return shell_functions(text)
    if path.endswith(".py"):
        try:
            return [(node.lineno, node.end_lineno) for node in ast.walk(ast.parse(text))
                    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))]
        except SyntaxError as error:
            return [(error.lineno or 1, (error.lineno or 1) + FUNCTION_LINES_MAX)]
    return []


def check_words(tree):
    for path in tree.cpp():
        code = code_of(tree.files[path])
        for pattern, allowed, replacement in BANNED_WORDS:
            if allowed.match(path):
                continue
            for match in pattern.finditer(code):
                yield path, line_of(code, match.start()), "banned-word", f"{match.group(0).strip()}: use {replacement}"
    for path, text in tree.files.items():
        for match in OPEN_END.finditer(text) if not path.startswith(SELF) else ():
            yield path, line_of(text, match.start()), "open-end", f"{match.group(0)}: finish it or file it, do not leave it here"


def check_headers(tree):
    for path in tree.cpp():
        if not path.endswith(".h"):
            continue
        text = tree.files[path]
        guard = "AUTOLOCO_" + re.sub(r"[^A-Z0-9]", "_", path.upper()) + "_"
        if not re.search(rf"^#ifndef {guard}\n#define {guard}$", text, re.M) or "#endif" not in text:
            yield path, 1, "header-guard", f"the include guard must be {guard}"
        if not text.lstrip().startswith(("//", "/*")):
            yield path, 1, "top-comment", "a header begins with a comment that says what it is and why"


def check_built(tree):
    """Every C++ source and proto is named by a CMakeLists.txt of its folder or one above."""
    named = set()
    for path, text in tree.files.items():
        if path.endswith("CMakeLists.txt"):
            folder = os.path.dirname(path)
            text = re.sub(r"#[^\n]*", "", text).replace("${CMAKE_CURRENT_SOURCE_DIR}/", "")
            for word in re.findall(r"[\w./${}-]+\.(?:cc|proto)\b", text):
                root = word.startswith("${CMAKE_SOURCE_DIR}/")
                word = word.replace("${CMAKE_SOURCE_DIR}/", "")
                named.add(os.path.normpath(word if root else os.path.join(folder, word)))
    for path in tree.files:
        if path.endswith((".cc", ".proto")) and path not in named:
            yield path, 1, "unbuilt", "no CMakeLists.txt names this file"


def check_twins(tree):
    """tests/unit/a/b_test.cc tests a/b.h or a/b.cc; a/b_aspect_test.cc is one aspect of it."""
    stems = {os.path.splitext(path)[0] for path in tree.cpp() if not path.startswith("tests/")}
    for path in tree.cpp():
        match = re.match(r"tests/unit/(.*)_test\.cc$", path)
        if match and not any(match.group(1) == stem or match.group(1).startswith(stem + "_") for stem in stems):
            yield path, 1, "twin", f"there is no {match.group(1)}.h or .cc (nor a shorter name) that this would be the test of"


CHECKS = (check_length, check_words, check_headers, check_built, check_twins)
