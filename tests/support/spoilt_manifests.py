"""Ways to make up a manifest, with right checksums."""

from spoilt_files import CASES, case

__all__ = ["CASES"]

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
    "large": b" " * (9 << 20) + b"{}",
    "long number": b'{"format": ' + b"1" * 10_000 + b"}",
    "another program's": b'{"name": "app", "start_url": "/"}',
    "nothing more": b'{"format": "linkspread model", "format_version": 5}',
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
    entries = folder.nodes("LinkSpreading")[0]["parameters"]["dict"]
    entries[:] = [[key, value if key == name else own] for key, own in entries]
    folder.write_manifest()


@case({"alpha": 2}, {"beta": -1}, {"tol": 0}, {"balance": {"list": []}},
      {"rank": 0}, {"balance": "odd"})  # fmt: skip
def parameter(folder, changed):
    set_parameter(folder, *next(iter(changed.items())))


@case()
def unknown_parameter(folder, _):
    entries = folder.nodes("LinkSpreading")[0]["parameters"]["dict"]
    entries.append(["run", "os.system"])
    folder.write_manifest()


def change_fields(folder, name, **changed):
    folder.nodes(name)[0].update(changed)
    folder.write_manifest()


NODES = {
    "huge view": ("Items", {"n_items": 10**15}),
    "no ids": ("Items", {"ids": None, "n_items": 301}),
    "array for ids": ("Items", {"ids": {"array": "links_.pairs.0.1"}}),
    "one array of ids": ("Items", {"ids": {"ids": ["links_.pairs.0.2"]}}),
    "ids without arrays": ("Items", {"ids": {"ids": ["a", {}]}}),
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
        del folder.nodes("LinkSpreading")[0]["items_"]
    else:
        del content["objects"]
    folder.write_manifest()


@case("version", "text", "newer and odd")
def newer_format(folder, which):
    folder.manifest["format_version"] = "6" if which == "text" else 6
    folder.manifest["library_version"] = "9.8.7"
    if which == "newer and odd":
        folder.manifest = {k: v for k, v in folder.manifest.items() if k != "content"}
    folder.write_manifest()
