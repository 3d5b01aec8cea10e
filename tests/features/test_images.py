"""Every kind of picture that is read, and how it looks in RGB."""

import io
import struct
import zlib

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from linkspread.features import PictureFeatures, read_picture
from linkspread.ground.errors import LinkspreadError

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
    """Return the pixels of a picture as it is read, and the notes."""
    image, notes = read_picture(picture)
    assert image.mode == "RGB" and isinstance(notes, tuple)
    return np.asarray(image), notes


@pytest.mark.parametrize("name", ["a.png", "a.bmp", "a.tiff", "a.ppm", "a", "a.dat"])
def test_lossless_formats_give_the_same_pixels(pixels, written, name):
    format_name = None if "." in name and name != "a.dat" else "PNG"
    file = written(Image.fromarray(pixels), name, format=format_name)
    found, notes = as_array(file)
    assert_array_equal(found, pixels)
    assert notes == ()
    assert_array_equal(as_array(str(file))[0], pixels)


@pytest.mark.parametrize("name", ["a.jpg", "a.JPEG", "a.webp", "a.avif", "a.jp2"])
def test_lossy_formats_give_nearly_the_same_pixels(pixels, written, name):
    try:
        file = written(Image.fromarray(pixels), name)
    except (ValueError, OSError):
        pytest.skip(f"this Pillow does not write {name}")
    found, notes = as_array(file)
    assert np.abs(found.astype(int) - pixels).mean() < 8
    assert notes == ()


def test_a_png_called_jpg_is_read_and_noted(pixels, written):
    found, notes = as_array(written(Image.fromarray(pixels), "a.jpg", format="PNG"))
    assert_array_equal(found, pixels)
    assert notes == ("mis-named: a PNG called .jpg",)


def test_grey_and_one_bit_pictures(pixels, written):
    grey = Image.fromarray(pixels).convert("L")
    expected = np.repeat(np.asarray(grey)[:, :, np.newaxis], 3, axis=2)
    assert_array_equal(as_array(written(grey, "a.png"))[0], expected)
    assert_array_equal(as_array(np.asarray(grey))[0], expected)
    line = Image.fromarray(np.asarray(grey) > 99)
    assert line.mode == "1"
    found = as_array(written(line, "b.png"))[0]
    assert_array_equal(found[:, :, 0], np.where(np.asarray(grey) > 99, 255, 0))


@pytest.mark.parametrize("name", ["a.png", "a.tiff"])
def test_grey_of_16_bits_keeps_the_upper_eight(rng, written, name):
    values = rng.integers(0, 2**16, (20, 30), dtype=np.uint16)
    file = written(Image.fromarray(values), name)
    found, notes = as_array(file)
    assert_array_equal(found, np.repeat((values >> 8)[:, :, np.newaxis], 3, axis=2))
    assert notes == ("16-bit grey",)


def test_grey_of_16_bits_that_older_pillows_open_in_32(rng):
    values = rng.integers(0, 2**16, (20, 30)).astype(np.int32)
    image = Image.fromarray(values)
    image.format = "PNG"
    assert image.mode == "I"
    assert_array_equal(as_array(image)[0][:, :, 1], values >> 8)


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_grey_of_32_bits_is_stretched(rng, written, dtype):
    values = np.array([[-1000, 0], [500, 1000]], dtype=dtype)
    found, notes = as_array(written(Image.fromarray(values), "a.tiff"))
    assert found[:, :, 0].tolist() == [[0, 127], [191, 255]]
    assert notes == ("32-bit grey",)


def test_floats_of_every_kind_are_no_trouble():
    most = np.finfo(np.float32).max
    values = np.array([[-most, most], [np.nan, np.inf]], dtype=np.float32)
    found = as_array(Image.fromarray(values))[0][:, :, 0]
    assert found.tolist() == [[0, 255], [0, 0]]
    assert as_array(Image.fromarray(values * np.nan))[0].max() == 0
    flat = np.full((3, 3), 300, dtype=np.float32)
    assert as_array(Image.fromarray(flat))[0].tolist() == [[[255] * 3] * 3] * 3


def test_cmyk_is_read(written):
    ink = Image.new("CMYK", (40, 40), (255, 0, 0, 0))
    found, notes = as_array(written(ink, "a.jpg"))
    assert np.abs(found.astype(int) - [0, 255, 255]).max() <= 3
    assert notes == ("CMYK",)


def test_what_is_transparent_is_laid_on_white(pixels, written, rng):
    alpha = rng.integers(0, 256, (32, 48, 1))
    layers = np.concatenate([pixels, alpha], axis=2).astype(np.uint8)
    expected = (pixels * (alpha / 255) + 255 * (1 - alpha / 255)).round()
    for picture in (layers, Image.fromarray(layers)):
        found, notes = as_array(picture)
        assert np.abs(found - expected).max() <= 1
        assert notes == ("laid on white",)
    assert_array_equal(as_array(written(Image.fromarray(layers), "a.png"))[0], found)
    opaque = np.concatenate([pixels, 0 * alpha + 255], axis=2).astype(np.uint8)
    assert_array_equal(as_array(opaque)[0], pixels)
    assert as_array(opaque)[1] == ()


def test_grey_with_transparency_is_laid_on_white(written):
    image = Image.new("LA", (5, 5), (0, 0))
    assert as_array(written(image, "a.png"))[0].min() == 255
    image = Image.new("L", (5, 5), 7)
    assert as_array(written(image, "b.png", transparency=7))[0].min() == 255
    image = Image.new("RGB", (5, 5), (1, 2, 3))
    assert as_array(written(image, "c.png", transparency=(1, 2, 3)))[0].min() == 255


@pytest.mark.parametrize("name", ["a.png", "a.gif"])
@pytest.mark.parametrize("as_bytes", [True, False])
def test_a_palette_with_transparency_is_laid_on_white(written, name, as_bytes):
    image = Image.new("P", (6, 4), 0)
    image.putpalette([200, 0, 0, 0, 100, 0])
    image.paste(1, (3, 0, 6, 4))
    is_partial = as_bytes and name == "a.png"
    transparency = b"\x00\xff" if is_partial else 0
    found, notes = as_array(written(image, name, transparency=transparency))
    assert found[0, 0].tolist() == [255] * 3 and found[0, 5].tolist() == [0, 100, 0]
    assert notes == ("laid on white",)


@pytest.mark.parametrize("name", ["a.gif", "a.webp", "a.png", "a.tiff"])
def test_of_several_frames_the_first_is_taken(written, name):
    colours = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [Image.new("RGB", (20, 20), colour) for colour in colours]
    lossless = {"lossless": True} if name == "a.webp" else {}
    file = written(frames[0], name, save_all=True, append_images=frames[1:], **lossless)
    found, notes = as_array(file)
    assert_array_equal(found, np.asarray(frames[0]))
    assert notes == ("first of 3 frames",)


def test_later_frames_may_be_damaged(written):
    rng = np.random.default_rng(0)
    noise = rng.integers(0, 256, (3, 40, 40), dtype=np.uint8)
    frames = [Image.fromarray(frame) for frame in noise]
    file = written(frames[0], "a.gif", save_all=True, append_images=frames[1:])
    whole = file.read_bytes()
    file.write_bytes(whole[: len(whole) // 2])
    assert_array_equal(as_array(file)[0][:, :, 0], noise[0])


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.tiff"])
def test_the_orientation_of_exif_is_applied(pixels, written, orientation, name):
    exif = Image.Exif()
    exif[0x0112] = orientation
    options = {"lossless": True} if name == "a.webp" else {}
    file = written(Image.fromarray(pixels), name, exif=exif, **options)
    with Image.open(file) as opened:
        expected = np.asarray(ImageOps.exif_transpose(opened).convert("RGB"))
        from_image = as_array(opened)[0]
    found, notes = as_array(file)
    assert_array_equal(found, expected)
    assert_array_equal(from_image, expected)
    # Pillow itself turns this format while it reads it.
    is_noted = orientation > 1 and name != "a.tiff"
    assert notes == (("turned as EXIF says",) if is_noted else ())


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
    expected = as_array(file)[0]
    file.write_bytes(jpeg_with(segment))
    found, notes = as_array(file)
    assert_array_equal(found, expected)
    assert notes in ((), ("EXIF cannot be read",))


def test_exif_that_cannot_be_read_is_noted(pixels, monkeypatch):
    def getexif(image):
        raise SyntaxError("not a TIFF file")

    monkeypatch.setattr(Image.Image, "getexif", getexif)
    assert as_array(pixels)[1] == ("EXIF cannot be read",)


def test_an_orientation_of_a_wrong_kind_is_no_matter(pixels):
    image = Image.fromarray(pixels)
    exif = image.getexif()
    for value in ((1, 2), [6], "6", b"\x06", 0, 9, -1, None):
        exif[0x0112] = value
        assert_array_equal(as_array(image)[0], pixels)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.tiff", "a.webp"])
def test_a_colour_profile_that_is_damaged_is_no_matter(pixels, written, name):
    image = Image.fromarray(pixels)
    options = {"lossless": True} if name == "a.webp" else {}
    expected = as_array(written(image, name, **options))[0]
    file = written(image, name, icc_profile=b"no profile" * 20, **options)
    assert_array_equal(as_array(file)[0], expected)


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
    assert_array_equal(as_array(file)[0], pixels)


@pytest.mark.parametrize("shape", [(1, 1), (1, 3000), (3000, 1), (2, 500)])
def test_slivers_are_pictures(shape, rng, written):
    sliver = rng.integers(0, 256, (*shape, 3), dtype=np.uint8)
    file = written(Image.fromarray(sliver), "a.png")
    assert_array_equal(as_array(file)[0], sliver)
    features = PictureFeatures(n_words=2, size=64, random_state=0)
    X = features.fit_transform([file])
    assert np.isfinite(X).all() and X.sum() == pytest.approx(16)


def test_an_image_is_not_modified(pixels):
    image = Image.fromarray(pixels)
    read_picture(image)[0].paste(0, (0, 0, 9, 9))
    assert_array_equal(np.asarray(image), pixels)


def test_what_is_no_picture_is_named():
    message = "the picture must be a file, a PIL image or an array .* got int. Convert"
    with pytest.raises(LinkspreadError, match=message):
        read_picture(7)
    with pytest.raises(LinkspreadError, match="^it must be an array of uint8 .* float"):
        read_picture(np.ones((3, 3)), name="it")
