"""Every kind of picture that is read, how it looks, and which files are refused."""

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
from numpy.testing import assert_array_equal

from linkspread.features import PictureFeatures
from linkspread.features.pictures import read_picture
from linkspread.ground.checks import naming
from linkspread.ground.errors import LinkspreadError, UnreadablePicture

Image = pytest.importorskip("PIL.Image", reason="pictures need the package pillow")
ImageOps = pytest.importorskip("PIL.ImageOps")


@pytest.fixture
def pixels(rng):
    """Return smooth colours, which lossy formats keep nearly."""
    down, right = np.mgrid[0:32, 0:48]
    return np.stack([down * 7, right * 5, 255 - down * 3 - right], 2).astype(np.uint8)


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a picture and returns its file."""

    def write(image, name, **options):
        image.save(tmp_path / name, **options)
        return tmp_path / name

    return write


def as_array(picture):
    """Return the pixels of a picture as it is read."""
    image = read_picture(picture)
    assert image.mode == "RGB"
    return np.asarray(image)


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tiff", "a.ppm", "a", "a.dat"])
def test_lossless_formats_give_the_same_pixels(pixels, written, name):
    format_name = None if "." in name and name != "a.dat" else "PNG"
    file = written(Image.fromarray(pixels), name, format=format_name)
    found = as_array(file)
    assert_array_equal(found, pixels)
    assert_array_equal(as_array(str(file)), pixels)


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.webp", "a.avif", "a.jp2"])
def test_lossy_formats_give_nearly_the_same_pixels(pixels, written, name):
    try:
        file = written(Image.fromarray(pixels), name)
    except (ValueError, OSError):
        pytest.skip(f"this Pillow does not write {name}")
    found = as_array(file)
    assert np.abs(found.astype(int) - pixels).mean() < 8


def test_a_png_called_jpg_is_read(pixels, written):
    found = as_array(written(Image.fromarray(pixels), "a.jpg", format="PNG"))
    assert_array_equal(found, pixels)


def test_grey_and_one_bit_pictures(pixels, written):
    grey = Image.fromarray(pixels).convert("L")
    expected = np.repeat(np.asarray(grey)[:, :, np.newaxis], 3, axis=2)
    assert_array_equal(as_array(written(grey, "a.png")), expected)
    assert_array_equal(as_array(np.asarray(grey)), expected)
    line = Image.fromarray(np.asarray(grey) > 99)
    assert line.mode == "1"
    found = as_array(written(line, "b.png"))
    assert_array_equal(found[:, :, 0], np.where(np.asarray(grey) > 99, 255, 0))


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_grey_of_16_bits_keeps_the_upper_eight(rng, written, name):
    values = rng.integers(0, 2**16, (20, 30), dtype=np.uint16)
    file = written(Image.fromarray(values), name)
    found = as_array(file)
    assert_array_equal(found, np.repeat((values >> 8)[:, :, np.newaxis], 3, axis=2))


def test_grey_of_16_bits_that_older_pillows_open_in_32(rng):
    values = rng.integers(0, 2**16, (20, 30)).astype(np.int32)
    image = Image.fromarray(values)
    image.format = "PNG"
    assert image.mode == "I"
    assert_array_equal(as_array(image)[:, :, 1], values >> 8)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_grey_of_32_bits_is_stretched(rng, written, dtype):
    values = np.array([[-1000, 0], [500, 1000]], dtype=dtype)
    found = as_array(written(Image.fromarray(values), "a.tiff"))
    assert found[:, :, 0].tolist() == [[0, 127], [191, 255]]


def test_floats_of_every_kind_are_no_trouble():
    most = np.finfo(np.float32).max
    values = np.array([[-most, most], [np.nan, np.inf]], dtype=np.float32)
    found = as_array(Image.fromarray(values))[:, :, 0]
    assert found.tolist() == [[0, 255], [0, 0]]
    assert as_array(Image.fromarray(values * np.nan)).max() == 0
    flat = np.full((3, 3), 300, dtype=np.float32)
    assert as_array(Image.fromarray(flat)).tolist() == [[[255] * 3] * 3] * 3


def test_cmyk_is_read(written):
    ink = Image.new("CMYK", (40, 40), (255, 0, 0, 0))
    found = as_array(written(ink, "a.jpg"))
    assert np.abs(found.astype(int) - [0, 255, 255]).max() <= 3


def test_what_is_transparent_is_laid_on_white(pixels, written, rng):
    alpha = rng.integers(0, 256, (32, 48, 1))
    layers = np.concatenate([pixels, alpha], axis=2).astype(np.uint8)
    expected = (pixels * (alpha / 255) + 255 * (1 - alpha / 255)).round()
    for picture in (layers, Image.fromarray(layers)):
        found = as_array(picture)
        assert np.abs(found - expected).max() <= 1
    assert_array_equal(as_array(written(Image.fromarray(layers), "a.png")), found)
    opaque = np.concatenate([pixels, 0 * alpha + 255], axis=2).astype(np.uint8)
    assert_array_equal(as_array(opaque), pixels)


def test_grey_with_transparency_is_laid_on_white(written):
    image = Image.new("LA", (5, 5), (0, 0))
    assert as_array(written(image, "a.png")).min() == 255
    image = Image.new("L", (5, 5), 7)
    assert as_array(written(image, "b.png", transparency=7)).min() == 255
    image = Image.new("RGB", (5, 5), (1, 2, 3))
    assert as_array(written(image, "c.png", transparency=(1, 2, 3))).min() == 255


@pytest.mark.parametrize("name", ["a.png", "a.gif"])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_palette_with_transparency_is_laid_on_white(written, name, as_bytes):
    image = Image.new("P", (6, 4), 0)
    image.putpalette([200, 0, 0, 0, 100, 0])
    image.paste(1, (3, 0, 6, 4))
    is_partial = as_bytes and name == "a.png"
    transparency = b"\x00\xff" if is_partial else 0
    found = as_array(written(image, name, transparency=transparency))
    assert found[0, 0].tolist() == [255] * 3 and found[0, 5].tolist() == [0, 100, 0]


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.png", "a.tiff"])
def test_of_several_frames_the_first_is_taken(written, name):
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [Image.new("RGB", (20, 20), colour) for colour in colours]
    lossless = {"lossless": True} if name == "a.webp" else {}
    file = written(frames[0], name, save_all=True, append_images=frames[1:], **lossless)
    found = as_array(file)
    assert_array_equal(found, np.asarray(frames[0]))


def test_later_frames_may_be_damaged(written):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (3, 40, 40), dtype=np.uint8)
    frames = [Image.fromarray(frame) for frame in noise]
    file = written(frames[0], "a.gif", save_all=True, append_images=frames[1:])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert_array_equal(as_array(file)[:, :, 0], noise[0])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tiff"])
def test_the_orientation_of_exif_is_applied(pixels, written, orientation, name):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if name == "a.webp" else {}
    file = written(Image.fromarray(pixels), name, exif=exif, **options)
    with Image.open(file) as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
        from_image = as_array(opened)
    found = as_array(file)
    assert_array_equal(found, expected)
    assert_array_equal(from_image, expected)


def jpeg_with(segment):
    """Return a JPEG with a segment of data beside its pixels, and its pixels."""
    file = io.BytesIO()
    Image.linear_gradient("L").convert("RGB").save(file, "JPEG")
    whole = file.getvalue()
    return whole[:2] + segment + whole[2:]


@pytest.mark.parametrize(
    "content",
    [
        b"Exif\0\0" + b"garbage" * 9,
        b"Exif\0\0II*\0\x08\0\0\0\xff\xff" + b"\xff" * 40,
        b"Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x63\0\0",
        b"Exif\0\0II*\0",
        b"Exif\0\0",
    ],
)
def test_exif_that_is_damaged_is_no_matter(tmp_path, content):
    segment = b"\xff\xe1" + struct.pack(">H", len(content) + 2) + content
    file = tmp_path / "a.jpg"
    file.write_bytes(jpeg_with(b""))
    expected = as_array(file)
    file.write_bytes(jpeg_with(segment))
    found = as_array(file)
    assert_array_equal(found, expected)


def test_exif_that_cannot_be_read_is_no_matter(pixels, monkeypatch):
    def getexif(image):
        raise SyntaxError("not a TIFF file")

    monkeypatch.setattr(Image.Image, "getexif", getexif)
    assert_array_equal(as_array(pixels), pixels)


def test_an_orientation_of_a_wrong_kind_is_no_matter(pixels):
    image = Image.fromarray(pixels)
    exif = image.getexif()
    for value in ((1, 2), [6], "6", b"\x06", 0, 9, -1, None):
        exif[0x0112] = value
        assert_array_equal(as_array(image), pixels)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.tiff", "a.webp"])
def test_a_colour_profile_that_is_damaged_is_no_matter(pixels, written, name):
    image = Image.fromarray(pixels)
    options = {"lossless": True} if name == "a.webp" else {}
    expected = as_array(written(image, name, **options))
    file = written(image, name, icc_profile=b"no profile" * 20, **options)
    assert_array_equal(as_array(file), expected)


@pytest.mark.parametrize("kind", [b"iCCP", b"eXIf", b"pHYs", b"gAMA", b"tEXt", b"prVt"])
@pytest.mark.parametrize("spoilt", ["content", "check sum"])
def test_chunks_beside_the_pixels_of_a_png_may_be_damaged(
    pixels, written, kind, spoilt
):
    file = written(Image.fromarray(pixels), "a.png")
    whole = file.read_bytes()
    data = b"name\0\0" + bytes(range(200, 240))
    check_sum = zlib.crc32(kind + data) ^ (spoilt == "check sum")
    chunk = struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check_sum)
    # After the signature and the header.
    file.write_bytes(whole[:33] + chunk + whole[33:])
    assert_array_equal(as_array(file), pixels)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (3000, 1), (2, 500)])
def test_slivers_are_pictures(shape, rng, written):
    sliver = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
    file = written(Image.fromarray(sliver), "a.png")
    assert_array_equal(as_array(file), sliver)
    features = PictureFeatures(n_words=2, size=64, random_state=0)
    X = features.fit_transform([file])
    assert np.isfinite(X).all() and X.sum() == pytest.approx(16)


def test_an_image_is_not_modified(pixels):
    image = Image.fromarray(pixels)
    read_picture(image).paste(0, (0, 0, 9, 9))
    assert_array_equal(np.asarray(image), pixels)


def test_what_is_no_picture_is_named():
    message = "the picture must be a file, a PIL image or an array .* got int. Convert"
    with pytest.raises(LinkspreadError, match=message):
        read_picture(7)
    with pytest.raises(LinkspreadError, match="^it must be an array of uint8 .* float"):
        read_picture(np.ones((3, 3)), name="it")


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
    assert error.kind == "broken link" and "link to nowhere. Correct" in str(error)
    loop.symlink_to(loop)
    assert refusal(loop).kind == "broken link"
    target.write_bytes(PNG)
    assert read_picture(link).size == (48, 32)


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
    monkeypatch.setattr("linkspread.features.pictures.MAX_PIXELS", 100)
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
@pytest.mark.slow
def test_whatever_the_bytes_a_file_is_read_or_refused(tmp_path, noise, start):
    file = tmp_path / "any"
    for content in (noise, start[: len(noise)] + noise, noise[:9].join([start] * 2)):
        file.write_bytes(content)
        try:
            assert read_picture(file).mode == "RGB"
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
        assert read_picture(file).mode == "RGB"
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
