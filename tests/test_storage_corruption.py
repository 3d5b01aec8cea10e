"""Model folders that were damaged, or made up with right checksums: all refused."""

import io
import os
import pickle
import re
import signal
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import linkspread as ls
from linkspread.exceptions import LinkspreadError
from linkspread.storage.manifest import MAX_MANIFEST
from model_folders import copy_folder, model

MB = 1 << 20
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


@case(*range(25))
def flipped_bit_of_arrays(folder, seed):
    flip(folder.arrays_path, seed)


@case(*range(25))
def flipped_bit_of_manifest(folder, seed):
    flip(folder.path / "manifest.json", seed)


@case(*range(10))
def flipped_bit_of_ids(folder, seed):
    flip(folder.ids_path, seed)


@case("arrays 0", "arrays 7", "arrays 100", "arrays -1", "manifest 0", "manifest 500",
      "manifest -1", "ids 0", "ids 20", "ids -1")  # fmt: skip
def truncated(folder, which):
    name, size = which.split()
    paths = {"arrays": folder.arrays_path, "ids": folder.ids_path}
    path = paths.get(name, folder.path / "manifest.json")
    path.write_bytes(path.read_bytes()[: int(size)])


@case("arrays", "ids")
def lengthened(folder, which):
    path = folder.arrays_path if which == "arrays" else folder.ids_path
    path.write_bytes(path.read_bytes() + b"\0" * 8)


@case("arrays", "ids", "manifest")
def missing(folder, which):
    names = {"arrays": folder.arrays_path, "ids": folder.ids_path}
    names.get(which, folder.path / "manifest.json").unlink()


@case("arrays", "ids", "manifest")
def symbolic_link(folder, which):
    names = {"arrays": folder.arrays_path, "ids": folder.ids_path}
    path = names.get(which, folder.path / "manifest.json")
    outside = path.rename(folder.path.parent / f"outside-{which}")
    path.symlink_to(outside)


@case("arrays", "manifest")
def pipe_that_nobody_writes_to(folder, which):
    path = folder.arrays_path if which == "arrays" else folder.path / "manifest.json"
    path.unlink()
    os.mkfifo(path)


@case()
def folder_in_place_of_a_file(folder, _):
    folder.arrays_path.unlink()
    (folder.path / folder.manifest["arrays"]["name"]).mkdir()


@case()
def swapped_contents(folder, _):
    one, other = folder.arrays_path, folder.ids_path
    data = one.read_bytes()
    one.write_bytes(other.read_bytes())
    other.write_bytes(data)


@case()
def swapped_entries(folder, _):
    ids = folder.manifest["ids"]
    first = next(iter(ids.values()))
    n_ids = first.pop("n_ids")
    folder.manifest["arrays"], swapped = first, folder.manifest["arrays"]
    ids[next(iter(ids))] = {**swapped, "n_ids": n_ids}
    folder.write_manifest()


@case()
def ids_of_views_swapped(folder, _):
    for fields in folder.nodes("Items"):
        fields["view"] = {"text": "image", "image": "text"}[fields["view"]]
    folder.write_manifest()


@case("arrays", "ids", "manifest")
def pickled_payload(folder, which):
    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(folder.path / "executed"),)

    data = pickle.dumps(Payload())
    if which == "arrays":
        folder.replace_arrays(data)
    elif which == "ids":
        folder.replace_ids(data)
    else:
        (folder.path / "manifest.json").write_bytes(data)


@case("../arrays.safetensors", "/etc/passwd", "..", ".", "", "a/b.safetensors",
      "arrays\\b.safetensors", "manifest.json", 7, None)  # fmt: skip
def name_outside_the_folder(folder, name):
    folder.manifest["arrays"]["name"] = name
    folder.write_manifest()


@case("bytes", "sha256", "n_ids")
def huge_or_odd_number(folder, which):
    entry = next(iter(folder.manifest["ids"].values()))
    entry[which] = 2**60
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
@case(*range(40), of="ridge")
@case(*range(60), of="auto")
@case(*range(40), of="codes")
def array_that_lost_its_last_row(folder, number):
    arrays = folder.arrays()
    name = nth([n for n, own in arrays.items() if own.size], number)
    folder.write_arrays({**arrays, name: arrays[name][:-1]})


@case(*range(0, 30, 2))
@case(*range(0, 40, 3), of="ridge")
def array_of_other_numbers(folder, number):
    arrays = folder.arrays()
    name = nth([n for n, own in arrays.items() if own.size], number)
    other = {"f": "<i8", "i": "<f8", "b": "<f8"}[arrays[name].dtype.kind]
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
    "S too large": ("normalized.text.indices", lambda a, n: np.where(a == 0, n, a)),
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


@case("used", "rows", "columns", of="ridge")
def positions_outside(folder, which):
    arrays = folder.arrays()
    name = next(name for name in sorted(arrays) if name.endswith(f".{which}"))
    folder.write_arrays({**arrays, name: arrays[name] + 40})


@case("truth values", of="ridge")
def truth_values_that_are_neither(folder, _):
    arrays = folder.arrays()
    name = next(name for name in arrays if name.endswith("is_held_out"))
    odd = np.full(arrays[name].shape, 7, dtype=np.uint8).view(bool)
    folder.write_arrays({**arrays, name: odd})


TEXTS = {
    "empty": b"",
    "no JSON": b"model = 1",
    "not UTF-8": b'{"format": "\xff"}',
    "list": b"[]",
    "number": b"1",
    "deep": b"[" * 100_000,
    "deep object": b'{"a":' * 5000 + b"1" + b"}" * 5000,
    "not so deep": b'{"format": "linkspread model", "x": '
    + b"[" * 40
    + b"]" * 40
    + b"}",
    "repeated": b'{"format": "linkspread model", "format": "linkspread model"}',
    "large": b" " * (9 * MB) + b"{}",
    "long number": b'{"format": ' + b"1" * 10_000 + b"}",
    "another program's": b'{"name": "app", "start_url": "/"}',
    "nothing more": b'{"format": "linkspread model", "format_version": 1}',
}


@case(*TEXTS)
def manifest_text(folder, which):
    (folder.path / "manifest.json").write_bytes(TEXTS[which])


@case("NaN", "Infinity", "-Infinity", "1e999")
def number_in_json(folder, text):
    path = folder.path / "manifest.json"
    path.write_text(path.read_text().replace('["alpha", 0.1]', f'["alpha", {text}]'))


def set_parameter(folder, name, value):
    """Change a parameter of the model."""
    entries = folder.manifest["content"]["root"]["parameters"]["dict"]
    entries[:] = [[key, value if key == name else own] for key, own in entries]
    folder.write_manifest()


@case({"alpha": 2}, {"beta": -1}, {"tol": 0}, {"objective": "ridge"}, {"mass": 3},
      {"objective": {"list": []}}, {"rank": 0}, {"balance": "odd"})  # fmt: skip
def parameter(folder, changed):
    set_parameter(folder, *next(iter(changed.items())))


@case()
def unknown_parameter(folder, _):
    entries = folder.manifest["content"]["root"]["parameters"]["dict"]
    entries.append(["run", "os.system"])
    folder.write_manifest()


def change_fields(folder, name, **changed):
    folder.nodes(name)[0].update(changed)
    folder.write_manifest()


NODES = {
    "huge view": ("Items", {"n_items": 10**15}),
    "no ids": ("Items", {"ids": None, "n_items": 301}),
    "array for ids": ("Items", {"ids": {"array": "links_.pairs.0.1"}}),
    "missing array": ("Spread", {"left": {"array": "no such array"}}),
    "list of array": ("Spread", {"left": {"list": [1.0]}}),
    "itself": ("Spread", {"left": {"object": 5}}),
    "later object": ("AutoObjective", {}),
    "unknown kind": ("Spread", {"left": {"pickle": "gASV"}}),
    "two kinds": ("Spread", {"left": {"array": "a", "object": 1}}),
    "bare list": ("Spread", {"error": [0.0]}),
    "text for number": ("Spread", {"error": "0.0"}),
    "field too many": ("Spread", {"__class__": "Popen"}),
    "huge matrix": ("NeighborGraph", {"affinity": {"csr": {
        "data": "a", "indices": "b", "indptr": "c", "shape": [2**40, 2**40]}}}),
    "matrix of bad shape": ("NeighborGraph", {"affinity": {"csr": {
        "data": "graphs_.text.affinity.data",
        "indices": "graphs_.text.affinity.indices",
        "indptr": "graphs_.text.affinity.indptr", "shape": [300, 299]}}}),
    "other items": ("NeighborGraph", {"items": {"array": "spreads_.text, image.core"}}),
    "metric": ("NeighborGraph", {"parameters": {"dict": [["metric", "odd"]]}}),
    "neighbours": ("NeighborGraph", {"parameters": {"dict": [["n_neighbors", 10**9]]}}),
    "keys": ("FitReport", {"spreads": {"dict": [[7, 1]]}}),
    "repeated keys": ("FitReport", {"graphs": {"dict": [["a", 1], ["a", 1]]}}),
    "no views": ("Links", {"items": {"dict": []}}),
}  # fmt: skip


@case(*[name for name, (of, _) in NODES.items() if of != "AutoObjective"])
def node(folder, which):
    of, fields = NODES[which]
    change_fields(folder, of, **fields)


@case("os.system", "LinkSpreading", "Lambda", 3, None, ["Items"])
def class_of_object(folder, name):
    folder.manifest["content"]["objects"][0]["class"] = name
    folder.write_manifest()


@case("forward", "own", "negative", "true", "missing field", "no fields", "too many",
      "root", "root field", "no objects")  # fmt: skip
def tree(folder, which):
    content = folder.manifest["content"]
    objects = content["objects"]
    number = len(objects)
    if which in ("forward", "own", "negative", "true"):
        to = {"forward": number + 5, "own": 2, "negative": -1, "true": True}[which]
        objects[2]["fields"]["items"] = {"object": to}
    elif which == "missing field":
        del objects[0]["fields"]["view"]
    elif which == "no fields":
        objects[0]["fields"] = []
    elif which == "too many":
        objects.extend([objects[0]] * 5000)
    elif which == "root":
        content["root"] = []
    elif which == "root field":
        del content["root"]["items_"]
    else:
        del content["objects"]
    folder.write_manifest()


@case("version", "text", "newer and odd")
def newer_format(folder, which):
    folder.manifest["format_version"] = "2" if which == "text" else 2
    folder.manifest["library_version"] = "9.8.7"
    if which == "newer and odd":
        folder.manifest = {k: v for k, v in folder.manifest.items() if k != "content"}
    folder.write_manifest()


def parquet(table, **options):
    """Return a parquet file as bytes."""
    buffer = io.BytesIO()
    pq.write_table(table, buffer, **options)
    return buffer.getvalue()


PLAIN = {"compression": "none", "use_dictionary": False, "store_schema": False}
IDS = [f"t{i}" for i in range(300)]
TABLES = {
    "one too few": ({"id": IDS[1:]}, PLAIN),
    "many more": ({"id": [str(i) for i in range(30_000)]}, PLAIN),
    "none": ({"id": pa.array([], pa.string())}, PLAIN),
    "missing values": ({"id": [*IDS[1:], None]}, PLAIN),
    "repeated": ({"id": ["t1", *IDS[1:]]}, PLAIN),
    "two columns": ({"id": IDS, "more": IDS}, PLAIN),
    "another name": ({"ids": IDS}, PLAIN),
    "bytes": ({"id": [own.encode() for own in IDS]}, PLAIN),
    "floats": ({"id": [float(i) for i in range(300)]}, PLAIN),
    "nested": ({"id": [[i] for i in range(300)]}, PLAIN),
    "compressed": ({"id": IDS}, {**PLAIN, "compression": "gzip"}),
    "a bomb": ({"id": ["x" * 100_000] * 300}, {**PLAIN, "use_dictionary": True}),
    "a delta bomb": (
        {"id": ["x" * 100_000] * 300},
        {**PLAIN, "column_encoding": "DELTA_BYTE_ARRAY"},
    ),
}


@case(*TABLES)
def ids(folder, which):
    columns, options = TABLES[which]
    folder.replace_ids(parquet(pa.table(columns), **options))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Return the folders of the models that are spoilt."""
    root = tmp_path_factory.mktemp("models")
    for kind in {of for of, _, _ in CASES.values()}:
        model(kind).save(root / kind)
    return root


@pytest.fixture
def impatience():
    """Fail what hangs."""

    def fail(number, frame):
        raise AssertionError("loading hangs")

    before = signal.signal(signal.SIGALRM, fail)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def allowed_bytes(path):
    """Return the memory that a folder may take: twice its size, JSON somewhat more."""
    sizes = {own.name: own.stat().st_size for own in path.iterdir()}
    manifest = min(sizes.get("manifest.json", 0), MAX_MANIFEST)
    return 2 * sum(sizes.values()) + 10 * manifest + MB // 2


def names_a_file(message):
    """Tell whether a message begins with the name of a file of a model."""
    return re.match(r"(manifest\.json|(arrays|ids)-\w+\.\w+): ", message)


def test_there_are_hundreds_of_ways_to_spoil_a_folder():
    assert len(CASES) >= 200


@pytest.mark.parametrize("name", CASES)
def test_a_spoilt_folder_is_refused(name, saved, tmp_path, impatience):
    of, spoil, argument = CASES[name]
    folder = copy_folder(saved / of, tmp_path / "model")
    spoil(folder, argument)
    limit = allowed_bytes(tmp_path / "model")
    tracemalloc.start()
    try:
        with pytest.raises(LinkspreadError) as raised:
            ls.load(tmp_path / "model")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    message = str(raised.value)
    assert names_a_file(message), message
    assert len(message) < 600
    assert peak < limit
    assert not (tmp_path / "model" / "executed").exists()


@pytest.mark.parametrize("kind", ["spread", "ridge", "auto", "codes"])
def test_a_folder_that_is_only_rewritten_is_loaded(kind, saved, tmp_path):
    # Else everything could be refused for the wrong reason.
    folder = copy_folder(saved / kind, tmp_path / "model")
    folder.write_arrays(folder.arrays())
    again = ls.load(tmp_path / "model")
    assert np.array_equal(
        again.scores("text", "image"), model(kind).scores("text", "image")
    )


@pytest.mark.parametrize("seed", range(20))
def test_without_checksums_damage_never_crashes(seed, saved, tmp_path, impatience):
    folder = copy_folder(saved / "codes", tmp_path / "model")
    for k in range(3):
        flip(folder.arrays_path, 100 * seed + k)
    try:
        again = ls.load(tmp_path / "model", verify=False)
    except LinkspreadError as error:
        assert names_a_file(str(error))
    else:
        # A flipped bit of a number gives another model, which is as safe to ask.
        with np.errstate(all="ignore"):
            assert again.scores("text", "image").shape == (40, 30)
