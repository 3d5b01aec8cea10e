"""The search page: search and judge in a browser.

>>> from linkspread.web import Settings
>>> Settings().host
'127.0.0.1'
"""

from linkspread.web.app import create_app
from linkspread.web.server import Settings, serve

__all__ = ["Settings", "create_app", "serve"]
