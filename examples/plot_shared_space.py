"""
A shared space, before and after judgements
===========================================

Both views have vectors of one encoder. They are searched by the cosine until partners
are known; a hundred known partners then teach what the encoder got wrong between the
views.
"""

import matplotlib.pyplot as plt
import numpy as np

import linkspread as ls

rng = np.random.default_rng(0)
text = rng.normal(size=(800, 32)) @ np.diag(np.linspace(2, 0.2, 32))
# Images see the same, but their columns are mixed a little and shifted.
mixing = np.eye(32) + 0.4 * rng.normal(size=(32, 32))
image = text @ mixing + 3 * rng.normal(size=text.shape) + 0.5
views = {"text": text, "image": image}


def partner_ranks(model):
    """Return at which rank each text finds its image."""
    scores = model.scores("text", "image", rows=slice(100, None))
    own = scores[np.arange(700), np.arange(100, 800)]
    return 1 + (scores > own[:, None]).sum(axis=1)


models = {"cosine, no judgement": ls.CrossViewSearch().fit(views)}
known = ls.Links.from_matched(("text", "image"), 100)
models["100 known partners"] = ls.CrossViewSearch().fit(views, known)

figure, ax = plt.subplots(layout="constrained")
cutoffs = np.arange(1, 51)
for name, model in models.items():
    ranks = partner_ranks(model)
    ax.plot(cutoffs, [(ranks <= k).mean() for k in cutoffs], label=name)
ax.set(xlabel="results looked at", ylabel="partners found", ylim=(0, 1))
ax.legend()
