"""What tests of pages share."""

from html.parser import HTMLParser

NASTY = "<script>alert('&\"')</script>"


class Reader(HTMLParser):
    """Collect tags, addresses and text, and check that tags are closed."""

    VOID = {"meta", "img"}

    def __init__(self):
        super().__init__()
        self.tags, self.open, self.addresses, self.text = [], [], [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [v for k, v in attrs if k in ("src", "href")]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data.strip())


def read(html):
    reader = Reader()
    reader.feed(html)
    assert reader.open == []
    return reader
