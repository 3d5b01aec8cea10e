"""What is released: wheel, source distribution, lock file, image and its papers."""

import json
import os
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile

import pytest

import linkspread
from documents import ROOT, python_blocks
from ports import free_port
from servers import Server

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")
MAX_WHEEL_BYTES = 1_500_000


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def outside(**variables):
    """Return an environment in which the working tree cannot be imported."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | variables


def run(*words, cwd, **variables):
    done = subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, env=outside(**variables)
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Return the folder of a wheel that is built from the source distribution."""
    pytest.importorskip("build")
    folder = tmp_path_factory.mktemp("dist")
    run(
        sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder),
        str(ROOT), cwd=folder,
    )  # fmt: skip
    return folder


@pytest.mark.slow
def test_the_wheel_holds_the_package_alone_and_is_small(dist):
    (wheel,) = dist.glob("*.whl")
    assert wheel.stat().st_size < MAX_WHEEL_BYTES
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.partition("/")[0] for name in names}
    assert tops == {"linkspread", f"linkspread-{linkspread.__version__}.dist-info"}
    packed = {name for name in names if name.startswith("linkspread/")}
    source = ROOT / "src"
    assert packed == {
        str(path.relative_to(source))
        for path in source.rglob("*")
        if path.is_file() and path.suffix not in {".pyc", ".nbi", ".nbc"}
    }


@pytest.mark.slow
def test_a_clean_environment_runs_the_readme(dist, tmp_path):
    (wheel,) = dist.glob("*.whl")
    venv.create(tmp_path / "venv", with_pip=True)
    bin_folder = tmp_path / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = str(bin_folder / "python")
    found = subprocess.run(
        [python, "-m", "pip", "download", "--quiet", "--no-deps", "numpy"],
        cwd=tmp_path,
        capture_output=True,
    )
    if found.returncode:
        pytest.skip("no package index can be reached")
    run(python, "-m", "pip", "install", "--quiet", str(wheel), cwd=tmp_path)
    version = run(str(bin_folder / "linkspread"), "--version", cwd=tmp_path)
    assert version.split() == ["linkspread", linkspread.__version__]
    blocks = python_blocks((ROOT / "README.md").read_text(encoding="utf-8"))
    (tmp_path / "readme.py").write_text("\n".join(blocks), encoding="utf-8")
    assert run(python, "readme.py", cwd=tmp_path)


@pytest.mark.slow
def test_tests_run_in_the_source_distribution(dist, tmp_path):
    (archive,) = dist.glob("*.tar.gz")
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path, filter="data")
    (unpacked,) = tmp_path.iterdir()
    about = {"PYTHONPATH": str(unpacked / "src")}
    # All tests are found and import what they need; some rooms and documents also run.
    run(sys.executable, "-m", "pytest", "-q", "--collect-only", cwd=unpacked, **about)
    rooms = ["tests/house", "tests/metrics", "tests/links/test_links.py"]
    rooms = [room for room in rooms if (unpacked / room).exists()]
    run(
        sys.executable, "-m", "pytest", "-q", "-m", "not slow", *rooms, cwd=unpacked,
        **about,
    )  # fmt: skip


def test_the_lock_file_holds_what_tests_need_and_no_place_to_get_it():
    text = (ROOT / "dev.lock").read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)(?:\[[\w,]+\])?==([\w.+!]+)", text, re.MULTILINE)
    lines = [line for line in text.splitlines() if line and not line.startswith(" ")]
    # A name, a version and a marker are all that a line has.
    assert len(pins) == len(lines)
    assert not re.search(r"://|@|--|\+", text)
    extras = PROJECT["project"]["optional-dependencies"]
    wanted = [*PROJECT["project"]["dependencies"], *extras["dev"]]
    wanted += [entry for name in ("all", "cluster") for entry in extras[name]]
    names = {normal(re.match(r"[\w.-]+", entry)[0]) for entry in wanted}
    assert names - {"linkspread"} <= {normal(name) for name, _ in pins}


def test_papers_state_this_version():
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {linkspread.__version__}\n" in citation
    license = PROJECT["project"]["license"]
    assert f"\nlicense: {license}\n" in citation
    notes = (ROOT / "docs" / "upgrading.md").read_text(encoding="utf-8")
    assert f"to {linkspread.__version__}\n" in notes


def test_workflows_call_the_targets_of_the_makefile_on_every_python():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^(\w+):", makefile, re.MULTILINE))
    workflows = {
        path.stem: path.read_text(encoding="utf-8")
        for path in (ROOT / ".github" / "workflows").glob("*.yml")
    }
    called = set(re.findall(r"run: make (\w+)", "".join(workflows.values())))
    assert called == {"audit", "dist", "docs", "lowest"} and called <= targets
    tested = re.search(r"python: \[(.*)\]", workflows["test"])[1]
    versions = [
        entry.rpartition(" ")[2]
        for entry in PROJECT["project"]["classifiers"]
        if re.search(r"Python :: 3\.\d+$", entry)
    ]
    assert json.loads(f"[{tested}]") == versions
    # Published by a trusted publisher: by identity, never by a password.
    assert "id-token: write" in workflows["release"]
    assert not re.search(r"password:|secrets\.", "".join(workflows.values()))


def instructions(text):
    """Return the instructions of a Dockerfile as pairs of keyword and rest."""
    joined = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE))
    return [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]


def test_the_image_is_of_a_user_with_a_volume_and_a_health_check():
    steps = instructions(DOCKERFILE)
    known = {"FROM", "COPY", "RUN", "ENV", "USER", "VOLUME", "EXPOSE", "HEALTHCHECK"}
    assert {word for word, _ in steps} == known | {"ENTRYPOINT", "CMD"}
    last_stage = steps[max(i for i, (word, _) in enumerate(steps) if word == "FROM") :]
    said = dict(last_stage)
    assert int(said["USER"]) > 0
    assert all(":" in rest.split()[0] for word, rest in steps if word == "FROM")
    assert "--no-cache-dir" in said["RUN"] and "sudo" not in DOCKERFILE
    (volume,) = json.loads(said["VOLUME"])
    command = json.loads(said["CMD"])
    assert command[:2] == ["serve", volume] and command[-1] == said["EXPOSE"]
    extras = re.search(r"\}\[([\w,]+)\]", said["RUN"])[1].split(",")
    assert set(extras) <= set(PROJECT["project"]["optional-dependencies"])
    # What is copied must include all that a build reads.
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").split()
    assert {"*", "!src", "!pyproject.toml", "!README.md", "!LICENSE"} <= set(ignored)


@pytest.mark.slow
def test_the_command_of_the_image_passes_its_own_health_check(tmp_path, monkeypatch):
    pytest.importorskip("uvicorn")
    monkeypatch.setenv("LINKSPREAD_TOKEN", "a token of some length")
    data = linkspread.datasets.make_views(60, n_classes=3, random_state=0)
    links = linkspread.Links.from_labels(data.labels)
    linkspread.CrossViewSearch().fit(data.views(), links).save(tmp_path / "model")
    said = dict(instructions(DOCKERFILE))
    options = json.loads(said["CMD"])[2:-2]
    port = free_port()
    server = Server(tmp_path / "model", port, *options)
    try:
        server.wait("/health")
        check = json.loads(said["HEALTHCHECK"].partition("CMD ")[2])
        code = check[-1].replace(":8000", f":{port}")
        subprocess.run([sys.executable, "-c", code], check=True)
    finally:
        server.kill()


@pytest.mark.slow
def test_the_image_builds():
    def docker(*words, **options):
        return subprocess.run(["docker", *words], capture_output=True, **options)

    try:
        has_engine = docker("info").returncode == 0
    except FileNotFoundError:
        has_engine = False
    if not has_engine:
        pytest.skip("no engine builds images here")
    assert docker("build", "--tag", "linkspread-test", str(ROOT)).returncode == 0
