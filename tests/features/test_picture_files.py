"""Which files are refused as pictures, and by which sentence."""

import io
import os
import struct
import threading
import warnings
import zlib

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from linkspread.features import PictureFeatures, read_picture
from linkspread.ground.checks import naming
from linkspread.ground.errors import LinkspreadError, UnreadablePicture

Image = pytest.importorskip("PIL.Image", reason="pictures need the package pillow")


def make_image(width=48, height=32):
    pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3), np.uint8)
    return Image.fromarray(pixels)


def encoded(format_name, **options):
    """Return a small picture as the bytes of a file."""
    file = io.BytesIO()
    make_image().save(file, format_name, **options)
    return file.getvalue()


def png_header(width, height):
    """Return the beginning of a PNG that promises so many pixels."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunk = b"IHDR" + header
    pieces = struct.pack(">I", len(header)), chunk, struct.pack(">I", zlib.crc32(chunk))
    data = b"IDAT" + zlib.compress(bytes(1000))
    pieces += (
        struct.pack(">I", len(data) - 4),
        data,
        struct.pack(">I", zlib.crc32(data)),
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(pieces)


def refusal(path):
    """Return the error about a file, after a look at its three parts."""
    with pytest.raises(UnreadablePicture) as caught:
        read_picture(path)
    rule, _, rest = str(caught.value).partition(", got ")
    assert rule.startswith(os.fsdecode(path)) and " must " in rule
    assert rest.count(". ") >= 1 and rest.endswith(".")
    return caught.value


JPEG, PNG = encoded("JPEG"), encoded("PNG")
HALVES = {
    name: encoded(name)[: len(encoded(name)) // 2]
    for name in ("JPEG", "PNG", "GIF", "BMP", "PPM", "TIFF")
}
CONTENTS = {
    "ico": (b"\0\0\x01\0\x01\0" + bytes(16), "unsupported format", "got ICO"),
    "empty": (b"", "empty", "got an empty one. Replace it"),
    "text": (b"no picture at all", "not a picture", "starts with b'no picture a'"),
    "page": (b"<!DOCTYPE html><html>404", "not a picture", "b'<!DOCTYPE ht'"),
    "zeros": (bytes(5000), "not a picture", "starts with"),
    "one byte": (b"\xff", "not a picture", "starts with"),
    "svg": (b'<?xml version="1.0"?>\n<svg></svg>', "unsupported format", "got SVG"),
    "heic": (b"\0\0\0\x18ftypheic" + bytes(99), "unsupported format", "got HEIC"),
    "pdf": (b"%PDF-1.7", "unsupported format", "got PDF. Convert it to PNG or JPEG"),
    "eps": (b"%!PS-Adobe-3.0 EPSF-3.0\n", "unsupported format", "got EPS"),
    "psd": (b"8BPS\0\1" + bytes(99), "unsupported format", "got PSD"),
    "jpeg xl": (b"\xff\x0a" + bytes(99), "unsupported format", "got JPEG XL"),
    "bare png": (b"\x89PNG\r\n\x1a\n", "corrupt header", "beginning of a PNG"),
    "png": (PNG[:12] + b"XXXX" + PNG[16:], "corrupt header", "beginning of a PNG"),
    "jpeg": (b"\xff\xd8\xff" + b"x" * 99, "corrupt header", "beginning of a JPEG"),
    "webp": (b"RIFF\x20\0\0\0WEBPVP8 " + b"x" * 16, "corrupt header", "of a WEBP"),
    "tiff": (b"II*\0\x08\0\0\0\0\0", "corrupt header", "beginning of a TIFF"),
    "spoilt": (PNG[:60] + b"\0" * 40 + PNG[100:], "damaged", "got a damaged one"),
    "bomb": (png_header(50_000, 50_000), "too large", "got 2,500,000,000 of them"),
    "large": (png_header(10_001, 10_000), "too large", "got 10,001 x 10,000. Make it"),
}
CONTENTS |= {
    f"half a {name}": (half, "truncated", "cut off. Replace it or leave it out")
    for name, half in HALVES.items()
}
KINDS = {kind for _, kind, _ in CONTENTS.values()}


@pytest.mark.parametrize("case", CONTENTS)
@pytest.mark.parametrize("ending", [".jpg", ""])
def test_what_is_no_picture_is_refused_by_kind(tmp_path, case, ending):
    content, kind, sentence = CONTENTS[case]
    file = tmp_path / f"a{ending}"
    file.write_bytes(content)
    error = refusal(file)
    assert (error.kind, sentence in str(error)) == (kind, True), str(error)


def test_a_missing_file_is_named(tmp_path):
    for path in (tmp_path / "nowhere.png", tmp_path / "a" / "b", "a\0b", ""):
        error = refusal(path)
        assert error.kind == "missing"
        assert "got a path without a file. Check the path." in str(error)


def test_a_file_is_no_folder_of_others(tmp_path):
    (tmp_path / "file").write_bytes(PNG)
    assert refusal(tmp_path / "file" / "a.png").kind == "missing"


def test_links_are_followed_and_broken_ones_told(tmp_path):
    target, link, loop = (tmp_path / name for name in ("a.png", "link", "loop"))
    link.symlink_to(target)
    error = refusal(link)
    assert error.kind == "broken link" and "link to nowhere. Mend" in str(error)
    loop.symlink_to(loop)
    assert refusal(loop).kind == "broken link"
    target.write_bytes(PNG)
    assert read_picture(link)[0].size == (48, 32)


def test_a_directory_is_no_picture(tmp_path):
    error = refusal(tmp_path)
    assert error.kind == "directory"
    assert str(error).endswith("got a directory. Give the files in it.")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes")
def test_pipes_and_devices_are_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", "/dev/zero"):
        error = refusal(path)
        assert error.kind == "not a file"
        assert "got a pipe, a socket or a device. Save the picture to" in str(error)


def test_a_file_without_permission_is_told(tmp_path, monkeypatch):
    file = tmp_path / "a.png"
    file.write_bytes(PNG)
    file.chmod(0)
    if os.access(file, os.R_OK):
        # The superuser may read everything.
        def refuse(*arguments):
            raise PermissionError(13, "Permission denied")

        monkeypatch.setattr("builtins.open", refuse)
    error = refusal(file)
    assert error.kind == "no permission"
    assert "got a file that may not be read. Change its permissions." in str(error)


def test_a_bomb_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    file = tmp_path / "large.png"
    file.write_bytes(png_header(10_001, 10_000))

    def load(image):
        raise AssertionError("its pixels were read")

    monkeypatch.setattr("PIL.ImageFile.ImageFile.load", load)
    assert refusal(file).kind == "too large"
    # Pillow warns from fewer pixels on than we refuse, which is no matter here.
    file.write_bytes(png_header(9_999, 9_999))
    with pytest.raises(UnreadablePicture, match="got a damaged one"):
        read_picture(file)


@pytest.mark.parametrize("limit", [40_000_000, 10_000_000, None])
def test_a_limit_set_for_pillow_makes_no_other_rule(tmp_path, monkeypatch, limit):
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", limit)
    file = tmp_path / "large.png"
    file.write_bytes(png_header(10_001, 10_000))
    assert refusal(file).kind == "too large"


def test_images_that_are_too_large_or_empty_are_refused(monkeypatch):
    monkeypatch.setattr("linkspread.features.picture_files.MAX_PIXELS", 100)
    with pytest.raises(UnreadablePicture, match="at most 100 pixels, got 11 x 10"):
        read_picture(Image.new("L", (11, 10)))
    with pytest.raises(UnreadablePicture, match="the picture .* got one of 0 x 5"):
        read_picture(Image.new("L", (0, 5)))


def test_an_image_whose_file_is_cut_off_is_refused(tmp_path):
    (tmp_path / "half").write_bytes(HALVES["JPEG"])
    with Image.open(tmp_path / "half") as image:
        with pytest.raises(UnreadablePicture, match="^mine must .* cut off") as caught:
            read_picture(image, name="mine")
    assert caught.value.kind == "truncated"


def test_memory_that_does_not_suffice_is_told(monkeypatch):
    def convert(image, mode):
        raise MemoryError

    monkeypatch.setattr(Image.Image, "convert", convert)
    with pytest.raises(UnreadablePicture, match="got more than fits into memory"):
        read_picture(Image.new("RGB", (9, 9)))


def test_colours_that_nobody_converts_are_named(monkeypatch):
    def convert(image, mode):
        raise ValueError("conversion not supported")

    monkeypatch.setattr(Image.Image, "convert", convert)
    with pytest.raises(UnreadablePicture, match="got colours as LAB. Convert it"):
        read_picture(Image.new("LAB", (9, 9)))


@pytest.mark.parametrize("name", ["JPEG2000", "WEBP", "AVIF"])
def test_half_a_picture_of_a_newer_format_is_refused(tmp_path, name):
    if name not in Image.SAVE:
        pytest.skip(f"this Pillow writes no {name}")
    content = encoded(name)
    (tmp_path / "half").write_bytes(content[: len(content) // 2])
    assert refusal(tmp_path / "half").kind in {"truncated", "damaged", "corrupt header"}


@given(st.binary(max_size=300), st.sampled_from([JPEG, PNG, *HALVES.values()]))
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_the_bytes_a_file_is_read_or_refused(tmp_path, noise, start):
    file = tmp_path / "any"
    for content in (noise, start[: len(noise)] + noise, noise[:9].join([start] * 2)):
        file.write_bytes(content)
        try:
            assert read_picture(file)[0].mode == "RGB"
        except UnreadablePicture as error:
            assert error.kind


@given(st.integers(0, len(JPEG) - 1), st.integers(0, 255), st.booleans())
@settings(max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_changed_byte_does_no_harm(tmp_path, place, value, is_png):
    content = bytearray(PNG if is_png else JPEG)
    content[place % len(content)] = value
    file = tmp_path / "changed"
    file.write_bytes(bytes(content))
    try:
        assert read_picture(file)[0].mode == "RGB"
    except UnreadablePicture as error:
        assert error.kind in KINDS


def test_threads_restore_the_filters_of_warnings(tmp_path):
    file = tmp_path / "a.png"
    file.write_bytes(PNG)
    before = list(warnings.filters)
    threads = [
        threading.Thread(target=lambda: [read_picture(file) for _ in range(20)])
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert list(warnings.filters) == before


def test_transformers_pass_the_error_on(tmp_path):
    (tmp_path / "half.jpg").write_bytes(HALVES["JPEG"])
    features = PictureFeatures(n_words=2, size=64, random_state=0).fit([make_image()])
    with pytest.raises(
        UnreadablePicture, match="half.jpg must be a complete"
    ) as caught:
        features.transform([make_image(), tmp_path / "half.jpg"])
    assert caught.value.kind == "truncated"


def test_the_kind_outlives_the_name_of_a_view(tmp_path):
    with pytest.raises(LinkspreadError, match="^view 'image': .* got a dir") as caught:
        with naming("image"):
            read_picture(tmp_path)
    assert caught.value.kind == "directory"
