"""Links added to a fitted model and taken back, without another fit."""

import copy
import time
import warnings
from typing import Any

from sklearn.utils.validation import check_is_fitted

from linkspread.compiled.threads import on_own_threads
from linkspread.ground.errors import LinkError
from linkspread.links import Links
from linkspread.models.fit_report import FitReport, SpreadReport
from linkspread.models.link_choice import find_chain
from linkspread.models.spreading import Spreading


class LiveLinks:
    """What a fitted model does with links that come later."""

    items_: dict[str, Any]
    links_: Links
    spreads_: dict[tuple[str, str], Any]
    report_: Any
    view_names_: tuple[str, ...]
    _spreading: Spreading

    @on_own_threads
    def add_links(self, links: Any) -> Any:
        """Take up further judged pairs, without another fit.

        The graphs stay as they are, also those that the links of the fit shaped.
        Scores are computed exactly from then on, when they are asked for, also where
        the fit had a `rank`.
        """
        check_is_fitted(self)
        return self._relink(self.links_ + self._single_pairs(links, "added"))

    @on_own_threads
    def remove_links(self, links: Any) -> Any:
        """Take back judged pairs, without another fit."""
        check_is_fitted(self)
        return self._relink(self.links_ - self._single_pairs(links, "removed"))

    def snapshot(self) -> Any:
        """Return the model as it is now, which later changes leave alone.

        One thread can change a model while others search its last snapshot. Arrays
        are shared, so that a snapshot takes hardly any memory.
        """
        check_is_fitted(self)
        kept = copy.copy(self)
        kept.spreads_ = dict(self.spreads_)
        report = self.report_
        kept.report_ = FitReport(
            dict(report.graphs), dict(report.spreads), report.columns
        )
        kept._spreading = copy.copy(self._spreading)
        return kept

    def _single_pairs(self, links: Any, done: str) -> Links:
        """Return links by position, which must be single pairs."""
        if not isinstance(links, Links) or not links.pair_tables or links.has_labels:
            raise LinkError(
                f"only single pairs can be {done} live, got {links!r:.60}. Make them "
                "with `Links.from_pairs`; for labels, fit again."
            )
        known = {view: self.items_[view] for view in links.views if view in self.items_}
        return links.resolve(known)

    def _relink(self, links: Links) -> Any:
        """Replace the links, and all scores that change with them."""
        self._warn_of_shortcuts(links)
        start = time.perf_counter()
        changed = self._spreading.relink(links, self.spreads_)
        seconds = time.perf_counter() - start
        self.links_ = links
        for pair, scores in changed.items():
            self.spreads_[pair] = scores
            self.report_.spreads[pair] = SpreadReport.of(scores, seconds)
        return self

    def _warn_of_shortcuts(self, links: Links) -> None:
        """Warn where first links of two views replace what others say of them."""
        for between, _ in links.pair_tables:
            if between[0] == between[1] or self.links_.connects(*between):
                continue
            chain = find_chain(self.links_, self.view_names_, *between)
            if chain is not None:
                through = " and ".join(map(repr, chain[1:-1]))
                warnings.warn(
                    f"{between[0]!r} and {between[1]!r} are searched by their own "
                    f"links from now on, and no longer through {through}. Remove "
                    "these links while they are few.",
                    UserWarning,
                    stacklevel=4,
                )
