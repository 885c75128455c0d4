"""The engine's interface in ctypes, as ``nlnet_engine.h`` declares it.

The header lies beside the library, and is the one place where constants, structures and functions
are written down. It keeps to a small part of C, which is read here in two milliseconds; cffi would
take a hundred, at every start.
"""

import ctypes
import re
from collections.abc import Iterator
from typing import Any

_LEFT_OUT = re.compile(r"/\*.*?\*/|^#(?!define NLNET_\w+ \d).*?$", re.DOTALL | re.MULTILINE)
_CONSTANT = re.compile(r"\bNLNET_(\w+)(?: =)? (\d+)")
_STATEMENT = re.compile(
    r"typedef (?P<kind>enum|struct) \{(?P<body>[^}]*)\} nlnet_(?P<name>\w+);"
    r"|typedef (?P<callback>\w+ \(\*\w+\)\([^)]*\));"
    r"|NLNET_API (?P<function>[^;]*);"
)
_CALL = re.compile(r"(?P<result>.*?)(?:\(\*)?(?P<name>\w+)\)?\((?P<given>[^)]*)\)")
_DECLARED = re.compile(r"(?P<type>.*?)(?P<name>\w+)(?:\[(?P<count>\w+)\])?")

_SCALARS: dict[str, Any] = {
    "char*": ctypes.c_char_p,
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "int": ctypes.c_int,
    "int32_t": ctypes.c_int32,
    "int64_t": ctypes.c_int64,
    "ptrdiff_t": ctypes.c_ssize_t,
    "size_t": ctypes.c_size_t,
    "uint32_t": ctypes.c_uint32,
    "void": None,
}


class Interface:
    """A library with what its header declares.

    Functions, structures and types of callbacks are attributes, by their names without ``nlnet_``.

    Parameters
    ----------
    library : CDLL
        The library. Its functions release the GIL.
    header : str
        The text of the header.

    Attributes
    ----------
    constants : dict
        The numbers of all enumerations and macros, by their names without ``NLNET_``.
    """

    def __init__(self, library: ctypes.CDLL, header: str) -> None:
        text = " ".join(_LEFT_OUT.sub("", header).split())
        self.constants = {name: int(value) for name, value in _CONSTANT.findall(text)}
        self._types = dict(_SCALARS)
        for found in _STATEMENT.finditer(text):
            if found["kind"] == "enum":
                self._types[f"nlnet_{found['name']}"] = ctypes.c_int
            elif found["kind"] == "struct":
                fields = {"_fields_": list(self._fields(found["body"]))}
                kind = type(found["name"], (ctypes.Structure,), fields)
                self._types[f"nlnet_{found['name']}"] = kind
                setattr(self, found["name"], kind)
            else:
                name, result, *given = self._call(found["callback"] or found["function"])
                if found["callback"]:
                    self._types[name] = ctypes.CFUNCTYPE(result, *given)
                    setattr(self, name.removeprefix("nlnet_"), self._types[name])
                else:
                    function = getattr(library, name)
                    function.restype, function.argtypes = result, given
                    setattr(self, name.removeprefix("nlnet_"), function)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"The header of the engine declares no {name!r}.")

    def _fields(self, body: str) -> Iterator[tuple[str, Any]]:
        """Yield the names and types of a structure's fields."""
        for line in filter(None, map(str.strip, body.split(";"))):
            if "(" in line:
                name, result, *given = self._call(line)
                yield name, ctypes.CFUNCTYPE(result, *given)
                continue
            first, *others = line.split(",")
            common = _read(_DECLARED, first)["type"].rstrip("* ")
            for each in (first, *(f"{common} {other}" for other in others)):
                found = _read(_DECLARED, each)
                count, kind = found["count"], self._type(found["type"])
                yield found["name"], kind if count is None else kind * int(count)

    def _call(self, text: str) -> tuple[Any, ...]:
        """Return the name of a function or callback, its result, and its arguments."""
        found = _read(_CALL, text)
        arguments = filter(lambda each: each not in ("", "void"), found["given"].split(","))
        given = [_read(_DECLARED, each) for each in arguments]
        # Of an array, a function gets the address.
        kinds = [self._type(each["type"] + "*" * bool(each["count"])) for each in given]
        return (found["name"], self._type(found["result"]), *kinds)

    def _type(self, written: str) -> Any:
        """Return a type; pointers are addresses, but those to structures have a type."""
        name = re.sub(r"\bconst\b| ", "", written)
        kind = self._types.get(name.rstrip("*"))
        if name in self._types:
            return self._types[name]
        structure = isinstance(kind, type) and issubclass(kind, ctypes.Structure)
        return ctypes.POINTER(kind) if structure and name.count("*") == 1 else ctypes.c_void_p


def _read(pattern: re.Pattern[str], text: str) -> re.Match[str]:
    found = pattern.fullmatch(text.strip())
    assert found is not None, text
    return found
