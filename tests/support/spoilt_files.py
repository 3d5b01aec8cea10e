"""Ways to spoil the files and the arrays of a model folder."""

import os
import pickle

import numpy as np

CASES = {}


def case(*arguments, of="spread"):
    """Register a way to spoil a folder, once for each argument."""

    def register(spoil):
        for argument in arguments or (None,):
            name = (
                spoil.__name__ if argument is None else f"{spoil.__name__}-{argument}"
            )
            CASES[f"{of}-{name}"] = of, spoil, argument
        return spoil

    return register


def flip(path, seed):
    """Change one bit of a file."""
    data = bytearray(path.read_bytes())
    rng = np.random.default_rng(seed)
    data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    path.write_bytes(data)


def file_of(folder, which):
    """Return the path of the arrays or of the manifest."""
    return folder.arrays_path if which == "arrays" else folder.path / "manifest.json"


@case(*range(25))
def flipped_bit_of_arrays(folder, seed):
    flip(folder.arrays_path, seed)


@case(*range(25))
def flipped_bit_of_manifest(folder, seed):
    flip(folder.path / "manifest.json", seed)


@case("arrays 0", "arrays 7", "arrays 100", "arrays -1", "manifest 0", "manifest 500",
      "manifest -1")  # fmt: skip
def truncated(folder, which):
    name, size = which.split()
    path = file_of(folder, name)
    path.write_bytes(path.read_bytes()[: int(size)])


@case()
def lengthened(folder, _):
    path = folder.arrays_path
    path.write_bytes(path.read_bytes() + b"\0" * 8)


@case("arrays", "manifest")
def missing(folder, which):
    file_of(folder, which).unlink()


@case("arrays", "manifest")
def symbolic_link(folder, which):
    path = file_of(folder, which)
    outside = path.rename(folder.path.parent / f"outside-{which}")
    path.symlink_to(outside)


@case("arrays", "manifest")
def pipe_that_nobody_writes_to(folder, which):
    path = file_of(folder, which)
    path.unlink()
    os.mkfifo(path)


@case()
def folder_in_place_of_a_file(folder, _):
    folder.arrays_path.unlink()
    (folder.path / folder.manifest["arrays"]["name"]).mkdir()


@case()
def ids_of_views_swapped(folder, _):
    for fields in folder.nodes("Items"):
        fields["view"] = {"text": "image", "image": "text"}[fields["view"]]
    folder.write_manifest()


@case("arrays", "manifest")
def pickled_payload(folder, which):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(folder.path / "executed"),)

    data = pickle.dumps(Payload())
    if which == "arrays":
        folder.replace_arrays(data)
    else:
        (folder.path / "manifest.json").write_bytes(data)


@case("../arrays.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors",
      "arrays\\b.safetensors", "manifest.json", 7, None)  # fmt: skip
def name_outside_the_folder(folder, name):
    folder.manifest["arrays"]["name"] = name
    folder.write_manifest()


@case("bytes", "sha256")
def huge_or_odd_number(folder, which):
    folder.manifest["arrays"][which] = 2**60
    folder.write_manifest()


@case("-1", "1.5", "true", '"9"', "null", "[]")
def size_that_is_none(folder, text):
    path = folder.path / "manifest.json"
    size = folder.manifest["arrays"]["bytes"]
    path.write_text(path.read_text().replace(f'"bytes": {size}', f'"bytes": {text}'))


@case(0, 2**22 + 8, 2**40, 2**63, 2**64 - 1)
def header_length(folder, length):
    data = folder.arrays_path.read_bytes()
    folder.replace_arrays(length.to_bytes(8, "little") + data[8:])


def change_header(folder, change):
    """Write the arrays with one entry of the header changed."""
    header, data = folder.header()
    name = next(name for name in header if name.endswith("affinity.data"))
    header[name] = change(dict(header[name]), len(data))
    folder.write_header(header, data)


HEADERS = {
    "huge shape": lambda e, n: {**e, "shape": [2**40, 2**20]},
    "overflowing shape": lambda e, n: {**e, "shape": [2**62, 2**62]},
    "huge shape and place": lambda e, n: {
        **e, "shape": [2**50], "data_offsets": [0, 2**53]},
    "negative shape": lambda e, n: {**e, "shape": [-1]},
    "many dimensions": lambda e, n: {**e, "shape": [1] * 64 + e["shape"]},
    "shape is a text": lambda e, n: {**e, "shape": "12"},
    "shape of truth": lambda e, n: {**e, "shape": [True]},
    "place beyond the end": lambda e, n: {
        **e, "data_offsets": [n, n + 8 * e["shape"][0]]},
    "place before the start": lambda e, n: {**e, "data_offsets": [-8, 8]},
    "place of another": lambda e, n: {
        **e, "data_offsets": [0, 8 * e["shape"][0]]},
    "turned place": lambda e, n: {**e, "data_offsets": e["data_offsets"][::-1]},
    "no place": lambda e, n: {"dtype": e["dtype"], "shape": e["shape"]},
    "one number too many": lambda e, n: {
        **e, "data_offsets": [*e["data_offsets"], 0]},
    "object": lambda e, n: {**e, "dtype": "O"},
    "text": lambda e, n: {**e, "dtype": "<U8"},
    "eight bits": lambda e, n: {**e, "dtype": "F8_E4M3"},
    "no dtype": lambda e, n: {**e, "dtype": None},
    "more": lambda e, n: {**e, "callable": "os.system"},
    "nothing": lambda e, n: None,
    "a list": lambda e, n: [e],
}  # fmt: skip


@case(*HEADERS)
def header(folder, which):
    change_header(folder, HEADERS[which])


@case(b"", b"[]", b"{", b"nan", b"[" * 100_000, b'{"a": NaN}', b'{"a": 1, "a": 2}')
def header_text(folder, text):
    folder.write_header(text, folder.header()[1])


def nth(arrays, number):
    """Return the name of an array, counted over all as often as there are."""
    return sorted(arrays)[number % len(arrays)]


@case(*range(30))
@case(*range(40), of="adjusted")
@case(*range(40), of="codes")
def array_that_lost_its_last_row(folder, number):
    arrays = folder.arrays()
    name = nth([n for n, own in arrays.items() if own.size], number)
    folder.write_arrays({**arrays, name: arrays[name][:-1]})


@case(*range(0, 30, 2))
@case(*range(0, 40, 3), of="codes")
def array_of_other_numbers(folder, number):
    arrays = folder.arrays()
    name = nth([n for n, own in arrays.items() if own.size], number)
    other = {"f": "<i8", "i": "<f8", "b": "<f8", "u": "<i8"}[arrays[name].dtype.kind]
    folder.write_arrays({**arrays, name: arrays[name].astype(other)})


@case("nan 0", "nan 3", "nan 6", "inf 1", "-inf 4")
def number_that_is_not_finite(folder, which):
    value, number = which.split()
    arrays = folder.arrays()
    name = nth([n for n, a in arrays.items() if a.size and a.dtype.kind == "f"],
               int(number))  # fmt: skip
    changed = arrays[name].copy()
    changed.flat[-1] = float(value)
    folder.write_arrays({**arrays, name: changed})


INDICES = {
    "one too large": ("affinity.indices", lambda a, n: np.where(a == a[0], n, a)),
    "far too large": ("affinity.indices", lambda a, n: a + 2**30),
    "negative": ("affinity.indices", lambda a, n: np.where(a == a[0], -1, a)),
    "labels too large": ("labels.0.text.indices", lambda a, n: a + 4),
    "rows that shrink": ("affinity.indptr", lambda a, n: a[::-1]),
    "rows beyond the end": ("affinity.indptr", lambda a, n: a * 2),
    "rows that begin late": ("affinity.indptr", lambda a, n: np.maximum(a, 1)),
    "a zigzag of rows": ("affinity.indptr", lambda a, n: np.r_[0, a[-1], a[2:]]),
    "positions too large": ("pairs.0.2", lambda a, n: a + n),
    "negative positions": ("pairs.0.3", lambda a, n: a - n),
}


@case(*INDICES)
def indices(folder, which):
    end, change = INDICES[which]
    arrays = folder.arrays()
    name = next(name for name in sorted(arrays) if name.endswith(end))
    changed = change(arrays[name], 300).astype(arrays[name].dtype)
    folder.write_arrays({**arrays, name: changed})


IDS = {
    "negative": lambda n, text: (np.where(np.arange(len(n)) == 1, -n, n), text),
    "one too long": lambda n, text: (n + (np.arange(len(n)) == 0), text),
    "far too long": lambda n, text: (n + 2**60, text),
    "sums that overflow": lambda n, text: (
        np.r_[n[0] + 2**62, n[1] + 2**62, n[2] + 2**62, n[3] + 2**62, n[4:]], text),
    "one too few": lambda n, text: (n[1:], text[n[0]:]),
    "repeated": lambda n, text: (n, np.r_[text[: n[0]], text[: n[0]], text[2 * n[0]:]]),
    "no UTF-8": lambda n, text: (n, text | 128),
    "in a table": lambda n, text: (n[None], text),
    "none": lambda n, text: (n[:0], text[:0]),
}  # fmt: skip


@case(*IDS)
def ids(folder, which):
    arrays = folder.arrays()
    names = folder.nodes("Items")[0]["ids"]["ids"]
    changed = IDS[which](*(arrays[name] for name in names))
    folder.write_arrays({**arrays, **dict(zip(names, changed, strict=True))})
